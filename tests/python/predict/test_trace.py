"""Recorded runs of real MPI programs, done again in the simulated world."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from predict_help import TWIN, wiretwin
from trace_help import MIXED, NOTHING, compiled, recorded

from wiretwin import _core, trace
from wiretwin.errors import InputError
from wiretwin.predict.executable import predict_executable


@pytest.fixture
def mpi_twin(tmp_path: Path) -> Path:
    """The twin of a host with a core for each of 64 ranks and MPICH's own layer."""
    path = tmp_path / "mpi.toml"
    path.write_text(TWIN.replace('"mpi4py/mpich"', '"mpi/mpich"').replace("cores = 2", "cores = 64"))
    return path


def posted_receives(rank: _core.RankTrace) -> list[int]:
    """Return the capacities of what it receives apart from collectives, in order."""
    return [one[4] for one, _ in rank.operations() if one[0] == "recv" and one[1] % 2 == 0]


def test_a_recorded_run_is_done_again_with_all_its_messages(mpi_twin: Path) -> None:
    found = recorded(MIXED, 4)
    assert found.unknown == []
    made = trace.operations(found)
    received = posted_receives(made.traces[0])
    assert received[:2] == [400, 1 << 18], "the receive that was posted, and the exchange"
    first, again = (trace.replay("recorded", twin=mpi_twin) for _ in range(2))
    assert (first.trace_digest, first.seconds) == (again.trace_digest, again.seconds)
    assert first.messages == made.messages
    # 4 times 2 isends, 2 exchanges in one, and 3 sends to rank 0, apart from the collectives.
    own = sum(one[0] == "send" and one[1] % 2 == 0 for rank in made.traces for one, _ in rank.operations())
    assert own == 4 * 3 + 3
    # Slower lines take longer, and so does computation that takes longer. The lines are compared without any:
    # when messages of any sender come hangs on it.
    lines = [
        trace.replay("recorded", twin="nothing", network=f"star:rate={rate}Gbit/s", compute_scale=0)
        for rate in (10, 1)
    ]
    assert lines[0].seconds.value < lines[1].seconds.value
    computing = [
        trace.replay("recorded", twin="nothing", network="star:rate=10Gbit/s", compute_scale=scale)
        for scale in (1, 100)
    ]
    assert computing[0].seconds.value < computing[1].seconds.value


def test_half_a_round_trip_is_the_twins_when_it_is_replayed(mpi_twin: Path) -> None:
    body = """
    for (int round = 0; round < 3; round++)
        if (rank == 0) {
            MPI_Send(bytes, 1000, MPI_CHAR, 1, 3, WORLD);
            MPI_Recv(bytes, 1000, MPI_CHAR, 1, 4, WORLD, &status);
        } else {
            MPI_Recv(bytes, 1000, MPI_CHAR, 0, 3, WORLD, &status);
            MPI_Send(bytes, 1000, MPI_CHAR, 0, 4, WORLD);
        }
"""
    recorded(body, 2)
    found = trace.replay("recorded", twin=mpi_twin, compute_scale=0.0)
    # The same program in virtual time, without its computation.
    program = predict_executable(Path("program"), twin=mpi_twin, compute_ps=0, ends=False)
    assert found.seconds.value == pytest.approx(program.seconds.value, abs=1e-11)
    assert found.messages == program.messages == 6


@pytest.mark.alone  # beside others a rank that looks is without a core for longer than between two looks
def test_polling_is_no_computation() -> None:
    body = """
    if (rank == 0) {
        double until = MPI_Wtime() + 0.2;
        while (MPI_Wtime() < until)
            ;
        MPI_Send(bytes, 1, MPI_CHAR, 1, 3, WORLD);
    } else {
        while (!flag)
            MPI_Iprobe(0, 3, WORLD, &flag, &status);
        MPI_Recv(bytes, 1, MPI_CHAR, 0, 3, WORLD, &status);
    }
"""
    found = recorded(body, 2)
    computed_s = [row[5] for row in found.summary()]
    assert computed_s[0] >= 0.2
    assert computed_s[1] < computed_s[0] / 2
    again = trace.replay("recorded", twin="nothing", network="star:rate=10Gbit/s")
    assert again.seconds.value >= 0.2


SCRIPT = """
import numpy as np
from mpi4py import MPI
comm = MPI.COMM_WORLD
comm.Allreduce(np.zeros(8), np.zeros(8))
if comm.rank == 0:
    comm.send({"a": 1}, dest=1)
else:
    found = comm.recv(source=0)
comm.Bcast(np.zeros(1000), root=1)
print(comm.rank)
"""


