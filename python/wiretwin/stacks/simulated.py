"""MPI libraries whose network and time are simulated: which one a program needs, and how ranks are started.

The library runs as it is, under its own launcher. Its network is the provider of `wiretwin.direct`, which
finds the simulator by a variable of the environment; a shim that is loaded before it, and built from its own
list of functions, tells the provider of the program's calls and gives the program virtual time.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from wiretwin import direct, process
from wiretwin.errors import InputError
from wiretwin.stacks.base import StackError
from wiretwin.stacks.build import build, build_listed
from wiretwin.stacks.layers import parse_layer
from wiretwin.stacks.mpi4py import find, over_openmpi

__all__ = [
    "LIBRARIES",
    "Library",
    "functions",
    "is_executable",
    "is_local",
    "looks",
    "moves",
    "mpich_of",
    "needed",
]

_LIMIT_S = 20.0


@dataclass(frozen=True, slots=True)
class Library:
    """An MPI library under which programs can run in the simulated world.

    Attributes
    ----------
    name
        As `wiretwin.direct` knows it.
    layer
        The layer of a twin that has its costs.
    sonames
        What a program needs that is built for it: the names of the library itself.
    beside
        Folders that the library looks for beside itself.
    launcher
        Its launcher's command, up to the number of ranks.
    file
        The library itself.
    compiler
        Its wrapper around the C compiler.
    rank_variable
        In which its launcher numbers the ranks.
    tag_bits
        How many lowest bits of a tag of libfabric are the program's.
    ignored
        The bits of a tag that its receives ignore always: its own protocols.
    apart
        The bits of a tag that only messages of its own have, which its other receives are not meant for even
        where they ignore them.
    patience
        How often it may ask in vain before it has tried all that could help it.
    settings
        Variables that it is given.
    within_host
        What it, or the shim, is given besides where all ranks share a host, so that those windows
        lie in memory which a real run has there.
    reaches
        Whether it reaches such windows itself; if not, the shim does in its place.
    shares_like
        The layer of a twin that has what its ranks do where they share a core, where that is not its own.
    preload
        The launcher's options that load ``{}`` into its ranks.
    """

    name: str
    layer: str
    sonames: tuple[str, ...]
    beside: tuple[Path, ...]
    launcher: tuple[str, ...]
    file: Path
    compiler: str
    rank_variable: str
    tag_bits: int
    ignored: int
    apart: int
    patience: int
    settings: Mapping[str, str]
    within_host: Mapping[str, str]
    reaches: bool
    shares_like: str | None
    preload: tuple[str, ...]

    def environment(self, memory: Path, names: Path, *, windows_in_memory: bool) -> dict[str, str]:
        """Return what launcher and ranks have in their environment.

        Parameters
        ----------
        memory
            Where the memory of the run is.
        names
            An empty folder that lives as long as the run, for the library's other names.
        windows_in_memory
            Whether windows lie in memory which ranks reach without messages.

        Raises
        ------
        InputError
            The provider has not been built.
        """
        return {
            **direct.environment(self.name),
            **self.settings,
            **(self.within_host if windows_in_memory else {}),
            "WIRETWIN_SIM": str(memory),
            **self.paths(names),
        }

    def paths(self, names: Path) -> dict[str, str]:
        """Return what a program finds the library by, whose other names are put into a folder."""
        for name in self.sonames:
            if not (self.file.parent / name).exists():
                (names / name).symlink_to(self.file)
        for folder in self.beside:
            (names / folder.name).symlink_to(folder)
        libraries = [str(names), str(self.file.parent), os.environ.get("LD_LIBRARY_PATH")]
        needs = {
            name: value for name, value in self.settings.items() if name.startswith(("OMPI_ALLOW", "MPI4PY"))
        }
        return needs | {"LD_LIBRARY_PATH": ":".join(filter(None, libraries))}

    def shims(self) -> list[Path]:
        """Return what is loaded into ranks before anything else, and not into their launcher.

        Raises
        ------
        StackError
            It cannot be built.
        """
        return [build("sim_hosts.c", (self.compiler,), ("-ldl",)), _shim(self.file)]

    def started(self, ranks: int, *shims: Path) -> list[str]:
        """Return the launcher's command, up to the program; it and what it spawns have these shims."""
        preload = [word.format(":".join(map(str, shims))) for word in self.preload]
        return [*self.launcher, *preload, "-n", str(ranks)]


