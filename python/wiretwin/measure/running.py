"""The processes of one launch: started at their hosts, awaited under a limit, ended without a trace."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from wiretwin import leftovers, scratch, shared_memory
from wiretwin.interruption import Interruption
from wiretwin.marks import KILLED_S, LAUNCH, await_gone, end_all, marked
from wiretwin.place import HERE, Apart, Place, cores_of, host_of
from wiretwin.process import closing, killed_children, start
from wiretwin.stacks import Session
from wiretwin.stacks.layers import Configuration, mpiexec

__all__ = ["GRACE_S", "LOOK_S", "Interruption", "Running", "made_for_it", "rendezvous"]

PROTOCOL = 1
LAST_LINES = 4
"""How many lines of a launcher's last words an error repeats."""
DONE, MOST_DONE = re.compile(rb'"event": ?"done"'), 4096
"""How a probe says that it was done, and in how many bytes at the end of what it has written."""
GRACE_S = 1.0
"""How long the other processes may go on once one has failed, and how long one may take to obey
SIGTERM."""
CLOSING_S = 5.0
"""How long processes may take to end when the probe has said that it was done, seconds."""
LOOK_S = 3.0
"""How long a launch may be silent, seconds, before the hosts it runs on are looked at, and between looks."""


def made_for_it(place: Place) -> Place | None:
    """Return the place if its hosts were made for the occasion and may be gone: they are no machines."""
    return None if isinstance(place, Apart) or len(place.hosts) == 1 else place


@contextlib.contextmanager
def rendezvous(place: Place = HERE) -> Iterator[Path]:
    """Make a directory for rendezvous files and shared memory, with the same path on every host."""
    with leftovers.none_left(os.geteuid()), scratch.folder(place.directory) as directory:
        yield directory


