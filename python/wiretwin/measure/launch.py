"""One launch: fresh processes in a fresh directory, under a hard limit, ended without a trace.

The probes speak the protocol of ``docs/reference/probe-protocol.md``. Their output goes to files, so
a launch that dies in the middle still yields every step it had finished.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from wiretwin.measure.layers import Configuration, mpiexec
from wiretwin.measure.schedule import Step
from wiretwin.results import Clock

__all__ = ["Interruption", "Outcome", "launch"]

PROTOCOL = 1
MARK = "WIRETWIN_LAUNCH"
"""Environment variable that marks every process of a launch, so that strays are found by it."""
GRACE_S = 1.0
"""How long the other processes may go on once one has failed, and how long one may take to obey
SIGTERM."""

_LEASH = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9, 0, 0, 0)  # PR_SET_PDEATHSIG, SIGKILL
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""
"""Ties a launcher to this process: it dies with us, and its ranks with it. The probes see to that
themselves."""


class Interruption:
    """Turns SIGINT and SIGTERM into a flag and a file descriptor that wakes a wait.

    A context manager. A measurement is then interrupted at its waits only, never in the middle of
    storing samples. A second signal raises `KeyboardInterrupt` at once. Outside the main thread, where
    Python delivers no signals, it stays inactive.
    """

    def __init__(self) -> None:
        self.requested = False
        self._before: dict[int, Any] = {}
        self._reader, self._writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def fileno(self) -> int:
        """Return the descriptor that becomes readable at an interrupt."""
        return self._reader

    def request(self) -> None:
        """Interrupt, as the signal does."""
        self.requested = True
        os.write(self._writer, b"x")

    def _handle(self, number: int, _frame: object) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.request()

    def __enter__(self) -> Interruption:
        with contextlib.suppress(ValueError):
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()
        os.close(self._reader)
        os.close(self._writer)


@dataclass
class Outcome:
    """What a launch left.

    Attributes
    ----------
    status
        ``ok`` only if every process ended well and the probe said it was done.
    error
        The reason otherwise.
    hello
        The probe's first line, if it came.
    steps
        The ``samples`` lines, in order.
    seconds
        Wall-clock time of the launch, start-up and end included.
    """

    status: Literal["ok", "failed", "interrupted"]
    error: str | None
    hello: dict[str, Any] | None
    steps: list[dict[str, Any]]
    seconds: float

    def medians(self, loop: str) -> dict[int, float]:
        """Return the median nanoseconds per iteration by size, over the steps of one loop.

        Steps with several messages or a delay are left out.
        """
        import numpy as np

        return {
            step["bytes"]: float(np.median(step["values_ns"])) / step["batch"]
            for step in self.steps
            if step["loop"] == loop and step["messages"] == 1 and not step["delay_ns"]
        }

    @property
    def lost(self) -> int:
        """Messages that a layer which may lose them lost."""
        return sum(int(step.get("lost", 0)) for step in self.steps)

    def columns(self) -> dict[str, Any] | None:
        """Return the samples as columns of a result folder; nothing if there are none."""
        import numpy as np

        if not self.steps:
            return None
        # Where the first iteration was lost (datagrams), the step begins with the second.
        begins = [int(step["first_ns"] is None) for step in self.steps]
        lengths = [1 - begin + len(step["values_ns"]) for begin, step in zip(begins, self.steps, strict=True)]

        def spread(key: str, kind: type) -> Any:
            return np.repeat(np.array([step[key] for step in self.steps], dtype=kind), lengths)

        ranges = zip(begins, lengths, strict=True)
        index = np.concatenate(
            [np.arange(begin, begin + length, dtype=np.uint32) for begin, length in ranges]
        )
        values = [
            np.array([step["first_ns"], *step["values_ns"]][begin:], dtype=np.uint64)
            for begin, step in zip(begins, self.steps, strict=True)
        ]
        return {
            "loop": spread("loop", object),
            "bytes": spread("bytes", np.uint64),
            "messages": spread("messages", np.uint32),
            "delay_ns": spread("delay_ns", np.uint64),
            # The first iteration is timed by itself, whatever the batch of those that follow.
            "batch": np.where(index == 0, np.uint32(1), spread("batch", np.uint32)),
            "index": index,
            "value_ns": np.concatenate(values),
        }


def launch(
    configuration: Configuration,
    schedule: Sequence[Step],
    *,
    limit_s: float,
    pins: tuple[int, int] | None,
    interruption: Interruption | None = None,
) -> Outcome:
    """Run one configuration once.

    Parameters
    ----------
    configuration
        What to run.
    schedule
        Its steps.
    limit_s
        Hard limit on the whole launch, seconds.
    pins
        The CPU of rank 0 and of rank 1; ``None`` leaves them to the scheduler.
    interruption
        Ends the launch early when requested.

    Returns
    -------
    Outcome
        Also of a launch that failed or was interrupted; never raises for what a probe does.
    """
    started = time.monotonic()
    with rendezvous() as directory:
        running = _Running(directory, started + limit_s + GRACE_S)
        status: Literal["ok", "failed", "interrupted"] = "interrupted"
        error: str | None = None
        try:
            running.start(configuration, schedule, limit_s, pins)
            status, error = running.wait(interruption)
        except OSError as problem:
            status, error = "failed", f"cannot be started: {problem.strerror or problem}"
        finally:
            running.end(clean=status == "ok")
        hello, steps, said, done = _parse(directory)
        if status == "ok" and not done:
            status, error = "failed", "the probe ended without saying that it was done"
        if status == "failed" and said is not None and not running.killed:
            error = said
        return Outcome(status, error, hello, steps, time.monotonic() - started)


@contextlib.contextmanager
def rendezvous() -> Iterator[Path]:
    """Make a directory for rendezvous files and shared memory, in memory where there is such a place.

    Its path is short as well, which the name of a Unix socket must be.
    """
    memory = Path("/dev/shm")
    parent = memory if memory.is_dir() and os.access(memory, os.W_OK) else None
    directory = Path(tempfile.mkdtemp(prefix="wiretwin-", dir=parent))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@dataclass
class _Running:
    directory: Path
    deadline: float
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    killed: bool = False
    """A process was ended by a signal that we did not send."""

    def start(
        self,
        configuration: Configuration,
        schedule: Sequence[Step],
        limit_s: float,
        pins: tuple[int, int] | None,
    ) -> None:
        common = {
            "protocol": PROTOCOL,
            "layer": configuration.kind.name,
            "options": dict(configuration.options),
            "directory": str(self.directory),
            "limit_s": limit_s,
            "schedule": [step.spec() for step in schedule],
        }
        if configuration.kind.start == "mpiexec":
            spec = self._write("spec.json", common | {"rank": None, "size": None, "pin_cpu": pins})
            launcher = mpiexec()
            if launcher is None:
                raise FileNotFoundError(2, "no MPI launcher `mpiexec`")
            probe = [*configuration.kind.probe, str(spec)]
            leash = [sys.executable, "-I", "-S", "-c", _LEASH, str(os.getpid())]
            self._spawn(0, [*leash, str(launcher), "-n", "2", *probe])
            return
        for rank in (0, 1):
            pin = pins[rank] if pins else None
            spec = self._write(f"spec-{rank}.json", common | {"rank": rank, "size": 2, "pin_cpu": pin})
            self._spawn(rank, [*configuration.kind.probe, str(spec)])

    def _write(self, name: str, spec: dict[str, Any]) -> Path:
        path = self.directory / name
        path.write_text(json.dumps(spec))
        return path

    def _spawn(self, number: int, argv: list[str]) -> None:
        env = dict(os.environ) | {MARK: str(self.directory)}
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            env[name] = "1"
        with (
            open(self.directory / f"stdout-{number}", "wb") as out,
            open(self.directory / f"stderr-{number}", "wb") as err,
        ):
            self.processes.append(
                subprocess.Popen(
                    argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=env, start_new_session=True
                )
            )

    def wait(
        self, interruption: Interruption | None
    ) -> tuple[Literal["ok", "failed", "interrupted"], str | None]:
        """Wait until all have ended well, one has failed, the limit is over, or an interrupt."""
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
            deadline = self.deadline
            while waiting:
                left = deadline - time.monotonic()
                ready = poll.poll(max(0.0, left) * 1000) if left > 0 else []
                if interruption is not None and interruption.requested:
                    return "interrupted", "interrupted by the user"
                if not ready:
                    break
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
            if waiting:
                return "failed", "did not end within its limit and was ended"
            return "ok", None
        finally:
            for descriptor in waiting:
                os.close(descriptor)

    def _describe(self, number: int, code: int) -> str:
        who = f"rank {number}" if len(self.processes) > 1 else "the launcher"
        if code < 0:
            return f"{who} was ended by signal {-code} ({signal.Signals(-code).name})"
        if end := self._launchers_word():
            return end
        text = (self.directory / f"stderr-{number}").read_text("utf-8", "replace").strip()
        words = f": {text.splitlines()[-1]}" if text else ""
        return f"{who} ended with exit status {code}{words}"

    def _launchers_word(self) -> str | None:
        """Say how a rank ended that a launcher (Hydra) had started, as far as the launcher tells."""
        for file in sorted(self.directory.glob("std*-0")):
            match = re.search(r"EXIT STRING: (.+) \(signal (\d+)\)", file.read_text("utf-8", "replace"))
            if match is not None and int(match[2]) == signal.SIGALRM:
                return "limit_s: not done within the limit"
            if match is not None:
                self.killed = True
                return f"a rank was ended by signal {match[2]} ({signal.Signals(int(match[2])).name})"
        return None

    def end(self, *, clean: bool) -> None:
        """End whatever is left of the launch, ranks that a launcher started included."""
        if clean:
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            left = {process.pid for process in self.processes if process.poll() is None}
            left |= _marked(str(self.directory))
            if not left:
                return
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            _await_gone(left, GRACE_S)
        for process in self.processes:
            process.wait(GRACE_S)


def _marked(token: str) -> set[int]:
    """Find the processes that carry a launch's mark in their environment."""
    wanted = f"{MARK}={token}".encode()
    found = set()
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            with contextlib.suppress(OSError):
                if wanted in Path("/proc", entry, "environ").read_bytes().split(b"\0"):
                    found.add(int(entry))
    return found


