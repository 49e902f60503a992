"""Which room may use which: the arrows of the design, held against every Cargo.toml."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from house import ROOT, crates

# Arrows point at what a room may use; what that room may use comes with it.
ARROWS: dict[str, set[str]] = {
    "units": set(),
    "wire": {"units"},
    "proto": {"wire"},
    "msg": {"proto"},
    "engine": {"units"},
    "prog": {"units"},
    "record": {"units"},
    "measure": {"prog", "record"},
    "net": {"engine", "msg", "prog", "record"},
    "host": {"msg", "prog", "record"},
    "emu": {"net", "host"},
    "probe": {"host", "measure", "prog", "record", "units"},
}
ARROWS["py"] = set(ARROWS)

PREFIX = "wiretwin-"


def may_use(room: str) -> set[str]:
    """Every room that the arrows lead to."""
    reached: set[str] = set()
    frontier = [room]
    while frontier:
        for other in ARROWS[frontier.pop()]:
            if other not in reached:
                reached.add(other)
                frontier.append(other)
    return reached


def used_rooms(manifest: dict[str, Any]) -> set[str]:
    """The rooms that a Cargo.toml names, in any of its dependency tables.

    What the benches share is no room, and no room's own code may use it.
    """
    tables = [manifest, *manifest.get("target", {}).values()]
    names: set[str] = set()
    for table in tables:
        for kind in ("dependencies", "dev-dependencies", "build-dependencies"):
            named = {
                value.get("package", key) if isinstance(value, dict) else key
                for key, value in table.get(kind, {}).items()
            }
            names |= named - {f"{PREFIX}benches"} if kind == "dev-dependencies" else named
    return {name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX)}


def manifest_of(room: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / "crates" / room / "Cargo.toml").read_text())


def test_every_crate_is_a_room_of_the_table() -> None:
    assert set(crates()) <= set(ARROWS)
    assert set(ARROWS) - set(crates()) <= {"emu"}, "a room of the table that has no crate"


@pytest.mark.parametrize("room", crates())
def test_a_room_uses_only_what_its_arrows_reach(room: str) -> None:
    manifest = manifest_of(room)
    assert manifest["package"]["name"] == PREFIX + room
    assert used_rooms(manifest) - may_use(room) == set()


def test_net_and_host_do_not_reach_each_other() -> None:
    assert "host" not in may_use("net")
    assert "net" not in may_use("host")
    assert not {"net", "host"} & (may_use("measure") | may_use("prog"))
    both = {room for room in ARROWS if {"net", "host"} <= may_use(room)}
    assert both == {"emu", "py"}


def test_a_forbidden_arrow_is_seen_wherever_it_hides() -> None:
    text = """
        [dependencies]
        wiretwin-units.workspace = true
        renamed = { package = "wiretwin-net", path = "../net" }
        [dev-dependencies]
        wiretwin-engine = { workspace = true }
        [target.'cfg(unix)'.dependencies]
        wiretwin-py = "0.1"
    """
    assert used_rooms(tomllib.loads(text)) == {"units", "net", "engine", "py"}
    assert {"net", "engine", "py"} <= used_rooms(tomllib.loads(text)) - may_use("host")
