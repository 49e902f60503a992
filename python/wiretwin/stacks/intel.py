"""Intel MPI: its Python packages in an environment of their own, large and proprietary, so only on request.

It descends from MPICH, launcher included. Its libraries are found through the environment, and so are the
providers of its libfabric.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from wiretwin.place import Place
from wiretwin.stacks.base import Refusal
from wiretwin.stacks.build import Shim
from wiretwin.stacks.mpi import BOUND, IDLE_US, ONE_USER, TCP, Mpich
from wiretwin.stacks.nature import Nature
from wiretwin.stacks.wheels import WHEELS
from wiretwin.stacks.word import fixed

__all__ = ["IntelMpi"]


class IntelMpi(Mpich):
    """Intel MPI for one user of one machine."""

    name = "mpi/intel"
    summary = "MPI_Send and MPI_Recv of Intel MPI, in C, over shared memory or libfabric's TCP; spinning"
    options: Mapping[str, Any] = {
        "edition": "wheel",
        "transport": "auto",
        "eager_bytes": 0,
        "binding": "none",
        "wait": "spin",
    }
    words = (
        TCP,
        BOUND,
        fixed("yield", f"asks, and between questions sleeps for {IDLE_US} us, while waiting", wait="yield"),
    )
    editions = ()
    opt_in = True
    nature = Nature(spins=True, switches=True, only_here={"wheel": ONE_USER})
    variables = "MPIR_CVAR_CH4_NETMOD MPIR_CVAR_CH4_SHM"

    def _programs(self, edition: str) -> tuple[str, str]:
        folder = WHEELS["intel"].folder / "bin"
        return "cc", str(folder / "mpiexec.hydra")

    def shim(self, compiler: str) -> Shim:
        """Return the shim; the system's compiler is told where the package's own folder is."""
        folder = WHEELS["intel"].folder
        libraries = (f"-L{folder / 'lib'}", "-lmpi")
        return Shim("mpi.c", compiler, "", libraries, (f"-I{folder / 'include'}",))

    def refusal(self, options: Mapping[str, Any], place: Place) -> Refusal | None:
        """Look for the whole of its environment, and build the shim."""
        wheel = WHEELS["intel"]
        if not wheel.complete:
            return Refusal(f"{wheel.packages[0]} is not installed", wheel.cure)
        return self.shim("cc").refusal()

    @staticmethod
    def launch(place: Place, options: Mapping[str, Any], launcher: str) -> tuple[list[str], dict[str, str]]:
        """Return the launcher's command and the variables for it.

        The provider is named: left to itself, libfabric looks for adapters that a testbed's hosts lack.
        """
        folder = WHEELS["intel"].folder
        libraries = [str(folder / "lib"), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
        alone = place.agent is None
        env = {
            "I_MPI_ROOT": str(folder),
            "I_MPI_FABRICS": "shm" if alone and options["transport"] == "auto" else "ofi",
            "I_MPI_PIN": "1" if options["binding"] == "launcher" else "0",
            "FI_PROVIDER": "tcp",
            "LD_LIBRARY_PATH": ":".join(libraries),
        }
        if alone:
            return [launcher, "-launcher", "fork"], env
        hosts = ",".join(host.name for host in place.hosts)
        there = ["-launcher", "rsh", "-launcher-exec", str(place.agent), "-hosts", hosts, "-ppn", "1"]
        return [launcher, *there], env
