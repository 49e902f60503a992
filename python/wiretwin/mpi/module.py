"""The modules that a simulated program finds under the name of mpi4py."""

from __future__ import annotations

import types
from functools import lru_cache
from threading import get_ident
from typing import Any

from . import comm, constants, datatype, failure, group, ops, request, topology
from .annotations import module as typing_module
from .buffers import BOTTOM, IN_PLACE, BottomType, InPlaceType
from .names import missing_from_module
from .pickling import Pickle, pickle
from .rank import here
from .status import Status

_VERSION = "4.1.2"
_TICK = 1e-12


def _wtime() -> float:
    return here().read_clock("Wtime") / 1e12


def _processor_name() -> str:
    rank = here()
    return rank.runtime.hosts[rank.runtime.placement[rank.index]]


def _finalize() -> None:
    rank = here()
    rank.enter("Finalize")
    try:
        rank.finalized = True
    finally:
        rank.leave()


def _is_finalized() -> bool:
    return here().finalized


_PROVIDED = constants.INTEGERS["THREAD_FUNNELED"]
"""Only the main thread may call."""


def _init() -> None:
    here().initialized = True


def _init_thread(required: int = constants.INTEGERS["THREAD_MULTIPLE"]) -> int:
    _init()
    return min(required, _PROVIDED)


def _is_initialized() -> bool:
    return bool(modules()["mpi4py.rc"].initialize) or here().initialized


def _is_thread_main() -> bool:
    return get_ident() == here().thread


def _get_address(location: Any) -> int:
    from .buffers import raw_bytes

    return int(raw_bytes(location, False)[0].ctypes.data)


def _error_class(errorcode: int) -> int:
    return errorcode


def _attach(buf: Any) -> None:
    here().runtime.attach(here(), buf)


def _detach() -> Any:
    return here().runtime.detach(here())


_FUNCTIONS: dict[str, Any] = {
    "Aint_add": lambda base, disp: base + disp,
    "Aint_diff": lambda addr1, addr2: addr1 - addr2,
    "Attach_buffer": _attach,
    "Compute_dims": topology.compute_dims,
    "Detach_buffer": _detach,
    "Finalize": _finalize,
    "Get_address": _get_address,
    "Get_error_class": _error_class,
    "Get_error_string": failure.error_string,
    "Get_library_version": lambda: "wiretwin simulated MPI, with the algorithms and limits of MPICH 5.0.2",
    "Get_processor_name": _processor_name,
    "Get_version": lambda: (5, 0),
    "Init": _init,
    "Init_thread": _init_thread,
    "Is_finalized": _is_finalized,
    "Is_initialized": _is_initialized,
    "Is_thread_main": _is_thread_main,
    "Pcontrol": lambda level: None,
    "Query_thread": lambda: _PROVIDED,
    "Wtick": lambda: _TICK,
    "Wtime": _wtime,
    "get_vendor": lambda: ("wiretwin", (0, 1, 0)),
}

_CLASSES: dict[str, Any] = {
    "BottomType": BottomType,
    "Cartcomm": topology.Cartcomm,
    "Comm": comm.Comm,
    "Datatype": datatype.Datatype,
    "Errhandler": comm.Errhandler,
    "Exception": failure.MPIException,
    "Group": group.Group,
    "Intercomm": comm.Intercomm,
    "InPlaceType": InPlaceType,
    "Intracomm": comm.Intracomm,
    "Message": request.Message,
    "Op": ops.Op,
    "Pickle": Pickle,
    "Prequest": request.Prequest,
    "Request": request.Request,
    "Status": Status,
    "Topocomm": topology.Topocomm,
}

_OBJECTS: dict[str, Any] = {
    "BOTTOM": BOTTOM,
    "COMM_NULL": comm.COMM_NULL,
    "COMM_SELF": comm.COMM_SELF,
    "COMM_WORLD": comm.COMM_WORLD,
    "ERRHANDLER_NULL": comm.ERRHANDLER_NULL,
    "ERRORS_ABORT": comm.ERRORS_ABORT,
    "ERRORS_ARE_FATAL": comm.ERRORS_ARE_FATAL,
    "ERRORS_RETURN": comm.ERRORS_RETURN,
    "GROUP_EMPTY": group.GROUP_EMPTY,
    "GROUP_NULL": group.GROUP_NULL,
    "INFO_NULL": None,
    "IN_PLACE": IN_PLACE,
    "MESSAGE_NO_PROC": request.MESSAGE_NO_PROC,
    "MESSAGE_NULL": request.MESSAGE_NULL,
    "REQUEST_NULL": request.REQUEST_NULL,
    "_typedict": datatype.TYPEDICT,
    "pickle": pickle,
}


class _Rc(types.ModuleType):
    """`mpi4py.rc`: settings; those that change what a simulation does are rejected."""

    def __init__(self) -> None:
        super().__init__("mpi4py.rc")
        self.__dict__.update(
            initialize=True,
            threads=True,
            thread_level="multiple",
            finalize=None,
            fast_reduce=True,
            recv_mprobe=True,
            irecv_bufsz=32768,
            errors="exception",
        )

    def __call__(self, **settings: Any) -> None:
        for name, value in settings.items():
            if name not in self.__dict__:
                raise TypeError(f"unexpected argument {name!r}")
            setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        free = name in ("threads", "thread_level", "finalize", "initialize") or name.startswith("__")
        if not free and value != self.__dict__.get(name):
            failure.refuse(f"mpi4py.rc.{name} = {value!r}", f"it stays {self.__dict__.get(name)!r}")
        super().__setattr__(name, value)


def _package_missing(name: str) -> Any:
    if name in ("run", "bench", "futures", "util", "profile", "get_config", "get_include"):
        failure.refuse(f"mpi4py.{name}", "mpi4py.MPI is")
    raise AttributeError(f"module 'mpi4py' has no attribute {name!r}")


@lru_cache(maxsize=1)
def modules() -> dict[str, types.ModuleType]:
    """Return `mpi4py`, `mpi4py.MPI`, `mpi4py.rc` and `mpi4py.typing`.

    They are made once: installed packages that were imported by an earlier simulation of this
    process hold on to them.
    """
    mpi = types.ModuleType("mpi4py.MPI", "Message Passing Interface (simulated).")
    contents: dict[str, Any] = {**constants.INTEGERS, **datatype.PREDEFINED, **ops.OPS}
    contents |= _FUNCTIONS | _CLASSES | _OBJECTS
    for name, function in _FUNCTIONS.items():
        function.__name__ = name
    for kind in _CLASSES.values():
        kind.__module__ = "mpi4py.MPI"
    mpi.__dict__.update(contents)
    mpi.__dict__["__getattr__"] = missing_from_module
    package = types.ModuleType("mpi4py", "The simulated mpi4py of wiretwin.")
    rc = _Rc()
    typing = typing_module()
    package.__dict__.update(__version__=_VERSION, __path__=[], MPI=mpi, rc=rc, __getattr__=_package_missing)
    package.__dict__["typing"] = typing
    return {"mpi4py": package, "mpi4py.MPI": mpi, "mpi4py.rc": rc, "mpi4py.typing": typing}
