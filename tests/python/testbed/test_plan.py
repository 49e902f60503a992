"""What is asked of a testbed, read and refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wiretwin.errors import InputError
from wiretwin.testbed.plan import Link, Plan, make_plan, parse_link


def test_links_are_read() -> None:
    assert parse_link() == Link("veth", 1500, True)
    assert parse_link("veth", mtu=9000, offload=False) == Link("veth", 9000, False)
    assert parse_link("shared", rate="10Mbit") == Link("shared", offload=False, rate_bit_s=10_000_000)
    wire = parse_link(
        "wire",
        rate="1.5 Gbit/s",
        delay="5us",
        medium="shared",
        rules={"loss": "0.1%", "corrupt": None},
        seed=7,
    )
    assert wire == Link("wire", 1500, False, 1_500_000_000, 5000, "shared", {"loss": 0.001}, 7)


def _wire(medium: str | None = None, **outputs: str) -> dict[str, Any]:
    return {"kind": "wire", "rate": "10Mbit", "medium": medium, "outputs": outputs}


def test_what_the_outputs_of_a_wire_have_is_read_and_said_to_the_wire() -> None:
    strict = parse_link(**_wire(strict_priority="46,34", queue="64KiB", background="h2:0=0.7", burst="20ms"))
    assert strict.outputs.queues == ["46", "34", "others"]
    assert strict.outputs.switch() == {
        "queues": {"scheduler": "strict-priority", "dscp": [46, 34]},
        "queue_bytes": 65536,
        "background": [{"dscp": 0, "load": 0.7, "to": "h2", "on_ns": 20_000_000}],
    }
    assert "strict priority 46, 34, others, queues of 64 KiB, background h2:0=0.7" in strict.words
    weighted = parse_link(**_wire(weights="46=3,others=2")).outputs
    assert weighted.switch() == {
        "queues": {"scheduler": "weighted", "weights": [{"dscp": 46, "weight": 3}], "others": 2}
    }
    assert parse_link("wire", rate="10Mbit").outputs.switch() is None
    for link in (strict, parse_link(**_wire(weights="46=3"))):
        assert (
            Plan.from_json(json.loads(json.dumps(Plan(2, link).to_json()))).link.describe() == link.describe()
        )


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"kind": "tbf"}, "--link: 'tbf' a token bucket is no wire"),
        ({"kind": "token-ring"}, "allowed: veth, shared, wire"),
        ({"rate": "10Mbit"}, "--rate: '10Mbit' on veth would be a token bucket"),
        ({"kind": "wire"}, "--rate: is needed with --link wire"),
        (
            {"kind": "wire", "rate": "10"},
            "has no unit; allowed: a number with a unit (kbit, Mbit, Gbit) from 10kbit to 10Gbit",
        ),
        ({"kind": "wire", "rate": "11Gbit"}, "is out of range"),
        ({"kind": "wire", "rate": "10Mbit", "medium": "air"}, "--medium: 'air'"),
        ({"kind": "wire", "rate": "10Mbit", "rules": {"loss": "0.1"}}, "--loss: '0.1' is not allowed"),
        ({"kind": "wire", "rate": "10Mbit", "rules": {"loss": "101%"}}, "0% to 100%"),
        ({"kind": "wire", "rate": "10Mbit", "delay": "5"}, "--delay: '5' has no unit"),
        ({"kind": "wire", "rate": "10Mbit", "offload": False}, "--no-offload"),
        ({"rules": {"reorder": "1%"}}, "--reorder: '1%' is not for --link veth"),
        ({"kind": "shared", "rate": "1Gbit", "delay": "1us"}, "--delay: '1us' is not for --link shared"),
        (
            {"outputs": {"queue": "64KiB"}},
            "--queue: '64KiB' is not for --link veth; allowed: with --link wire",
        ),
        (_wire(medium="shared", background="0=0.7"), "--background: is of the outputs of a switch"),
        (
            _wire(strict_priority="46,46"),
            "1 to 7 classes, each a DSCP from 0 to 63, first the one that goes first",
        ),
        (_wire(strict_priority="64"), "--strict-priority: '64' is not allowed"),
        (
            _wire(strict_priority="46", weights="46=1"),
            "without --strict-priority: an output has one scheduler",
        ),
        (_wire(weights="46=0"), "and a weight from 1 to 255, such as 46=3,others=1"),
        (_wire(weights="others=1"), "1 to 7 classes besides others"),
        (_wire(background="0=2.1"), "a share of the rate from 0 to 2, such as 0=0.7 or h2:0=0.7"),
        (_wire(background="0=0.1,0=0.2"), "each once"),
        (_wire(background="h100:0=0.1"), "each once"),
        (_wire(sources="3"), "--sources: '3' is of --background"),
        (_wire(sources="0", background="0=0.5"), "--sources: '0' is not allowed"),
        (_wire(burst="10ms"), "--burst: '10ms' is of --background; allowed: with --background 0=0.7"),
        ({"mtu": 9001}, "--mtu: 9001 is not allowed here; allowed: 576 to 9000"),
    ],
)
def test_what_a_link_cannot_be_is_refused_with_the_reason(keywords: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_link(**keywords)
    assert words in str(caught.value)


def test_a_plan_survives_its_file() -> None:
    plan = Plan(3, Link("wire", rate_bit_s=10**7, rules={"loss": 0.5}), ["/tmp/x"])
    assert Plan.from_json(plan.to_json()) == plan
    assert [host.address for host in plan.hosts] == ["10.20.0.1", "10.20.0.2", "10.20.0.3"]


def test_folders_below_those_that_hosts_have_for_themselves_are_made_visible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    inside = any(tmp_path.is_relative_to(folder) for folder in ("/tmp", "/run", "/dev/shm"))
    assert (str(tmp_path) in make_plan(2, Link(), [tmp_path]).visible) == inside
    assert str(tmp_path) not in make_plan(2, Link()).visible
    monkeypatch.chdir(tmp_path)
    assert (str(tmp_path) in make_plan(2, Link()).visible) == inside
    with pytest.raises(InputError, match="is no folder"):
        make_plan(2, Link(), [tmp_path / "none"])
    with pytest.raises(InputError, match="holds what every host has for itself"):
        make_plan(2, Link(), ["/tmp"])
    with pytest.raises(InputError, match="1 to 64"):
        make_plan(65, Link())


def test_hosts_on_a_wire_have_a_core_each_where_they_fill_the_machine() -> None:
    wire = Link("wire", rate_bit_s=10**9)
    for hosts, machine, cores, taken_from in (
        (2, [0, 1], [0, 1], [1, 0]),
        (4, [0, 1], [0, 1, 0, 1], [1, 0, 1, 0]),
        (3, [2, 5, 7], [2, 5, 7], [5, 7, 2]),
        (2, [0, 1, 2], None, None),  # the wire has a core to itself
        (2, [0], None, None),
    ):
        assert (Plan(hosts, wire).cores(machine), Plan(hosts, wire).taken_from(machine)) == (
            cores,
            taken_from,
        )
    assert Plan(2, Link()).cores([0, 1]) is None