def _await_gone(pids: set[int], limit_s: float) -> None:
    """Wait until all have ended, at most `limit_s` seconds."""
    deadline = time.monotonic() + limit_s
    for pid in pids:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            poll.poll(max(0.0, deadline - time.monotonic()) * 1000)
        finally:
            os.close(descriptor)


def _parse(directory: Path) -> tuple[dict[str, Any] | None, list[dict[str, Any]], str | None, bool]:
    """Read what the probes said: hello, samples, the first error, and whether they were done.

    A last line that is cut off, lines of a library that are not the protocol's, and steps that lost
    everything are passed over. A line with a key or a value that the protocol does not allow is an error.
    """
    hello, steps, said, done, broken = None, [], None, False, False
    for file in sorted(directory.glob("stdout-*")):
        for line in file.read_bytes().splitlines():
            try:
                event = json.loads(line)
            except (ValueError, RecursionError):
                continue
            match event:
                case {"event": "hello"} if _hello_allowed(event):
                    hello = event
                case {"event": "samples"} if _samples_allowed(event):
                    if event["values_ns"]:
                        steps.append(event)
                case {"event": "hello" | "samples"}:
                    broken = True
                    said = said or f"probe: a line that the protocol does not allow: {line[:120]!r}"
                case {"event": "error"} if said is None:
                    said = f"{event.get('place', 'probe')}: {event.get('reason', 'no reason given')}"
                case {"event": "done"}:
                    done = True
    return hello, steps, said, done and not broken


def _hello_allowed(event: dict[str, Any]) -> bool:
    """Whether a hello line has options and a clock that a manifest can hold."""
    try:
        Clock.model_validate(event.get("clock"))
    except ValidationError:
        return False
    return isinstance(event.get("effective"), dict)


def _samples_allowed(event: dict[str, Any]) -> bool:
    """Whether a samples line has every key, with values that the columns of a result can hold."""

    def whole(value: object, least: int, bits: int) -> bool:
        return type(value) is int and least <= value < 1 << bits

    values, first = event.get("values_ns"), event.get("first_ns", -1)
    return (
        isinstance(event.get("loop"), str)
        and whole(event.get("bytes"), 0, 64)
        and whole(event.get("messages"), 1, 32)
        and whole(event.get("delay_ns"), 0, 64)
        and whole(event.get("batch"), 1, 32)
        and whole(event.get("lost", 0), 0, 64)
        and (first is None or whole(first, 0, 64))
        and isinstance(values, list)
        and all(whole(value, 0, 64) for value in values)
    )
