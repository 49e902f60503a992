"""One machine reached over ssh, by srun or by mpiexec: how that is done, and the agent that works there."""

from __future__ import annotations

import contextlib
import json
import queue
import shlex
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wiretwin import __version__, process, scratch
from wiretwin.errors import InputError, MeasureError
from wiretwin.marks import LAUNCH
from wiretwin.place import with_env
from wiretwin.remote.mpiexec import Launched
from wiretwin.remote.slurm import Node

__all__ = ["AnyLogin", "Login", "Machine", "RemoteHost"]

CONNECT_S = 10
"""The longest a connection may take to be made, seconds."""
HELLO_S = 60.0
"""The longest until the agent answers for the first time, seconds: it imports, on a busy machine."""
ANSWER_S = 30.0
"""The longest until it answers later, seconds."""
ALIVE_S = 5
"""A connection that says nothing is asked so often, and given up after three silences, seconds."""
BUILD_S = 180.0

_START = "import json, wiretwin; print(json.dumps({'wiretwin': wiretwin.__version__}), flush=True)"
_SERVE = "from wiretwin.remote.agent import main; main()"
_PASSED = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_EXEC = (
    'c=$1; shift; exec "$@" "exec env '
    + " ".join(f"${{{name}:+{name}=${name}}}" for name in (LAUNCH, *_PASSED))
    + ' $c"'
)
"""A shell's words that start ssh with the mark and the limits on threads, which ssh passes on by itself only
where the server was told to take them."""


@dataclass(frozen=True, slots=True)
class Login:
    """How a machine is logged in at.

    Attributes
    ----------
    word
        What was given: ``node7``, ``ann@node7``, a name of ssh's configuration.
    options
        Further options for ssh, as after its ``-o``.
    python
        The path of the Python there that has wiretwin.
    """

    word: str
    options: tuple[str, ...]
    python: str

    by = "ssh"
    package = "openssh-client"

    @property
    def address(self) -> None:
        """Not known before it is reached: its sshd says by which one that was."""
        return None

    @property
    def for_any(self) -> str:
        """Return a shell's words that reach the machine in its variable ``to``."""
        return f'{shlex.join(self.reach[:-1])} "$to"'

    @property
    def reach(self) -> list[str]:
        """Return the command up to the remote command."""
        ours = (
            "BatchMode=yes",
            f"ConnectTimeout={CONNECT_S}",
            f"ServerAliveInterval={ALIVE_S}",
            "ControlMaster=no",
            "ControlPath=none",
            "ForwardX11=no",
            "LogLevel=ERROR",
        )
        # Of an option that is given twice, ssh takes the first.
        words = [word for option in (*self.options, *ours) for word in ("-o", option)]
        return ["ssh", "-T", *words, self.word]


AnyLogin = Login | Launched | Node


@dataclass(frozen=True, slots=True)
class RemoteHost:
    """A machine as a host of a place; a `wiretwin.place.HostPlace`.

    Its name is its address: launchers hand it to each other, and what ssh calls it need not resolve there.
    """

    login: AnyLogin
    address: str
    interface: str
    settle: Callable[[], None]

    @property
    def name(self) -> str:
        """Its address."""
        return self.address

    @property
    def core(self) -> None:
        """None: it has more than one, or is not ours to say."""
        return None

    def command(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, user: str | None = None
    ) -> list[str]:
        """Return the command that runs `argv` there; see `wiretwin.place.HostPlace`.

        What the caller has put into the place's folder is there before this returns. Words that name this
        Python, or a program beside it, name those of the Python there.
        """
        if user is not None:
            raise InputError(key="user", value=user, reason="is another user", allowed="who ssh logs in as")
        self.settle()
        words = [self.there(word) for word in argv]
        return ["sh", "-c", _EXEC, "sh", shlex.join(with_env(words, env)), *self.login.reach]

    def there(self, word: str) -> str:
        """Return what a word of a command is there: paths beside this Python lie beside that one."""
        if word == sys.executable:
            return self.login.python
        beside = f"{Path(sys.executable).parent}/"
        return (
            f"{Path(self.login.python).parent}/{word.removeprefix(beside)}"
            if word.startswith(beside)
            else word
        )