_BESIDE = Path(sys.executable).parent
LIBRARIES = {
    library.name: library
    for library in (
        Library(
            "mpich",
            "mpi/mpich",
            # That of the Python package, and of Debian, whose own stands on another network.
            ("libmpi.so.12", "libmpich.so.12"),
            (_BESIDE.parent / "lib" / "mpich",),
            (str(_BESIDE / "mpiexec"), "-launcher", "fork"),
            _BESIDE.parent / "lib" / "libmpi.so.12",
            str(_BESIDE / "mpicc"),
            "PMI_RANK",
            # MPICH 5.0, ofi_types.h: two bits of protocol, above that of an acknowledgement.
            31,
            3 << 54,
            0,
            # Also its messages to itself need progress, which other parts of it make first.
            9,
            # One buffer for active messages, which windows are made of: the others wait in the simulator.
            # UCX, which is loaded and not used, would patch the C library, and wait in the program's time.
            {"MPIR_CVAR_CH4_OFI_NUM_AM_BUFFERS": "1", "UCX_MEM_MMAP_HOOK_MODE": "none"},
            {"WIRETWIN_SIM_WINDOWS": "memory"},
            False,
            # Of this MPICH; `mpi/mpich` is Debian's, which does not give way.
            "mpi4py/mpich",
            ("-genv", "LD_PRELOAD", "{}"),
        ),
        Library(
            "openmpi",
            "mpi/openmpi",
            ("libmpi.so.40",),
            (),
            ("mpirun.openmpi", "--oversubscribe", "--bind-to", "none"),
            next(iter(sorted(Path("/usr/lib").glob("*/libmpi.so.40"))), Path("/usr/lib/libmpi.so.40")),
            "mpicc.openmpi",
            "OMPI_COMM_WORLD_RANK",
            # Open MPI 4.1, mtl_ofi_types.h: a tag's sign is the library's; a synchronous send, its answer.
            31,
            1 << 32,
            2 << 32,
            # Some of its progress is made every eighth time only.
            17,
            {
                "OMPI_ALLOW_RUN_AS_ROOT": "1",
                "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                # Within a host, too: no memory of its own, and windows by messages.
                "OMPI_MCA_osc": "^sm,ucx",
                "OMPI_MCA_osc_rdma_mtls": "ofi",
                "OMPI_MCA_coll": "^sm",
                "UCX_MEM_MMAP_HOOK_MODE": "none",
                **over_openmpi("libmpi.so.40"),
            },
            # `osc/rdma` over `btl/vader`, `osc/sm` for memory of their own.
            {"OMPI_MCA_osc": "^ucx", "OMPI_MCA_osc_rdma_mtls": "none"},
            True,
            None,
            ("-x", "LD_PRELOAD={}"),
        ),
    )
}
"""By name."""


def mpich_of(layer: str) -> Path:
    """Return the file of the MPICH that a layer stands for: Debian's, or that of the Python package.

    Raises
    ------
    InputError
        It is no layer of MPICH.
    StackError
        The library is not there.
    """
    configuration = parse_layer(layer, "--layer")
    if configuration.kind.name not in ("mpi/mpich", "mpi4py/mpich"):
        raise InputError(key="--layer", value=layer, allowed="mpi/mpich or mpi4py/mpich with --export mpich")
    return LIBRARIES["mpich"].file if configuration.options["edition"] == "wheel" else find("mpich")


