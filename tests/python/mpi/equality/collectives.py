"""Collective calls."""

import pickle

import numpy as np
from common import case, ring
from mpi4py import MPI


@case
def barrier_bcast(comm, say):
    comm.Barrier()
    comm.barrier()
    for root in range(comm.size):
        for count in (1, 7, 3000):
            data = np.arange(count, dtype="d") * (comm.rank + 1) if comm.rank == root else np.zeros(count)
            comm.Bcast(data, root)
            say(data.sum())
        say(comm.bcast({"from": comm.rank} if comm.rank == root else None, root))
    column = MPI.INT.Create_vector(3, 1, 3).Commit()
    data = np.full((3, 3), comm.rank, "i")
    comm.Bcast([data, 1, column], comm.size - 1)
    say(data.tolist())
    comm.Bcast([np.empty(0), MPI.DOUBLE])


@case
def gather_scatter(comm, say):
    n = comm.size
    for root in {0, n - 1}:
        mine = np.arange(3, dtype="i") + 10 * comm.rank
        room = np.full((n, 3), -1, "i") if comm.rank == root else None
        comm.Gather(mine, room, root)
        say(None if room is None else room.tolist())
        back = np.zeros(3, "i")
        comm.Scatter(room + 1 if room is not None else None, back, root)
        say(back.tolist())
        say(
            comm.gather((comm.rank, "g"), root),
            comm.scatter([k * k for k in range(n)] if comm.rank == root else None, root),
        )
        # In place, at the root.
        if comm.rank == root:
            room = np.zeros((n, 2))
            room[root] = [7, 8]
            comm.Gather(MPI.IN_PLACE, room, root)
            say(room.tolist())
            comm.Scatter(room, MPI.IN_PLACE, root)
        else:
            comm.Gather(np.full(2, comm.rank, "d"), None, root)
            back = np.zeros(2)
            comm.Scatter(None, back, root)
            say(back.tolist())


@case
def uneven_blocks(comm, say):
    """A root that sends less than it has room for, and a last rank with more room than it is sent."""
    n, last = comm.size, comm.size - 1
    room = np.full((n, 3), -1.0) if comm.rank == 0 else None
    comm.Gather(np.arange(2.0 if comm.rank == 0 else 3.0) + 10 * comm.rank, room, 0)
    say(None if room is None else room.tolist())
    back = np.full(5 if comm.rank == last else 2, -1.0)
    comm.Scatter(np.arange(2.0 * n) if comm.rank == 0 else None, back, 0)
    say(back[:2].tolist())  # what a library leaves behind them differs


