"""Machines with sshd for tests: hosts of a testbed, each with folders for temporary files of its own."""

from __future__ import annotations

import contextlib
import getpass
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from wiretwin.errors import MeasureError
from wiretwin.testbed import Testbed
from wiretwin.testbed.bed import BedHost

LIMIT_S = 90.0
PORT = 2222
SSHD = shutil.which("sshd", path="/usr/sbin:/sbin:/usr/local/sbin")
PROGRAM = (sys.executable, "-c", "from wiretwin.cli import main; main()")

CONFIG = """
Port {port}
HostKey {folder}/host
PidFile none
AuthorizedKeysFile {folder}/authorized
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
LogLevel ERROR
SetEnv HOME={folder}
"""
"""A home of its own: what the account's shell reads at its start may wait for who knows what."""


@dataclass(frozen=True)
class Machines:
    """Three hosts: one to sit at, and two with an sshd each.

    What ssh needs lies where all three see it; nothing of this machine's own is used or changed.
    """

    bed: Testbed
    folder: Path

    @property
    def desk(self) -> BedHost:
        return self.bed.host("h1")

    @property
    def words(self) -> tuple[str, str]:
        return "h2", "h3"

    @property
    def options(self) -> list[str]:
        return [
            f"Port={PORT}",
            f"User={getpass.getuser()}",
            f"IdentityFile={self.folder}/key",
            "IdentitiesOnly=yes",
            f"UserKnownHostsFile={self.folder}/known",
            "GlobalKnownHostsFile=/dev/null",
        ]

    def words_of_line(
        self, verb: str, *more: str, machines: Sequence[str] = (), python: str = sys.executable
    ) -> list[str]:
        """The command line between the machines, to be run at the desk."""
        options = [word for option in self.options for word in ("--ssh-option", option)]
        between = ["--between", *(machines or self.words), "--remote-python", python]
        return self.desk.command([*PROGRAM, verb, *more, *between, *options])

    def wiretwin(
        self, verb: str, *more: str, machines: Sequence[str] = (), python: str = sys.executable
    ) -> subprocess.CompletedProcess[str]:
        line = self.words_of_line(verb, *more, machines=machines, python=python)
        return subprocess.run(line, capture_output=True, text=True, timeout=LIMIT_S, check=False)

    def left(self) -> dict[str, list[str]]:
        """What lies in the folders for temporary files of each host, as far as it is ours or a library's."""
        patterns = "/tmp/wiretwin-* /dev/shm/wiretwin-* /dev/shm/*mpich* /dev/shm/ucx_* /dev/shm/*_segment*"
        script = f"for path in {patterns} /tmp/ompi.* /tmp/pvm*; do [ -e $path ] && echo $path; done; true"
        found = {}
        for host in ("h1", "h2", "h3"):
            done = subprocess.run(
                self.bed.host(host).command(["sh", "-c", script]),
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
                check=True,
            )
            # Of the testbed itself there is a folder on every host.
            if lines := [
                line for line in done.stdout.splitlines() if line != f"/dev/shm/wiretwin-{os.getuid()}"
            ]:
                found[host] = lines
        return found

    def ranks(self) -> dict[int, str]:
        """The processes on this machine that carry the mark of a launch or a session over ssh."""
        found = {}
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                with contextlib.suppress(OSError):
                    variables = Path("/proc", entry, "environ").read_bytes()
                    if b"WIRETWIN_LAUNCH=/tmp/wiretwin-ssh-" in variables:
                        found[int(entry)] = Path("/proc", entry, "cmdline").read_bytes().decode()
        return found


@contextlib.contextmanager
def machines() -> Iterator[Machines]:
    """Bring them up, and down."""
    if SSHD is None or shutil.which("ssh-keygen") is None:
        if os.environ.get("CI"):
            pytest.fail("no sshd: openssh-server is not installed")
        pytest.skip("no sshd here")
    try:
        standing = Testbed.up(3)
    except MeasureError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))
    with standing as bed, contextlib.ExitStack() as stack:
        folder = bed.directory / "ssh"
        folder.mkdir(mode=0o700)
        for name in ("host", "key"):
            words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
            subprocess.run(words, check=True, timeout=LIMIT_S)
        shutil.copy(folder / "key.pub", folder / "authorized")
        public = (folder / "host.pub").read_text().split()[:2]
        names = [*(host.name for host in bed.hosts), *(host.address for host in bed.hosts)]
        (folder / "known").write_text("".join(f"[{name}]:{PORT} {' '.join(public)}\n" for name in names))
        (folder / "sshd").write_text(CONFIG.format(port=PORT, folder=folder))
        for name in ("h2", "h3"):
            log = folder / f"log-{name}"
            script = f"mkdir -p /run/sshd && exec {SSHD} -D -e -f {shlex.quote(str(folder / 'sshd'))}"
            with log.open("wb") as out:
                sshd = subprocess.Popen(
                    bed.host(name).command(["sh", "-c", script]),
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=out,
                )
            stack.callback(sshd.wait, LIMIT_S)
            stack.callback(sshd.terminate)
            _await_open(bed, name, sshd, log)
        yield Machines(bed, folder)


def _await_open(bed: Testbed, name: str, sshd: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until a host answers at the port."""
    script = f"import socket; socket.create_connection(({bed.host(name).address!r}, {PORT}), 5)"
    deadline = time.monotonic() + LIMIT_S
    while subprocess.run(
        bed.host("h1").command([sys.executable, "-c", script]), stderr=subprocess.DEVNULL, check=False
    ).returncode:
        assert sshd.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