def is_executable(program: Path) -> bool:
    """Return whether a file is a program for this machine rather than a script."""
    try:
        with program.open("rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False


def needed(program: Path, layer: str | None = None) -> Library:
    """Return the library that a program is built for; for a script, that of its layer.

    Parameters
    ----------
    layer
        The layer of a script, ``mpi4py/openmpi``; by default the MPICH that mpi4py finds beside it.

    Raises
    ------
    InputError
        It may not be run, is built for no MPI, or for one that is not known here; there is no such layer.
    """
    if not is_executable(program):
        kind = "" if layer is None else parse_layer(layer, "--layer").kind.name
        return LIBRARIES.get(kind.rpartition("/")[2], LIBRARIES["mpich"])
    if not os.access(program, os.X_OK):
        raise InputError(key="program", value=str(program), reason="is not Python, and may not be executed")
    try:
        done = process.run(["ldd", str(program)], limit_s=_LIMIT_S)
    except (OSError, process.TimeLimit) as error:
        raise InputError(key="program", value=str(program), reason=f"cannot be read: {error}") from None
    sonames = set(re.findall(r"^\s*(lib\S*mpi\S*\.so\S*)", done.stdout, re.MULTILINE))
    for library in LIBRARIES.values():
        if sonames & set(library.sonames):
            return library
    known = ", ".join(f"{one.name} ({', '.join(one.sonames)})" for one in LIBRARIES.values())
    reason = (
        f"is built for another MPI: it needs {', '.join(sorted(sonames))}" if sonames else "is no MPI program"
    )
    raise InputError(key="program", value=str(program), reason=reason, allowed=f"a program for {known}")


_LOCAL = re.compile(
    r"(Comm|Win|File|Type|Group|Session|Info|Op|Request|Message|Errhandler|Status)_"
    r"([cf]2[cf]\w*|f0?8?2f\w*|\w*2f08|from_?int|to_?int|get_\w+|(?<!File_)set_\w+|call_errhandler|create_errhandler|"
    r"\w*keyval|delete_attr|rank|size|group|compare|test_inter|remote_size|remote_group|is_\w+|f2c|c2f)$"
    r"|(Type|Group|Info|Op|Attr|Address|Aint|Pack|Unpack|Status|Keyval|Error|Errhandler|Add_error|Remove_error|"
    r"T|Abi|Grequest|Alloc_mem|Free_mem|Buffer_attach|Register|Get_hw|Topo|Cartdim|Graphdims|Dims)_?\w*$"
    r"|(Get_(address|count|elements|elements_x|processor_name|version|library_version)(_c)?)$"
    r"|(Cart|Graph)_(coords|get|map|rank|shift|neighbors|neighbors_count)$|Dist_graph_neighbors\w*$"
    r"|(Initialized|Finalized|Is_thread_main|Query_thread|Wtime|Wtick|Pcontrol)$|\w+_(FN|fn|NULL|function)\w*$"
)
"""Functions of MPI that move no message: they cost what they take."""
_LOOKS = re.compile(
    r"Test(?!_cancelled)\w*$|Win_test$|Parrived$|Iprobe$|Improbe$|Request_get_status\w*$|Comm_join$"
)
"""Functions that look whether something has happened: `Comm_join` at what another process writes."""
_BEGINS = ("Init", "Init_thread")
_ENDS = ("Finalize",)
_SPAWNS = ("Comm_spawn", "Comm_spawn_multiple")
_MAKES = ("Comm_create_from_group", "Intercomm_create_from_groups")


def looks(call: str) -> bool:
    """Return whether a function, ``MPI_Iprobe``, looks whether something has happened and never waits."""
    return _LOOKS.match(call.removeprefix("P").removeprefix("MPI_")) is not None


def is_local(name: str) -> bool:
    """Return whether a function, ``Comm_rank``, moves no message; so do those that only look or wait."""
    return _LOCAL.match(name) is not None or name == "Test_cancelled"


def moves(function: str) -> bool:
    """Return whether a function, ``PMPI_Send``, moves messages or looks for them."""
    return _class(function.removeprefix("P").removeprefix("MPI_")) in (0, 1, 4, 5, 7)


def _class(name: str) -> int | None:
    """Return what a function does, as the shim numbers it; nothing if it moves no message."""
    if name in _BEGINS:
        return 2
    if name in _ENDS:
        return 3
    if name in _SPAWNS:
        return 4 + _SPAWNS.index(name)
    if name in _MAKES:
        return 7
    if _LOOKS.match(name):
        return 1
    return None if is_local(name) else 0


def functions(library: Path) -> list[str]:
    """Return the functions of an MPI library by name, ``MPI_Send`` and ``PMPI_Send``, sorted.

    Raises
    ------
    StackError
        There is no `nm`.
    """
    try:
        done = process.run(["nm", "-D", "--defined-only", str(library)], limit_s=_LIMIT_S)
    except OSError as error:
        raise StackError(f"nm: {error.strerror or error}", "apt-get install binutils") from None
    return sorted(set(re.findall(r"\b[TW] (P?MPI_\w+)$", done.stdout, re.MULTILINE)))


@cache
def _shim(library: Path) -> Path:
    """Return the shim of a library, built from the names of its own functions."""
    found = [(full, full.removeprefix("P").removeprefix("MPI_")) for full in functions(library)]
    lines = [f"SIM({full}, {what})\n" for full, name in found if (what := _class(name)) is not None]
    if not lines:
        raise StackError(f"{library} has no functions of MPI")
    return build_listed("sim.c", "cc", "".join(lines))
