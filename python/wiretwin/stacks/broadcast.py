"""Broadcast of Sun RPC, measured: one call, answered by the same program on every other host.

It is a loop of its own, since no other layer has one like it: the call goes by UDP to the network's
broadcast address, each host's rpcbind hands it on to the program, and the time ends with the last answer.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import select
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from wiretwin import process
from wiretwin.errors import InputError, MeasureError
from wiretwin.place import HostPlace, Place
from wiretwin.stacks.build import build
from wiretwin.stacks.rpc import has_own_run, rpcbinds

__all__ = ["LARGEST", "broadcast"]

LARGEST = 1024
"""The longest message, bytes: libtirpc broadcasts at most 1400, its own headers included."""
READY_S = 20.0
"""The longest a server may take to register, seconds."""
EACH_S = 60.0
"""The longest one broadcast may take, seconds: libtirpc gives up after 4 + 6 + … + 14."""
_ERROR = 512


def broadcast(
    place: Place, sizes: Sequence[int], *, samples: int = 50, warmup: int = 5, limit_s: float = 120.0
) -> dict[int, list[int]]:
    """Measure broadcasts from the first host of a place to all others.

    Parameters
    ----------
    place
        A testbed of two hosts or more, each with a ``/run`` of its own.
    sizes
        Lengths of the message in bytes, 0 to `LARGEST`; as long an answer comes from each host.
    samples, warmup
        Broadcasts of each size that are kept, and before them some that are not.
    limit_s
        Hard limit on all of it, seconds.

    Returns
    -------
    dict
        Nanoseconds from the call to the last answer, by size.

    Raises
    ------
    InputError
        The place or a size does not serve.
    MeasureError
        A host did not answer, or rpcbind is missing.
    """
    for size in sizes:
        if not 0 <= size <= LARGEST:
            raise InputError(
                key="sizes", value=str(size), reason="cannot be broadcast", allowed=f"0 to {LARGEST}"
            )
    if len(place.hosts) < 2 or not has_own_run(place):
        raise InputError(
            key="place",
            value=str(place.describe().get("kind")),
            reason="has no hosts with an rpcbind of their own",
            allowed="a testbed of 2 hosts or more",
        )
    library = build("rpc_broadcast.c", ("cc",), ("-ltirpc",), ("-I/usr/include/tirpc",))
    others = place.hosts[1:]
    with rpcbinds(place, remote_calls=True), contextlib.ExitStack() as stack:
        for host in others:
            stack.enter_context(_server(host, library, limit_s))
        words = [str(len(others)), str(samples), str(warmup), *map(str, sizes)]
        argv = [sys.executable, "-P", "-m", __name__, "call", str(library), *words]
        try:
            done = process.run(place.hosts[0].command(argv), limit_s=limit_s)
        except process.TimeLimit as late:
            raise MeasureError(f"broadcast from {place.hosts[0].name}: {late}") from None
    if done.returncode != 0:
        raise MeasureError(f"broadcast from {place.hosts[0].name}: {done.last_words()}")
    return {int(size): values for size, values in json.loads(done.stdout).items()}


@contextlib.contextmanager
def _server(host: HostPlace, library: Path, limit_s: float) -> Iterator[None]:
    """Keep the program up on a host; yields once it is registered."""
    argv = [sys.executable, "-P", "-m", __name__, "serve", str(library), str(limit_s + READY_S)]
    server = process.start(host.command(argv), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        assert server.stdout is not None
        ready = select.select([server.stdout], [], [], READY_S)[0]
        said = server.stdout.readline().decode("utf-8", "replace").strip() if ready else "nothing"
        if said != "ready":
            raise MeasureError(f"the RPC server on {host.name} said {said!r} instead of 'ready'")
        yield
    finally:
        process.end_tree(server)
        assert server.stdout is not None
        server.stdout.close()


def _main(argv: Sequence[str]) -> int:
    """Be the server or the client of a broadcast."""
    role, path, *words = argv
    library = ctypes.CDLL(path)
    error = ctypes.create_string_buffer(_ERROR)
    if role == "serve":
        library.wt_broadcast_serve.argtypes = [
            ctypes.c_double,
            ctypes.c_int,
            ctypes.c_char_p,
            ctypes.c_size_t,
        ]
        if library.wt_broadcast_serve(float(words[0]), 1, error, _ERROR):
            sys.stdout.write(error.value.decode() + "\n")
            return 1
        return 0
    call = library.wt_broadcast
    call.argtypes = [ctypes.c_uint, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t]
    call.restype = ctypes.c_int64
    hosts, samples, warmup, *sizes = map(int, words)
    found: dict[int, list[int]] = {}
    for size in sizes:
        values = [call(size, hosts, error, _ERROR) for _ in range(warmup + samples) if not error.value]
        if error.value:
            sys.stderr.write(error.value.decode() + "\n")
            return 1
        found[size] = values[warmup:]
    sys.stdout.write(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
