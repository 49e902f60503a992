"""Chosen algorithms of collectives as the file that MPICH selects them by.

MPICH reads the file that ``MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE`` names in place of its own rules, and
ends if a collective is not in it. Its own rules are a text in the library, so a file for one edition of
MPICH is what this library would do by itself, with other rules for the collectives and the number of ranks
that were simulated. The format is that of ``src/mpi/coll/src/csel.c`` of MPICH 4.0 and 5.0.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from wiretwin.errors import InputError
from wiretwin.predict.collectives import PIECES, Choice, starts

__all__ = ["environment", "mpich_rules", "own_rules"]

Rules = dict[str, Any]
_BEGINS = b'{"collective='
_OF_ALL_DEVICES = "algorithm=MPIR_Bcast_intra_binomial"
"""In the rules that choose algorithms made of messages; the library has others, of its devices."""
_SUMS = ("allreduce", "reduce")
_PAGE = 4096


def own_rules(library: Path) -> Rules:
    """Return the rules by which an MPICH chooses algorithms when it is told nothing.

    Raises
    ------
    InputError
        The file cannot be read, or has no such rules: MPICH has them since 4.0.
    """
    try:
        held = library.read_bytes()
    except OSError as error:
        raise InputError(library, reason=f"cannot be read: {error.strerror or error}") from None
    at = held.find(_BEGINS)
    while at >= 0:
        text = held[at : held.index(b"\0", at)]
        if _OF_ALL_DEVICES.encode() in text:
            found: Rules = json.loads(text)
            return found
        at = held.find(_BEGINS, at + 1)
    raise InputError(library, reason="has no rules of its own for collectives", allowed="MPICH 4.0 or newer")


def environment(choices: Iterable[Choice], file: Path) -> dict[str, str]:
    """Return the variables by which MPICH takes the file, for its own algorithms rather than its devices'.

    A device takes a collective apart before any of these rules is read, within hosts and between them.
    """
    names = sorted({one.collective for one in choices})
    return {"MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE": str(file)} | {
        f"MPIR_CVAR_{name.upper()}_DEVICE_COLLECTIVE": "0" for name in names
    }


def mpich_rules(choices: Sequence[Choice], ranks: int, own: Rules) -> str:
    """Return choices as MPICH reads them, with its own rules for everything else.

    They hold for communicators of so many ranks. Reductions by operations that a program has defined stay
    with MPICH's own rules, as does an all-to-all in place.

    Parameters
    ----------
    choices
        As `wiretwin.predict.collectives.choose` returns them for MPICH.
    ranks
        For which they were made.
    own
        As `own_rules`.

    Raises
    ------
    InputError
        The library's own rules do not have one of the collectives.
    """
    rules = dict(own)
    for name in sorted({one.collective for one in choices}):
        key, inside = f"collective={name}", "comm_type=intra"
        if not isinstance(own.get(key), dict) or inside not in own[key]:
            raise InputError(
                key="--layer", reason=f"its MPICH has no rules for {name}", allowed="4.0 or newer"
            )
        before = own[key][inside]
        given = _given(name, starts(choices, name), ranks, before)
        some = {f"comm_size<={ranks - 1}": before, f"comm_size<={ranks}": given, "comm_size=any": before}
        rules[key] = {**own[key], inside: some}
    text = json.dumps(rules, indent=1) + "\n"
    # MPICH maps the file and reads on until a zero, which stands behind it unless it fills its last page.
    return text if len(text) % _PAGE else text + "\n"


def _given(name: str, begins: Sequence[tuple[int, str]], ranks: int, own: Rules) -> Rules:
    """Return the rules of one collective for the number of ranks, by the length of a message."""
    # Of an allgather MPICH knows the length of all blocks only.
    key, scale = ("total_msg_size", ranks) if name == "allgather" else ("avg_msg_size", 1)
    ends = [f"{key}<{start * scale}" for start, _ in begins[1:]] + [f"{key}=any"]
    lengths: Rules = {
        end: _algorithm(name, algorithm, own) for end, (_, algorithm) in zip(ends, begins, strict=True)
    }
    if name in _SUMS:
        return {"is_op_built_in=yes": lengths, "is_op_built_in=no": own}
    if name == "alltoall":
        in_place = "is_sendbuf_inplace=yes"
        return {in_place: own.get(in_place, own), "is_sendbuf_inplace=no": lengths}
    return lengths


def _algorithm(name: str, algorithm: str, own: Rules) -> Rules:
    """Return an algorithm by MPICH's name; of a reduction in pieces only where it has numbers enough."""
    named: Rules = {f"algorithm=MPIR_{name.capitalize()}_intra_{algorithm}": {}}
    if name in _SUMS and algorithm.startswith(PIECES):
        return {"count<pow2": own, "count=any": named}
    return named
