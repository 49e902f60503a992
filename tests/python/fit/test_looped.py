"""What calls take in a loop: fitted, kept in the twin, and taken in the simulated world."""

from __future__ import annotations

import json
from dataclasses import replace

import polars as pl
import pytest
from fit_help import HOST

from wiretwin.errors import InputError
from wiretwin.fit.api import fit
from wiretwin.fit.synthetic import Lines
from wiretwin.loops import COLLECTIVES, FAMILIES, LOOPED
from wiretwin.mpi.looped import times_ns
from wiretwin.predict.calls import beyond_messages
from wiretwin.predict.model import Site
from wiretwin.twin import Figure, Twin

LOOPS = ("echo", "call", "send_busy", "recv_busy", "stream", "prtt")
TAKES_NS = {
    "Barrier": 4000, "bcast": 5000, "allreduce": 22_000, "gather": 100, "Sendrecv": 3500, "send": 1700,
}  # fmt: skip
"""Of which `gather` takes less than its messages do, `send` less than the same with arrays."""
ON_ONE_CORE_NS = {"Barrier": 24_000, "allreduce": 70_000}
YIELDS = {"cores": 1, "idle": "yield", "quantum_ps": 4_000_000_000, "turn_ps": 3_000_000, "fair": True}


def measured(launches: int) -> pl.DataFrame:
    """Return samples of a layer with those of loops, each launch 1 % slower than the last."""
    samples = HOST.samples(launches=launches, loops=LOOPS)
    one, rows = samples.row(0, named=True), []
    for launch in range(1, launches + 1):
        loops = {f"later_{kind}": ns for kind, ns in TAKES_NS.items()}
        for loop, ns in (loops | {f"shared_{kind}": ns for kind, ns in ON_ONE_CORE_NS.items()}).items():
            for index in range(5):
                value = round(25 * ns * (1 + 0.01 * launch))
                call = {"launch": launch, "loop": loop, "bytes": 0, "messages": 1, "delay_ns": 0}
                rows.append(one | call | {"batch": 25, "index": index, "value_ns": value})
    return pl.concat([samples, pl.DataFrame(rows, schema=samples.schema)])


def test_the_twin_keeps_the_typical_launch() -> None:
    twin = fit(measured(5))
    assert Twin.parse(twin.to_toml()).to_toml() == twin.to_toml()
    found = {one.kind: one.takes_us for one in twin.layer("synthetic").looped}
    assert set(found) == set(TAKES_NS)
    for kind, ns in TAKES_NS.items():
        assert found[kind].value == pytest.approx(1.03e-3 * ns, rel=1e-3)
        assert found[kind].low < found[kind].value < found[kind].high
    shared = {one.kind: one.one_core_us for one in twin.layer("synthetic").looped if one.one_core_us}
    assert {kind: one.value for kind, one in shared.items()} == {
        kind: pytest.approx(1.03e-3 * ns, rel=1e-3) for kind, ns in ON_ONE_CORE_NS.items()
    }
    once = measured(5).filter((pl.col("loop") != "later_Barrier") | (pl.col("launch") == 1))
    assert {one.kind for one in fit(once).layer("synthetic").looped} == set(TAKES_NS) - {"Barrier"}


def test_two_launches_that_lie_far_apart_make_an_interval_that_a_twin_can_hold() -> None:
    slow = (pl.col("loop") == "later_Barrier") & (pl.col("launch") == 2)
    rows = measured(2).with_columns(
        pl.when(slow).then(1000 * pl.col("value_ns")).otherwise(pl.col("value_ns")).alias("value_ns")
    )
    found = {one.kind: one.takes_us for one in fit(rows).layer("synthetic").looped}
    assert found["Barrier"].high == Figure.RANGE[1]


def test_a_loop_that_is_not_there_is_named_with_those_that_are() -> None:
    text = fit(measured(5)).to_toml()
    with pytest.raises(InputError, match=r"looped.*kind.*'Barriers'.*allowed are send, .*Barrier"):
        Twin.parse(text.replace('kind = "Barrier"', 'kind = "Barriers"'))


def test_loops_take_in_the_simulated_world_what_they_were_measured_to_take() -> None:
    twin = fit(measured(5), host={"cores": 2})
    model = Site.of(2).model(twin, "synthetic", fresh=True)
    took, alone = times_ns(json.dumps(model)), times_ns(json.dumps(Site.of(2).model(twin, "synthetic")))
    assert set(took) == set(LOOPED)
    for kind, ns in TAKES_NS.items():
        if kind == "gather":
            assert 1.03 * ns < took[kind] < alone[kind]  # no call is shorter than its messages
        else:
            assert took[kind] == pytest.approx(1.03 * ns, rel=0.01), kind
    charged = {name for one in model["beyond"] for name in one["calls"]}
    assert set(FAMILIES["allreduce"]) <= charged
    assert all(one["ps"] == -90_000 for one in model["beyond"] if "gather" in one["calls"])
    assert all(one["ps"] < 0 for one in model["beyond"] if "recv" in one["calls"])
    assert not {"Send", "Recv"} & charged
    assert "beyond" not in Site.of(2).model(twin, "synthetic")


def test_loops_of_collective_calls_take_on_one_core_what_they_were_measured_to_take_there() -> None:
    twin = fit(measured(5), host={"cores": 2})
    layer, model = twin.layer("synthetic"), Site.of(2).model(twin, "synthetic") | {"nodes": [YIELDS]}
    took = times_ns(json.dumps(model | beyond_messages(layer, model, crowded=2)), collective=True)
    assert set(took) == set(COLLECTIVES)
    for kind, ns in ON_ONE_CORE_NS.items():
        assert took[kind] == pytest.approx(1.03 * ns, rel=0.01), kind

    def barrier_ps(crowded: int) -> int:
        beyond = beyond_messages(layer, model, crowded=crowded)["beyond"]
        return next(one["ps"] for one in beyond if "Barrier" in one["calls"])

    more = barrier_ps(2) - barrier_ps(0)
    assert more > 0
    # One round between two ranks, two among three or four, three among five.
    assert [barrier_ps(ranks) - barrier_ps(0) for ranks in (3, 4, 5)] == [2 * more, 2 * more, 3 * more]


@pytest.mark.parametrize(("takes_ns", "in_turn"), [(640, True), (560, False)])
def test_an_exchange_tells_whether_ends_that_overlap_are_busy_in_turn(takes_ns: int, in_turn: bool) -> None:
    """Of 700 ns at both ends, 500 are left in a one-way latency of so much."""
    host = replace(HOST, latency=Lines(((0, -200.0, 0.0),)))
    samples = host.samples(launches=3, loops=LOOPS)
    one = samples.row(0, named=True)
    call = {
        "loop": "later_Sendrecv",
        "bytes": 0,
        "messages": 1,
        "delay_ns": 0,
        "batch": 1,
        "value_ns": takes_ns,
    }
    rows = [one | call | {"launch": launch} for launch in samples["launch"].unique()]
    layer = fit(pl.concat([samples, pl.DataFrame(rows, schema=samples.schema)])).layer("synthetic")
    assert layer.checks is not None
    assert layer.checks.overhead_reduced_percent is not None
    assert (bool(layer.busy_send), bool(layer.busy_recv)) == (in_turn, in_turn)
