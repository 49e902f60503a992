"""Running as an ordinary user when we are root: some libraries reject root and have no switch.

No account is made. The program runs under the number of an account that is there (`nobody`), and keeps, as
ambient capabilities, only what it needs to read our files and to enter the hosts of a testbed.
"""

from __future__ import annotations

import os
import pwd
import shutil
from collections.abc import Sequence
from pathlib import Path

from wiretwin.stacks.base import Refusal

__all__ = ["identity", "refusal", "unprivileged"]

_CANDIDATES = ("nobody", "daemon", "www-data")
_CAPABILITIES = {
    "dac_read_search": 2,
    "dac_override": 1,
    "sys_chroot": 18,
    "sys_ptrace": 19,
    "sys_admin": 21,
}
"""By their numbers in ``capabilities(7)``: reading what only root may read; entering namespaces."""


def identity() -> pwd.struct_passwd:
    """Return the account to run under: ours, or if we are root one that has no rights.

    Raises
    ------
    KeyError
        There is none.
    """
    if os.geteuid() != 0:
        return pwd.getpwuid(os.geteuid())
    for name in _CANDIDATES:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    return next(entry for entry in pwd.getpwall() if entry.pw_uid != 0)


def refusal() -> Refusal | None:
    """Say why nothing can be run as an ordinary user here; nothing if it can."""
    try:
        identity()
    except (KeyError, StopIteration):
        return Refusal("this process has no account that has a name", "useradd --no-create-home wiretwin")
    if os.geteuid() == 0 and shutil.which("setpriv") is None:
        return Refusal("no `setpriv`, to be an ordinary user for once", "apt-get install util-linux")
    return None


def unprivileged(argv: Sequence[str]) -> list[str]:
    """Return the command under an account without rights; as it is if we are an ordinary user already.

    A signal at the death of the parent that was asked for before is lost on the way, as with every change
    of identity; it has to be asked for behind it.
    """
    if os.geteuid() != 0:
        return list(argv)
    who = identity()
    kept = ",".join(f"+{name}" for name in _held())
    ids = [f"--reuid={who.pw_uid}", f"--regid={who.pw_gid}", "--clear-groups"]
    caps = [f"--inh-caps={kept}", f"--ambient-caps={kept}"] if kept else []
    return ["setpriv", *ids, *caps, "--", *argv]


def _held() -> list[str]:
    """Return which of the capabilities this process has."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapPrm:"):
            permitted = int(line.split()[1], 16)
            return [name for name, number in _CAPABILITIES.items() if permitted >> number & 1]
    return []
