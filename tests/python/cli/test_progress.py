"""The progress bar: the remaining time on a terminal, nothing elsewhere, no timer."""

from __future__ import annotations

import io
import threading

from rich.console import Console

from wiretwin.cli.progress import Bar


def draw(terminal: bool) -> tuple[str, int]:
    text = io.StringIO()
    console = Console(file=text, force_terminal=terminal, width=100, color_system=None)
    before = threading.active_count()
    with Bar("measuring", console) as bar:
        bar.show(3.0, 9.0, "shm: [120] samples")
        threads = threading.active_count() - before
    return text.getvalue(), threads


def test_a_terminal_sees_share_remaining_time_and_what_happened() -> None:
    shown, _ = draw(True)
    assert "measuring" in shown
    assert "25%" in shown
    assert "9 s left" in shown
    assert "shm: [120] samples" in shown


def test_what_is_no_terminal_sees_nothing() -> None:
    assert draw(False)[0] == ""


def test_no_thread_redraws_while_ranks_are_measured() -> None:
    assert draw(True)[1] == 0