class Machine:
    """A machine with an agent at work; `close` ends it.

    Parameters
    ----------
    login
        How it is reached.
    changed
        Called with each change in its copy of the folder, from a thread.

    Raises
    ------
    MeasureError
        It cannot be reached, or has not the same wiretwin.
    """

    def __init__(self, login: AnyLogin, changed: Callable[[Machine, dict[str, Any]], None]) -> None:
        self.login = login
        self._changed = changed
        self._answers: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._number = 0
        self._turn = threading.Lock()
        self._writing = threading.Lock()
        self._said = tempfile.TemporaryFile(dir=scratch.temporary())  # noqa: SIM115 - closed by `close`
        remote = shlex.join([login.python, "-c", f"{_START}; {_SERVE}"])
        try:
            self._process = process.start(
                [*login.reach, f"exec {remote}"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._said,
            )
        except OSError as error:
            self._said.close()
            words = f"{login.by}: {error.strerror or error}; `apt-get install {login.package}`"
            raise MeasureError(words) from None
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        try:
            hello = self._answers.get(timeout=HELLO_S)
            if hello is None or "wiretwin" not in hello:
                raise MeasureError(self._why_not())
            if hello["wiretwin"] != __version__:
                raise MeasureError(
                    f"{login.word}: {login.python} has wiretwin {hello['wiretwin']}, and here it is "
                    f"{__version__}: both ends must be the same"
                )
        except queue.Empty:
            self.close()
            raise MeasureError(f"{login.word}: no answer within {HELLO_S:g} s") from None
        except BaseException:
            self.close()
            raise

    def _read(self) -> None:
        """Sort what the agent says: answers, and changes in the folder."""
        assert self._process.stdout is not None
        with contextlib.suppress(OSError, ValueError):
            for line in self._process.stdout:
                try:
                    message = json.loads(line)
                except ValueError:
                    continue  # a greeting that the login shell prints
                if not isinstance(message, dict):
                    continue
                if message.get("event") == "change":
                    self._changed(self, message["message"])
                else:
                    self._answers.put(message)
        self._answers.put(None)

    @property
    def alive(self) -> bool:
        """Whether the connection stands, as far as is known."""
        return self._process.poll() is None

    def ask(self, what: str, limit_s: float = ANSWER_S, **more: Any) -> Any:
        """Ask the agent; return its answer.

        Raises
        ------
        MeasureError
            It says why not, the connection is lost, or it does not answer within the limit.
        """
        with self._turn:
            self._number += 1
            question = {"number": self._number, "ask": what, **more}
            try:
                self._write(question)
                while (answer := self._answers.get(timeout=limit_s)) is not None:
                    if answer.get("number") == self._number:
                        break
            except queue.Empty:
                raise MeasureError(f"{self.login.word}: no answer within {limit_s:g} s") from None
            except (OSError, ValueError):
                answer = None
        if answer is None:
            self._answers.put(None)  # for whoever asks next
            raise MeasureError(self.lost)
        if "error" in answer:
            raise MeasureError(f"{self.login.word}: {answer['error']}")
        return answer["value"]

    def tell(self, what: str, **more: Any) -> None:
        """Ask without waiting for the answer; nothing happens if the connection is lost."""
        with contextlib.suppress(OSError, ValueError):
            self._write({"number": 0, "ask": what, **more})

    def _write(self, question: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        with self._writing:
            self._process.stdin.write(json.dumps(question).encode() + b"\n")
            self._process.stdin.flush()

    @property
    def lost(self) -> str:
        """Say that the connection is lost, and what was said of it."""
        words = self._last_words()
        return f"{self.login.word}: the connection by {self.login.by} was lost{f': {words}' if words else ''}"

    def _last_words(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(1.0)
        self._said.seek(0)
        lines = self._said.read().decode("utf-8", "replace").split("\n")
        return " ".join([line.strip() for line in lines if line.strip()][-3:])

    def _why_not(self) -> str:
        """Say why the agent did not come up, from what ssh and the remote shell said."""
        word, python = self.login.word, self.login.python
        said = self._last_words()
        code = self._process.poll()
        by_hand = shlex.join(["ssh", word, "true"])
        if "No module named 'wiretwin" in said:
            return (
                f"{word}: {python} has no wiretwin; install version {__version__} there, "
                "or say by --remote-python where it is"
            )
        if code in (126, 127):
            return f"{word}: no {python} there; --remote-python says where the Python with wiretwin is"
        if "Could not resolve hostname" in said:
            return f"{word}: is no host that ssh knows: {said}"
        if "Permission denied" in said:
            return f"{word}: no login without a password: {said}; `ssh-copy-id {word}` may cure it"
        if "Host key verification failed" in said:
            return f"{word}: its host key is not known here: {said}; `{by_hand}` shows it"
        if code == 255:
            return f"{word}: cannot be reached by ssh: {said or 'no reason given'}"
        return f"{word}: wiretwin does not start there with {python}: {said or f'ended with status {code}'}"

    def close(self) -> None:
        """Let the agent clean up and end; end ssh by force if it does not."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(CONNECT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(CONNECT_S)
        self._process.stdout.close()
        self._said.close()
