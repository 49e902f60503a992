"""What times the ranks of an executable file in a real run: a library that is loaded before its MPI."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from wiretwin.stacks import simulated
from wiretwin.stacks.build import build, build_listed

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
        line = f'to=$1.${self.library.rank_variable}; shift; exec env LD_PRELOAD="$0" "$@" > "$to"'
        return ["/bin/sh", "-c", line, str(shim), str(printed), program, *args]


@cache
def _shim(name: str, split: bool) -> Path:
    """Return the timer of a library, with the list of its functions that move messages where it splits."""
    library = simulated.LIBRARIES[name]
    if not split:
        return build("live.c", (library.compiler,), ("-ldl",))
    names = [name for name in simulated.functions(library.file) if simulated.moves(name)]
    return build_listed("live.c", library.compiler, "".join(f"LIVE({name})\n" for name in names))
