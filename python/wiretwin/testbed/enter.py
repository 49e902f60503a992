"""Run a command in a host of a testbed: ``python enter.py FOLDER [OPTIONS] HOST COMMAND…``.

It goes into the host's namespaces and becomes the command: same process, so streams, signals and exit status
pass through. Only the standard library is loaded, since this runs once for every command.

``--user NAME``: as that user. ``--strict``: reject if the working directory is not seen there; otherwise the
command starts in ``/`` then. ``--rsh``: the manners of a remote shell: options of ``rsh`` and ``ssh`` before
and after the host's name, the words joined by blanks and read by a shell.

A testbed that root has made can be entered by root; for other users of its hosts the testbed's keeper runs
the command, as the user who asks.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from typing import Any, NoReturn

if __name__ == "__main__":
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from wiretwin.testbed import kernel

__all__ = ["become", "go_to", "main", "stay_on"]

CANNOT_START = 126
"""Exit status when the command was not started, as of a shell."""
REFUSED = 2
"""Exit status when what was asked for makes no sense."""
_FLAGS = frozenset("nxXqTtakvfNC4")
"""Options of rsh and ssh that change nothing here."""
_VALUED = frozenset("opiFceLRDmbS")
"""Those with a value, likewise."""


def fail(text: str, status: int = CANNOT_START) -> NoReturn:
    """Say what is wrong and end."""
    sys.stderr.write(f"wiretwin: {text}\n")
    sys.stderr.flush()
    sys.exit(status)


def become(uid: int, gid: int) -> None:
    """Become a user, with the groups that the machine's tables give it."""
    import pwd

    if uid == os.geteuid():
        return
    try:
        entry = pwd.getpwuid(uid)
        os.initgroups(entry.pw_name, gid)
    except KeyError:
        os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def stay_on(core: int | None) -> None:
    """Stay on the core of a host, with all that is started from here, if the host has one of its own."""
    if core is not None:
        os.sched_setaffinity(0, {core})


def go_to(folder: str | None, *, strict: bool) -> bool:
    """Go to a folder, or to ``/`` if it is not there; returns whether it is."""
    try:
        os.chdir(folder if folder is not None else "/")
        return True
    except OSError:
        if not strict:
            os.chdir("/")
        return False


