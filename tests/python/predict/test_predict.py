"""Recording, measuring alone, replay, and the recorded prediction."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from predict_help import HEAD, RING, TWIN, nothing_left, wiretwin

from wiretwin import _core
from wiretwin.errors import InputError
from wiretwin.mpi.compute import Measured, Pass
from wiretwin.mpi.recording import DepartureError, Recorder, replay
from wiretwin.mpi.runtime import SimulatedRun, simulate
from wiretwin.predict import solo
from wiretwin.predict.learnt import errors
from wiretwin.predict.model import single_host
from wiretwin.predict.predict import predict
from wiretwin.predict.records import DEFAULT_PASSES, SHORT_PASSES, Prediction, read
from wiretwin.twin import Twin

PROGRAMS = {
    "point-to-point": RING,
    "non-blocking": HEAD
    + """
got = [np.empty(20_000) for _ in range(3)]
reqs = [comm.Irecv(one, (rank - 1) % size, tag) for tag, one in enumerate(got)]
reqs += [comm.Isend(np.full(20_000, float(tag)), (rank + 1) % size, tag) for tag in range(3)]
MPI.Request.Waitall(reqs)
assert [one[-1] for one in got] == [0.0, 1.0, 2.0]
""",
    "collectives": HEAD
    + """
total, block = np.empty(50), np.empty(10 * size)
comm.Allreduce(np.full(50, rank + 1.0), total)
comm.Bcast(total, 0)
comm.Allgather(np.full(10, float(rank)), block)
comm.Alltoall(np.arange(2.0 * size), np.empty(2 * size))
comm.Barrier()
assert total[0] == size * (size + 1) / 2 and block[-1] == size - 1
comm.Reduce(block, total[:0] if rank else np.empty(10 * size), root=0)
""",
    "objects": HEAD
    + """
words = comm.bcast({"a": [1, 2, "x" * 5000]} if rank == 0 else None)
every = comm.gather((rank, words["a"][0]), root=0)
mine = comm.scatter([[i] * 3 for i in range(size)] if rank == 0 else None)
comm.send(mine, dest=(rank + 1) % size)
assert comm.recv(source=(rank - 1) % size) == [(rank - 1) % size] * 3
assert sum(comm.allgather(rank)) == size * (size - 1) // 2
""",
    "communicators": HEAD
    + """
part = comm.Split(rank % 2, -rank)
assert part.allreduce(1) == len(range(rank % 2, size, 2))
cart = comm.Create_cart([size], periods=[True])
left, right = cart.Shift(0, 1)
got = np.empty(4)
cart.Sendrecv(np.full(4, float(cart.rank)), right, 0, got, left, 0)
assert got[0] == left
comm.Dup().Barrier()
""",
    "any-source": HEAD
    + """
if rank == 0:
    status = MPI.Status()
    seen = set()
    for _ in range(size - 1):
        comm.recv(source=MPI.ANY_SOURCE, tag=3, status=status)
        seen.add(status.Get_source())
    assert seen == set(range(1, size))
else:
    sum(range(200_000 * rank))  # far enough apart that a lost time slice changes no order
    comm.send(rank, dest=0, tag=3)
