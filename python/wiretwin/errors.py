"""Every error a user can cause or meet, and the one place that turns them into exit codes.

An error of this family is complete as it is: its text names the place, the value found there and
what is allowed, and it is shown without a traceback. Anything else that escapes is a defect of
wiretwin itself and is shown as one.

========  =====================================================================
code      meaning
========  =====================================================================
0         done
1         done, and the answer is no (``doctor``: no layer can run)
2         input rejected: an option, a file, a key, a value; or an extra is not installed
3         a measurement failed: no layer could be measured
4         a simulated run failed: deadlock, or something that is not modelled
5         the user's program failed: raised, called exit, or never received
6         a file could not be written or read: disk full, not permitted
7         too little memory: a limit on it, or all of it is in use
70        a defect of wiretwin
130       interrupted; what was measured is kept (129 by SIGHUP, 143 by SIGTERM)
========  =====================================================================
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import sys
import traceback
from pathlib import Path

__all__ = [
    "DEFECT_EXIT_CODE",
    "InputError",
    "InterruptedRun",
    "MeasureError",
    "MemoryShortage",
    "ProgramError",
    "SimulationError",
    "StorageError",
    "WiretwinError",
    "report_error",
    "require",
]

DEFECT_EXIT_CODE = 70
"""What an error outside this family ends with (``EX_SOFTWARE`` of ``sysexits.h``)."""


class WiretwinError(Exception):
    """The root of the family; `exit_code` is what the command line ends with."""

    exit_code = 1


class InputError(WiretwinError):
    """Something the user gave is wrong: a file, a key in it, an option, a value.

    Parameters
    ----------
    file
        The file it is in; ``None`` for a command-line option or an argument.
    key
        The key, option or argument, written as the user writes it (``--budget``, ``layers.shm.t_0_us``).
    value
        The value found; left out of the message when ``None``.
    allowed
        What would have been accepted, in words.
    reason
        What is wrong, in words; by default that the value is not allowed.
    """

    exit_code = 2

    def __init__(
        self,
        file: str | os.PathLike[str] | None = None,
        key: str | None = None,
        value: object = None,
        allowed: str | None = None,
        reason: str | None = None,
    ) -> None:
        self.file = Path(file) if file is not None else None
        self.key = key
        self.value = value
        self.allowed = allowed
        self.reason = reason
        super().__init__(self._message())

    def _message(self) -> str:
        place = ": ".join(str(part) for part in (self.file, self.key) if part is not None)
        found = [] if self.value is None else [_shown(self.value)]
        if self.reason is not None:
            found.append(self.reason)
        elif found:
            found.append("is not allowed here")
        text = " ".join(found) or "is wrong"
        message = f"{place}: {text}" if place else text
        return f"{message}; allowed: {self.allowed}" if self.allowed else message


class MeasureError(WiretwinError):
    """A measurement could not be made; the text names the layer and the reason."""

    exit_code = 3


class SimulationError(WiretwinError):
    """A simulated run cannot go on: a deadlock, or a call that is not modelled."""

    exit_code = 4


class ProgramError(WiretwinError):
    """The user's program failed; the text names the rank and the line."""

    exit_code = 5


class StorageError(WiretwinError):
    """A file could not be written or read. What was stored before it is intact.

    Parameters
    ----------
    file
        The file concerned.
    reason
        The system's own words, for example ``No space left on device``.
    kept
        What is safe nevertheless, in words.
    """

    exit_code = 6

    def __init__(self, file: str | os.PathLike[str], reason: str, kept: str | None = None) -> None:
        self.file = Path(file)
        self.reason = reason
        self.kept = kept
        super().__init__(f"{file}: {reason}" + (f"; {kept}" if kept else ""))


class MemoryShortage(WiretwinError):
    """There is too little memory for a library or for what was asked; the text says what limits it."""

    exit_code = 7


EXTRAS = {
    **dict.fromkeys(("jinja2", "markupsafe", "plotly", "polars", "pyarrow", "scipy"), "report"),
    **dict.fromkeys(("distributed", "yaml"), "cluster"),
    "otf2": "traces",
}
"""The packages of each extra of the wheel, by the name they are imported by."""


def require(extra: str) -> None:
    """Check that the packages of an extra are installed, before a verb that needs them begins.

    Raises
    ------
    InputError
        One of them is not.
    """
    for module, of in EXTRAS.items():
        if of == extra and importlib.util.find_spec(module) is None:
            raise _missing(module, extra)


def missing_extra(error: ModuleNotFoundError) -> InputError | None:
    """Return the error that says which extra has the module that was not found; none if no extra has it."""
    module = (error.name or "").partition(".")[0]
    return _missing(module, EXTRAS[module]) if module in EXTRAS else None


def _missing(module: str, extra: str) -> InputError:
    return InputError(reason=f"this needs {module}, which is not installed: pip install 'wiretwin[{extra}]'")


class InterruptedRun(WiretwinError):
    """The user or the system interrupted; the text says what was kept and where.

    The command line ends with 128 and the number of the signal that came: 130 for Ctrl-C.
    """

    exit_code = 130


def report_error(error: BaseException, *, debug: bool = False) -> int:
    """Write one error to standard error and return the exit code that goes with it.

    Parameters
    ----------
    error
        What was raised.
    debug
        Show the traceback as well.
    """
    if debug:
        traceback.print_exception(error, file=sys.stderr)
    # Python 3.11 wraps what is raised while a class is made, an interrupt too.
    if isinstance(error.__cause__, KeyboardInterrupt):
        error = error.__cause__
    if isinstance(error, KeyboardInterrupt | InterruptedRun):
        from wiretwin.interruption import came

        number = came()
        by = "" if number is signal.SIGINT else f"{number.name}: "
        said = str(error) if isinstance(error, InterruptedRun) else "interrupted"
        _say(f"wiretwin: {by}{said}")
        return 128 + number
    if isinstance(error, ModuleNotFoundError) and (missing := missing_extra(error)) is not None:
        error = missing
    if isinstance(error, WiretwinError):
        _say(f"wiretwin: {error}")
        return error.exit_code
    kind = type(error).__name__
    print(f"wiretwin: a defect of wiretwin, please report it: {kind}: {error}", file=sys.stderr)
    if not debug:
        print("wiretwin: `wiretwin --debug …` shows where", file=sys.stderr)
    return DEFECT_EXIT_CODE


def _say(text: str) -> None:
    """Print to standard error, which may be a terminal that has been closed."""
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def _shown(value: object) -> str:
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 120 else text[:117] + "..."
