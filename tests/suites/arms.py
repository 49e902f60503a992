"""The arms: ways of this project's for the messages of an MPI, each beside the library's own way."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from wiretwin.stacks.layers import parse_layers, refusal
from wiretwin.stacks.mpi import MpiSession
from wiretwin.testbed import Testbed

Started = Callable[[Sequence[str], int], Sequence[str]]
"""From a program with its arguments and the number of ranks to the command that runs it on them."""


Ways = tuple[Started, Started]
"""The library's own way, and the arm's."""


class Arm(Protocol):
    """A way for messages, and the libraries that it carries."""

    name: str
    libraries: Sequence[str]
    most: int
    """Ranks."""

    def open(self, library: str, limit_s: float) -> contextlib.AbstractContextManager[Ways]:
        """Bring up what the ranks need; give the library's own way and the arm's."""


class Direct:
    """The direct transport between two hosts of a testbed, against the library's TCP."""

    name = "direct"
    libraries = ("openmpi", "mpich")
    most = 2

    @contextlib.contextmanager
    def open(self, library: str, limit_s: float) -> Iterator[Ways]:
        """Bring up two hosts, and both configurations of the library on them."""
        with contextlib.ExitStack() as stack:
            bed = stack.enter_context(Testbed.up(2, name=f"suites-{os.getpid()}"))

            def way(name: str) -> Started:
                (configuration,) = parse_layers(name)
                if (refused := refusal(configuration, bed)) or configuration.kind.stack is None:
                    raise SystemExit(f"suites: {name} cannot be run: {refused}")
                up = configuration.kind.stack.up(bed, configuration.options)
                session = stack.enter_context(up)
                assert isinstance(session, MpiSession)
                launcher = [*session.launcher, "-np"]
                return lambda argv, ranks: bed.hosts[0].command(
                    [*launcher, str(ranks), *argv], env=session.env
                )

            yield way(f"mpi4py/{library}"), way(f"mpi4py/{library}+direct")


class Simulated:
    """The simulated world, against the library's own libfabric over TCP on this host."""

    name = "simulated"
    libraries = ("mpich", "openmpi")
    most = 64
    own: Mapping[str, Sequence[str]] = {
        "mpich": [
            "env", "MPIR_CVAR_CH4_NETMOD=ofi", "MPIR_CVAR_NOLOCAL=1", "FI_PROVIDER=tcp",
            str(Path(sys.executable).with_name("mpiexec")), "-n",
        ],
        "openmpi": [
            "env", "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "FI_PROVIDER=tcp",
            "MPI4PY_MPIABI=openmpi", "MPI4PY_LIBMPI=libmpi.so.40",
            "OMPI_MCA_pml=cm", "OMPI_MCA_mtl=ofi", "OMPI_MCA_mtl_ofi_provider_include=tcp;ofi_rxm",
            "OMPI_MCA_btl=self", "OMPI_MCA_osc=^sm,ucx", "OMPI_MCA_coll=^sm",
            "mpirun.openmpi", "--oversubscribe", "--bind-to", "none", "-n",
        ],
    }  # fmt: skip

    @contextlib.contextmanager
    def open(self, library: str, limit_s: float) -> Iterator[Ways]:
        """Name the commands."""
        ours = [sys.executable, str(Path(__file__).with_name("simulated.py")), library]

        def words(argv: Sequence[str]) -> Sequence[str]:
            return argv[1:] if argv[0] == sys.executable else argv

        yield (
            lambda argv, ranks: [*self.own[library], str(ranks), *argv],
            lambda argv, ranks: [*ours, str(ranks), str(limit_s - 10), *words(argv)],
        )


ARMS: Mapping[str, Arm] = {arm.name: arm for arm in (Direct(), Simulated())}
