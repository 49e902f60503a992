"""What a command leaves behind when a signal ends it, looked for where nobody else leaves anything.

``python leaving.py`` runs in namespaces of its own (mounts, System V, network) with an empty ``/dev/shm``;
`leave` starts it. It starts the command under a mark in the environment, sends the signal, waits until
nothing carries the mark any more, and looks: for processes, shared memory, semaphores, mounts, interfaces and
temporary files.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from wiretwin import leftovers

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)
OWN = "LEAVING_OF"
"""Environment variable that all processes of a command under test carry."""
LIMIT_S = 120.0
"""The longest a command may take to begin, or to be gone after its signal."""
PAUSE_S = 0.1
ENDING_S = 0.1
"""A command that ends with status 0 within so long of its signal had done its work when that came."""
QUIET = {"keeper.py", "wiretwin.testbed.keeper"}
"""Words of processes that say nothing of how far a command is."""


@dataclass(frozen=True)
class Case:
    """A command and when its signal is sent.

    Attributes
    ----------
    words
        The words behind ``wiretwin``.
    until
        What the command line of a process that it has started holds.
    files
        Files in its working directory.
    whole
        The same, but of a run that comes to its end within seconds; by default `words`.
    layer
        The layer that has to be installed.
    prepare
        Commands, of whatever program, that run in its working directory before all others.
    before, after
        Words behind ``wiretwin`` of commands that run to their end before the command, and when it is gone.
    stays
        What it leaves is for `after` to remove, so that this runs as soon as the command is over.
    """

    words: tuple[str, ...]
    until: str
    files: dict[str, str] = field(default_factory=dict)
    whole: tuple[str, ...] = ()
    layer: str | None = None
    prepare: tuple[tuple[str, ...], ...] = ()
    before: tuple[tuple[str, ...], ...] = ()
    after: tuple[tuple[str, ...], ...] = ()
    stays: bool = False


def possible() -> bool:
    """Whether this user may make the namespaces."""
    return (
        subprocess.run(["unshare", "-m", "-i", "-n", "true"], capture_output=True, check=False).returncode
        == 0
    )


def leave(
    case: Case, number: signal.Signals, folder: Path, *, at_s: float | None = None, limit_s: float = LIMIT_S
) -> dict[str, Any]:
    """Run a command, send it a signal, and return how it ended and what it left.

    Parameters
    ----------
    folder
        An empty folder, for the command's files.
    at_s
        So long after the start of the `whole` command the signal is sent; by default as soon as a process has
        begun that `case` names.
    limit_s
        The longest the command may take to begin, and to be gone.
    """
    order = {
        "case": asdict(case),
        "signal": int(number),
        "folder": str(folder),
        "at_s": at_s,
        "limit_s": limit_s,
    }
    inside = 'mount -t tmpfs -o size=256m tmpfs /dev/shm && ip link set lo up && exec "$@"'
    spaces = ["unshare", "-m", "-i", "-n", "--propagation", "private", "sh", "-c", inside, "sh"]
    done = subprocess.run(
        [*spaces, sys.executable, __file__, json.dumps(order)], capture_output=True, text=True, check=False,
        timeout=3 * limit_s,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _carriers(token: str) -> dict[int, str]:
    found = {}
    mark = f"{OWN}={token}".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if mark in (entry / "environ").read_bytes().split(b"\0"):
                    words = (entry / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
                    found[int(entry.name)] = " ".join(words).strip()
    return found


def _things(temporary: Path) -> dict[str, list[str]]:
    """Return what lies about, by kind."""
    tables = {
        kind: Path("/proc/sysvipc", kind).read_text().splitlines()[1:] for kind in ("shm", "sem", "msg")
    }
    network = Path("/proc/self/net/dev").read_text().splitlines()[2:]
    return {
        "shared memory": sorted(map(str, Path("/dev/shm").rglob("*"))),
        "System V": [f"{kind} {line.split()[1]}" for kind, lines in tables.items() for line in lines],
        "mounts": sorted(line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()),
        "interfaces": sorted(line.split(":")[0].strip() for line in network),
        "temporary files": sorted(map(str, temporary.iterdir())),
        # Other tests' launchers have theirs in the same folder.
        "descriptions of the host": sorted({*map(str, leftovers.descriptions())} - leftovers.described()),
    }


def _new(before: dict[str, list[str]], after: dict[str, list[str]]) -> dict[str, Any]:
    """What is there that was not, by kind."""
    lies = {kind: [one for one in after[kind] if one not in before[kind]] for kind in after}
    return {kind: things for kind, things in lies.items() if things}


def _inside(order: dict[str, Any]) -> dict[str, Any]:
    # What was started in the background of a shell ignores it, and so would the command.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    case = Case(**order["case"])
    folder, number, limit_s = Path(order["folder"]), order["signal"], order["limit_s"]
    work, temporary = folder / "work", folder / "temporary"
    work.mkdir()
    temporary.mkdir()
    for name, text in case.files.items():
        (work / name).write_text(text)
    token = f"{os.getpid()}-{time.monotonic_ns()}"
    aside = dict(os.environ) | {"TMPDIR": str(temporary)}
    env = aside | {OWN: token}
    wiretwin = str(Path(sys.executable).with_name("wiretwin"))

    def beside(commands: Iterable[Iterable[str]]) -> None:
        for words in commands:
            quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            subprocess.run([wiretwin, *words], cwd=work, env=aside, check=False, timeout=limit_s, **quiet)

    for words in case.prepare:
        subprocess.run(words, cwd=work, env=aside, check=True, timeout=limit_s, stdout=subprocess.DEVNULL)
    before = _things(temporary)
    beside(case.before)
    pause = threading.Event()
    with (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        argv = [
            wiretwin,
            *(case.words if order["at_s"] is None else case.whole or case.words),
        ]
        begun = time.monotonic()
        main = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=env, cwd=work, start_new_session=True
        )
    if order["at_s"] is not None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            main.wait(order["at_s"])
    else:
        while main.poll() is None:
            words = [line for pid, line in _carriers(token).items() if pid != main.pid]
            if any(case.until in line for line in words if not any(one in line for one in QUIET)):
                break
            if time.monotonic() > begun + limit_s:
                main.kill()
                return {"error": f"no process had {case.until!r}: {words}; {(folder / 'err').read_text()}"}
            pause.wait(PAUSE_S)
    took = time.monotonic() - begun
    sent = main.poll() is None
    main.send_signal(number)
    told = time.monotonic()
    with contextlib.suppress(subprocess.TimeoutExpired):
        main.wait(limit_s)
    ended = time.monotonic()
    sent = sent and not (main.returncode == 0 and ended < told + ENDING_S)
    if case.stays:
        beside(case.after)
    while (left := _carriers(token)) and time.monotonic() < told + limit_s:
        pause.wait(PAUSE_S)
    if not case.stays:
        beside(case.after)
    # The keeper of a command that was killed may still be at its work.
    while (found := _new(before, _things(temporary))) and time.monotonic() < told + limit_s:
        pause.wait(PAUSE_S)
    gone = time.monotonic()
    if left:
        found["processes"] = [f"{pid} {words}" for pid, words in left.items()]
        for pid in left:  # of our own command, by its number
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    return {
        "sent": sent,
        "took_s": round(took, 3),
        "status": main.poll(),
        "said": (folder / "err").read_text("utf-8", "replace")[-20_000:],
        "left": found,
        "ended_s": round(ended - told, 3),
        "gone_s": round(gone - told, 3),
    }


if __name__ == "__main__":
    print(json.dumps(_inside(json.loads(sys.argv[1]))))