@dataclass
class Running:
    """A launch under way, its files in `directory`, to be over at `deadline` on the monotonic clock."""

    directory: Path
    deadline: float
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    killed: bool = False
    """A process was ended by a signal that we did not send."""
    session: Session | None = None
    apart: Apart | None = None
    """The place, if its hosts are other machines."""
    made: Place | None = None
    """The place, if its hosts were made for the occasion and may be gone."""
    ranks: int = 0
    unclosed: bool = False
    """All was done, but the library had not closed `CLOSING_S` later."""
    _needs_memory: bool = False
    """They are of a library, all on this host, whose shared memory it may use."""
    _seen: set[int] = field(default_factory=set)
    """Processes of launchers that were killed before the last look."""

    def start(
        self,
        configuration: Configuration,
        task: Mapping[str, Any],
        ranks: int,
        limit_s: float,
        *,
        pins: Sequence[int] | None = None,
        place: Place = HERE,
        session: Session | None = None,
    ) -> None:
        """Start all ranks.

        Parameters
        ----------
        configuration
            The layer.
        task
            What the ranks do: the key ``schedule``, ``together`` or ``program`` of a specification.
        ranks
            How many.
        limit_s
            The longest each may live, seconds.
        pins
            The CPUs of the ranks, which begin anew at the end; ``None`` leaves them to the scheduler.
        place
            Where they live.
        session
            The stack that is up there, for a layer that has one.

        Raises
        ------
        OSError
            A program that is needed is not there.
        """
        kind = configuration.kind
        self.apart = place if isinstance(place, Apart) else None
        self.made = made_for_it(place)
        self.ranks = ranks
        self._needs_memory = len(place.hosts) == 1 and (session is not None or kind.start == "mpiexec")
        pins = pins and (cores_of(place, ranks) or pins)
        options = dict(configuration.options if session is None else session.options)
        if session is not None and "program" not in task:
            options |= session.measuring
        common = {
            "protocol": PROTOCOL,
            "layer": kind.name,
            "options": options,
            "directory": str(self.directory),
            "limit_s": limit_s,
            **task,
        }
        if len(place.hosts) > 1:
            common["interface"] = place.hosts[0].interface
        if session is not None:
            self._start_stack(kind.probe, common, ranks, pins, session)
        elif kind.start == "mpiexec":
            spec = self._write("spec.json", common | {"rank": None, "size": None, "pin_cpu": pins})
            launcher = mpiexec()
            if launcher is None:
                raise FileNotFoundError(2, "no MPI launcher `mpiexec`")
            self._spawn(0, [str(launcher), "-n", str(ranks), *kind.probe, str(spec)])
        else:
            for rank in range(ranks):
                own = common | self._seat(rank, ranks, pins)
                if len(place.hosts) > 1 and kind.by_address:
                    own["options"] = {**own["options"], "address": host_of(place, rank).address}
                spec = self._write(f"spec-{rank}.json", own)
                self._spawn(rank, host_of(place, rank).command([*kind.probe, str(spec)]))

    @staticmethod
    def _seat(rank: int, ranks: int, pins: Sequence[int] | None) -> dict[str, Any]:
        return {"rank": rank, "size": ranks, "pin_cpu": pins[rank % len(pins)] if pins else None}

    def _start_stack(
        self,
        probe: Sequence[str],
        common: dict[str, Any],
        ranks: int,
        pins: Sequence[int] | None,
        session: Session,
    ) -> None:
        self.session = session
        pins = None if session.free else pins
        if session.shim is not None:
            common |= {"shim": str(session.shim), "rank_variable": session.rank_variable}
        if session.together:
            nobody = {"rank": None, "size": None, "pin_cpu": list(pins) if pins else None}
            specs = [self._write("spec.json", common | nobody)]
        else:
            specs = [
                self._write(f"spec-{rank}.json", common | self._seat(rank, ranks, pins))
                for rank in range(ranks)
            ]
        for number, command in enumerate(session.commands(probe, specs, ranks)):
            self._spawn(number, command.argv, command.env)

    def _write(self, name: str, spec: dict[str, Any]) -> Path:
        path = self.directory / name
        path.write_text(json.dumps(spec))
        return path

    def _spawn(self, number: int, argv: Sequence[str], more: Mapping[str, str] | None = None) -> None:
        env = dict(os.environ) | dict(more or {}) | {LAUNCH: str(self.directory)}
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            env[name] = "1"
        with (
            open(self.directory / f"stdout-{number}", "wb") as out,
            open(self.directory / f"stderr-{number}", "wb") as err,
        ):
            self.processes.append(start(argv, stdout=out, stderr=err, env=env))

    def wait(
        self, interruption: Interruption | None, *, measuring: bool = False
    ) -> tuple[Literal["ok", "failed", "interrupted"], str | None]:
        """Wait until all have ended well, one has failed, the limit is over, or an interrupt.

        With `measuring`, all is well, too, where the probe has said that it was done and its library does not
        close: rank 0 says so when all others have nothing left to do.
        """
        poll = select.poll()
        waiting: dict[int, int] = {}
        try:
            for number, process in enumerate(self.processes):
                descriptor = os.pidfd_open(process.pid)
                waiting[descriptor] = number
                poll.register(descriptor, select.POLLIN)
            if interruption is not None:
                poll.register(interruption.fileno(), select.POLLIN)
            failure: str | None = None
            deadline, closing = self.deadline, False
            while waiting:
                left = deadline - time.monotonic()
                ready = poll.poll(min(left, LOOK_S) * 1000) if left > 0 else []
                if interruption is not None and interruption.requested:
                    return "interrupted", "interrupted by the user"
                if not ready and left <= LOOK_S:
                    break
                if measuring and not ready and not closing and self._done():
                    closing, deadline = True, min(deadline, time.monotonic() + CLOSING_S)
                if not ready and (trouble := self.trouble()) is not None:
                    return "failed", trouble
                for descriptor, _ in ready:
                    number = waiting.pop(descriptor)
                    poll.unregister(descriptor)
                    os.close(descriptor)
                    code = self.processes[number].wait()
                    if code < 0:
                        self.killed = True
                    if code != 0 and (failure is None or code < 0):
                        failure = self._describe(number, code)
                        deadline = min(deadline, time.monotonic() + GRACE_S)
            if failure is not None:
                return "failed", failure
            self.unclosed = bool(waiting) and closing
            if waiting and not closing:
                return "failed", "did not end within its limit and was ended"
            return "ok", None
        finally:
            for descriptor in waiting:
                os.close(descriptor)

    def _done(self) -> bool:
        """Whether the probe has said that it was done, after which only the library is left to close."""
        return any(DONE.search(file.read_bytes()[-MOST_DONE:]) for file in self.directory.glob("stdout-*"))

    def trouble(self) -> str | None:
        """Say what has become of the launch that its processes do not tell, if something has.

        A rank cannot tell a host that is gone from one that is slow, nor can every launcher. To be asked now
        and then, `LOOK_S` apart.
        """
        if (helper := self._unnoticed()) is not None:
            self.killed = True
            return helper
        return None if self.made is None else self.made.trouble()

    def _unnoticed(self) -> str | None:
        """Say which process of a launcher has been killed since before the last look, without its noticing.

        MPICH's launcher never does if it happens before that process has called back.
        """
        killed: dict[int, tuple[str, int]] = {}
        for process in self.processes:
            if process.poll() is None:
                killed |= killed_children(process.pid)
        again, self._seen = killed.keys() & self._seen, set(killed)
        if not again:
            return None
        name, number = killed[min(again)]
        return (
            f"{name} of the launcher was ended by signal {number} ({signal.Signals(number).name}), "
            "which the launcher does not notice"
        )

    def explained(self, error: str) -> str:
        """Return an error; of a library that needs shared memory, with the word that it is full, if it is."""
        short = shared_memory.short_of(self.ranks) if self._needs_memory else None
        return error if short is None else f"{error}; {short}"

    def _describe(self, number: int, code: int) -> str:
        who = f"rank {number}" if len(self.processes) > 1 else "the launcher"
        if code < 0:
            return f"{who} was ended by signal {-code} ({signal.Signals(-code).name})"
        if end := self._launchers_word():
            return end
        text = (self.directory / f"stderr-{number}").read_text("utf-8", "replace").strip()
        # Launchers frame their messages with rulers; a paragraph of LAM's or Open MPI's is several lines.
        lines = [line.strip() for line in text.splitlines() if line.strip(" -=*")]
        words = f": {' '.join(closing(lines, LAST_LINES))}" if lines else ""
        return f"{who} ended with exit status {code}{words}"

    def _launchers_word(self) -> str | None:
        """Say how a rank ended that a launcher had started, as far as the launcher tells."""
        read = Session.hydra if self.session is None else self.session.last_words
        for file in sorted(self.directory.glob("std*-0")):
            found = read(file.read_text("utf-8", "replace"))
            if found is not None:
                words, killed = found
                self.killed |= killed
                return words
        return None

    def end(self, *, clean: bool) -> None:
        """End whatever is left of the launch, ranks and agents that a launcher started included.

        A launcher may be gone before its agents are (Open MPI's awaits none of them): those of a launch
        that ended well are given a moment to leave by themselves.
        """
        try:
            if clean:
                await_gone(marked(str(self.directory)), GRACE_S)
            elif self.apart is not None:
                self.apart.end(str(self.directory))
            self._end_all()
        finally:
            if self.session is not None:
                self.session.after(clean=clean)

    def _end_all(self) -> None:
        def left() -> set[int]:
            ours = {process.pid for process in self.processes if process.poll() is None}
            return ours | marked(str(self.directory))

        end_all(left, GRACE_S)
        for process in self.processes:
            process.wait(KILLED_S)