""",
    "no-messages": "from mpi4py import MPI\nprint(sum(range(1000)))\n",
}


def network(ranks: int) -> str:
    return json.dumps(single_host(Twin.parse(TWIN), "mpi4py/mpich", ranks))


def recorded(tmp_path: Path, text: str, ranks: int) -> tuple[Path, SimulatedRun, Recorder]:
    program = tmp_path / "program.py"
    program.write_text(text)
    recorder = Recorder(ranks)
    run = simulate(program, [], ranks, network(ranks), compute=Measured(), recorder=recorder)
    return program, run, recorder


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_rank_alone_takes_the_recorded_path(name: str, shared: bool, tmp_path: Path) -> None:
    program, run, recorder = recorded(tmp_path, PROGRAMS[name], 3)
    with nothing_left(program):
        parts = solo.measure(program, [], recorder.recording, network(3), seed=1, limit_s=60.0, shared=shared)
    assert [part.digests for part in parts] == run.compute.digests
    assert [len(part.durations_ps) for part in parts] == [len(one) for one in run.compute.durations_ps]
    assert recorder.recording.timed == (name == "any-source")


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "any-source"])
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_the_trace_with_its_own_durations_is_the_same_run(name: str, ranks: int, tmp_path: Path) -> None:
    _, run, recorder = recorded(tmp_path, PROGRAMS[name], ranks)
    world: Any = _core.World(ranks, network(ranks), seed=1, timeline=True)
    replay(recorder.recording, world, run.compute.durations_ps)
    assert world.digest() == run.digest
    assert [world.now_ps(rank) for rank in range(ranks)] == run.end_ps
    other: Any = _core.World(ranks, network(ranks), seed=1, timeline=True)
    replay(recorder.recording, other, [[one + 1000 for one in rank] for rank in run.compute.durations_ps])
    assert other.digest() != run.digest or name == "no-messages" or ranks == 1
    longer = [other.now_ps(rank) > run.end_ps[rank] for rank in range(ranks)]
    # Where ranks share cores one may end earlier because another is longer at work (Graham 1969).
    assert any(longer) if ranks > Twin.parse(TWIN).host.cores else all(longer)


@pytest.mark.parametrize("shared", [False, True])
def test_ranks_that_share_a_core_hand_it_on_where_they_wait(
    shared: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each rank says when it goes on; its clock is that of the recording.
    noting = HEAD + (
        "import os\n"
        "file = os.open(os.environ['NOTED'], os.O_WRONLY | os.O_APPEND | os.O_CREAT)\n"
        "for _ in range(200):\n"
        "    os.write(file, f'{rank}\\n'.encode())\n"
        "    comm.sendrecv(1, dest=rank ^ 1, source=rank ^ 1)\n"
        "os.close(file)\n"
    )
    cores = len(os.sched_getaffinity(0))
    ranks = 2 * cores
    monkeypatch.setenv("NOTED", str(tmp_path / "recorded"))
    program, _, recorder = recorded(tmp_path, noting, ranks)
    monkeypatch.setenv("NOTED", str(tmp_path / "alone"))
    solo.measure(program, [], recorder.recording, network(ranks), seed=1, limit_s=60.0, shared=shared)
    went_on = [int(line) for line in (tmp_path / "alone").read_text().split()]
    assert len(went_on) == 200 * ranks
    for core in range(cores):
        here = [rank for rank in went_on if rank % cores == core]
        changes = sum(one != other for one, other in pairwise(here))
        assert (changes > 10) if shared else changes == 1, changes


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("if first: comm.Barrier()", "operation"),
        ("comm.send(1, dest=1 - rank, tag=first); comm.recv(source=1 - rank)", "operation"),
        ("comm.bcast('x' * (5 + first)); comm.recv(source=rank) if not first else None", "operation"),
    ],
)
def test_a_rank_that_departs_when_alone_is_refused(
    change: str, said: str, shared: bool, tmp_path: Path
) -> None:
    flag = tmp_path / "flag"
    text = HEAD + f"import os\nfirst = not os.path.exists({str(flag)!r})\n{change}\n"
    program, _, recorder = recorded(tmp_path, text, 2)
    flag.touch()
    with nothing_left(program), pytest.raises(DepartureError) as caught:
        solo.measure(program, [], recorder.recording, network(2), seed=1, limit_s=60.0, shared=shared)
    message = str(caught.value)
    assert message.startswith("program.py: rank ")
    assert "took another path when it was measured alone: a program that looks at the clock" in message
    assert said in message


def test_messages_of_equal_content_are_kept_once(tmp_path: Path) -> None:
    same = (
        "for _ in range(8):\n    comm.Send(np.ones(1000), 1) if rank == 0 else comm.Recv(np.empty(1000), 0)\n"
    )
    _, _, recorder = recorded(tmp_path, HEAD + same, 2)
    assert len(recorder.recording.mail) == 8
    assert recorder.recording.content_bytes() == 8000
    other = same.replace("np.ones(1000)", "np.full(1000, float(_))")
    _, _, recorder = recorded(tmp_path, HEAD + other, 2)
    assert recorder.recording.content_bytes() == 64000


def write(tmp_path: Path, text: str = RING) -> Path:
    program = tmp_path / "program.py"
    program.write_text(text)
    return program


def test_a_prediction_is_whole(tmp_path: Path, twin: Path) -> None:
    program = write(tmp_path)
    stages: list[str] = []
    with nothing_left(program):
        made = predict(program, twin=twin, ranks=2, passes=2, out="p", on_stage=stages.append)
    assert read(Prediction, Path("p")) == made
    assert made.compute.model_dump() == {
        "source": "measured", "statistic": "median", "passes": 2, "concurrent": 2, "other_paths": []
    }  # fmt: skip
    assert stages == [
        "recording the messages",
        "measuring the computation, pass 1 of 2",
        "measuring the computation, pass 2 of 2",
        "simulating with the computation found",
    ]
    assert made.seconds.low <= made.seconds.value <= made.seconds.high
    by = "the scatter of the measuring passes, the twin's intervals"
    wrong = f"what predictions of {errors('host').programs} programs on record were wrong by"
    assert made.seconds.meaning == f"95 % of medians of 7 launches, by {by} and {wrong}"
    assert made.setup == "host"
    assert made.noise is not None
    assert made.seconds.low <= made.noise.low <= made.noise.value <= made.noise.high <= made.seconds.high
    for part in made.per_rank:
        parts = part.compute_s + part.endpoint_s + part.wire_s + part.waiting_s
        assert parts == pytest.approx(part.total_s, rel=1e-9)
        assert part.endpoint_s > 0
    assert max(part.total_s for part in made.per_rank) == made.seconds.value
    timeline = pl.read_parquet("p/timeline.parquet")
    assert timeline["end_ps"].max() == pytest.approx(1e12 * made.seconds.value)
    assert set(timeline["kind"]) <= {"compute", "endpoint", "wire", "waiting"}
    assert "program.py:9" in set(timeline["site"])
    compute = pl.read_parquet("p/compute.parquet")
    by_rank = compute.group_by("rank").agg(pl.col("duration_ps").sum()).sort("rank")["duration_ps"]
    assert [total / 1e12 for total in by_rank] == pytest.approx([part.compute_s for part in made.per_rank])


def test_a_given_computation_makes_a_prediction_that_repeats_to_the_byte(tmp_path: Path, twin: Path) -> None:
    program = write(tmp_path)
    kept = []
    for folder in ("a", "b"):
        ended = wiretwin("predict", program, "--twin", twin, "--compute", "3us", "--out", folder)
        assert ended.code == 0, ended.err
        content = json.loads(Path(folder, "prediction.json").read_text())
        assert content.pop("digest") != content.pop("frozen_utc")
        kept.append((content, Path(folder, "compute.parquet").read_bytes()))
        assert content["compute"]["source"] == "given"
        assert content["seconds"]["meaning"] == "95 % of medians of 7 launches, by the twin's intervals"
        assert set(pl.read_parquet(Path(folder, "compute.parquet"))["duration_ps"]) == {3_000_000}
    assert kept[0] == kept[1]


@pytest.mark.parametrize("name", ["collectives", "any-source"])
def test_a_replayed_prediction_is_the_same_run(name: str, tmp_path: Path, twin: Path) -> None:
    program = write(tmp_path, PROGRAMS[name])
    first = predict(program, twin=twin, ranks=3, passes=1, out="first")
    with nothing_left(program):
        ended = wiretwin(
            "predict", program, "--twin", twin, "--ranks", 3, "--compute", "replay:first", "--out", "second"
        )
    assert ended.code == 0, ended.err
    second = read(Prediction, Path("second"))
    assert second.trace_digest == first.trace_digest
    assert second.per_rank == first.per_rank
    assert second.compute.source == "replayed"
    compute = [Path(folder, "compute.parquet").read_bytes() for folder in ("first", "second")]
    assert compute[0] == compute[1]


def test_a_replay_of_something_else_is_refused(tmp_path: Path, twin: Path) -> None:
    program = write(tmp_path)
    predict(program, twin=twin, ranks=2, compute_ps=1000, out="first")

    def refused(*words: str) -> str:
        ended = wiretwin("predict", program, "--twin", twin, "--out", "second", *words)
        assert ended.code == 2, ended.err
        assert not Path("second").exists()
        return ended.err

    assert "first: ranks: 2 " in refused("--compute", "replay:first", "--ranks", "3")
    assert "nowhere: cannot be read: No such file" in refused("--compute", "replay:nowhere").replace(
        "/prediction.json", ""
    )
    said = refused("--compute", "replay:first", "--", "more")
    assert "first: args: [] is not allowed here; allowed: ['more'], as this prediction has it" in said
    file = Path("first", "compute.parquet")
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    assert f"{file}: cannot be read: " in refused("--compute", "replay:first")
    pl.read_parquet(whole).reverse().write_parquet(file)
    assert f"{file}: row 0: " in refused("--compute", "replay:first")
    pl.read_parquet(whole).drop("rank").write_parquet(file)
    assert f"{file}: columns: " in refused("--compute", "replay:first")
    pl.read_parquet(whole).head(-2).write_parquet(file)
    assert "recorded computation of rank 1: " in refused("--compute", "replay:first")
    frame = pl.read_parquet(whole)
    more = frame.vstack(frame.tail(1).with_columns(pl.col("stretch") + 1))
    more.write_parquet(file)
    assert "recorded computation of rank 1: " in refused("--compute", "replay:first")
    program.write_text(RING + "\n")
    assert "first: program_sha256: " in refused("--compute", "replay:first")


def test_both_given_and_replayed_computation_is_refused(tmp_path: Path, twin: Path) -> None:
    with pytest.raises(InputError, match="not together with compute_ps"):
        predict(write(tmp_path), twin=twin, compute_ps=1, replay="p")


def test_recordings_too_large_are_measured_in_one_process_and_it_says_so(
    tmp_path: Path, twin: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wiretwin.predict.predict.RECORDING_LIMIT", 100)
    called: list[Pass] = []
    monkeypatch.setattr(solo, "measure", lambda *_, **__: called.append(Pass([], [])))
    made = predict(write(tmp_path), twin=twin, ranks=2, passes=2)
    assert called == []
    assert made.compute.passes == 2
    assert [text for text in made.warnings if "too much to run the ranks one a process" in text]
    assert made.seconds.value > 0


def test_more_ranks_than_cores_share_them(tmp_path: Path, twin: Path) -> None:
    busy = write(tmp_path, HEAD + "comm.Barrier()\nsum(range(1000))\ncomm.Barrier()\n")
    alone = predict(busy, twin=twin, ranks=2, compute_ps=1_000_000_000)
    made = predict(busy, twin=twin, ranks=4, compute_ps=1_000_000_000)
    assert made.compute.concurrent == 2
    assert made.network["placement"] == [0, 0, 0, 0]
    assert alone.seconds.value == pytest.approx(3e-3, rel=0.01)
    # Each core has 6 ms to compute; a rank's time begins when it first has its core, after at most 1 of them.
    assert 5e-3 <= made.seconds.value < 6.1e-3
    for part in made.per_rank:
        parts = part.compute_s + part.endpoint_s + part.wire_s + part.waiting_s
        assert parts == pytest.approx(part.total_s, rel=1e-9)
    measured = predict(busy, twin=twin, ranks=4, passes=1)
    assert len(measured.per_rank) == 4


def test_the_least_of_the_passes_is_not_above_the_median() -> None:
    from wiretwin.predict.passes import typical

    passes = [
        Pass([[5, 1], [7]], [[0, 0], [0]]),
        Pass([[3, 9], [8]], [[0, 0], [0]]),
        Pass([[4, 2], [6]], [[0, 0], [0]]),
    ]
    assert typical(passes, "median") == [[4, 2], [7]]
    assert typical(passes, "minimum") == [[3, 1], [6]]


def test_passes_scale_the_computation_and_nothing_else() -> None:
    from wiretwin.predict.passes import times_by_pass

    chosen = [[2 * 10**11], [10**11]]
    passes = [Pass([[one], [10**11]], [[], []]) for one in (10**11, 2 * 10**11, 3 * 10**11)]
    assert times_by_pass(1.0, passes, chosen, 1) == pytest.approx([0.9, 1.0, 1.1])
    # Two on a core wait for each other; no more than all of the time is computed.
    assert times_by_pass(1.0, passes, chosen, 2) == pytest.approx([0.8, 1.0, 1.2])
    assert times_by_pass(1.0, passes, chosen, 9) == pytest.approx([0.5, 1.0, 1.5])


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_a_prediction_is_printed_in_every_format(form: str, tmp_path: Path, twin: Path) -> None:
    ended = wiretwin(
        "predict", write(tmp_path), "--twin", twin, "--compute", "3us", "--out", "p", "--format", form
    )  # fmt: skip
    assert ended.code == 0, ended.err
    made = read(Prediction, Path("p"))
    assert f"recorded {made.frozen_utc} as {made.digest[:16]}: p" in ended.err
    if form == "json":
        rows = json.loads(ended.out)
        assert [row["total_s"] for row in rows] == [part.total_s for part in made.per_rank]
        assert all(key == "rank" or key.endswith("_s") for row in rows for key in row)
    elif form == "parquet":
        assert pl.read_parquet(ended.raw)["wire_s"].to_list() == [part.wire_s for part in made.per_rank]
    else:
        assert ended.out.splitlines()[0] == "rank,total_s,compute_s,endpoint_s,wire_s,waiting_s"


def test_a_short_script_is_measured_in_more_passes(twin: Path) -> None:
    script = Path("short.py")
    script.write_text(HEAD + "import sys\nif len(sys.argv) > 1:\n    sum(range(3_000_000))\ncomm.Barrier()\n")
    assert predict(script, twin=twin).compute.passes == SHORT_PASSES
    assert DEFAULT_PASSES <= predict(script, ["long"], twin=twin).compute.passes <= SHORT_PASSES


def test_a_script_whose_passes_scatter_is_measured_in_more_of_them(twin: Path) -> None:
    script = Path("scatters.py")
    # Every other time that both ranks have run, it works three times as long.
    words = "with open('turns', 'ab') as turns:\n    turns.write(b'.')\n    turn = turns.tell() - 1\n"
    words += "sum(range(2_000_000 * (1 + 2 * (turn // 2 % 2))))\n"
    script.write_text(HEAD + words + "comm.Barrier()\n")
    assert predict(script, twin=twin).compute.passes > DEFAULT_PASSES
    assert predict(script, twin=twin, passes=DEFAULT_PASSES).compute.passes == DEFAULT_PASSES


def test_a_rank_that_is_measured_collects_garbage_as_a_real_one_does(twin: Path) -> None:
    script = Path("garbage.py")
    words = 'import gc\nwith open(f"seen-{rank}", "a") as file:\n    print(gc.isenabled(), file=file)\n'
    script.write_text(HEAD + words + "comm.Barrier()\n")
    predict(script, twin=twin, passes=2)
    # The recording has both ranks in one process, whose objects are not theirs alone.
    assert Path("seen-0").read_text().split() == ["False", "True", "True"]


def test_computation_that_does_not_matter_is_not_measured_again(twin: Path) -> None:
    script = Path("barrier.py")
    script.write_text(HEAD + "comm.Barrier()\n")
    once = predict(script, twin=twin, passes=2, negligible_ps=10**12)
    assert once.compute.passes == 1
    assert [text for text in once.warnings if "was measured once" in text]
    assert once.seconds.low <= once.seconds.value <= once.seconds.high
    again = predict(script, twin=twin, passes=2)
    assert again.compute.passes == 2
    assert not [text for text in again.warnings if "was measured once" in text]
    assert once.messages == again.messages
    ended = wiretwin("run", script, "--world", "simulated", "--twin", twin)
    assert ended.code == 0, ended.err
    assert "note: no rank computes for more than" in ended.err


@pytest.mark.parametrize(
    ("call", "said"), [("", True), ("comm.Get_rank()\n", True), ("comm.Barrier()\n", False)]
)
def test_a_script_that_never_communicates_is_told_so(call: str, said: bool, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(HEAD + call + "print('done')\n")
    done = predict(program, twin=Twin.parse(TWIN), ranks=2, compute_ps=1_000_000)
    assert any("never communicates" in one for one in done.warnings) == said