@case
def varying(comm, say):
    n, rank = comm.size, comm.rank
    counts = [k + 1 for k in range(n)]
    starts = [sum(counts[:k]) + k for k in range(n)]  # with gaps
    mine = np.full(rank + 1, rank, "d")
    total = sum(counts)
    room = np.full(total + n, -1.0)
    comm.Gatherv(mine, [room, counts, starts, MPI.DOUBLE] if rank == 0 else None, 0)
    say(room.tolist())
    room = np.full(total, -1.0)
    comm.Gatherv(mine, [room, counts] if rank == n - 1 else None, n - 1)
    say(room.tolist())
    comm.Allgatherv(mine, [room, counts, MPI.DOUBLE])
    say(room.tolist())
    room = np.full(total + n, -1.0)
    comm.Allgatherv(mine, [room, (counts, starts), MPI.DOUBLE])
    say(room.tolist())
    back = np.zeros(rank + 1)
    comm.Scatterv([np.arange(total, dtype="d"), counts] if rank == 0 else None, back, 0)
    say(back.tolist())
    comm.Scatterv([np.arange(total + n, dtype="d"), (counts, starts)] if rank == 0 else None, back, 0)
    say(back.tolist())
    room = np.zeros(total)
    room[sum(counts[:rank]) : sum(counts[: rank + 1])] = rank + 1
    comm.Allgatherv(MPI.IN_PLACE, [room, counts])
    say(room.tolist())
    zero = [0] * n
    comm.Allgatherv(np.empty(0), [np.empty(0), zero])
    for call in (comm.Allreduce, comm.Scan, comm.Exscan, comm.Reduce_scatter_block):
        call(np.empty(0), np.empty(0))
    only = np.full(2 if rank == 0 else 0, -1.0)
    comm.Reduce_scatter(np.arange(2.0), only, [2] + [0] * (n - 1))
    say(only.tolist())
    send = [(rank + peer) % 3 for peer in range(n)]
    room = np.full(sum(send), -1, "i8")
    comm.Alltoallv([np.arange(sum(send)) + 100 * rank, send], [room, send])
    say(room.tolist())
    automatic = np.zeros(7)
    comm.Scatterv(np.arange(7.0) if rank == 0 else None, automatic[: 7 // n + (7 % n > rank)], 0)
    say(automatic.tolist())


@case
def allgather_alltoall(comm, say):
    n, rank = comm.size, comm.rank
    for count in (1, 3, 2000):
        room = np.zeros((n, count), "i")
        comm.Allgather(np.full(count, rank, "i"), room)
        say(room.sum(axis=1).tolist())
        out = np.repeat(np.arange(n) + 10 * rank, count).astype("i")
        comm.Alltoall(out, room)
        say(room[:, 0].tolist(), room.sum())
    room = np.full((n, 2), -1.0)
    room[rank] = rank
    comm.Allgather(MPI.IN_PLACE, room)
    say(room.tolist())
    room = np.arange(n, dtype="i") + 10 * rank
    comm.Alltoall(MPI.IN_PLACE, room)
    say(room.tolist())
    say(comm.allgather({"r": rank}), comm.alltoall([(rank, k) for k in range(n)]), comm.alltoall(None))


@case
def reductions(comm, say):
    n, rank = comm.size, comm.rank
    for op in ("SUM", "PROD", "MAX", "MIN", "LAND", "LOR", "LXOR", "BAND", "BOR", "BXOR"):
        for dtype in {"B": ("i4", "u1", "i8"), "L": ("i4", "i8")}.get(op[0], ("i4", "i8", "f8")):
            data = np.array([rank + 1, 3 - rank, rank % 2, 5, 0]).astype(dtype)
            spec = [data, MPI.UINT8_T] if dtype == "u1" else data
            room = np.zeros(5, dtype)
            into = [room, MPI.UINT8_T] if dtype == "u1" else room
            comm.Allreduce(spec, into, getattr(MPI, op))
            say(op, dtype, room.tolist())
    z = np.array([1 + 1j * rank, 2.0])
    room = np.zeros(2, "c16")
    comm.Allreduce(z, room)
    say(room.tolist())
    flags = np.array([rank == 0, True])
    both = np.zeros(2, "?")
    comm.Allreduce(flags, both, MPI.LAND)
    say(both.tolist())
    for root in {0, n - 1}:
        room = np.zeros(3) if rank == root else None
        comm.Reduce(np.arange(3.0) + rank, room, MPI.SUM, root)
        say(None if room is None else room.tolist())
        if rank == root:
            room = np.full(2, rank, "i")
            comm.Reduce(MPI.IN_PLACE, room, MPI.MAX, root)
            say(room.tolist())
        else:
            comm.Reduce(np.full(2, rank, "i"), None, MPI.MAX, root)
    room = np.full(3, rank + 1.0)
    comm.Allreduce(MPI.IN_PLACE, room, MPI.PROD)
    say(room.tolist())
    pairs = np.zeros(2, [("v", "f8"), ("i", "i4"), ("pad", "i4")])
    pairs["v"] = [abs(rank - 1), -rank % 3]
    pairs["i"] = rank
    best = np.zeros_like(pairs)
    for op in (MPI.MAXLOC, MPI.MINLOC):
        comm.Allreduce([pairs, 2, MPI.DOUBLE_INT], [best, 2, MPI.DOUBLE_INT], op)
        say(best["v"].tolist(), best["i"].tolist())
    two = np.array([[rank % 2, rank], [5, rank]], "i")
    room = np.zeros_like(two)
    comm.Allreduce([two, 2, MPI.INT_INT], [room, 2, MPI.INT_INT], MPI.MAXLOC)
    say(room.tolist())


@case
def float_order(comm, say):
    """The order of additions shows in the last bits."""
    n, rank = comm.size, comm.rank
    for count in (1, 100, 5000, 70000):
        rng = np.random.RandomState(rank + 1)
        data = rng.rand(count) * 10.0 ** rng.randint(-8, 8, count)
        room = np.zeros(count)
        comm.Allreduce(data, room)
        say("allreduce", count, room.tobytes().hex()[-400:], float(room.sum()).hex())
        for root in {0, n - 1}:
            comm.Reduce(data, room if rank == root else None, MPI.SUM, root)
            if rank == root:
                say("reduce", count, root, float(room.sum()).hex())
        comm.Scan(data, room)
        say("scan", float(room.sum()).hex())
        room[:] = 0
        comm.Exscan(data, room)
        say("exscan", float(room.sum()).hex() if rank else "")
        comm.Reduce_scatter_block(np.tile(data, n), room)
        say("reduce_scatter_block", float(room.sum()).hex())
    say(
        comm.allreduce(0.1 * (rank + 1) ** 3), comm.scan(0.1 * (rank + 1) ** 3), comm.exscan(0.1 * (rank + 1))
    )


@case
def scans(comm, say):
    rank, n = comm.rank, comm.size
    room = np.zeros(3, "i")
    comm.Scan(np.array([1, rank, 2], "i"), room)
    say(room.tolist())
    room = np.full(2, -1.0)
    comm.Exscan(np.array([rank + 1.0, 2]), room)
    say(room.tolist() if rank else "")
    room = np.array([rank + 1.0])
    comm.Scan(MPI.IN_PLACE, room, MPI.PROD)
    say(room.tolist())
    say(comm.scan(rank + 1), comm.exscan([rank]), comm.scan("abcdefgh"[rank]), comm.exscan(rank, MPI.MAX))
    room = np.zeros(2, "i")
    comm.Reduce_scatter_block(np.arange(2 * n, dtype="i") + rank, room)
    say(room.tolist())
    counts = [k + 1 for k in range(n)]
    room = np.zeros(rank + 1, "i")
    comm.Reduce_scatter(np.arange(sum(counts), dtype="i") * (rank + 1), room, counts)
    say(room.tolist())
    comm.Reduce_scatter(np.ones(sum(counts), "i"), room)
    say(room.tolist())


@case
def object_reductions(comm, say):
    rank, n = comm.rank, comm.size
    say(comm.allreduce(rank + 1), comm.allreduce([rank]), comm.allreduce({rank}, MPI.BOR))
    for root in range(n):
        say(
            comm.reduce((rank,), root=root),
            comm.reduce("abcdefgh"[rank], op=lambda a, b: f"({a}{b})", root=root),
        )
    say(comm.allreduce((rank % 2, rank), MPI.MAXLOC), comm.allreduce((rank % 2, rank), MPI.MINLOC))
    for op in (MPI.MAX, MPI.MIN, MPI.PROD, MPI.LAND, MPI.LOR, MPI.LXOR, MPI.BAND, MPI.BXOR):
        say(comm.allreduce(rank + 3, op))
    say(comm.allreduce(np.arange(2) + rank).tolist())


@case
def own_operation(comm, say):
    rank = comm.rank

    def longest(left, right, datatype):
        a, b = np.frombuffer(left, "i4"), np.frombuffer(right, "i4")
        b[:] = np.where(np.abs(a) >= np.abs(b), a, b)

    op = MPI.Op.Create(longest, commute=True)
    room = np.zeros(3, "i")
    comm.Allreduce(np.array([rank, -rank, 3 - rank], "i"), room, op)
    say(room.tolist(), op.Is_commutative(), MPI.SUM.Is_commutative(), op.is_predefined)
    op.Free()

    def compose(left, right, datatype):  # matrices: does not commute
        a = np.frombuffer(left, "i4").reshape(-1, 2, 2)
        b = np.frombuffer(right, "i4").reshape(-1, 2, 2)
        b[:] = a @ b

    op = MPI.Op.Create(compose, commute=False)
    matrix = np.array([1, rank + 1, 0, 1 + rank % 2], "i")
    room = np.zeros(4, "i")
    comm.Allreduce(matrix, room, op)
    say(room.tolist())
    comm.Scan(matrix, room, op)
    say(room.tolist())
    comm.Reduce(matrix, room if rank == comm.size - 1 else None, op, comm.size - 1)
    say(room.tolist())
    op.Free()
    a, b = np.array([1, 2], "i"), np.array([3, 4], "i")
    MPI.SUM.Reduce_local(a, b)
    say(b.tolist(), MPI.SUM(2, 3), MPI.MAX(2, 3), pickle.loads(pickle.dumps(MPI.SUM)) == MPI.SUM)


@case
def started_collectives(comm, say):
    rank, n = comm.rank, comm.size
    comm.Ibarrier().Wait()
    data = np.arange(4.0) * (rank == 0)
    room = np.zeros(4)
    total = np.zeros(4)
    every = np.zeros((n, 1), "i")
    requests = [comm.Ibcast(data), comm.Iallreduce(np.full(4, rank, "d"), total)]
    requests.append(comm.Iallgather(np.array([rank], "i"), every))
    after, before = ring(comm)
    comm.Sendrecv(np.full(4, rank, "d"), after, 0, room, before, 0)
    MPI.Request.Waitall(requests)
    say(data.tolist(), room.tolist(), total.tolist(), every.tolist())
    out, into = np.arange(n, dtype="i") + 10 * rank, np.zeros(n, "i")
    request = comm.Ialltoall(out, into)
    while not request.Test():
        pass
    say(into.tolist())
    request = comm.Ibarrier()
    comm.Barrier()
    request.Wait()
