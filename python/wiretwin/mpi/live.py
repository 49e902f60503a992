"""One rank of a real run: `mpiexec -n N python -P -m wiretwin.mpi.live SCRIPT ARGS`.

Imports what the program will import from outside its folder, then MPI; at a moment that all ranks agree
on, the time of the rank begins, and it ends when the script does, before Finalize. Rank 0 gathers the
times and writes them to the file that WIRETWIN_LIVE_OUT names:

    {"per_rank_s": [...], "split": null or [{"rank", "compute_s", "mpi_s", "calls": {name: [n, s]}}],
     "echo_us": the one-way latency of 64 KiB before the program began, or null,
     "crossing_ns": [before, after]: a cache line to the core of rank 1 and back, or null,
     "queued_s": the longest that a rank was ready to run and had no core, or null,
     "environment": {...}}

What a rank prints goes to the file that WIRETWIN_LIVE_PRINTED and its number name, if that is given.

With WIRETWIN_LIVE_SPLIT=1 every call of a communicator, request or message is timed: `mpi_s` is the
time inside them (without the pickling of objects, which is the program's own), `compute_s` the rest.
Without it nothing is wrapped. A program's own Init and Finalize do nothing but note the time: the
interpreter finalizes at its end.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import struct
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from wiretwin import priority
from wiretwin._core import crossing_ns

from .failure import no_input
from .preimport import preimport, scan
from .script import as_main, defer_init

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
#: So often ranks meet before the program: where a kernel owes one what another has had of their core, it is
#: made up for while they wait for each other, not in the program. Two have looked how far they are apart.
_LEVELS = 8
_AHEAD_S = 5e-4
"""A moment that ranks agree on is so far ahead, or as long as it took them to meet before."""
_MACHINE = Path("/proc/sys/kernel/random/boot_id")
_KNOWN = struct.Struct("=40sd")
"""What ranks tell each other of it: which machine, and a time in seconds."""
_QUERIES = {
    "Get_size", "Get_rank", "Get_group", "Get_name", "Set_name", "Get_topology", "Is_inter", "Is_intra",
    "Get_coords", "Get_cart_rank", "Shift", "Get_dim", "Get_topo", "Get_attr", "Compare", "fromhandle",
    "Get_errhandler", "Set_errhandler", "Free", "free", "Abort", "toint", "fromint", "py2f", "f2py",
}  # fmt: skip


class Splitter:
    """Times calls by name; nested calls count once."""

    def __init__(self) -> None:
        self.inside = 0.0
        self.pickling = 0.0
        self.calls: dict[str, list[float]] = {}
        self._depth = 0

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a call."""
        cell = self.calls.setdefault(name, [0, 0.0])

        def call(*args: Any, **kwargs: Any) -> Any:
            if self._depth:
                return function(*args, **kwargs)
            self._depth = 1
            pickled, begin = self.pickling, perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                took = perf_counter() - begin - (self.pickling - pickled)
                self._depth = 0
                self.inside += took
                cell[0] += 1
                cell[1] += took

        return call

    def untimed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap what pickles."""

        def call(*args: Any, **kwargs: Any) -> Any:
            begin = perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                self.pickling += perf_counter() - begin

        return call

    def install(self, mpi: Any) -> Any:
        """Put subclasses whose calls are timed in place of the communicators of `mpi4py.MPI`.

        The classes of mpi4py are fixed, so COMM_WORLD and COMM_SELF are replaced by objects of
        subclasses, and what their calls return (communicators, requests, messages) is made one too.
        """
        import pickle

        made: dict[type, type] = {}

        def wrapped(value: Any) -> Any:
            kind = type(value)
            if kind in made:
                value = made[kind](value)
            return value

        def method(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
            timed = self.timed(name, function)
            return lambda *args, **kwargs: wrapped(timed(*args, **kwargs))

        kinds = (mpi.Intracomm, mpi.Cartcomm, mpi.Request, mpi.Prequest, mpi.Message)
        for kind in kinds:
            body: dict[str, Any] = {}
            for name in dir(kind):
                if name.startswith("_") or name in _QUERIES:
                    continue
                raw = _lookup(kind, name)
                bound = getattr(kind, name)
                if isinstance(raw, (classmethod, staticmethod)) or getattr(bound, "__self__", None) is kind:
                    body[name] = staticmethod(method(name, bound))
                elif callable(bound) and not isinstance(raw, property) and not _is_data(raw):
                    body[name] = method(name, bound)
            made[kind] = type(kind.__name__, (kind,), body)
        mpi.COMM_WORLD = made[mpi.Intracomm](mpi.COMM_WORLD)
        mpi.COMM_SELF = made[mpi.Intracomm](mpi.COMM_SELF)
        for kind in kinds:
            setattr(mpi, kind.__name__, made[kind])
        mpi.pickle.__init__(self.untimed(pickle.dumps), self.untimed(pickle.loads), pickle.HIGHEST_PROTOCOL)
        return mpi


def _lookup(kind: type, name: str) -> Any:
    for base in kind.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return None


def _is_data(raw: Any) -> bool:
    return type(raw).__name__ in ("getset_descriptor", "member_descriptor")


def main(argv: list[str]) -> int:
    """Run a script as one rank; returns the status that the process ends with."""
    if not argv:
        print("usage: mpiexec -n N python -P -m wiretwin.mpi.live SCRIPT [ARGS]", file=sys.stderr)
        return 2
    script = Path(argv[0]).absolute()
    out = os.environ.get("WIRETWIN_LIVE_OUT")
    try:
        source = script.read_bytes()
        code = compile(source, str(script), "exec", dont_inherit=True)
    except (OSError, SyntaxError, ValueError) as error:
        print(f"wiretwin: {script}: {error}", file=sys.stderr)
        return 2
    imported = preimport(scan(script)[0])
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    rank, size = world.Get_rank(), world.Get_size()
    own = world.Dup()  # the gathering of times cannot meet a message of the program
    splitter = Splitter() if os.environ.get("WIRETWIN_LIVE_SPLIT") == "1" else None
    if splitter is not None:
        splitter.install(MPI)

    ended = _defer_finalize(MPI)
    names = as_main(script, argv[1:])
    if printed := os.environ.get("WIRETWIN_LIVE_PRINTED"):
        _print_to(Path(f"{printed}.{rank}"))
    priority.take()
    echo_us = _echo_us(own)
    before = _crossed(own, out, "before")
    gc.collect()
    status = 0
    queue = _Queue(size)
    _begin_together(own)
    queued = queue.so_far_s()
    begin = perf_counter()
    try:
        exec(code, names)
    except SystemExit as request:
        end = perf_counter()
        status = _status(request.code)
    except BaseException as error:
        end = perf_counter()
        trace = error.__traceback__.tb_next if error.__traceback__ is not None else None
        text = "".join(traceback.format_exception(type(error), error, trace))
        sys.stdout.flush()
        print(
            f"wiretwin: rank {rank} raised {type(error).__name__}: {error}{no_input(error)}\n{text}",
            file=sys.stderr,
            flush=True,
        )
        own.Abort(1)
    else:
        end = perf_counter()
    if not status:
        own.Barrier()  # nothing of ours on a core that another rank still computes on
    sys.stdout.flush()
    if status:
        print(f"wiretwin: rank {rank} exited with status {status}", file=sys.stderr, flush=True)
        own.Abort(status)
    seconds = (ended[0] if ended else end) - begin
    if queued is not None:
        queued = min(seconds, (queue.so_far_s() or queued) - queued)
    split = None
    if splitter is not None:
        inside = splitter.inside
        calls = {name: cell for name, cell in sorted(splitter.calls.items()) if cell[0]}
        split = {"rank": rank, "compute_s": seconds - inside, "mpi_s": inside, "calls": calls}
    after = _crossed(own, out, "after")
    gathered = own.gather((seconds, split, queued), root=0)
    priority.give_back()
    if rank == 0 and out and gathered is not None:
        report = {
            "per_rank_s": [one[0] for one in gathered],
            "split": [one[1] for one in gathered] if splitter is not None else None,
            "echo_us": echo_us,
            "crossing_ns": None if before is None or after is None else [before, after],
            "queued_s": max((one[2] for one in gathered if one[2] is not None), default=None),
            "environment": {
                "threads": {name: os.environ.get(name) for name in _THREADS},
                "ranks": size,
                "library": MPI.Get_library_version().partition("\n")[0].strip("\x00"),
                "imported": imported,
            },
        }
        _write(Path(out), json.dumps(report, indent=1))
    own.Barrier()
    return 0


def _print_to(file: Path) -> None:
    """Have this process, and those that it starts, print to a file, until MPI is finalized and may print."""
    sys.stdout.flush()
    before = os.dup(1)
    opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    os.dup2(opened, 1)
    os.close(opened)

    def back() -> None:
        sys.stdout.flush()
        os.dup2(before, 1)

    atexit.register(back)


def _defer_finalize(mpi: Any) -> list[float]:
    """Let the program's Init and Finalize do nothing; returns where the time of Finalize is noted."""
    ended: list[float] = []

    def finalize() -> None:
        ended.append(perf_counter())

    defer_init(mpi)
    mpi.Finalize = finalize
    mpi.Is_finalized = lambda: bool(ended)
    return ended