def test_a_script_is_recorded_through_the_command_line_and_replayed() -> None:
    Path("script.py").write_text(SCRIPT)
    done = wiretwin("trace", "script.py", "--ranks", "2", "-o", "recorded", "--format", "json")
    assert done.code == 0, done.err
    rows = json.loads(done.out)
    assert [(row["rank"], row["sends"], row["receives"], row["collectives"]) for row in rows] == [
        (0, 1, 0, 2),
        (1, 0, 1, 2),
    ]
    done = wiretwin("replay", "recorded", *NOTHING, "-o", "elsewhere")
    assert done.code == 0, done.err
    kept = json.loads(Path("elsewhere/prediction.json").read_text())
    assert (kept["compute"]["source"], kept["layer"]) == ("replayed", "mpi/mpich")
    done = wiretwin("trace", "script.py", "-o", "recorded")
    assert (done.code, "recorded" in done.err) == (2, True), done.err
    assert wiretwin("trace", "script.py", "-o", "recorded", "--force").code == 0


def test_a_run_in_the_simulated_world_is_recorded_in_virtual_time() -> None:
    program = compiled(MIXED)
    quiet = {"twin": "nothing", "network": "star:rate=10Gbit/s,delay=1us"}
    live = trace.record(program, ranks=4, out="live")
    found = trace.record(program, ranks=4, out="recorded", world="simulated", **quiet)
    # The same calls; how long they took differs.
    assert [row[:5] for row in found.summary()] == [row[:5] for row in live.summary()]
    assert trace.operations(found).messages == trace.operations(live).messages
    there = predict_executable(program, ranks=4, compute_ps=0, ends=False, **quiet).seconds.value
    again = trace.replay("recorded", compute_scale=0.0, **quiet).seconds.value
    assert again == pytest.approx(there, rel=0.5), (
        "collectives by schedules, and by the library's own messages"
    )


BEGUN = """
    MPI_Request began[4];
    int counts[64], at[64];
    for (int one = 0; one < size; one++) {
        counts[one] = one + 1;
        at[one] = 64 * one;
    }
    MPI_Ibarrier(WORLD, &began[0]);
    MPI_Wait(&began[0], &status);
    MPI_Iallreduce(MPI_IN_PLACE, bytes, 1000, MPI_DOUBLE, MPI_SUM, WORLD, &began[0]);
    MPI_Ibcast(bytes + (1 << 16), 40000, MPI_CHAR, 1, WORLD, &began[1]);
    MPI_Irecv(bytes + (1 << 18), 8, MPI_CHAR, left, 5, WORLD, &began[2]);
    MPI_Isend(bytes + (1 << 19), 8, MPI_CHAR, right, 5, WORLD, &began[3]);
    /* Completed in another order than they were begun in, and by looks. */
    for (flag = 0; !flag;)
        MPI_Test(&began[1], &flag, &status);
    MPI_Waitall(4, began, MPI_STATUSES_IGNORE);
    MPI_Ialltoall(bytes, 2000, MPI_CHAR, bytes + (1 << 18), 2000, MPI_CHAR, WORLD, &began[0]);
    MPI_Iallgatherv(bytes, rank + 1, MPI_INT, bytes + (1 << 16), counts, at, MPI_INT, WORLD, &began[1]);
    MPI_Igather(bytes, 500, MPI_CHAR, bytes + (1 << 17), 500, MPI_CHAR, 2, WORLD, &began[2]);
    MPI_Ireduce(rank ? bytes : MPI_IN_PLACE, bytes, 100, MPI_DOUBLE, MPI_SUM, 0, WORLD, &began[3]);
    MPI_Waitall(4, began, MPI_STATUSES_IGNORE);
"""
NAMES_BEGUN = [
    "MPI_Ibarrier", "MPI_Wait", "MPI_Iallreduce", "MPI_Ibcast", "MPI_Irecv", "MPI_Isend", "MPI_Wait",
    "MPI_Wait", "MPI_Ialltoall", "MPI_Iallgatherv", "MPI_Igather", "MPI_Ireduce", "MPI_Wait", "MPI_Finalize",
]  # fmt: skip


#: Rank 0 waits for the last rank, which sends when its collectives are complete: they need rank 0.
MEANWHILE = """
    MPI_Request began[3];
    MPI_Ibarrier(WORLD, &began[0]);
    MPI_Iallreduce(MPI_IN_PLACE, bytes, 1000, MPI_DOUBLE, MPI_SUM, WORLD, &began[1]);
    MPI_Ibcast(bytes + (1 << 16), 40000, MPI_CHAR, 1, WORLD, &began[2]);
    if (rank == 0)
        %s
    MPI_Waitall(3, began, MPI_STATUSES_IGNORE);
    if (rank == size - 1)
        MPI_Send(bytes + (1 << 19), 8, MPI_CHAR, 0, 5, WORLD);
"""
WAITS = {
    "receive": "MPI_Recv(bytes + (1 << 18), 8, MPI_CHAR, size - 1, 5, WORLD, &status);",
    "several": "{ MPI_Request both[2];"
    "MPI_Irecv(bytes + (1 << 18), 8, MPI_CHAR, size - 1, 5, WORLD, &both[0]);"
    "MPI_Isend(bytes + (1 << 18), 8, MPI_CHAR, 0, 6, MPI_COMM_SELF, &both[1]);"
    "MPI_Recv(bytes + (1 << 19), 8, MPI_CHAR, 0, 6, MPI_COMM_SELF, &status);"
    "MPI_Waitall(2, both, MPI_STATUSES_IGNORE); }",
}


