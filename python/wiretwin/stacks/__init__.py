"""Messaging libraries as stacks: what each needs, how its shim is built, how its ranks are started.

- `layers`: every layer that can be measured, and how each is started
- `nature`: what a layer is like, which others ask for in place of its name

A library is reached through a *shim*: a small C file per library under ``shim/``, built on the machine
where it runs.
"""

from wiretwin.stacks.base import Command, Refusal, Session, Stack, StackError
from wiretwin.stacks.intel import IntelMpi
from wiretwin.stacks.lam import Lam
from wiretwin.stacks.mpi import Mpich, OpenMpi
from wiretwin.stacks.mpi4py import Mpi4pyMpich, Mpi4pyOpenMpi
from wiretwin.stacks.pvm import Pvm
from wiretwin.stacks.rpc import Tirpc
from wiretwin.stacks.transports import Direct, Libfabric, Ucx

__all__ = ["STACKS", "Command", "Refusal", "Session", "Stack", "StackError"]

STACKS: dict[str, Stack] = {
    stack.name: stack
    for stack in (
        Mpi4pyMpich(),
        Mpi4pyOpenMpi(),
        Mpich(),
        OpenMpi(),
        IntelMpi(),
        Lam(),
        Pvm(),
        Tirpc(),
        Ucx(),
        Libfabric(),
        Direct("shm", "through shared memory", 1),
        Direct("packet", "by packet sockets, past the kernel's protocols", 2),
        Direct("udp", "in datagrams through the kernel"),
    )
}
"""Every stack by its name."""
