"""The host's shared memory, ``/dev/shm``: how much there is, how much is needed, what happens without.

Our own folders go elsewhere where it is full, and our own rings have no name there. The libraries of MPI and
Python's `multiprocessing` know no other place: a rank that meets a full one is ended by SIGBUS.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

__all__ = ["FOLDER", "ROOM_BYTES", "WORKER_BYTES", "Room", "room", "short_of"]

FOLDER = Path("/dev/shm")
MIB = 1 << 20
RANK_BYTES = 2 * MIB
"""What a rank of a library of MPI may need, in bytes; MPICH 5 takes 1.03 MiB of it for each as it starts."""
WORKER_BYTES = MIB // 4
"""What a worker of `multiprocessing` may need, in bytes: a page for each of its semaphores."""
ROOM_BYTES = 16 * MIB
"""What has to be free for the folders of a run to be made there, in bytes."""


@dataclass(frozen=True, slots=True)
class Room:
    """What a file system holds, in bytes."""

    size: int
    free: int

    def __str__(self) -> str:
        return f"{FOLDER} has {_shown(self.free)} of {_shown(self.size)} free"


def room() -> Room | None:
    """Look at the shared memory; nothing if there is none that this user may write to."""
    if not os.access(FOLDER, os.W_OK):
        return None
    found = os.statvfs(FOLDER)
    # Without a file to be had there is no room, whatever is free.
    free = found.f_bavail * found.f_frsize if found.f_favail or not found.f_files else 0
    return Room(found.f_blocks * found.f_frsize, free)


def short_of(ranks: int) -> str | None:
    """Say that the shared memory is too small for an MPI's ranks; nothing if it is not.

    Parameters
    ----------
    ranks
        How many there are on this host.
    """
    found, needed = room(), ranks * RANK_BYTES
    if found is None:
        return f"{FOLDER} is not there or may not be written to, and ranks of MPI meet in it"
    if found.free >= needed:
        return None
    return f"{found}, and {ranks} ranks of MPI need up to {_shown(needed)} there"


def _shown(count: int) -> str:
    return f"{count / MIB:.0f} MiB" if count >= 10 * MIB else f"{count / 1024:.0f} KiB"