@pytest.mark.parametrize("waits", WAITS)
def test_collectives_that_do_not_block_go_on_while_a_rank_waits_for_something_else(waits: str) -> None:
    program = compiled(MEANWHILE % WAITS[waits])
    quiet = {"twin": "nothing", "network": "star:rate=10Gbit/s,delay=1us"}
    trace.record(program, ranks=4, out="recorded")
    there = predict_executable(program, ranks=4, compute_ps=0, ends=False, **quiet)
    again = trace.replay("recorded", compute_scale=0.0, **quiet)
    for one, other in zip(again.per_rank, there.per_rank, strict=True):
        assert one.total_s == pytest.approx(other.total_s, rel=0.1)
    assert trace.operations(trace.Trace("recorded")).messages == again.messages


def test_collectives_that_do_not_block_end_in_their_waits() -> None:
    program = compiled(BEGUN)
    quiet = {"twin": "nothing", "network": "star:rate=10Gbit/s,delay=1us"}
    found = trace.record(program, ranks=4, out="recorded", world="simulated", **quiet)
    assert found.unknown == []
    for rank in trace.operations(found).traces:
        calls = [one[1] for one, _ in rank.operations() if one[0] == "enter"]
        # As the library's functions are told apart, but for the blocks' lengths.
        assert calls == [name.replace("gatherv", "gather") for name in NAMES_BEGUN]
    there = predict_executable(program, ranks=4, compute_ps=0, ends=False, **quiet).seconds.value
    again = trace.replay("recorded", compute_scale=0.0, **quiet).seconds.value
    assert again == pytest.approx(there, rel=0.5), (
        "collectives by schedules, and by the library's own messages"
    )


REGULAR = """
    MPI_Request both[2], began[2];
    MPI_Comm line;
    int periods = 0, below, above, sides[2] = {0, 0}, closed[2] = {0, 0}, near[4];
    MPI_Cart_create(WORLD, 1, &size, &periods, 0, &line);
    MPI_Cart_shift(line, 0, 1, &below, &above);
    for (int round = 0; round < 2; round++) {
        MPI_Iallreduce(MPI_IN_PLACE, bytes + 8192, 100, MPI_DOUBLE, MPI_SUM, WORLD, &began[0]);
        MPI_Ibcast(bytes + 16384, 1000, MPI_CHAR, size - 1, line, &began[1]);
        MPI_Irecv(bytes, 512, MPI_CHAR, left, 1, WORLD, &both[0]);
        MPI_Isend(bytes + 4096, 512, MPI_CHAR, right, 1, WORLD, &both[1]);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
        MPI_Sendrecv(bytes, 100, MPI_INT, above, 2, bytes + 4096, 100, MPI_INT, below, 2, line, &status);
        MPI_Waitall(2, began, MPI_STATUSES_IGNORE);
        MPI_Allreduce(MPI_IN_PLACE, bytes, 1, MPI_DOUBLE, MPI_SUM, line);
    }
    if (size >= 16) {
        MPI_Comm grid;
        MPI_Dims_create(size, 2, sides);
        MPI_Cart_create(WORLD, 2, sides, closed, 0, &grid);
        for (int side = 0; side < 2; side++)
            MPI_Cart_shift(grid, side, 1, &near[2 * side], &near[2 * side + 1]);
        for (int one = 0; one < 4; one++)
            MPI_Sendrecv(bytes, 64, MPI_CHAR, near[one], one,
                         bytes + 4096, 64, MPI_CHAR, near[one ^ 1], one, grid, &status);
    }
    for (int from = 1; rank == 0 && from < size; from++)
        MPI_Recv(bytes, 8, MPI_CHAR, from, 9, WORLD, &status);
    if (rank > 0)
        MPI_Send(bytes, 8, MPI_CHAR, 0, 9, WORLD);
"""


