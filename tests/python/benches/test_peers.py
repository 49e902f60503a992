"""What the comparison with other people's tools makes of a tool that leaves a line out."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from wiretwin import process

FILE = Path(__file__).resolve().parents[3] / "benches" / "peers.py"
SAID = "0:      64 bytes    500 times -->\nlibpvm [t40001]: a line in between\n"


@pytest.fixture(scope="module")
def peers() -> ModuleType:
    spec = importlib.util.spec_from_file_location("benches_peers", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_a_line_that_a_tool_leaves_out_is_named_and_the_others_count(
    peers: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    done = process.run([sys.executable, "-c", f"print({SAID!r})"], limit_s=20)
    found = peers.sizes_of("NPpvm", [("1024", "40.5"), ("16384", "27.1"), ("96", "1.0")], done)
    assert found == {1024: 40.5, 16384: 27.1}
    said = capsys.readouterr().err
    assert "NPpvm printed no line for 64 B; it ended with 0" in said
    assert "left out of this round" in said


def test_a_size_without_any_line_is_a_row_that_says_so(peers: ModuleType) -> None:
    assert peers.row("pvm", "NPpvm (best)", 64, [29.0, 30.0], []).endswith("| | | no line |")
    assert peers.row("pvm", "NPpvm (best)", 64, [29.0, 30.0], [29.5]).endswith("| 1.00 | agree |")


def test_a_tool_that_does_not_end_costs_its_round_only(
    peers: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    def hangs(cpus: tuple[int, int]) -> object:
        return process.run([sys.executable, "-c", "import signal; signal.pause()"], limit_s=0.1)

    def works(cpus: tuple[int, int]) -> dict[int, float]:
        return {64: 1.0}

    assert peers.readings("pvm", hangs, (0, 0)) == {}
    assert "did not end within 0.1 s; left out of this round" in capsys.readouterr().err
    assert peers.readings("pvm", works, (0, 0)) == {64: 1.0}


def test_what_a_tool_spends_once_at_its_start_falls_out_of_two_runs(peers: ModuleType) -> None:
    start_us, message_us = 50_000.0, 4.75
    short, long = ((count, message_us + start_us / count) for count in (5000, 20000))
    assert short[1] == pytest.approx(14.75)
    assert peers.past_start(short, long) == pytest.approx(message_us)
