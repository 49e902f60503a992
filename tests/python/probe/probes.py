"""Starts real probe processes for the tests."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

LOOPS = ["echo", "two_write", "stream", "prtt", "send_busy", "recv_busy", "call"]


def step(**changes: Any) -> dict[str, Any]:
    """A step small enough for a test."""
    base = {"loop": "echo", "bytes": 4, "warmup": 4, "min_samples": 5, "max_samples": 5, "budget_ms": 1.0}
    return base | changes


def spec(directory: Path, rank: int, schedule: list[dict[str, Any]], **changes: Any) -> dict[str, Any]:
    """A right specification, with changes."""
    base: dict[str, Any] = {
        "protocol": 1,
        "layer": "socket/tcp",
        "rank": rank,
        "size": 2,
        "options": {},
        "directory": str(directory),
        "pin_cpu": None,
        "limit_s": 60.0,
        "schedule": schedule,
    }
    return base | changes


def start(directory: Path, content: dict[str, Any], *, text: str | None = None) -> subprocess.Popen[str]:
    """Start one probe on this specification (or on this text instead)."""
    path = directory / f"spec-{content.get('rank')}.json"
    path.write_text(json.dumps(content) if text is None else text)
    return subprocess.Popen(
        [sys.executable, "-m", "wiretwin.probe", str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, list[dict[str, Any]], str]:
    """Wait for a probe: its status, its lines, its standard error."""
    out, err = process.communicate(timeout=120)
    return process.returncode, [json.loads(line) for line in out.splitlines()], err


def run_pair(
    directory: Path, schedule: list[dict[str, Any]], **changes: Any
) -> tuple[tuple[int, list[dict[str, Any]], str], tuple[int, list[dict[str, Any]], str]]:
    """Run both ranks to their end."""
    processes = [start(directory, spec(directory, rank, schedule, **changes)) for rank in (0, 1)]
    try:
        return finish(processes[0]), finish(processes[1])
    finally:
        for process in processes:
            process.kill()
            process.wait(timeout=30)
