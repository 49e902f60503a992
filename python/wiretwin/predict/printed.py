"""What the ranks of a program printed: how much is kept, how it is shown, and whether two worlds agree."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Literal

__all__ = [
    "LAST_BYTES",
    "MOST_BYTES",
    "RANK_BYTES",
    "SHOWN_LINES",
    "Agreement",
    "agreement",
    "first",
    "kept",
    "last",
    "lines",
    "read",
]

RANK_BYTES = 1 << 16
"""The most that is kept of a rank's output, in bytes from its beginning."""
MOST_BYTES = 1 << 22
"""The most that is kept of all ranks' output together, in bytes."""
LAST_BYTES = 4096
"""So many bytes of its end say what a rank was about when it failed."""
SHOWN_LINES = 200
"""So many lines are shown at most; a record has more."""

Agreement = Literal["same", "but for numbers", "different"]
"""How what a program printed in one world compares with another: numbers and dates may differ."""

# A column of numbers is filled up with blanks, by how long each is.
_NUMBER = re.compile(
    r"[ \t]*[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?"
    r"|[ \t]*\b(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sep(?:tember)?"
    r"|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?|(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?"
    r"|[AP]M)\b"
)


def _limit(ranks: int) -> int:
    return min(RANK_BYTES, MOST_BYTES // max(1, ranks))


def _cut(text: bytes, total: int) -> str:
    words = text.decode("utf-8", "replace")
    return words if total <= len(text) else f"{words}\n[{total - len(text)} bytes more]\n"


def kept(texts: Sequence[str]) -> list[str]:
    """Return what a record keeps of each rank's output."""
    limit = _limit(len(texts))
    whole = [text.encode("utf-8", "replace") for text in texts]
    return [_cut(text[:limit], len(text)) for text in whole]


def read(files: Sequence[Path]) -> list[str]:
    """Return what a record keeps of the output that each rank has written to its file, if it has one."""
    limit = _limit(len(files))
    texts = []
    for file in files:
        if not file.exists():
            texts.append("")
            continue
        with file.open("rb") as stream:
            texts.append(_cut(stream.read(limit), file.stat().st_size))
    return texts


def last(file: Path) -> str:
    """Return the end of what a rank has written to its file, the last `LAST_BYTES` of it."""
    if not file.exists():
        return ""
    with file.open("rb") as stream:
        stream.seek(max(0, file.stat().st_size - LAST_BYTES))
        return stream.read().decode("utf-8", "replace")


def lines(texts: Sequence[str], most: int = SHOWN_LINES) -> Iterator[str]:
    """Yield the lines that the ranks printed, each behind its rank, as ``mpiexec -l`` does."""
    every = [f"[{rank}] {line}" for rank, text in enumerate(texts) for line in text.splitlines()]
    yield from every[:most]
    if len(every) > most:
        yield f"[{len(every) - most} lines more]"


def agreement(predicted: Sequence[str], actual: Sequence[str]) -> Agreement:
    """Return how what the ranks printed in two worlds compares, rank by rank."""
    if list(predicted) == list(actual):
        return "same"
    masked = [[_NUMBER.sub("#", text) for text in texts] for texts in (predicted, actual)]
    return "but for numbers" if masked[0] == masked[1] else "different"


def first(predicted: Sequence[str], actual: Sequence[str]) -> str:
    """Return the first line that differs, in words; empty where none does."""
    for rank, (ours, theirs) in enumerate(zip_longest(predicted, actual, fillvalue="")):
        pairs = zip_longest(ours.splitlines(), theirs.splitlines())
        for number, (one, other) in enumerate(pairs, start=1):
            if one != other:
                said = ["nothing" if text is None else repr(text) for text in (one, other)]
                return f"rank {rank}, line {number}: {said[0]} predicted, {said[1]} printed by the run"
    return ""
