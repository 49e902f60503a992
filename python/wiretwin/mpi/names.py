"""The names of mpi4py 4.1 that are not simulated, so that each is rejected by its name."""

from __future__ import annotations

from typing import NoReturn, TypeVar

from .failure import UnsupportedAttributeError, refuse

_Class = TypeVar("_Class", bound=type)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


MODULE = _words("""
Add_error_class Add_error_code Add_error_string Alloc_mem BFLOAT16_T BUFFER_AUTOMATIC
BufferAutomaticType COMBINER_DARRAY COMBINER_F90_COMPLEX COMBINER_F90_INTEGER COMBINER_F90_REAL
COMBINER_VALUE_INDEX COMPLEX32 COMPLEX4 CXX_DOUBLE_COMPLEX CXX_FLOAT_COMPLEX CXX_LONG_DOUBLE_COMPLEX
Close_port DISPLACEMENT_CURRENT DISP_CUR DISTRIBUTE_BLOCK DISTRIBUTE_CYCLIC DISTRIBUTE_DFLT_DARG
DISTRIBUTE_NONE Distgraphcomm FILE_NULL F_ERROR F_SOURCE F_STATUS_SIZE F_TAG File Flush_buffer
Free_mem Get_abi_fortran_info Get_abi_info Get_abi_version Get_hw_resource_info Graphcomm Grequest
INFO_ENV INTEGER16 Iflush_buffer Info LOCK_EXCLUSIVE LOCK_SHARED LOGICAL1 LOGICAL16
LOGICAL2 LOGICAL4 LOGICAL8 LONG_DOUBLE_INT Lookup_name MODE_APPEND MODE_CREATE MODE_DELETE_ON_CLOSE
MODE_EXCL MODE_NOCHECK MODE_NOPRECEDE MODE_NOPUT MODE_NOSTORE MODE_NOSUCCEED MODE_RDONLY MODE_RDWR
MODE_SEQUENTIAL MODE_UNIQUE_OPEN MODE_WRONLY Open_port Publish_name REAL16 REAL2 Register_datarep
Remove_error_class Remove_error_code Remove_error_string SEEK_CUR SEEK_END SEEK_SET SESSION_NULL
Session UNWEIGHTED Unpublish_name WEIGHTS_EMPTY WIN_BASE WIN_CREATE_FLAVOR WIN_DISP_UNIT WIN_FLAVOR
WIN_FLAVOR_ALLOCATE WIN_FLAVOR_CREATE WIN_FLAVOR_DYNAMIC WIN_FLAVOR_SHARED WIN_MODEL WIN_NULL
WIN_SEPARATE WIN_SIZE WIN_UNIFIED Win _addressof _comm_lock _comm_lock_table _commctx_inter
_commctx_intra _datatype_create _datatype_decode _handleof _set_abort_status _sizeof _typealign
_typecode _typedict_c _typedict_f buffer memory
""")
"""Names of `mpi4py.MPI`."""

