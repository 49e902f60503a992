"""Machines that an MPI's ``mpiexec`` reaches, as MPICH's, Intel's and Open MPI's do under many batch systems.

Each process is a job of one rank, on the machine that ``-host`` names, as the MPI standard has it. How the
launcher gets there is its own affair: by ssh, or by the batch system that it knows. What it tells its rank by
the environment is taken away again: an MPI that finds it would take itself for that one rank.
"""

from __future__ import annotations

import shlex
import socket
from dataclasses import dataclass

from wiretwin.errors import MeasureError

__all__ = ["Launched", "launched"]

_OF_A_RANK = (
    "PMI_|PMIX_|HYDI_|MPI_LOCAL|OMPI_(COMM|UNIVERSE|APP|FILE|FIRST|NUM)_|OMPI_MCA_(orte|ess|pmix|prte)_"
)
_WITHOUT = (
    f"for name in $(env | sed -n -E 's/^(({_OF_A_RANK})[A-Za-z0-9_]*)=.*/\\1/p'); do "
    'unset "$name"; done; exec sh -c "$1"'
)
"""A shell's words that run their argument without what tells a process that it is a rank."""


@dataclass(frozen=True, slots=True)
class Launched:
    """A machine that ``mpiexec`` reaches; a `wiretwin.remote.machine.Login` by it.

    Attributes
    ----------
    word
        What ``mpiexec`` calls it.
    address
        Its IP address.
    python
        The path of the Python there that has wiretwin.
    """

    word: str
    address: str
    python: str

    by = "mpiexec"
    package = "mpich"

    def _job(self, to: str) -> str:
        return f"mpiexec -host {to} -n 1 sh -c {shlex.quote(_WITHOUT)} sh"

    @property
    def reach(self) -> list[str]:
        """Return the command up to the remote command."""
        return shlex.split(self._job(shlex.quote(self.word)))

    @property
    def for_any(self) -> str:
        """Return a shell's words that reach the machine in its variable ``to``."""
        return self._job('"$to"')


def launched(word: str, python: str) -> Launched:
    """Return a machine with its address.

    Raises
    ------
    MeasureError
        Its name does not resolve.
    """
    try:
        address = socket.getaddrinfo(word, None, type=socket.SOCK_STREAM)[0][4][0]
    except OSError as error:
        raise MeasureError(f"{word}: is no host that resolves here: {error}") from None
    return Launched(word, str(address), python)
