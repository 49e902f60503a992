"""What ends with a run, however it ends: the processes it has started, its folders, its shared memory.

A process of ours that starts another one, or makes a folder for the time of a run, first starts a keeper
beside itself. Whatever it starts carries the name of its run in the environment (`wiretwin.marks.RUN`), and
so does whatever that starts. When the process ends, by itself, by a signal or killed, the keeper ends what
still carries the name, removes the run's folders and the shared memory that nobody uses any more, and ends.

A run within a run (a script that calls ``wiretwin``, or one of our own helpers) has a keeper and a name of
its own, below the name of the outer run. A keeper carries no name, is in a session of its own, and holds
nobody's pipes: nothing ends it before it is done. Hosts of a testbed are held by a keeper of their own
(`wiretwin.testbed.keeper`), since namespaces live as long as the process that holds them.

``python -I -S keeper.py`` is the keeper itself, with the standard library alone. It reads lines of JSON from
its standard input: the run first, then what is to be looked after besides.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import secrets
import select
import signal
import string
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    # The package without its `__init__`, which loads the compiled core.
    import types

    _package = types.ModuleType("wiretwin")
    _package.__path__ = [os.path.dirname(os.path.abspath(__file__))]
    sys.modules["wiretwin"] = _package

from wiretwin import folders
from wiretwin.leftovers import Leftovers, remove_since
from wiretwin.marks import KILLED_S, RUN, end_all, marked

__all__ = ["environment", "look_after", "name"]

GRACE_S = 2.0
"""How long processes may take to obey SIGTERM, seconds: daemons remove files of theirs."""
AGAIN_S = 0.05
"""How long after it a folder is removed again that something was written into meanwhile, seconds."""
END_LIMIT_S = GRACE_S + 2 * KILLED_S
"""The longest this process waits for its keeper at its end, seconds."""
_LETTERS = string.ascii_lowercase + string.digits


@dataclass
class _Kept:
    """The run of a process, and the keeper that looks after it."""

    owner: int
    token: str
    mark: str
    before: Leftovers
    keeper: subprocess.Popen[bytes] | None = None
    folders: set[Path] = field(default_factory=set)
    users: set[int] = field(default_factory=set)

    def tell(self, message: Mapping[str, Any]) -> None:
        """Say something to the keeper; one that has been killed is started anew, and told everything."""
        if self.keeper is not None and self.keeper.poll() is None:
            with contextlib.suppress(OSError):
                self._write(message)
                return
        self.start()

    def start(self) -> None:
        env = {key: value for key, value in os.environ.items() if key != RUN}
        self.keeper = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=env,
            cwd="/",
            start_new_session=True,
        )
        self._write(
            {
                "pid": self.owner,
                "start": folders.started(self.owner),
                "token": self.token,
                "mark": self.mark,
                "before": self.before.to_json(),
                "folders": sorted(map(str, self.folders)),
                "users": sorted(self.users),
            }
        )

    def _write(self, message: Mapping[str, Any]) -> None:
        assert self.keeper is not None
        assert self.keeper.stdin is not None
        self.keeper.stdin.write(json.dumps(message).encode() + b"\n")
        self.keeper.stdin.flush()

    def end(self) -> None:
        """Have the keeper do its work now, and wait until it is done."""
        if self.keeper is None or self.owner != os.getpid():
            return
        assert self.keeper.stdin is not None
        with contextlib.suppress(OSError):
            self.keeper.stdin.close()
        # A second interrupt ends the wait; the keeper goes on.
        with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
            self.keeper.wait(END_LIMIT_S)


_lock = threading.RLock()
_kept: _Kept | None = None


def _run() -> _Kept:
    global _kept
    # A process that was forked off, and is none of ours by name, has a run of its own.
    if _kept is None or _kept.owner != os.getpid():
        token = "".join(secrets.choice(_LETTERS) for _ in range(folders.TOKEN))
        above = os.environ.get(RUN)
        mark = f"{above}/{token}" if above else token
        _kept = _Kept(os.getpid(), token, mark, Leftovers.now(), users={os.geteuid()})
        _kept.start()
        atexit.register(_kept.end)
    return _kept


def name() -> str:
    """Return the name of this process's run, which is part of the names of its folders."""
    with _lock:
        return _run().token


def environment(base: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return an environment, by default our own, for a process that the keeper is to look after."""
    with _lock:
        run = _run()
        if run.keeper is None or run.keeper.poll() is not None:
            run.start()
        return dict(os.environ if base is None else base) | {RUN: run.mark}


def look_after(*, folder: Path | None = None, user: int | None = None) -> None:
    """Have the keeper look after more.

    Parameters
    ----------
    folder
        Where folders of this run are made.
    user
        The number of a user besides ours whose shared memory processes of this run may leave.
    """
    with _lock:
        run = _run()
        if folder is not None and folder not in run.folders:
            run.folders.add(folder)
            run.tell({"folder": str(folder)})
        if user is not None and user not in run.users:
            run.users.add(user)
            run.tell({"user": user})


# The keeper itself.


class _Keeper:
    def __init__(self, order: Mapping[str, Any]) -> None:
        self.pid, self.start = int(order["pid"]), str(order["start"])
        self.token, self.mark = str(order["token"]), str(order["mark"])
        self.before = Leftovers.from_json(order["before"])
        self.folders = {Path(path) for path in order["folders"]}
        self.users = {int(number) for number in order["users"]}

    def hear(self, message: Mapping[str, Any]) -> None:
        if "folder" in message:
            self.folders.add(Path(message["folder"]))
        if "user" in message:
            self.users.add(int(message["user"]))

    def clean(self) -> None:
        """End what carries the mark of the run, remove its folders and what nobody uses any more."""
        seen: set[int] = set()

        def left() -> set[int]:
            found = marked(self.mark, RUN)
            seen.update(found)
            return found

        # A process that was just becoming another program shows no mark at that moment, and may still write.
        deadline = time.monotonic() + GRACE_S
        while True:
            end_all(left, GRACE_S)
            gone = [folders.remove_of_run(parent, self.token, self.pid) for parent in self.folders]
            if all(gone) or time.monotonic() > deadline:
                break
            time.sleep(AGAIN_S)
        for user in self.users:
            remove_since(self.before, user, seen)


def _main() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    keeper: _Keeper | None = None
    rest = b""
    poll = select.poll()
    poll.register(0, select.POLLIN)
    owner = -1
    while True:
        ready = {descriptor for descriptor, _ in poll.poll()}
        if 0 in ready:
            data = os.read(0, 1 << 16)
            if not data:
                break
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                if keeper is not None:
                    keeper.hear(json.loads(line))
                    continue
                keeper = _Keeper(json.loads(line))
                try:
                    owner = os.pidfd_open(keeper.pid)
                    poll.register(owner, select.POLLIN)
                except ProcessLookupError:
                    ready.add(owner)
                if folders.started(keeper.pid) != keeper.start:
                    ready.add(owner)
        # A process that it has forked may hold the other end of our input.
        elif owner in ready:
            break
        if keeper is not None and owner in ready:
            break
    if keeper is not None:
        keeper.clean()


if __name__ == "__main__":
    _main()