@pytest.mark.parametrize(("ranks", "more"), [(4, 15), (16, 64)])
def test_more_ranks_do_what_they_do_when_they_are_run(ranks: int, more: int) -> None:
    program = compiled(REGULAR)
    made = []
    for count in (ranks, more):
        found = trace.record(
            program,
            ranks=count,
            out=f"recorded-{count}",
            world="simulated",
            twin="nothing",
            network="star:rate=10Gbit/s",
            ranks_per_host=64,
        )
        traces = trace.operations(found, ranks=more).traces
        made.append([[one for one, _ in rank.operations() if one[0] != "compute"] for rank in traces])
    assert made[0] == made[1]
    done = wiretwin("replay", f"recorded-{ranks}", "--ranks", str(more), *NOTHING)
    assert done.code == 0, done.err
    assert f"{ranks} ranks were recorded: each of {more} sends and computes as much" in done.err


def test_what_does_not_follow_from_places_is_not_extended() -> None:
    body = """
    MPI_Sendrecv(bytes, 8, MPI_INT, rank ^ 1, 2, bytes + 64, 8, MPI_INT, rank ^ 1, 2, WORLD, &status);
"""
    recorded(body, 8)
    done = wiretwin("replay", "recorded", "--ranks", "16", *NOTHING)
    assert (done.code, "has no peer that the places of these ranks tell: rank 1 Irecv of 32" in done.err) == (
        2,
        True,
    )
    assert trace.replay("recorded", twin="nothing", network="star:rate=10Gbit/s", ranks=8).messages == 8
    Path("schedule.goal").write_text("num_ranks 1\nrank 0 {\nl1: calc 5\n}\n")
    for given, words in (("schedule.goal", "--ranks: 4 is not for a schedule"), ("nothere", "No such file")):
        with pytest.raises(InputError, match=words):
            trace.replay(given, twin="nothing", ranks=4)
    with pytest.raises(InputError, match="--ranks: 0 is not allowed here; allowed: 1 to 65536"):
        trace.replay("recorded", twin="nothing", ranks=0)


@pytest.mark.skipif(
    not shutil.which("mpicc.openmpi") and not os.environ.get("CI"), reason="needs Debian's Open MPI"
)
def test_a_program_for_open_mpi_is_recorded_under_it() -> None:
    program = compiled(MIXED, "mpicc.openmpi")
    found = trace.record(program, ranks=4, out="recorded")
    assert (found.manifest.library, found.unknown) == ("openmpi", [])
    again = trace.replay("recorded", twin="nothing", network="star:rate=10Gbit/s")
    assert (again.layer, again.messages) == ("mpi/openmpi", trace.operations(found).messages)


def test_what_is_not_recorded_is_named() -> None:
    body = """
    MPI_Win window;
    MPI_Win_create(bytes, 64, 1, MPI_INFO_NULL, WORLD, &window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
"""
    found = recorded(body, 2)
    assert {"MPI_Win_create", "MPI_Win_fence"} <= set(found.unknown)
    done = wiretwin("replay", "recorded", *NOTHING)
    assert (done.code, "uses MPI_Win_create, MPI_Win_fence" in done.err) == (2, True), done.err


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda folder: (folder / "1").unlink(), "No such file"),
        (lambda folder: (folder / "1").write_bytes(b"nothing"), "is not what a rank recorded"),
        (lambda folder: shutil.copy(folder / "0", folder / "1"), "is of rank 0 of 2"),
        (lambda folder: os.truncate(folder / "1", os.path.getsize(folder / "1") - 7), "ends within a record"),
        (
            lambda folder: os.truncate(folder / "1", os.path.getsize(folder / "1") - 48),
            "did not call MPI_Finalize",
        ),
        (lambda folder: (folder / "trace.json").write_text("{}"), "trace.json: program: Field required"),
    ],
)
def test_a_damaged_recording_is_rejected_by_name(damage: object, words: str) -> None:
    recorded("    MPI_Barrier(WORLD);\n", 2)
    assert callable(damage)
    damage(Path("recorded"))
    done = wiretwin("replay", "recorded", *NOTHING)
    assert (done.code, words in done.err) == (2, True), done.err


def test_a_recording_has_its_longest_and_says_so() -> None:
    program = compiled("    for (int one = 0; one < 10000; one++) MPI_Barrier(WORLD);\n")
    trace.record(program, ranks=2, out="recorded", most=5000)
    assert max(file.stat().st_size for file in Path("recorded").glob("[01]")) < 5100 * 48
    with pytest.raises(InputError, match="was cut off at its longest; allowed: a larger --most"):
        trace.replay("recorded", twin="nothing", network="star:rate=10Gbit/s")


def test_a_barrier_is_what_the_recorder_writes_of_one() -> None:
    found = recorded("    MPI_Barrier(WORLD);\n", 2)
    assert [row[:5] for row in found.summary()] == [(rank, 0, 0, 0, 1) for rank in range(2)]
    assert all(row[6] > 0 for row in found.summary())
    names = [[one[1] for one, _ in rank.operations() if one[0] == "enter"] for rank in
             trace.operations(found).traces]  # fmt: skip
    assert names == [["MPI_Barrier", "MPI_Finalize"]] * 2
