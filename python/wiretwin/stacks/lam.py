"""LAM/MPI: a daemon on every host, ranks started by it, messages by one of several modules.

LAM rejects root and has no switch for it: as root it is run under an account without rights. Its daemons
keep whatever streams they inherit, so they inherit none of ours. Module ``lamd`` sends through the daemons
and fails above 8 KiB, after which the daemons ignore every request: longer messages are rejected before.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from wiretwin import leftovers, scratch
from wiretwin.marks import LAUNCH
from wiretwin.place import Place
from wiretwin.stacks import unprivileged
from wiretwin.stacks.base import Command, Refusal, Session, Stack, by_signal
from wiretwin.stacks.build import Shim
from wiretwin.stacks.daemons import Household, household
from wiretwin.stacks.mpi import debian, effective_environment, version_line
from wiretwin.stacks.nature import Meaning, Nature
from wiretwin.stacks.word import ALL_LOOPS, BLOCKING, OF_MPI_2_2, OVER_MESSAGES, Word, fixed

__all__ = ["Lam"]

BOOT_LIMIT_S = 60.0
_SHIM = Shim("mpi.c", "mpicc.lam", "lam4-dev")
LAMD_MAX_BYTES = 8192
"""The longest message that module ``lamd`` was ever seen to carry."""


class LamSession(Session):
    """LAM's daemons are up."""

    rank_variable = "LAMRANK"
    daemons = True

    def __init__(
        self, place: Place, home: Household, rpi: Sequence[str], env: Mapping[str, str], **more: Any
    ):
        super().__init__(place, **more)
        self.home = home
        self.rpi = list(rpi)
        self.env = dict(env)
        self._before = leftovers.Leftovers.now()

    def commands(self, probe: Sequence[str], specs: Sequence[Path], ranks: int) -> list[Command]:
        """Return the one command, run on the first host; the daemons start the ranks, in turn on each."""
        (spec,) = specs
        nodes = [f"n{rank % len(self.place.hosts)}" for rank in range(ranks)]
        # -O: all hosts are of one kind. -x: the daemons' environment lacks what this launch adds.
        exported = ["-x", ",".join((LAUNCH, "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"))]
        # By way of env: the daemon asks access(2) about the program itself, which leaves capabilities out.
        argv = ["mpirun.lam", *self.rpi, *exported, "-O", *nodes, "/usr/bin/env", *probe, str(spec)]
        whole = self.place.hosts[0].command(unprivileged.unprivileged(argv), env=self.env)
        return [Command(whole, self.env)]

    def last_words(self, output: str) -> tuple[str, bool] | None:
        """Read what mpirun of LAM says of a rank that ended badly."""
        match = re.search(r"due to signal (\d+)|exited due to signal (\d+)|with signal (\d+)", output)
        if match is None:
            return None
        return by_signal(int(next(group for group in match.groups() if group)))

    def after(self, *, clean: bool) -> None:
        """Remove the shared memory of ranks that were ended by force."""
        if not clean:
            leftovers.remove_since(self._before, unprivileged.identity().pw_uid)


def _agent(place: Place, home: Household) -> Path:
    """Return the remote shell for lamboot.

    As root it is one of our own: under an account without rights the place's would start a daemon that has
    none, and whose ranks could not read what only root may read. Ours keeps the capabilities we gave.
    """
    if place.agent is None:
        return Path("/bin/false")
    if os.geteuid() != 0:
        return place.agent
    cases = "".join(
        f'{shlex.quote(host.name)}) exec {shlex.join(host.command(["/bin/sh", "-c"]))} "$*";;\n'
        for host in place.hosts
    )
    script = home.directory / "agent"
    scratch.program(
        script,
        '#!/bin/sh\nhost=$1; shift\nwhile [ "$1" = -n ] || [ "$1" = -x ]; do shift; done\n'
        f'case "$host" in\n{cases}*) echo "no host $host here" >&2; exit 2;;\nesac\n',
    )
    return script


class Lam(Stack):
    """LAM/MPI 7: Debian's."""

    name = "mpi/lam"
    summary = "MPI_Send and MPI_Recv of LAM/MPI, in C, over TCP; blocking"
    options: Mapping[str, Any] = {"rpi": "tcp", "eager_bytes": 0}
    words = (
        fixed("lamd", "through LAM's daemons; up to 8 KiB", max_bytes=LAMD_MAX_BYTES, rpi="lamd"),
        fixed("usysv", "shared memory with spin locks; within one host, else TCP", rpi="usysv"),
        Word(
            r"eager(\d+)k",
            "eagerNk",
            "messages of up to N KiB are sent without asking the receiver first",
            lambda match: {"eager_bytes": int(match[1]) * 1024},
        ),
    )
    loops = ALL_LOOPS | OVER_MESSAGES | frozenset(BLOCKING) - OF_MPI_2_2
    nature = Nature(
        switches=True,
        without_limit=("lamd",),
        only_here={"": "LAM is brought up on this machine only"},
        meanings=(
            Meaning(r"eager(\d+)k", "environment", "LAM_MPI_SSI_rpi_tcp_short", edition="!usysv"),
            Meaning(r"eager(\d+)k", "environment", "LAM_MPI_SSI_rpi_usysv_short", edition="usysv"),
        ),
    )

    def refusal(self, options: Mapping[str, Any], place: Place) -> Refusal | None:
        """Look for LAM's programs and for an ordinary user to run them as, and build the shim."""
        return debian("lamboot", "lam-runtime lam4-dev") or unprivileged.refusal() or _SHIM.refusal()

    @contextlib.contextmanager
    def up(self, place: Place, options: Mapping[str, Any]) -> Iterator[Session]:
        """Start a daemon on every host; end them afterwards."""
        shim = _SHIM.at(place)
        who = unprivileged.identity()
        with household(place, owner=who.pw_uid) as home:
            env = {
                "HOME": str(home.directory),
                "USER": who.pw_name,
                "LOGNAME": who.pw_name,
                "LAM_MPI_SESSION_PREFIX": str(home.directory),
                "LAMRSH": str(_agent(place, home)),
            }
            names = [host.name for host in place.hosts] if place.agent is not None else ["localhost"]
            hosts = home.directory / "hosts"
            hosts.write_text("".join(f"{name}\n" for name in names))
            rpi = self._rpi(options)
            boot = unprivileged.unprivileged(["lamboot", "-ssi", "boot", "rsh", str(hosts)])
            first = place.hosts[0]
            home.run(first.command(boot, env=env), "lamboot", limit_s=BOOT_LIMIT_S, env=env)
            most = LAMD_MAX_BYTES if options["rpi"] == "lamd" else 0
            # The household ends the daemons, at once; `lamhalt` takes 3 s to wait for them.
            yield LamSession(
                place,
                home,
                rpi,
                env,
                shim=shim,
                options={"max_bytes": most, "why": "as LAM's daemons carry no more"} if most else {},
                report={
                    "launcher": version_line("laminfo", "-version", "lam", "full") or "LAM",
                    "environment": effective_environment({}),
                    "user": who.pw_name,
                    "launcher_options": " ".join(rpi),
                },
            )

    @staticmethod
    def _rpi(options: Mapping[str, Any]) -> list[str]:
        rpi = ["-ssi", "rpi", str(options["rpi"])]
        if options["eager_bytes"] and options["rpi"] != "lamd":
            for module in {"tcp", str(options["rpi"])}:
                rpi += ["-ssi", f"rpi_{module}_short", str(options["eager_bytes"])]
        return rpi
