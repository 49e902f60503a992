"""A real-time priority for what is timed, on a host that has other things to do.

With WIRETWIN_PRIORITY set to a number (1 to 97; needs root, or `ulimit -r`), ranks of real runs, probes of
mpi4py, ranks of an MPI that sleep while they wait (`+yield`) and measuring passes are scheduled before
everything ordinary while they are timed. The launcher is not: an MPI's proxies wait in loops, and two of
them at such a priority would leave nothing of two cores.
"""

from __future__ import annotations

import os

__all__ = ["VARIABLE", "give_back", "take"]

VARIABLE = "WIRETWIN_PRIORITY"
_HIGHEST = 97


def take(above: int = 0) -> None:
    """Give this thread, and what it starts from now on, the priority that was asked for; nothing if none was.

    Parameters
    ----------
    above
        How much higher than asked for.

    Raises
    ------
    ValueError
        When the variable holds something else than a priority.
    PermissionError
        When this user may not have it.
    """
    text = os.environ.get(VARIABLE)
    if not text:
        return
    if not text.isdecimal() or not 1 <= int(text) <= _HIGHEST:
        raise ValueError(f"{VARIABLE} = {text!r}; allowed is 1 to {_HIGHEST}")
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(int(text) + above))


def give_back() -> None:
    """Return this thread to the ordinary ones."""
    if os.environ.get(VARIABLE):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
