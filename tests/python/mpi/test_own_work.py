"""What of a measured stretch is the simulator's own is not charged to the program."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wiretwin.loops import LOOPED
from wiretwin.mpi.bias import _Recorder
from wiretwin.mpi.looped import _sides, own_work
from wiretwin.mpi.rank import OwnWork, Rank
from wiretwin.mpi.runtime import SimulatedRun, simulate
from wiretwin.predict.hosts import free_model

SCRIPT = """
from mpi4py import MPI
comm = MPI.COMM_WORLD
for _ in range(5):
    sum(range(100000))
    comm.Barrier()
    sum(range(10000))
    comm.reduce(comm.rank)
"""


def ran(folder: Path, own: OwnWork | None) -> SimulatedRun:
    """Run the script on messages that cost nothing."""
    script = folder / "script.py"
    script.write_text(SCRIPT, encoding="utf-8")
    model = free_model(2) | {"placement": [0, 0], "inter": None}
    return simulate(script, [], 2, json.dumps(model), own=own)


def test_what_is_our_own_is_taken_off_by_the_name_of_the_call(tmp_path: Path) -> None:
    run = ran(tmp_path, OwnWork({}, {"Barrier": 10**12}, {"reduce": 10**12}))
    for of_rank in run.compute.durations_ps:
        each = (len(of_rank) - 1) // 5  # Barrier, reduce and what is done within it; the end of the program
        assert each in (4, 5)
        assert all(of_rank[begin] < 10**8 for begin in range(0, 5 * each, each))
    assert min(ran(tmp_path, None).compute.durations_ps[0][:-1:5]) > 10**8


@pytest.mark.parametrize(
    ("measured_ns", "charged_ns"),
    [
        ([100, 300, 50, 500], [0, 0, 0, 150]),  # 950 in all, of which 4 times 200 are our own
        ([300, 100, 300], [100, 0, 0]),
        ([0] * 20 + [5000, 300], [0] * 20 + [2800, 100]),  # no more than 2000 are owed
    ],
)
def test_what_a_stretch_lacks_is_taken_off_the_next(measured_ns: list[int], charged_ns: list[int]) -> None:
    recorder = _Recorder()
    rank = Rank(0, recorder)  # type: ignore[arg-type]
    site = rank.sites.add("script.py", 1)
    for ns in measured_ns:
        rank._charged_ps(0, site, ns, 200)
    # A thousandth of what was measured is charged in any case.
    assert recorder.measured_ps == [
        max(1000 * charged, ns) for charged, ns in zip(charged_ns, measured_ns, strict=True)
    ]


@pytest.mark.parametrize("alone", [False, True], ids=["in the world", "alone"])
def test_every_kind_of_call_has_some_and_it_is_found_once(alone: bool) -> None:
    found = own_work(alone=alone)
    assert found is own_work(alone=alone)
    calls = {*LOOPED, "send", "recv", "Send", "Recv", "wait", "Wait", "Scan", "ssend"}
    assert calls <= set(found.out_ns) == set(found.into_ns)
    assert {"reduce", "allreduce", "Reduce", "Allreduce"} <= set(found.within_ns)
    pairs = [out + into for out in found.out_ns.values() for into in found.into_ns.values()]
    assert all(0 < ns < 10**7 for ns in (*pairs, *found.within_ns.values()))


def test_what_lies_between_calls_is_split_into_the_way_out_and_the_way_in() -> None:
    out, into = {"Send": 3.0, "Recv": 5.0, "Barrier": 2.0}, {"Send": 3.0, "Recv": 1.0, "Barrier": 4.0}
    seen = [
        ("Send", "Barrier"),
        ("Recv", "Barrier"),
        ("Barrier", "Send"),
        ("Barrier", "Recv"),
        ("Send", "Recv"),
    ]
    found = _sides({(one, other): [out[one] + into[other]] for one, other in seen})
    for one, way in out.items():
        for other, back in into.items():  # those that were not seen, too
            assert found[0][one] + found[1][other] == pytest.approx(way + back)
    assert found[0]["Send"] == pytest.approx(found[1]["Send"])
