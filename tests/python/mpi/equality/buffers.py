"""Buffers and datatypes."""

import array
import pickle

import numpy as np
from common import case, failing, ring
from mpi4py import MPI


@case
def buffer_specs(comm, say):
    after, before = ring(comm)

    def swap(out, into):
        request = comm.Irecv(into, before)
        comm.Send(out, after)
        request.Wait()

    data = np.arange(8, dtype="d")
    for spec in (
        lambda a: a,
        lambda a: [a, MPI.DOUBLE],
        lambda a: [a, 4],
        lambda a: [a, 4, MPI.DOUBLE],
        lambda a: [a, (3, 2), MPI.DOUBLE],
        lambda a: [a, (3, 2)],
        lambda a: [a, 2, 5, MPI.DOUBLE],
        lambda a: (a, "d"),
        lambda a: [a, "f8"],
        lambda a: [a.view("u1"), MPI.BYTE],
    ):
        room = np.full(8, -1.0)
        swap(spec(data), spec(room))
        say(room.tolist())
    room = bytearray(5)
    swap(b"hello", room)
    say(bytes(room))
    room = array.array("i", [0] * 3)
    swap(array.array("i", [7, 8, 9]), room)
    say(room.tolist())
    room = np.zeros((2, 3), order="F")
    swap(np.arange(6.0).reshape(2, 3, order="F"), room)
    say(room.tolist())
    room = np.zeros((0, 3))
    swap(np.zeros((0, 3)), room)
    for dtype in ("?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8", "c16", "g"):
        room = np.zeros(3, dtype)
        swap(np.array([0, 1, 2]).astype(dtype), room)
        say(dtype, room.tolist())


@case
def buffer_errors(comm, say):
    a = np.zeros(4)
    say(failing(lambda: comm.Send([a, -1], 0)))
    say(failing(lambda: comm.Send([a], 0)))
    say(failing(lambda: comm.Send([a, 1, 2, MPI.DOUBLE, 3], 0)))
    say(failing(lambda: comm.Send(3, 0)))
    say(failing(lambda: comm.Send([a, (1, 9), MPI.DOUBLE], 0)))
    say(failing(lambda: comm.Send([a, (1, -1), MPI.DOUBLE], 0)))
    say(failing(lambda: comm.Send([np.zeros(3, "u1"), MPI.DOUBLE], 0)))
    say(failing(lambda: comm.Send([a, "nonsense"], 0)))
    say(failing(lambda: comm.Send([a, MPI.DATATYPE_NULL], 0)))
    say(failing(lambda: comm.Send([a, MPI.DOUBLE.Create_contiguous(2)], 0)))
    say(failing(lambda: comm.Recv(b"abc", 0)))
    say(failing(lambda: comm.Allreduce(a, np.zeros(3))))
    say(failing(lambda: comm.Allreduce(a, np.zeros(4, "i"))))
    say(failing(lambda: comm.Allreduce(a, np.zeros(4), MPI.BAND)))
    say(failing(lambda: comm.Allgatherv(a, [np.zeros(4), [1] * (comm.size + 1)])))


@case
def call_errors(comm, say):
    a = np.zeros(4)
    say(failing(lambda: comm.Send(a, comm.size)))
    say(failing(lambda: comm.Send(a, -7)))
    say(failing(lambda: comm.Send(a, 0, -3)))
    say(failing(lambda: comm.Send(a, 0, MPI.COMM_WORLD.Get_attr(MPI.TAG_UB) + 1)))
    say(failing(lambda: comm.Recv(a, comm.size)))
    say(failing(lambda: comm.recv(source=comm.size)))
    say(failing(lambda: comm.send(1, dest=comm.size)))
    say(failing(lambda: comm.Bcast(a, comm.size)))
    say(failing(lambda: comm.bcast(1, comm.size)))
    say(failing(lambda: comm.reduce(1, root=comm.size)))
    say(failing(lambda: comm.Create_cart([comm.size + 1])))
    say(failing(lambda: comm.Get_group().Incl([comm.size])))
    say(failing(lambda: MPI.COMM_NULL.Get_rank()))
    say(failing(lambda: MPI.COMM_WORLD.Free()))
    say(failing(lambda: MPI.INT.Free()))
    say(failing(lambda: MPI.SUM.Free()))
    say(failing(lambda: comm.scatter([1] * (comm.size + 1)) if comm.size == 1 else None))
    say(failing(lambda: MPI.Compute_dims(6, [4, 0])))
    say(str(MPI.Exception(MPI.ERR_RANK)), int(MPI.Exception(MPI.ERR_TAG)), repr(MPI.Exception(3)))


@case
def truncation(comm, say):
    after, before = ring(comm)
    request = comm.Isend(np.arange(4.0), after)
    room = np.zeros(2)
    say(failing(lambda: comm.Recv(room, before)))
    request.Wait()
    request = comm.isend("x" * 40000, after)
    say(failing(lambda: comm.irecv(source=before).wait()))
    request.wait()
    comm.Barrier()
    request = comm.Isend(np.arange(2.0), after)
    room = np.full(4, -1.0)
    status = MPI.Status()
    comm.Recv(room, before, status=status)
    request.Wait()
    say(room.tolist(), status.Get_count(MPI.DOUBLE), status.Get_elements(MPI.DOUBLE))


