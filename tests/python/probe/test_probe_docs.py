"""The reference names what the probe allows, no less and no more."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from probes import finish, run_pair, spec, start, step

from wiretwin.stacks.word import COLD, FETCH, FIRST, SHARING

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "probe-protocol.md").read_text()


def refused(directory: Path, **changes: Any) -> list[str]:
    """The words that a refusal says are allowed."""
    status, lines, _ = finish(start(directory, spec(directory, 0, []) | changes))
    assert status == 1
    return re.sub(r".*(: allowed are|is not allowed:) ", "", lines[0]["reason"]).split(", ")


def rows(section: str, column: int) -> list[str]:
    """The words in code style in a column of a section's first table."""
    table = PAGE.split(f"## {section}\n", 1)[1].split("\n\n|", 1)[1].split("\n\n", 1)[0]
    cells = [line.strip("|").split("|")[column] for line in table.splitlines()[2:]]
    return [word for cell in cells for word in re.findall(r"`([\w/*-]+)`", cell)]


def test_loops_are_documented(tmp_path: Path) -> None:
    # Two need what only the probe in Python has: a send that goes on by itself, and the work of scripts.
    loops = {*refused(tmp_path, schedule=[step(loop="none")]), *FETCH, *COLD, *SHARING, *FIRST}
    assert sorted(loops) == sorted(rows("Loops", 0))


def test_keys_are_documented(tmp_path: Path) -> None:
    allowed = {*refused(tmp_path, unknown=1), *refused(tmp_path, shim="/none.so", unknown=1)}
    assert sorted(allowed) == sorted(rows("Specification", 0))


@pytest.mark.parametrize(
    "layer",
    [
        *("socket/tcp", "socket/udp", "socket/unix", "shm", "pcaal/udp"),
        *("mpi-mvich/shm", "mpi-mvich/udp", "mpi-mvich/packet"),
    ],
)
def test_options_are_documented(tmp_path: Path, layer: str) -> None:
    allowed = refused(tmp_path, layer=layer, options={"unknown": 1})
    table = PAGE.split("## Options of the layers\n", 1)[1].split("\n\n-", 1)[0].splitlines()[3:]
    written: list[str] = []
    for line in table:
        cells = line.strip("|").split("|")
        layers = re.findall(r"`([\w/*-]+)`", cells[0])
        if layer in layers or f"{layer.split('/')[0]}/*" in layers:
            written += re.findall(r"`(\w+)`", cells[1])
    assert sorted(allowed) == sorted(written)


def test_lines_have_the_documented_keys(tmp_path: Path) -> None:
    (_, lines, _), _ = run_pair(tmp_path, [step(loop="recv_busy")], interface="lo")
    assert set(lines[1]) - {"event"} == set(rows("Output", 0))
