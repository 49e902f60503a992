"""The shipped programs on any number of real processes."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import pytest
from probes import finish, spec, start

PROGRAMS = {
    "echo": {"name": "echo", "bytes": 5000, "rounds": 20},
    "stream": {"name": "stream", "bytes": 3000, "messages": 40},
    "ring": {"name": "ring", "elements": 1001, "rounds": 3},
    "jacobi": {"name": "jacobi", "rows": 40, "columns": 50, "iterations": 30},
    "line": {"name": "jacobi", "rows": 1, "columns": 500, "iterations": 30},
    "mm": {"name": "mm", "n": 50, "rounds": 3},
    "mm32": {"name": "mm", "n": 30, "bits": 32, "rounds": 2, "down": 1},
    "pde": {"name": "pde", "n": 24, "accuracy": 3},
    "pde1": {"name": "pde1", "n": 9, "accuracy": 3},
    "pde2": {"name": "pde2", "n": 15, "accuracy": 4},
    "md": {"name": "md", "x": 6, "y": 9, "z": 5, "steps": 3},
}


def run(
    directory: Path, ranks: int, program: dict[str, Any], **changes: Any
) -> list[tuple[int, list[dict[str, Any]], str]]:
    """Run a program on so many processes; what each left."""
    directory.mkdir(exist_ok=True)
    processes = []
    for rank in range(ranks):
        content = spec(directory, rank, [], size=ranks, program=program) | changes
        del content["schedule"]
        processes.append(start(directory, content))
    try:
        return [finish(process) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait(timeout=30)


@pytest.mark.parametrize("ranks", [2, 3, 4])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_gives_the_same_result_on_every_layer(tmp_path: Path, name: str, ranks: int) -> None:
    digests = set()
    for layer, wait in [("socket/tcp", "block"), ("socket/unix", "yield"), ("shm", "yield")]:
        folder = tmp_path / layer.replace("/", "-")
        outcomes = run(folder, ranks, PROGRAMS[name], layer=layer, options={"wait": wait})
        for rank, (status, lines, err) in enumerate(outcomes):
            assert (status, err) == (0, ""), lines
            line, done = lines
            assert done["event"] == "done"
            crossing = done["crossing_ns"]
            assert crossing is None or (rank < 2 and len(crossing) == 2 and min(crossing) > 0)
            assert (line["event"], line["rank"], line["size"], line["layer"]) == ("rank", rank, ranks, layer)
            assert line["program"] == PROGRAMS[name]["name"]
            assert line["verified"] is True
            assert line["in_comm_ns"] + line["compute_ns"] <= line["total_ns"]
            assert line["elapsed_ns"] <= line["total_ns"]
            if name not in ("echo", "stream") or rank < 2:
                assert line["calls"] > 0
                assert line["in_comm_ns"] > 0
            # In an echo two ranks make, answer and check; those that watch compute nothing.
            assert (line["compute_ns"] > 0) == (name not in ("echo", "stream") or rank < 2)
        digests.add(tuple(lines[0]["digest"] for _, lines, _ in outcomes))
    assert len(digests) == 1


def test_one_rank_alone_runs(tmp_path: Path) -> None:
    ((status, lines, _),) = run(tmp_path, 1, PROGRAMS["jacobi"])
    assert (status, lines[0]["verified"]) == (0, True)


def test_a_program_that_refuses_its_ranks_says_so_on_each(tmp_path: Path) -> None:
    program = {"name": "jacobi", "rows": 1, "columns": 2, "iterations": 1}
    for rank, (status, lines, _) in enumerate(run(tmp_path, 3, program)):
        assert status == 1
        assert lines[-1]["place"] == f"rank {rank} of jacobi"
        assert lines[-1]["reason"].startswith("columns is 2; allowed: 3 or more")


def sockets(pid: int) -> int:
    """How many sockets a process has."""
    count = 0
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            count += os.readlink(entry).startswith("socket:")
    return count


def test_a_killed_rank_ends_the_others(tmp_path: Path) -> None:
    processes = []
    program = {"name": "ring", "elements": 1000, "rounds": 1 << 39}
    for rank in range(3):
        content = spec(tmp_path, rank, [], size=3, program=program)
        del content["schedule"]
        processes.append(start(tmp_path, content))
    try:
        # Whether they still meet or already run: the others wait for rank 2, and it goes.
        while sockets(processes[2].pid) < 2:
            assert all(process.poll() is None for process in processes)
            os.sched_yield()
        processes[2].kill()
        for rank in (0, 1):
            status, lines, _ = finish(processes[rank])
            assert status == 1
            assert lines[-1]["event"] == "error"
    finally:
        for process in processes:
            process.kill()
            process.wait(timeout=30)
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    stream.close()


@pytest.mark.parametrize(
    ("changes", "place", "reason"),
    [
        (
            {"program": {"name": "sort"}},
            "program.name",
            '"sort" is not allowed: one of echo, stream, cast, ring, jacobi',
        ),
        ({"program": {"name": "echo", "bytes": 4}}, "program.rounds", "missing: a whole number from 1 to"),
        (
            {"program": PROGRAMS["ring"] | {"size": 3}},
            "program.size",
            "unknown key: allowed are name, elements",
        ),
        (
            {"program": PROGRAMS["ring"], "schedule": []},
            "schedule",
            "[] is not allowed: one of schedule, together and",
        ),
        (
            {"program": PROGRAMS["ring"], "layer": "socket/udp"},
            "layer",
            '"socket/udp" is not allowed: a program',
        ),
        ({"program": PROGRAMS["ring"], "size": 0}, "size", "0 is not allowed: a whole number from 1 to 1024"),
        ({"program": PROGRAMS["ring"], "rank": 2}, "rank", "2 is not allowed: a whole number from 0 to 1"),
    ],
)
def test_a_wrong_program_is_refused_by_key_and_value(
    tmp_path: Path, changes: dict[str, Any], place: str, reason: str
) -> None:
    content = spec(tmp_path, 0, [])
    if "schedule" not in changes:
        del content["schedule"]
    content |= changes
    status, lines, _ = finish(start(tmp_path, content))
    assert (status, len(lines)) == (1, 1)
    assert lines[0]["place"] == f"{tmp_path}/spec-{content['rank']}.json: {place}"
    assert lines[0]["reason"].startswith(reason)
