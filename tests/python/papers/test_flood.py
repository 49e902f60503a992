"""A flooded host: its program reads all, then less and less, then nothing."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from wiretwin.errors import InputError
from wiretwin.papers.flood import flood

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "livelock" / "livelock.py"


def _example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("livelock", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    return example


def _network(frames: int) -> str:
    return str(_example().network(frames=frames, wait_us=200.0))


def test_the_example_prints_what_its_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    _example().main()
    printed = [line.strip() for line in capsys.readouterr().out.splitlines()]
    shown = [line.strip() for line in (EXAMPLE.parent / "README.md").read_text().splitlines()]
    assert [line for line in shown if "|" in line] == printed


def test_a_flooded_host_reads_all_then_less_then_nothing() -> None:
    few, more, most = (flood(_network(1), 100, gap_us, 60.0) for gap_us in (200, 30, 18))
    assert few.got == pytest.approx(few.offered, rel=0.01)
    assert 0.05 * more.offered < more.got < 0.95 * more.offered
    assert most.got < 0.05 * more.got
    assert most.busy_share > 0.99
    assert flood(_network(16), 100, 30, 60.0).got > more.got


def test_a_datagram_that_the_interface_does_not_carry_is_refused() -> None:
    with pytest.raises(InputError, match="1 or more"):
        flood(_network(1), 0, 100)
