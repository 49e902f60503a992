"""The signals that ask a run to end early: SIGINT, SIGTERM and SIGHUP, each as the others.

The command line has each of them raise `KeyboardInterrupt`, so that whatever a verb does at Ctrl-C it does
when it is ended by a time limit, a cancelled job or a closed terminal. A measurement takes them as a flag, by
`Interruption`. The process then ends with 128 and the signal's number.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

__all__ = ["SIGNALS", "Interruption", "came", "hear", "hear_no_more", "lost_since_now"]

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
DEAF_S = 5.0
"""How long compiled code may keep the main thread from a signal, in seconds, before the process is ended."""

AGAIN_S = 0.01
"""After so long an interrupt that was lost comes again, in seconds."""

_came = signal.SIGINT
_reader = -1
"""Where the interpreter writes the number of each signal at once, and whoever handles it takes it away."""
_handled = 0


def came() -> signal.Signals:
    """Return the signal that has interrupted this process or its last run; SIGINT where none has."""
    return _came


def lost_since_now() -> Callable[[], None]:
    """Return what raises `KeyboardInterrupt` if a signal has come since and its interrupt was caught.

    Libraries that start threads and processes catch whatever is raised in some places; who calls them asks
    afterwards.
    """
    before = _handled

    def ask() -> None:
        if _handled != before:
            raise KeyboardInterrupt

    return ask


def _note(number: int) -> None:
    global _came, _handled
    _came = signal.Signals(number)
    _handled += 1
    if _reader >= 0:
        with contextlib.suppress(BlockingIOError):
            os.read(_reader, 64)


def _interrupt(number: int, _frame: FrameType | None) -> None:
    _note(number)
    raise KeyboardInterrupt


def _lost(unraisable: sys.UnraisableHookArgs, otherwise: Callable[[sys.UnraisableHookArgs], object]) -> None:
    """Have an interrupt come again that fell where nothing can be raised, as inside a destructor."""
    if isinstance(unraisable.exc_value, KeyboardInterrupt):
        again = threading.Timer(AGAIN_S, os.kill, (os.getpid(), _came))
        again.daemon = True
        again.start()
    else:
        otherwise(unraisable)


def hear(report: Callable[[BaseException], int]) -> None:
    """Have each of the signals interrupt this process, except those that it was started to ignore.

    Parameters
    ----------
    report
        Says that this process was interrupted; returns what it ends with.

    Python handles a signal in its main thread, between two of its own instructions. Where that is inside
    compiled code for longer than `DEAF_S`, this process is ended as it is, and its keeper does the rest.
    Where it is inside a destructor, which can raise nothing, the signal comes again.
    """
    global _reader
    otherwise = sys.unraisablehook
    sys.unraisablehook = lambda unraisable: _lost(unraisable, otherwise)
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)
    _reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(_reader, report), name="signals", daemon=True).start()


def hear_no_more() -> None:
    """Have each of the signals end this process at once: its work is done.

    What is left is the end of the interpreter, where an interrupt would be lost.
    """
    for number in SIGNALS:
        if signal.getsignal(number) is _interrupt:
            signal.signal(number, signal.SIG_DFL)


def _watch(reader: int, report: Callable[[BaseException], int]) -> None:
    poll = select.poll()
    poll.register(reader, select.POLLIN)
    while True:
        poll.poll()
        before = _handled
        threading.Event().wait(DEAF_S)
        if _handled == before and poll.poll(0):
            _note(os.read(reader, 64)[0])
            os._exit(report(KeyboardInterrupt()))


class Interruption:
    """Turns the signals into a flag and a file descriptor that wakes a wait.

    A context manager. A measurement is then interrupted at its waits only, never in the middle of
    storing samples. A second signal raises `KeyboardInterrupt` at once. Outside the main thread, where
    Python delivers no signals, it stays inactive.
    """

    def __init__(self) -> None:
        self.requested = False
        self._before: dict[int, Any] = {}
        self._reader, self._writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def fileno(self) -> int:
        """Return the descriptor that becomes readable at an interrupt."""
        return self._reader

    def request(self) -> None:
        """Interrupt, as the signal does."""
        self.requested = True
        os.write(self._writer, b"x")

    def _handle(self, number: int, _frame: object) -> None:
        _note(number)
        if self.requested:
            raise KeyboardInterrupt
        self.request()

    def __enter__(self) -> Interruption:
        global _came
        _came = signal.SIGINT  # what has interrupted an earlier one is of the past
        with contextlib.suppress(ValueError):
            for number in SIGNALS:
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()
        os.close(self._reader)
        os.close(self._writer)
