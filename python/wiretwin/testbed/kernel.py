"""The system calls that a testbed is made of, for which Python has no names (yet).

Only the standard library is used, and nothing of wiretwin: ``enter.py`` runs this file by itself.
"""

from __future__ import annotations

import ctypes
import os

__all__ = [
    "BIND",
    "NAMESPACES",
    "RECURSIVE",
    "detach",
    "enter",
    "mount",
    "parent_death_signal",
    "process_start",
    "set_host_name",
    "unshare",
]

NAMESPACES = {"user": 0x10000000, "net": 0x40000000, "uts": 0x04000000, "ipc": 0x08000000, "mnt": 0x00020000}
"""The namespaces of a host, named as in ``/proc/PID/ns``, with their flags (``clone(2)``), in the order in
which they are entered."""
BIND = 0x1000
"""Mount flag: make a folder visible at another place."""
RECURSIVE = 0x4000
"""Mount flag: with everything mounted below it."""
SLAVE = 0x80000
"""Mount flag: take part in what the machine mounts, without giving anything back."""
NO_SUID, NO_DEVICES = 0x2, 0x4
_DETACH = 0x2
_PR_SET_PDEATHSIG = 1

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mount.argtypes = (
    ctypes.c_char_p,
    ctypes.c_char_p,
    ctypes.c_char_p,
    ctypes.c_ulong,
    ctypes.c_char_p,
)


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


def unshare(*names: str) -> None:
    """Put this process into new namespaces, named as in `NAMESPACES`."""
    flags = 0
    for name in names:
        flags |= NAMESPACES[name]
    _check(_libc.unshare(flags), f"new namespaces ({', '.join(names)})")


def enter(descriptor: int, name: str) -> None:
    """Put this thread into the namespace that a descriptor refers to."""
    _check(_libc.setns(descriptor, NAMESPACES[name]), f"namespace {name}")


def mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """Mount, as ``mount(2)``."""
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind, data)]
    _check(_libc.mount(words[0], words[1], words[2], flags, words[3]), f"mounting {target}")


def detach(target: str) -> None:
    """Take a mount away; what is open below it stays usable."""
    _check(_libc.umount2(os.fsencode(target), _DETACH), f"unmounting {target}")


def set_host_name(name: str) -> None:
    """Name the host of this process's UTS namespace."""
    octets = name.encode()
    _check(_libc.sethostname(octets, len(octets)), f"host name {name}")


def parent_death_signal(number: int) -> None:
    """Ask for a signal when the thread that started this process ends."""
    _check(_libc.prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0), "parent death signal")


def process_start(pid: int) -> int | None:
    """Return when a process began, in ticks since the machine did; nothing if there is none.

    A process number together with this is never used again while the machine runs.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b") ")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])  # 3 is the state, 22 the start (proc(5))
