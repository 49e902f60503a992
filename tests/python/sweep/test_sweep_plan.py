"""What a sweep runs: keys, ranges, combinations, seeds."""

from __future__ import annotations

from pathlib import Path

import pytest

from wiretwin.errors import InputError
from wiretwin.scenario import Scenario
from wiretwin.sweep.plan import Axis, parse_axis, place, points, seed_of
from wiretwin.sweep.run import sweep

NETWORK = {
    "preset": "asx100",
    "load": [{"share": 0.4}, {"share": 0.1}],
}
SCENARIO = Scenario.of({"network": NETWORK, "echo": {"stack": "fore/aal5", "size": "1 KiB"}})


@pytest.mark.parametrize(
    ("text", "path", "values"),
    [
        ("rounds=3", ("echo", "rounds"), (3,)),
        ("echo.size=4 B,4KiB", ("echo", "size"), ("4 B", "4KiB")),
        ("load[1].share=0.1:0.3:0.1", ("network", "load", 1, "share"), (0.1, 0.2, 0.3)),
        ("network.load.0.share=0.5", ("network", "load", 0, "share"), (0.5,)),
        ("rounds=10:30:10", ("echo", "rounds"), (10, 20, 30)),
        ("reserve=1:2:0.5Mbit/s", ("network", "reserve"), ("1.0 Mbit/s", "1.5 Mbit/s", "2.0 Mbit/s")),
        ("nodelay=true,false", ("network", "nodelay"), (True, False)),
        ("host=sparc1+,sparc2", ("network", "host"), ("sparc1+", "sparc2")),
    ],
)
def test_an_axis_is_a_key_and_its_values(
    text: str, path: tuple[str | int, ...], values: tuple[object, ...]
) -> None:
    axis = parse_axis(text, SCENARIO)
    assert (axis.path, axis.values) == (path, values)
    for point in points([axis]):
        place(SCENARIO, [axis], point)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("size", "KEY=a,b,c"),
        ("=3", "KEY=a,b,c"),
        ("size=", "KEY=a,b,c"),
        ("size=1:2", "KEY=a,b,c"),
        ("size=4 B,,8 B", "KEY=a,b,c"),
        ("size=4 B,4 B", "a value twice"),
        ("share=0.1", r"network.load\[0\].share or network.load\[1\].share"),
        ("colour=red", "is no key of the scenario; allowed: network.host"),
        ("seed=1,2", "what replications are for"),
        ("rounds=3:1:1", "low up to high"),
        ("rounds=1:3:0", "is no range"),
        ("rounds=1:3:x", "is no range"),
        ("rounds=0:1e9:1", "at most 100000"),
    ],
)
def test_what_is_no_axis_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_axis(text, SCENARIO)


def test_every_combination_is_a_point_and_the_last_axis_is_the_fastest() -> None:
    axes = [Axis("a", ("x",), (1, 2)), Axis("b", ("y",), ("u", "v"))]
    assert points(axes) == [{"a": 1, "b": "u"}, {"a": 1, "b": "v"}, {"a": 2, "b": "u"}, {"a": 2, "b": "v"}]
    assert points([]) == [{}]
    with pytest.raises(InputError, match="is given twice"):
        points([axes[0], Axis("x", ("x",), (3,))])
    long = [Axis(name, (name,), tuple(range(400))) for name in "xy"]
    with pytest.raises(InputError, match="too many"):
        points(long)


def test_a_value_that_is_not_allowed_is_named_with_its_point() -> None:
    axis = parse_axis("rounds=1,2", SCENARIO)
    with pytest.raises(InputError, match=r"--over rounds=1: echo.rounds = 1; allowed is at least 2"):
        place(SCENARIO, [axis], {"rounds": 1})


def test_seeds_are_those_of_the_replication() -> None:
    seeds = [seed_of(SCENARIO, replication) for replication in range(100)]
    assert len(set(seeds)) == 100
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert seeds[3] == seed_of(SCENARIO, 3)
    assert seeds != [
        seed_of(SCENARIO.model_copy(update={"seed": 2}), replication) for replication in range(100)
    ]


@pytest.mark.parametrize(
    ("over", "message"),
    [
        ("stack=fore/aal5,fore/aal1", r"--over stack=fore/aal1: echo\.stack: 'fore/aal1' .*aal5"),
        ("host=sparc2,sparc9", r"--over host=sparc9: network\.host: 'sparc9' .* allowed: 4/690, alpha-170"),
        (
            "nodelay=true,false",
            r"--over nodelay=True: network\.nodelay: 'true' .* on circuits without sockets",
        ),
    ],
)
def test_a_network_that_cannot_be_is_refused_before_anything_runs(
    tmp_path: Path, over: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        sweep(SCENARIO, [over], tmp_path / "swept", workers=1)
    assert not (tmp_path / "swept").exists()
