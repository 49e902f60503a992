from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mpi_help import Simulate, model

from wiretwin.mpi import SimulatedRun, simulate


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.fixture
def run(tmp_path: Path) -> Simulate:
    """Simulate a program given as text (or a path) and return the run."""

    def simulated(program: str | Path, ranks: int = 2, *argv: str, **options: Any) -> SimulatedRun:
        if isinstance(program, Path):
            script = program
        else:
            script = tmp_path / "program.py"
            script.write_text(program)
        network = options.pop("model_json", model(ranks))
        return simulate(script, argv, ranks, network, **options)

    return simulated
