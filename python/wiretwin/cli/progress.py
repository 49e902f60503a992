"""A progress bar with the remaining time, silent when standard error is no terminal.

It is redrawn between launches only, never by a timer: a redraw takes a core away from the processes
that are being measured.
"""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Bar"]


class Bar:
    """A context manager around something that takes over a second.

    Parameters
    ----------
    title
        What is going on.
    console
        Where to draw; by default standard error.
    """

    def __init__(self, title: str, console: Console | None = None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[left]}"),
            TextColumn("[dim]{task.fields[words]}", markup=True),
            console=console or Console(stderr=True),
            auto_refresh=False,
            transient=True,
        )
        self._shown = self._progress.console.is_terminal
        self._begun = time.monotonic()
        self._before: int | None = None
        self._task = self._progress.add_task(title, total=1.0, left="", words="")

    def __enter__(self) -> Bar:
        if self._shown:
            self._progress.start()
            self._progress.refresh()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            self._progress.stop()

    def show(self, done_s: float, left_s: float, words: str) -> None:
        """Redraw.

        Parameters
        ----------
        done_s, left_s
            Seconds since the beginning and still to come.
        words
            What is happening.
        """
        if self._shown:
            share = done_s / max(1e-9, done_s + left_s)
            left = f"{left_s:.0f} s left"
            self._progress.update(self._task, completed=share, left=left, words=words.replace("[", r"\["))
            self._progress.refresh()

    def stage(self, done: int, total: int, words: str) -> None:
        """Redraw for stages of about equal length.

        Parameters
        ----------
        done, total
            Stages behind, and all of them. Those that were behind already at the first call but one took no
            time here.
        words
            What is happening.
        """
        elapsed = time.monotonic() - self._begun
        if self._before is None:
            self._before = max(0, done - 1)
        here = done - self._before
        left = elapsed / here * (total - done) if here else 0.0
        self.show(elapsed, left, words)
