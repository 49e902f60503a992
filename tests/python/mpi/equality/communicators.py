"""Communicators, groups, grids, the environment."""

import pickle

from common import case, failing, ring
from mpi4py import MPI


@case
def split_dup(comm, say):
    rank, n = comm.rank, comm.size
    part = comm.Split(rank % 2, -rank)
    say(part.rank, part.size, part.allgather(rank), part.Get_name())
    none = comm.Split(MPI.UNDEFINED if rank == 0 else 1, rank)
    say(none == MPI.COMM_NULL, bool(none), none.size if none else None)
    copy = comm.Dup()
    after, before = ring(comm)
    # Messages of two communicators do not meet.
    requests = [comm.isend("world", after, 1), copy.isend("copy", after, 1)]
    say(copy.recv(source=before, tag=1), comm.recv(source=before, tag=1))
    MPI.Request.waitall(requests)
    say(copy.Compare(comm) == MPI.CONGRUENT, comm.Compare(comm) == MPI.IDENT, copy == comm)
    copy.Free()
    say(copy == MPI.COMM_NULL)
    inner = part.Split(0, part.rank).Dup()
    say(inner.allreduce(rank))
    group = comm.Get_group().Incl(list(range(0, n, 2)))
    some = comm.Create(group)
    say(some.allgather(rank) if some else None)
    some = comm.Create_group(group) if rank % 2 == 0 else None
    say(some.allgather(rank) if some else None)
    if none:
        none.Free()
    comm.Set_name("mine") if comm != MPI.COMM_WORLD else None
    near = comm.Split_type(MPI.COMM_TYPE_SHARED)
    say(near.size, MPI.COMM_SELF.Dup().size)


@case
def groups(comm, say):
    n = comm.size
    whole = comm.Get_group()
    say(whole.size, whole.rank == comm.rank)
    low = whole.Range_incl([(0, (n - 1) // 2, 1)])
    high = MPI.Group.Difference(whole, low)
    say(low.size, high.size, MPI.Group.Union(low, high).Compare(whole) == MPI.IDENT)
    say(MPI.Group.Intersection(low, high).size, high.Get_rank() == MPI.UNDEFINED, whole.Excl([0]).size)
    say(low.Translate_ranks(list(range(low.size)), whole), whole.Translate_ranks([n - 1], low))
    backwards = whole.Range_incl([(n - 1, 0, -1)])
    say(backwards.Compare(whole) == MPI.SIMILAR, backwards.rank, whole.Range_excl([(0, n - 1, 1)]).size)


@case
def cartesian(comm, say):
    n, rank = comm.size, comm.rank
    dims = MPI.Compute_dims(n, 2)
    cart = comm.Create_cart(dims, [True, False])
    say(dims, cart.Get_topo(), cart.Get_coords(cart.rank), cart.Get_dim(), cart.Get_topology() == MPI.CART)
    say([cart.Shift(axis, step) for axis in (0, 1) for step in (1, -1, 2, 0)])
    say(
        [cart.Get_coords(k) for k in range(cart.size)],
        cart.Get_cart_rank([-1, 0]),
        cart.dims,
        cart.periods,
        cart.coords,
    )
    line = cart.Sub([True, False])
    say(line.rank, line.size, line.dims, line.allgather(rank))
    source, dest = cart.Shift(0, 1)
    say(cart.sendrecv(rank, dest, source=source))
    source, dest = cart.Shift(1, 1)
    say(cart.sendrecv(rank, dest, source=source))
    small = comm.Create_cart([1, 1])
    say(small == MPI.COMM_NULL, cart.Dup().Get_topology() == MPI.CART)
    say(failing(lambda: cart.Get_coords(n)), failing(lambda: cart.Get_cart_rank([0, 99])))
    say(failing(lambda: cart.Shift(2, 1)))
    say(
        [
            MPI.Compute_dims(k, d)
            for k in (1, 2, 3, 4, 6, 7, 8, 12, 16, 24, 30, 36, 48, 60, 64, 100)
            for d in (1, 2, 3)
        ]
    )
    say(MPI.Compute_dims(12, [0, 3]), MPI.Compute_dims(24, [0, 2, 0]))


@case
def environment(comm, say):
    say(MPI.Is_initialized(), MPI.Is_finalized(), comm.Get_name(), comm.Is_inter(), comm.Is_intra())
    say(MPI.Get_version()[0], MPI.Query_thread() >= MPI.THREAD_FUNNELED, MPI.Is_thread_main())
    begin = MPI.Wtime()
    comm.Barrier()
    say(MPI.Wtime() >= begin, 0 < MPI.Wtick() < 1e-3, comm.Get_attr(MPI.TAG_UB))
    say(repr(MPI.IN_PLACE), repr(MPI.BOTTOM), MPI.COMM_SELF.name)
    say(
        comm.rank == comm.Get_rank(),
        comm.size == comm.Get_size(),
        isinstance(comm, MPI.Intracomm),
        isinstance(comm, MPI.Comm),
    )
    status = MPI.Status()
    say(status.source, status.tag, status.error, status.count, status.Is_cancelled())
    say(MPI.ANY_SOURCE, MPI.ANY_TAG, MPI.PROC_NULL, MPI.UNDEFINED, MPI.ERR_TRUNCATE, MPI.SUCCESS)
    say(MPI.Get_error_string(MPI.ERR_TRUNCATE), MPI.Get_error_class(MPI.ERR_RANK))
    say(pickle.loads(MPI.pickle.dumps([1, 2])), MPI.pickle.loads(pickle.dumps("x")))
