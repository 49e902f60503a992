"""What the tests of live libraries share: a configuration that can run, a program's ranks, what is left."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from watching import becomes, made_here, marked_processes

from wiretwin.measure.running import Running, rendezvous
from wiretwin.measure.schedule import Step
from wiretwin.place import HERE, Place
from wiretwin.stacks.layers import Configuration, parse_layers, refusal

LIMIT_S = 60.0
LONG = Step("echo", 4, min_samples=1_000_000, max_samples=1_000_000, batch=100)
"""Minutes of echo: a launch that is still running when something is done to it."""


def quick(loop: str, size: int, **changes: Any) -> Step:
    """Return a step of five samples."""
    return Step(loop, size, **{"warmup": 2, "min_samples": 5, "max_samples": 5, "budget_ms": 5.0} | changes)


def configured(name: str, place: Place = HERE) -> Configuration:
    """Return a configuration; skip by name what this machine lacks, unless CI must have it."""
    (configuration,) = parse_layers(name)
    refused = refusal(configuration, place)
    if refused is not None:
        if os.environ.get("CI"):
            pytest.fail(f"{name}: {refused}")
        pytest.skip(f"{name}: {refused}")
    return configuration


def run_program(
    name: str, program: Mapping[str, Any], ranks: int, place: Place = HERE
) -> list[dict[str, Any]]:
    """Run a compiled program over a layer; return the ranks' lines."""
    configuration = configured(name, place)
    stack = configuration.kind.stack
    assert stack is not None
    with stack.up(place, configuration.options) as session, rendezvous(place) as directory:
        running = Running(directory, time.monotonic() + LIMIT_S)
        try:
            running.start(configuration, {"program": program}, ranks, LIMIT_S, place=place, session=session)
            status, error = running.wait(None)
        finally:
            running.end(clean=False)
        lines = lines_of(directory)
    assert (status, error) == ("ok", None), lines
    return sorted((line for line in lines if line["event"] == "rank"), key=lambda line: int(line["rank"]))


def lines_of(directory: Path) -> list[dict[str, Any]]:
    """Return what all ranks of a launch said."""
    found = []
    for file in sorted(directory.glob("stdout-*")):
        found += [json.loads(line) for line in file.read_bytes().splitlines() if line.startswith(b"{")]
    return found


@contextmanager
def nothing_left() -> Iterator[None]:
    """Hold that no process of ours and no file in shared places is left."""
    before, own = _files(), marked_processes()
    yield
    left = {pid: words for pid, words in marked_processes().items() if pid not in own}
    assert left == {}
    becomes(set(), lambda: _files() - before)


def _files() -> set[str]:
    """Return files of ours, of daemons and shared memory, whose makers are gone, or never had one."""
    patterns: Sequence[tuple[str, str]] = (
        ("/tmp", f"pvm?.{os.getuid()}"),
        ("/tmp", "pvmtmp*"),
        ("/dev/shm", "*:*:*"),
    )
    return {
        str(path)
        for folder, pattern in patterns
        for path in Path(folder).glob(pattern)
        if made_here(path)
        and not (path.name[0].isdigit() and Path("/proc", path.name.split(":")[0]).exists())
    }