def find_host(folder: str, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the testbed's state and the entry of a host in it, or end with the reason."""
    bed = os.path.basename(folder)
    try:
        with open(os.path.join(folder, "state.json"), encoding="utf-8") as file:
            state = json.load(file)
    except (OSError, ValueError):
        fail(f"testbed {bed!r} is not up; `wiretwin testbed status` shows which are", REFUSED)
    found = next((host for host in state["hosts"] if host["name"] == name), None)
    if found is None:
        names = ", ".join(host["name"] for host in state["hosts"])
        fail(f"testbed {bed!r} has no host {name!r}; allowed: {names}", REFUSED)
    keeper = state["keeper"]
    if kernel.process_start(keeper["pid"]) != keeper["start"]:
        fail(f"testbed {bed!r} is gone: its keeper was ended; `wiretwin testbed clean` removes what is left")
    return state, found


def working_directory() -> str | None:
    """Return where we are; nothing if the folder has been removed."""
    try:
        return os.getcwd()
    except OSError:
        return None


def enter_and_run(folder: str, host: str, argv: list[str], *, user: str | None, strict: bool) -> NoReturn:
    """Go into a host and become the command."""
    state, found = find_host(folder, host)
    here = working_directory()
    identity = None
    if user is not None:
        import pwd

        try:
            entry = pwd.getpwnam(user)
        except KeyError:
            fail(f"{user!r} is no user of this machine", REFUSED)
        identity = (entry.pw_uid, entry.pw_gid)
        os.environ.update(HOME=entry.pw_dir, USER=user, LOGNAME=user)
    pid = state["keeper"]["pid"]
    spaces = dict(found["descriptors"])
    if state.get("user") is not None:
        spaces["user"] = state["user"]
    try:
        opened = {name: os.open(f"/proc/{pid}/fd/{number}", os.O_RDONLY) for name, number in spaces.items()}
    except PermissionError:
        fail(f"testbed {os.path.basename(folder)!r} belongs to another user; only root enters it this way")
    except OSError:
        fail(f"testbed {os.path.basename(folder)!r} is gone: its keeper was ended")
    try:
        for name in kernel.NAMESPACES:
            # Its own user namespace a process may not enter again.
            if name in opened and os.fstat(opened[name]).st_ino != os.stat(f"/proc/self/ns/{name}").st_ino:
                kernel.enter(opened[name], name)
        stay_on(found.get("core"))
        if identity is not None:
            become(*identity)
    except OSError as error:
        fail(f"{host}: {error.filename or 'entering'}: {error.strerror}")
    for descriptor in opened.values():
        os.close(descriptor)
    if not go_to(here, strict=strict) and strict:
        fail(
            f"{host} does not see the working directory {here}: /tmp, /run and /dev/shm are its own; go to "
            "another folder, or bring the testbed up with --share",
            REFUSED,
        )
    try:
        os.execvp(argv[0], argv)
    except OSError as error:
        fail(f"{host}: {argv[0]}: {error.strerror}", 127 if isinstance(error, FileNotFoundError) else 126)


def ask_keeper(folder: str, host: str, command: str) -> NoReturn:
    """Have the keeper run a command as this user, with our streams, and end as it ends."""
    find_host(folder, host)
    question: dict[str, Any] = {"do": "run", "host": host, "command": command, "cwd": working_directory()}
    question["env"] = dict(os.environ)
    try:
        line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        line.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        line.connect(os.path.join(folder, "shared", ".keeper"))
        socket.send_fds(line, [json.dumps(question).encode()], [0, 1, 2])
        answer = json.loads(line.recv(1 << 16) or b"{}")
    except (OSError, ValueError) as error:
        fail(f"testbed {os.path.basename(folder)!r}: its keeper does not answer: {error}")
    status = answer.get("status")
    if status is None:
        fail(f"{host}: {answer.get('error', 'the testbed is gone: its keeper was ended')}")
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    sys.exit(status)


def rsh(folder: str, words: list[str]) -> NoReturn:
    """Behave as ``rsh [-l USER] HOST COMMAND…``."""
    user = host = None
    while words:
        word = words.pop(0)
        letters = word[1:]
        if word == "--":
            break
        if word.startswith("-") and letters:
            if letters[0] == "l" or letters[0] in _VALUED:
                value = letters[1:] or (words.pop(0) if words else "")
                user = value if letters[0] == "l" else user
            elif not set(letters) <= _FLAGS:
                fail(f"option {word} is not known; usage: [-l USER] HOST COMMAND…", REFUSED)
        elif host is None:
            host = word
        else:
            words.insert(0, word)
            break
    if host is None or not words:
        fail("usage: [-l USER] HOST COMMAND…", REFUSED)
    if "@" in host:
        user, _, host = host.rpartition("@")
    command = " ".join(words)
    import pwd

    own = pwd.getpwuid(os.geteuid()).pw_name
    if user == own:
        user = None
    if os.geteuid() != 0 and os.stat(folder).st_uid != os.geteuid():
        if user is not None:
            fail(f"{own} may not run commands as {user}", REFUSED)
        ask_keeper(folder, host, command)
    enter_and_run(folder, host, ["/bin/sh", "-c", command], user=user, strict=False)


def main(argv: list[str]) -> NoReturn:
    """Run the command line described at the top."""
    folder, words, user, strict = argv[0], argv[1:], None, False
    if words[:1] == ["--rsh"]:
        rsh(folder, words[1:])
    while words and words[0].startswith("--"):
        option = words.pop(0)
        if option == "--user":
            user = words.pop(0)
        elif option == "--strict":
            strict = True
        elif option == "--":
            break
    if len(words) < 2:
        fail("usage: FOLDER [--user NAME] [--strict] HOST COMMAND…", REFUSED)
    enter_and_run(folder, words[0], words[1:], user=user, strict=strict)


if __name__ == "__main__":
    main(sys.argv[1:])
