"""What times the ranks of an executable file in a real run: a library that is loaded before its MPI."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from wiretwin.stacks import simulated
from wiretwin.stacks.build import build, cache_folder

__all__ = ["Timer"]


@dataclass(frozen=True, slots=True)
class Timer:
    """The timer of programs that are built for a library.

    Attributes
    ----------
    library
        For which MPI it is built.
    """

    library: simulated.Library

    def command(self, program: str, args: Sequence[str], printed: Path, split: bool) -> list[str]:
        """Return the words that run a program as one rank, timed.

        Parameters
        ----------
        program, args
            The executable file, found from every host, and its arguments.
        printed
            What each rank prints goes to a file of this name, a dot and its number.
        split
            Whether the time inside calls that move messages is told apart.

        Raises
        ------
        StackError
            The timer cannot be built.
        """
        shim = _shim(self.library.name, split)
        # Only the program itself has it, and not what starts it.
        line = f'exec env LD_PRELOAD="$0" "$@" > "{printed}.${self.library.rank_variable}"'
        return ["/bin/sh", "-c", line, str(shim), program, *args]


@cache
def _shim(name: str, split: bool) -> Path:
    """Return the timer of a library, with the list of its functions that move messages where it splits."""
    library = simulated.LIBRARIES[name]
    compiler = (library.compiler,)
    if not split:
        return build("live.c", compiler, ("-ldl",))
    names = [name for name in simulated.functions(library.file) if simulated.moves(name)]
    text = "".join(f"LIVE({name})\n" for name in names)
    listed = cache_folder() / f"live-{hashlib.sha256(text.encode()).hexdigest()[:24]}.inc"
    if not listed.is_file():
        partial = listed.with_suffix(f".{os.getpid()}")
        partial.write_text(text)
        partial.replace(listed)
    return build("live.c", compiler, ("-ldl",), (f'-DLIVE_LIST="{listed}"',))
