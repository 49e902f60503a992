"""The direct transport: the library that MPI libraries load, and what makes each of them use it.

`libwiretwin-fi.so` is a provider of libfabric. An MPI that stands on libfabric finds it by a variable of the
environment and needs no rebuilding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from wiretwin import _core
from wiretwin.errors import InputError

__all__ = ["CURE", "LIBRARY", "MPIS", "VIPL", "Way", "environment", "vipl_environment", "ways"]

LIBRARY = Path(__file__).resolve().parent / "fabric" / "libwiretwin-fi.so"
"""Where the library is, once it has been built."""
VIPL = Path(__file__).resolve().parent / "vipl"
"""Where ``libvipl.so.1`` is, with its header, its file for pkg-config and an example."""
CURE = "make build/core.stamp"
"""The line that builds the libraries in a checkout."""
PROVIDER = "wiretwin"
"""The name by which libfabric knows it."""

_OF_MPI: Mapping[str, Mapping[str, str]] = {
    "openmpi": {
        "OMPI_MCA_pml": "cm",
        "OMPI_MCA_mtl": "ofi",
        "OMPI_MCA_mtl_ofi_provider_include": PROVIDER,
    },
    # Within a host too: MPICH has a shared memory of its own, which it would use instead.
    "mpich": {"FI_PROVIDER": PROVIDER, "MPIR_CVAR_CH4_NETMOD": "ofi", "MPIR_CVAR_NOLOCAL": "1"},
}

MPIS = tuple(_OF_MPI)
"""The MPIs that can use it."""


def environment(mpi: str) -> dict[str, str]:
    """Return the variables with which an MPI uses the direct transport.

    Parameters
    ----------
    mpi
        ``openmpi`` (4.1 or later, built with libfabric) or ``mpich`` (built with ``ch4:ofi``, as that of the
        Python package).

    Raises
    ------
    InputError
        No such MPI, or the library has not been built.
    """
    if mpi not in _OF_MPI:
        raise InputError(key="mpi", value=mpi, reason="is no MPI known here", allowed=", ".join(MPIS))
    if not LIBRARY.is_file():
        raise InputError(
            key="mpi",
            value=mpi,
            reason=f"needs {LIBRARY}, which has not been built",
            allowed=f"after `{CURE}`",
        )
    return {"FI_PROVIDER_PATH": str(LIBRARY.parent), **_OF_MPI[mpi]}


def vipl_environment() -> dict[str, str]:
    """Return what C programs are built against VIPL with: its folder, and where pkg-config looks.

    Raises
    ------
    InputError
        The library has not been built.
    """
    library = VIPL / "libvipl.so.1"
    if not library.is_file():
        raise InputError(key="vipl", value=library, reason="has not been built", allowed=f"after `{CURE}`")
    return {"VIPL": str(VIPL), "PKG_CONFIG_PATH": str(VIPL)}


@dataclass(frozen=True)
class Way:
    """A way from one rank to another.

    Attributes
    ----------
    name
        As ``WIRETWIN_DIRECT_WAYS`` has it.
    where
        Between which ranks.
    found
        What was found.
    reason
        Why it cannot be had; ``None`` if it can.
    remedy
        The one line that may change that.
    """

    name: str
    where: str
    found: str
    reason: str | None = None
    remedy: str | None = None


def ways() -> list[Way]:
    """Return the ways between ranks, in the order in which they are preferred, each as it was found here.

    A packet socket is really tried, on the interface that would be taken; nothing of it is left.
    """
    memory = Way("shm", "within a host", "shared memory")
    kernel = Way("udp", "between hosts", "datagrams through the kernel")
    return [memory, _packet(), kernel]


def _packet() -> Way:
    """Try the way past the kernel."""
    name, where = "packet", "between hosts"
    try:
        found = f"past the kernel on the interface of {_core.direct_past_kernel()}"
    except PermissionError as error:
        remedy = "run as root, or with the capability net_raw"
        return Way(name, where, "not allowed to this process", str(error), remedy)
    except OSError as error:
        remedy = "name another interface: WIRETWIN_DIRECT_INTERFACE=eth1"
        return Way(name, where, "not to be had", str(error), remedy)
    return Way(name, where, found)
