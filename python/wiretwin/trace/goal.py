"""GOAL, the schedules of LogGOPSim (Hoefler et al. 2010), as text: written from a recorded run, and read.

A rank's operations are ``send``, ``recv`` and ``calc``, each with a label. One begins when those have
ended that it ``requires``, and have begun that it ``irequires``. Times are in nanoseconds, or in the unit
that is given.

Read here, a rank begins its operations in the order of the file, and waits for what one requires before it
begins it. Schedules of which this is not the meaning are rejected.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from wiretwin import _core
from wiretwin.errors import InputError
from wiretwin.trace.format import rejected
from wiretwin.trace.operations import Operations

__all__ = ["UNITS_PS", "read_goal", "write_goal"]

UNITS_PS = {"ns": 1000, "ps": 1}
"""What a unit of ``calc`` may be, in picoseconds."""


def write_goal(made: Operations, path: str | Path, *, unit: str = "ns") -> int:
    """Write what ranks do as a schedule for LogGOPSim; return how many operations it has.

    What a rank computes becomes ``calc``, and its messages ``send`` and ``recv``; each follows what the rank
    had waited for. The cost of a call is the simulator's own.

    Raises
    ------
    InputError
        There is no such unit.
    OSError
        The file cannot be written.
    """
    unit_ps = _unit_ps(unit)
    tags: dict[tuple[int, int], int] = {}
    count = 0
    with Path(path).open("w", encoding="ascii") as file:
        file.write(f"num_ranks {made.ranks}\n")
        for rank in range(made.ranks):
            file.write(f"\nrank {rank} {{\n")
            labels: dict[int, int] = {}
            number, before, begun = 0, list[int](), 0
            for operation, request in made.traces[rank].operations():
                what = operation[0]
                if what == "wait":
                    # What comes next follows all of these, and what was computed.
                    before, begun = [*before, *(labels[one] for one in operation[1])], 0
                    continue
                if what == "compute":
                    text = f"calc {operation[1] // unit_ps}"
                elif what in ("send", "recv"):
                    _, context, peer, tag, nbytes = operation[:5]
                    if peer < 0 or tag < 0:
                        reason = "receives from any rank what never came"
                        raise InputError(key="trace", value=f"rank {rank}", reason=reason)
                    tag = tags.setdefault((context, tag), len(tags))
                    text = f"{what} {nbytes}b {'to' if what == 'send' else 'from'} {peer} tag {tag}"
                else:
                    continue
                number, count = number + 1, count + 1
                file.write(f"l{number}: {text}\n")
                file.writelines(f"l{number} requires l{one}\n" for one in dict.fromkeys(before))
                if begun:
                    file.write(f"l{number} irequires l{begun}\n")
                if request:
                    labels[request] = number
                    begun = number if what == "send" else begun
                else:
                    before, begun = [number], 0
            file.write("}\n")
    return count


def read_goal(path: str | Path, *, unit: str = "ns", compute_scale: float = 1.0) -> Operations:
    """Read a schedule of LogGOPSim.

    Raises
    ------
    InputError
        It cannot be read, or is no schedule of this form: names the line, and what is allowed.
    """
    path = Path(path)
    unit_ps = _unit_ps(unit) * compute_scale
    try:
        data = path.read_bytes()
    except OSError as error:
        reason, allowed = str(error.strerror), "a schedule in GOAL, or a folder"
        raise InputError(file=str(path), reason=reason, allowed=allowed) from None
    with rejected():
        return Operations(_core.read_goal(path, data, unit_ps), hashlib.sha256(data).hexdigest())


def _unit_ps(unit: str) -> int:
    if unit not in UNITS_PS:
        raise InputError(key="--unit", value=unit, allowed=", ".join(UNITS_PS))
    return UNITS_PS[unit]
