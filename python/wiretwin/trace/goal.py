"""GOAL, the schedules of LogGOPSim (Hoefler et al. 2010), as text: written from a recorded run, and read.

A rank's operations are ``send``, ``recv`` and ``calc``, each with a label. One begins when those have
ended that it ``requires``, and have begun that it ``irequires``. Times are in nanoseconds, or in the unit
that is given.

Read here, a rank begins its operations in the order of the file, and waits for what one requires before it
begins it. That is what GOAL says where each operation stands behind those that it requires and a rank has one
processor and one network card; other schedules are rejected.
"""

from __future__ import annotations

import re
from pathlib import Path

from wiretwin.errors import InputError
from wiretwin.trace.operations import Operations

__all__ = ["UNITS_PS", "read_goal", "write_goal"]

UNITS_PS = {"ns": 1000, "ps": 1}
"""What a unit of ``calc`` may be, in picoseconds."""
_SEND = re.compile(r"(?:(\w+):\s*)?(send|recv)\s+(\d+)b\s+(?:to|from)\s+(\d+)(?:\s+tag\s+(\d+))?(.*)$")
_CALC = re.compile(r"(?:(\w+):\s*)?calc\s+(\d+)(.*)$")
_NEEDS = re.compile(r"(\w+)\s+(requires|irequires)\s+(\w+)$")
_RANK = re.compile(r"rank\s+(\d+)\s*\{?$")
_MOST_RANKS = 1 << 16


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
    try:
        lines = path.read_text("ascii").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = str(getattr(error, "strerror", None) or "is not text")
        raise InputError(file=str(path), reason=reason, allowed="a schedule in GOAL, or a folder") from None
    reader = _Reader(path, _unit_ps(unit) * compute_scale)
    for number, line in enumerate(lines, 1):
        if text := line.split("//")[0].strip():
            reader.line(number, text)
    return reader.finish()


def _unit_ps(unit: str) -> int:
    if unit not in UNITS_PS:
        raise InputError(key="--unit", value=unit, allowed=", ".join(UNITS_PS))
    return UNITS_PS[unit]


class _Reader:
    """The lines of a schedule, one after the other."""

    def __init__(self, path: Path, unit_ps: float) -> None:
        self.path, self.unit_ps = path, unit_ps
        self.made: Operations | None = None
        self.rank: int | None = None
        self.seen: set[int] = set()
        self.pending: list[tuple[int, str, tuple[object, ...], set[str]]] = []

    def wrong(self, number: int, value: str, allowed: str) -> InputError:
        return InputError(file=str(self.path), key=f"line {number}", value=value, allowed=allowed)

    def line(self, number: int, text: str) -> None:
        """Take one line that is not empty."""
        if self.made is None:
            match = re.fullmatch(r"num_ranks\s+(\d+)", text)
            if match is None or not 1 <= int(match[1]) <= _MOST_RANKS:
                raise self.wrong(number, text, f"num_ranks from 1 to {_MOST_RANKS}")
            self.made = Operations.of(int(match[1]))
        elif self.rank is None:
            match = _RANK.match(text)
            if match is None or int(match[1]) >= self.made.ranks or int(match[1]) in self.seen:
                raise self.wrong(number, text, f"rank, once each from 0 to {self.made.ranks - 1}, and {{")
            self.rank = int(match[1])
            self.seen.add(self.rank)
        elif text == "}":
            self._end()
        elif text != "{":
            self._operation(number, text)

    def _operation(self, number: int, text: str) -> None:
        assert self.made is not None
        if match := _NEEDS.match(text):
            label, how, other = match.groups()
            if not self.pending or self.pending[-1][1] != label:
                raise self.wrong(number, text, "what an operation requires right behind it")
            if all(other != one for _, one, _, _ in self.pending[:-1]):
                raise self.wrong(number, text, "an operation above the one that requires it")
            if how == "requires":
                self.pending[-1][3].add(other)
            return
        if match := _SEND.match(text):
            label, what, nbytes, peer, tag, rest = match.groups()
            if int(peer) >= self.made.ranks:
                raise self.wrong(number, text, f"ranks from 0 to {self.made.ranks - 1}")
            operation: tuple[object, ...] = (what, 0, int(peer), int(tag or 0) & 0x7FFF_FFFF, int(nbytes))
        elif match := _CALC.match(text):
            label, span, rest = match.groups()
            operation = ("compute", round(int(span) * self.unit_ps))
        else:
            raise self.wrong(number, text, "send, recv, calc, requires, irequires or }")
        if re.search(r"(cpu|nic)\s+[1-9]", rest):
            raise self.wrong(number, text, "cpu 0 and nic 0: a rank has one of each")
        self.pending.append((number, label or f"line {number}", operation, set()))

    def _end(self) -> None:
        """Write what the rank does that ends here."""
        assert self.made is not None
        assert self.rank is not None
        made, rank, requests = self.made, self.rank, dict[str, int]()
        for number, (_, label, operation, needs) in enumerate(self.pending, 1):
            waits = [requests.pop(one) for one in sorted(needs) if one in requests]
            if waits:
                made.add(rank, ("wait", waits, "all"))
            if operation[0] == "compute":
                made.compute(rank, int(str(operation[1])))
                continue
            full = (*operation, "standard") if operation[0] == "send" else operation
            requests[label] = made.add(rank, full, number)
        if requests:
            made.add(rank, ("wait", list(requests.values()), "all"))
        made.add(rank, ("finish",))
        self.rank, self.pending = None, []

    def finish(self) -> Operations:
        """Return what was read, which must be whole."""
        if self.made is None or self.rank is not None or len(self.seen) < self.made.ranks:
            raise InputError(
                file=str(self.path), reason="ends early", allowed="num_ranks, and each rank's {...}"
            )
        return self.made