@case
def datatypes(comm, say):
    after, before = ring(comm)
    a = np.arange(48, dtype="d").reshape(6, 8)

    def swap(out, into):
        request = comm.Irecv(into, before)
        comm.Send(out, after)
        status = MPI.Status()
        request.Wait(status)
        return status

    types = {
        "contiguous": MPI.DOUBLE.Create_contiguous(3),
        "vector": MPI.DOUBLE.Create_vector(3, 2, 8),
        "hvector": MPI.DOUBLE.Create_hvector(2, 1, 72),
        "indexed": MPI.DOUBLE.Create_indexed([1, 3], [5, 0]),
        "hindexed": MPI.DOUBLE.Create_hindexed([2, 1], [8, 64]),
        "indexed_block": MPI.DOUBLE.Create_indexed_block(2, [6, 1]),
        "subarray": MPI.DOUBLE.Create_subarray([6, 8], [2, 3], [1, 2]),
        "subarray_f": MPI.DOUBLE.Create_subarray([8, 6], [3, 2], [2, 1], MPI.ORDER_F),
        "column": MPI.DOUBLE.Create_vector(6, 1, 8).Create_resized(0, 8),
        "nested": MPI.DOUBLE.Create_vector(2, 1, 2).Create_vector(2, 1, 2),
        "struct": MPI.Datatype.Create_struct([1, 2], [0, 8], [MPI.INT, MPI.DOUBLE]),
        "padded": MPI.Datatype.Create_struct([1, 1], [0, 8], [MPI.DOUBLE, MPI.CHAR]),
    }
    for name, datatype in types.items():
        datatype.Commit()
        room = np.full((6, 8), -1.0)
        status = swap([a + comm.rank, 1, datatype], [room, 1, datatype])
        say(
            name,
            datatype.size,
            datatype.extent,
            datatype.lb,
            datatype.ub,
            datatype.true_lb,
            datatype.true_extent,
        )
        say(room.tolist(), status.Get_count(datatype), status.Get_elements(datatype), status.count)
    # Packed on one side only; several of them; counts by the type's extent.
    column = types["column"]
    room = np.zeros(12)
    swap([a, 2, column], room)
    say(room.tolist())
    into = np.zeros((6, 8))
    swap(np.arange(12.0), [into, 2, column])
    say(into.tolist())
    swap([a, types["contiguous"]], [into, types["contiguous"]])
    say(into.tolist())
    status = swap([a, 5, MPI.DOUBLE], [into, 2, types["contiguous"]])
    say(status.Get_count(types["contiguous"]), status.Get_elements(types["contiguous"]))
    for datatype in types.values():
        datatype.Free()
    say(types["vector"] == MPI.DATATYPE_NULL, bool(types["vector"]))


@case
def datatype_names(comm, say):
    for name in sorted(dir(MPI)):
        value = getattr(MPI, name) if name.isupper() or "_" in name else None
        if isinstance(value, MPI.Datatype) and value != MPI.DATATYPE_NULL and name in KNOWN_TYPES:
            say(name, value.Get_name(), value.Get_size(), value.Get_extent(), value.typestr, value.typechar)
    say(MPI.DOUBLE == MPI.DOUBLE, MPI.DOUBLE == MPI.INT, MPI.DOUBLE.is_predefined, MPI.INT.tocode())
    say(MPI.Datatype.fromcode("d").Get_name(), pickle.loads(pickle.dumps(MPI.INT)) == MPI.INT)


KNOWN_TYPES = {
    "BYTE",
    "CHAR",
    "SHORT",
    "INT",
    "LONG",
    "LONG_LONG",
    "UNSIGNED",
    "UNSIGNED_LONG",
    "FLOAT",
    "DOUBLE",
    "LONG_DOUBLE",
    "C_BOOL",
    "INT8_T",
    "INT16_T",
    "INT32_T",
    "INT64_T",
    "UINT8_T",
    "UINT64_T",
    "C_COMPLEX",
    "C_DOUBLE_COMPLEX",
    "DOUBLE_INT",
    "INT_INT",
    "FLOAT_INT",
    "LONG_INT",
    "SHORT_INT",
    "AINT",
    "PACKED",
    "INTEGER",
    "REAL",
    "DOUBLE_PRECISION",
    "LOGICAL",
    "BOOL",
    "FLOAT64_T",
}


@case
def bottom(comm, say):
    after, before = ring(comm)
    a, b = np.arange(3.0) + comm.rank, np.array([comm.rank], "i")
    x, y = np.zeros(3), np.zeros(1, "i")

    def joint(first, second):
        places = [MPI.Get_address(first), MPI.Get_address(second)]
        return MPI.Datatype.Create_struct([3, 1], places, [MPI.DOUBLE, MPI.INT]).Commit()

    out, into = joint(a, b), joint(x, y)
    request = comm.Irecv([MPI.BOTTOM, 1, into], before)
    comm.Send([MPI.BOTTOM, 1, out], after)
    request.Wait()
    say(x.tolist(), y.tolist())
