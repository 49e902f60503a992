"""The MPI library that carries a script of mpi4py, by its name as a layer."""

from __future__ import annotations

from wiretwin.errors import InputError
from wiretwin.stacks.layers import Configuration, parse_layer

__all__ = ["of_script"]

_OF_SCRIPTS = "mpi4py/"
_ALLOWED = "mpi4py/mpich, mpi4py/openmpi, each with its variants, such as +direct"


def of_script(layer: str) -> Configuration:
    """Return the configuration of mpi4py that a name stands for.

    ``mpi/openmpi+direct`` is the library that ``mpi4py/openmpi+direct`` loads, and means that for a script.

    Raises
    ------
    InputError
        It is no library that scripts run on, or has no such variant.
    """
    name, *words = layer.split("+")
    if name == "mpi/openmpi":
        name = "mpi4py/openmpi"
    elif name == "mpi/mpich":
        # The layer of C programs is Debian's unless said otherwise, that of scripts the Python package's.
        own = {"wheel", "direct"} & set(words)
        name, words = (
            "mpi4py/mpich",
            [word for word in words if word != "wheel"] if own else ["debian", *words],
        )
    if not name.startswith(_OF_SCRIPTS):
        raise InputError(key="--layer", value=layer, reason="carries no script live", allowed=_ALLOWED)
    return parse_layer("+".join([name, *words]), "--layer")
