"""Sun RPC by libtirpc: rank 1 serves, rank 0 calls.

On one host the server's port goes through the directory of the launch. Between the hosts of a testbed each
has an rpcbind of its own in its private ``/run``, the server registers there and the client asks it, as RPC
programs do.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from wiretwin import process
from wiretwin.place import HERE, HostPlace, Place, host_of
from wiretwin.stacks.apart import ApartSession
from wiretwin.stacks.base import Refusal, Session, Stack, StackError
from wiretwin.stacks.build import Shim
from wiretwin.stacks.daemons import household
from wiretwin.stacks.foreground import await_condition, daemon, end_elsewhere
from wiretwin.stacks.word import Word, fixed

__all__ = ["LIBRARY_BUFFER", "UDP_BUFFER", "Tirpc", "has_own_run", "rpcbinds"]

LIBRARY_BUFFER = 8800
"""UDPMSGSIZE: the buffers of UDP unless a program asks for others, bytes."""
UDP_BUFFER = 65507
"""Payload of a UDP datagram over IPv4: 65535 - 20 - 8 (RFC 768, RFC 791)."""
HEADER = 48
"""A call or its answer without the message, at most, bytes: RFC 5531 section 9 with AUTH_NONE, and the
length of the message."""
PAD = 3
ANSWER_LIMIT_S = 2.0
"""The longest one answer of it may take, seconds."""
UP_LIMIT_S = 10.0
"""The longest rpcbind may take to answer, seconds."""
_SHIM = Shim("tirpc.c", "cc", "libtirpc-dev", ("-ltirpc",), ("-I/usr/include/tirpc",))
_LOOPS = frozenset({"echo", "two_write", "stream"})
"""RPC's send is half of a call: it has no time of its own, and neither has its receive."""
_CALLS = frozenset({"echo"})
"""Over UDP every call waits for its answer."""


def _in_array(buffer: int) -> int:
    return (buffer - HEADER) // 4


class Tirpc(Stack):
    """ONC RPC version 2 through libtirpc."""

    name = "rpc/tirpc"
    summary = "calls of Sun RPC (libtirpc) over TCP, the message as opaque<>; sleeping; two ranks"
    options: Mapping[str, Any] = {"transport": "tcp", "argument": "opaque", "buffer": 0}
    words: tuple[Word, ...] = (
        fixed(
            "udp",
            f"over UDP, buffers raised from {LIBRARY_BUFFER} to {UDP_BUFFER} bytes",
            loops=_CALLS,
            max_bytes=UDP_BUFFER - HEADER - PAD,
            transport="udp",
            buffer=UDP_BUFFER,
        ),
        fixed(
            "udp8k",
            f"over UDP with the library's buffers of {LIBRARY_BUFFER} bytes",
            loops=_CALLS,
            max_bytes=LIBRARY_BUFFER - HEADER - PAD,
            transport="udp",
            buffer=LIBRARY_BUFFER,
        ),
        fixed("array", "the message as array<> of char: four bytes each on the wire", argument="array"),
    )
    loops = _LOOPS
    max_bytes = 1 << 28

    def largest(self, options: Mapping[str, Any]) -> int:
        """Return what a datagram has room for, four bytes to one with an array."""
        if options["transport"] == "udp" and options["argument"] == "array":
            return _in_array(int(options["buffer"]))
        return self.max_bytes

    def refusal(self, options: Mapping[str, Any], place: Place = HERE) -> Refusal | None:
        """Look for rpcbind where it is needed, and build the shim."""
        if has_own_run(place) and _rpcbind() is None:
            return Refusal("no `rpcbind`", "apt-get install --no-install-recommends rpcbind")
        return _SHIM.refusal()

    @contextlib.contextmanager
    def up(self, place: Place, options: Mapping[str, Any]) -> Iterator[Session]:
        """Build the shim; in a testbed start an rpcbind on each host."""
        shim = _SHIM.at(place)
        own = {**options, "address": host_of(place, 1).address}
        with contextlib.ExitStack() as stack:
            if has_own_run(place):
                stack.enter_context(rpcbinds(place))
                own["rpcbind"] = "yes"
            yield _RpcSession(place, shim=shim, options=own, report={"libtirpc": _version()})


class _RpcSession(ApartSession):
    measuring: Mapping[str, Any] = {"keep": "borrow"}


def has_own_run(place: Place) -> bool:
    """Whether the hosts have a ``/run`` of their own, in which an rpcbind is nobody else's."""
    return place.describe().get("kind") == "testbed"


def _rpcbind() -> str | None:
    return shutil.which("rpcbind", path="/usr/sbin:/sbin:/usr/bin:/bin")


def _version() -> str:
    """Return the file name of the installed library, which holds its version."""
    for folder in ("/lib", "/usr/lib"):
        for path in sorted(Path(folder).glob("*-linux-gnu/libtirpc.so.*.*")):
            return path.name
    return "unknown"


@contextlib.contextmanager
def rpcbinds(place: Place, *, remote_calls: bool = False) -> Iterator[None]:
    """Keep an rpcbind up on each host of a testbed.

    Parameters
    ----------
    remote_calls
        It hands calls on to programs, which broadcast needs.

    Raises
    ------
    StackError
        It is missing, or does not answer.
    """
    program = _rpcbind()
    if program is None:
        raise StackError("no `rpcbind`", "apt-get install --no-install-recommends rpcbind")
    argv = [program, "-f", "-w", *(["-r"] if remote_calls else [])]
    with household(place) as home:
        directory = home.directory
        try:
            with contextlib.ExitStack() as stack:
                for host in place.hosts:
                    log = directory / f"rpcbind-{host.name}.log"
                    env = home.mark
                    started = stack.enter_context(daemon(host, argv, env=env, log=log))
                    await_condition(lambda h=host, s=started: s.poll() is not None or _answers(h), UP_LIMIT_S)  # type: ignore[misc]
                    if started.poll() is not None or not _answers(host):
                        words = log.read_text("utf-8", "replace").strip() or "it left no word"
                        raise StackError(f"rpcbind on {host.name} does not answer:\n{words}")
                yield
        except OSError as error:
            raise StackError(f"rpcbind: {error.strerror or error}") from None
        finally:
            end_elsewhere(place, str(directory))


def _answers(host: HostPlace) -> bool:
    argv = [shutil.which("rpcinfo", path="/usr/sbin:/sbin:/usr/bin:/bin") or "rpcinfo", "-p", host.address]
    try:
        return process.run(host.command(argv), limit_s=ANSWER_LIMIT_S).returncode == 0
    except (OSError, process.TimeLimit):
        return False
