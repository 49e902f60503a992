"""What a host has for itself: folders, name, table of hosts. Runs inside its new namespaces."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from wiretwin.testbed import kernel
from wiretwin.testbed.plan import PRIVATE, Host

__all__ = ["MARK", "furnish", "write_hosts"]

MARK = "/run/wiretwin-testbed"
"""The file that tells a process of a testbed from any other: the testbed's folder and the host's name."""


def write_hosts(path: Path, hosts: Sequence[Host]) -> None:
    """Write the table by which the hosts' names resolve."""
    lines = ["127.0.0.1 localhost", *(f"{host.address} {host.name}" for host in hosts)]
    path.write_text("\n".join(lines) + "\n")


def furnish(host: Host, folder: Path, table: Path, visible: Sequence[str]) -> None:
    """Make the folders of `PRIVATE` this host's own, and name it.

    Everything else of the machine is seen as it is. The testbed's `folder` and those of
    `visible` are put back where they were.
    """
    kernel.set_host_name(host.name)
    kernel.mount("none", "/", None, kernel.RECURSIVE | kernel.SLAVE)
    # Held open before they are covered.
    kept = [(path, os.open(path, os.O_PATH | os.O_CLOEXEC)) for path in (str(folder), *visible)]
    kernel.mount(str(table), os.path.realpath("/etc/hosts"), None, kernel.BIND)
    for path in PRIVATE:
        if os.path.isdir(path):
            mode = "755" if path == "/run" else "1777"
            flags = kernel.NO_SUID | kernel.NO_DEVICES
            kernel.mount("wiretwin", os.path.realpath(path), "tmpfs", flags, f"mode={mode}")
    for path, descriptor in sorted(kept):
        os.makedirs(path, exist_ok=True)
        kernel.mount(f"/proc/self/fd/{descriptor}", path, None, kernel.BIND | kernel.RECURSIVE)
        os.close(descriptor)
    _system_tree()
    Path(MARK).write_text(f"{folder}\n{host.name}\n")


def _system_tree() -> None:
    """Show this host's own interfaces in ``/sys/class/net``, where libraries look for them.

    Where the kernel rejects (a container that hides parts of ``/sys``) the machine's are seen.
    """
    groups = None
    with contextlib.suppress(OSError):
        groups = os.open("/sys/fs/cgroup", os.O_PATH | os.O_CLOEXEC)
    with contextlib.suppress(OSError):
        kernel.mount("wiretwin", "/sys", "sysfs", 0)
        if groups is not None:
            kernel.mount(f"/proc/self/fd/{groups}", "/sys/fs/cgroup", None, kernel.BIND | kernel.RECURSIVE)
    if groups is not None:
        os.close(groups)