METHODS: dict[str, frozenset[str]] = {
    "Comm": _words("""
Ack_failed Agree Allgather_init Allgatherv_init Allreduce_init Alltoall_init Alltoallv_init
Alltoallw Alltoallw_init Barrier_init Bcast_init Call_errhandler Create_errhandler Dup_with_info
Flush_buffer Gather_init Gatherv_init Get_failed Get_info Get_parent Iagree Iallgatherv Ialltoallw
Idup Idup_with_info Iflush_buffer Igather Igatherv Ireduce Ireduce_scatter Ireduce_scatter_block
Is_revoked Iscatter Iscatterv Isendrecv Isendrecv_replace Ishrink Join Precv_init Psend_init
Reduce_init Reduce_scatter_block_init Reduce_scatter_init Revoke Scatter_init Scatterv_init Set_info
Shrink f2py fromhandle fromint handle info py2f toint
"""),
    "Datatype": _words("""
Create_darray Create_f90_complex Create_f90_integer Create_f90_real Create_keyval Delete_attr
Free_keyval Get_attr Get_contents Get_envelope Get_value_index Match_size Pack Pack_external
Pack_external_size Set_attr Unpack Unpack_external contents decode envelope f2py fromhandle fromint
handle py2f toint
"""),
    "Errhandler": _words("""
f2py free fromhandle fromint handle py2f toint
"""),
    "Group": _words("""
Create_from_session_pset f2py fromhandle fromint handle py2f toint
"""),
    "Intracomm": _words("""
Accept Connect Create_dist_graph Create_dist_graph_adjacent Create_from_group Create_graph
Create_intercomm Exscan_init Graph_map Iexscan Iscan Scan_init Spawn Spawn_multiple
"""),
    "Intercomm": _words("""
Create_from_groups Create_group Get_remote_group Get_remote_size Merge remote_group remote_size
"""),
    "Message": _words("""
f2py free fromhandle fromint handle py2f toint
"""),
    "Op": _words("""
f2py fromhandle fromint handle py2f toint
"""),
    "Pickle": _words("""
PROTOCOL THRESHOLD dumps_oob loads_oob
"""),
    "Prequest": _words("""
Parrived Pready Pready_list Pready_range
"""),
    "Request": _words("""
Get_status_all Get_status_any Get_status_some f2py fromhandle fromint get_status get_status_all
get_status_any get_status_some handle py2f toint
"""),
    "Status": _words("""
f2py py2f tomemory
"""),
    "Topocomm": _words("""
Ineighbor_allgather Ineighbor_allgatherv Ineighbor_alltoall Ineighbor_alltoallv Ineighbor_alltoallw
Neighbor_allgather Neighbor_allgather_init Neighbor_allgatherv Neighbor_allgatherv_init
Neighbor_alltoall Neighbor_alltoall_init Neighbor_alltoallv Neighbor_alltoallv_init
Neighbor_alltoallw Neighbor_alltoallw_init degrees indegree inedges inoutedges neighbor_allgather
neighbor_alltoall outdegree outedges
"""),
}
"""Names of the classes of `mpi4py.MPI`, without those that they inherit."""

_ADVICE = {
    "Win": "one-sided communication is not modelled; send messages",
    "File": "file input and output is not modelled; use Python's own",
    "Spawn": "the ranks of a program are fixed; start it with more of them",
    "Intercomm": "intercommunicators are not modelled; split COMM_WORLD",
    "Graphcomm": "graph topologies are not; Create_cart is",
    "Distgraphcomm": "graph topologies are not; Create_cart is",
}

_GENERAL = (
    "simulated are messages between two ranks, persistent requests, collective calls on buffers and "
    "objects, Split, Dup, Create, Create_cart, groups, derived datatypes"
)


class _Missing:
    """An attribute that objects in mpi4py have, and those here have not.

    A `__getattr__` would do the same, and make every look at any attribute of the class several times slower.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> NoReturn:
        name, advice = f"{owner.__name__}.{self._name}", _ADVICE.get(self._name, _GENERAL)
        if instance is None:
            raise UnsupportedAttributeError(f"{name} is not simulated; {advice}")
        refuse(name, advice)


def refusing(kind: _Class) -> _Class:
    """Let the objects of a class reject by name what mpi4py has and is not simulated (`UnsupportedError`)."""
    for name in METHODS[kind.__name__]:
        setattr(kind, name, _Missing(name))
    return kind


def refuse_name(name: str) -> NoReturn:
    """Reject a name of `mpi4py.MPI` that is not simulated (`UnsupportedError`)."""
    refuse(f"MPI.{name}", _ADVICE.get(name, _GENERAL))


def missing_from_module(name: str) -> NoReturn:
    """Reject a name of `mpi4py.MPI`.

    Raises
    ------
    UnsupportedError
        When mpi4py has it, and the simulated one does not.
    AttributeError
        When mpi4py does not have it either.
    """
    if name in MODULE:
        refuse_name(name)
    raise AttributeError(f"module 'mpi4py.MPI' has no attribute {name!r}")
