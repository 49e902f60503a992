"""The example that measures what Ong and Farrell measured: its figures, and one run of it on few layers."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

PROGRAM = Path(__file__).resolve().parents[3] / "examples" / "vipl" / "today.py"
BRIEFLY = ("--launches", "3", "--precision", "99%")
"""It ends long before its budget, which a busy host needs for loading libraries alone."""


@pytest.fixture
def today() -> ModuleType:
    spec = importlib.util.spec_from_file_location("today", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_figures_are_read_off_the_curve(today: ModuleType) -> None:
    # 10 us and a byte in 1 ns: half of any large rate is reached at 10 000 B.
    curve = {4 << power: 10.0 + (4 << power) / 1000 for power in range(25)}
    t_0, r_max, n_half = today.figures(curve)
    assert t_0 == 10.004
    assert r_max == pytest.approx(1000, rel=1e-3)
    # Between doublings, along logarithms, the line lies within 3 % of such a curve.
    assert n_half == pytest.approx(10_000, rel=0.03)


def test_the_switch_over_is_where_rendezvous_stays_the_quicker(today: ModuleType) -> None:
    eager = {1024: 1.0, 2048: 2.0, 4096: 4.0, 8192: 8.0, 16384: 16.0}
    assert today.switch_over(eager, eager | {2048: 1.0, 8192: 7.0, 16384: 9.0}) == "from 8192 B"
    assert today.switch_over(eager, eager) == "at no size"


def test_one_command_prints_the_table(
    today: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(today, "LAYERS", "mpi-mvich/shm")
    monkeypatch.setattr(today, "EXPERIMENTS", ("via",))
    monkeypatch.setattr(today, "SIZES", "4,2KiB,64KiB")
    monkeypatch.setattr(today.os, "geteuid", lambda: 1)
    monkeypatch.setattr(today, "VNETTEST", ("-s", "50"))
    base = today.wiretwin
    monkeypatch.setattr(
        today, "wiretwin", lambda *words: base(*words, *(BRIEFLY if words[0] == "measure" else ()))
    )
    monkeypatch.setattr(sys, "argv", [str(PROGRAM), "60s"])
    today.main()
    out = capsys.readouterr().out
    rows = [line.split("|")[1:3] for line in out.splitlines() if line.startswith("|")][2:]
    assert [what.strip() for _, what in rows] == [
        *("TCP", "VIA"),
        *("mpi-mvich/shm", "VIA (vnettest)"),
    ]
    assert "MVICH of today is quicker by rendezvous" in out
