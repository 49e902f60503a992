"""Which crate may use which: the arrows of the map, held against every Cargo.toml."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest
from house import ROOT, crates

MAP = ROOT / "docs" / "explanation" / "map.md"


def read_arrows(text: str) -> dict[str, set[str]]:
    """The arrows of the map's table of crates; what a crate may use comes with what that one may use."""
    rows = re.findall(r"^\| `crates/(\w+)` \|[^|]*\|([^|]*)\|$", text, re.MULTILINE)
    arrows = {crate: set(re.findall(r"`(\w+)`", used)) for crate, used in rows}
    for crate, used in rows:
        if used.strip() == "all":
            arrows[crate] = set(arrows) - {crate}
    return arrows


ARROWS = read_arrows(MAP.read_text())

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
    assert set(crates()) == set(ARROWS)
    assert set().union(*ARROWS.values()) <= set(ARROWS), "the map names a crate that it does not list"


def test_the_arrows_are_read_off_the_map() -> None:
    text = "| `crates/a` | one | |\n| `crates/b` | two | `a`, `c` |\n| `crates/d` | all | all |\n"
    assert read_arrows(text) == {"a": set(), "b": {"a", "c"}, "d": {"a", "b"}}


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