ECHO_BYTES = 1 << 16
_ECHOES, _ECHOES_WARM = 200, 50
_ECHOES_S = 0.5
"""On a slow link there are fewer, so that they take about so long."""


def _echo_us(own: Any) -> float | None:
    """Return the one-way latency of 64 KiB between ranks 0 and 1 just now, in us; none with one rank.

    The median of a few milliseconds of echoes on one buffer: it tells whether the host talks as it
    did when the twin was measured. Made before the program's time begins.
    """
    rank = own.Get_rank()
    if own.Get_size() < 2 or rank > 1:
        return None
    buffer = bytearray(ECHO_BYTES)
    taken: list[float] = []
    end = perf_counter() + _ECHOES_S
    while not buffer[0]:  # rank 0 says by it that an echo is the last
        begin = perf_counter()
        if rank == 0:
            buffer[0] = len(taken) + 1 == _ECHOES_WARM + _ECHOES or begin > end
            own.Send(buffer, 1)
            own.Recv(buffer, 1)
        else:
            own.Recv(buffer, 0)
            own.Send(buffer, 0)
        taken.append(perf_counter() - begin)
    kept = taken[_ECHOES_WARM:] or taken
    return sorted(kept)[len(kept) // 2] * 5e5


_CROSSING_LIMIT_S = 1.0


def _crossed(own: Any, out: str | None, when: str) -> float | None:
    """Return how far ranks 0 and 1 are apart just now, in ns; none if they share no memory, or with one."""
    if own.Get_size() < 2 or not out:
        return None
    own.Barrier()
    rank, found = own.Get_rank(), None
    if rank < 2:
        with contextlib.suppress(OSError):
            found = crossing_ns(Path(out).with_name(f"crossing-{when}"), rank == 0, _CROSSING_LIMIT_S)
    own.Barrier()
    return found


def _begin_together(own: Any) -> None:
    """Return at a moment that ranks of one machine agree on by its clock; elsewhere after a barrier.

    A barrier alone lets ranks go one after the other: those that are far apart by as much as a message takes,
    and those that share a core when ranks on other cores have had theirs. Calls that a program may be the
    first to make are not made here.
    """
    machine = b""
    with contextlib.suppress(OSError):
        machine = _MACHINE.read_bytes()
    begin = perf_counter()
    for _ in range(_LEVELS):
        own.Barrier()
    took = perf_counter() - begin
    mine = bytearray(_KNOWN.pack(machine, took))
    if own.Get_rank():
        own.Send(mine, 0)
        own.Recv(mine, 0)
    else:
        known = [_KNOWN.unpack(mine)]
        for rank in range(1, own.Get_size()):
            own.Recv(mine, rank)
            known.append(_KNOWN.unpack(mine))
        of_one = len({where for where, _ in known}) == 1 and machine
        moment = perf_counter() + max(_AHEAD_S, *(took for _, took in known)) if of_one else 0.0
        mine = bytearray(_KNOWN.pack(machine, moment))
        for rank in range(1, own.Get_size()):
            own.Send(mine, rank)
    _, moment = _KNOWN.unpack(mine)
    while perf_counter() < moment:
        os.sched_yield()


class _Queue:
    """How long this thread is ready to run and has no core.

    Not known where the kernel does not say, and where ranks share cores: there they queue for each other.
    Open from before the program's time begins, so that a look takes no longer than it must.
    """

    def __init__(self, ranks: int) -> None:
        self._file = None
        if ranks <= len(os.sched_getaffinity(0)):
            with contextlib.suppress(OSError):
                self._file = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)

    def so_far_s(self) -> float | None:
        """Return the time since the thread began, in seconds."""
        if self._file is None:
            return None
        try:
            return int(os.pread(self._file, 128, 0).split()[1]) / 1e9
        except (OSError, ValueError, IndexError):
            return None


def _status(code: Any) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code
    print(code, file=sys.stderr)
    return 1


def _write(path: Path, text: str) -> None:
    part = path.with_name(path.name + ".part")
    part.write_text(text, "utf-8")
    part.replace(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
