"""Messages between two ranks."""

import numpy as np
from common import case, failing, ring, text
from mpi4py import MPI


@case
def send_modes(comm, say):
    after, before = ring(comm)
    data = np.arange(5, dtype="d") + comm.rank
    room = np.zeros(5)
    status = MPI.Status()
    MPI.Attach_buffer(bytearray(4096))
    for k, name in enumerate(["Isend", "Issend", "Ibsend"]):
        request = getattr(comm, name)(data, after, k)
        comm.Recv(room, before, k, status)
        request.Wait()
        say(name, room.tolist(), text(status))
    for k, name in enumerate(["Send", "Bsend", "Ssend", "Rsend"]):
        request = comm.Irecv(room, before, 10 + k)
        comm.Barrier()
        if comm.size > 1 or name != "Ssend":
            getattr(comm, name)(data + k, after, 10 + k)
        else:
            comm.Isend(data + k, after, 10 + k).Wait()
        request.Wait(status)
        say(name, room.tolist(), text(status))
    MPI.Detach_buffer()


@case
def send_to_self(comm, say):
    room = np.zeros(3, "i")
    request = comm.Irecv(room, comm.rank, 4)
    comm.Send(np.array([1, 2, 3], "i"), comm.rank, 4)
    request.Wait()
    say(room.tolist())
    say(comm.sendrecv({"me": comm.rank}, comm.rank, 1, None, comm.rank, 1))
    own = MPI.COMM_SELF
    say(own.rank, own.size, own.allreduce(7), own.sendrecv("x", 0, source=0))


@case
def sendrecv(comm, say):
    after, before = ring(comm)
    status = MPI.Status()
    room = np.zeros(4, "i4")
    comm.Sendrecv(np.full(4, comm.rank, "i4"), after, 3, room, before, 3, status)
    say(room.tolist(), text(status), status.Get_count(MPI.INT))
    data = np.full(3, comm.rank, "f4")
    comm.Sendrecv_replace(data, after, 5, before, MPI.ANY_TAG, status)
    say(data.tolist(), text(status))
    say(comm.sendrecv([comm.rank, "é"], after, 0, None, before, 0))


@case
def proc_null(comm, say):
    room = np.ones(2)
    status = MPI.Status()
    comm.Send(room, MPI.PROC_NULL, 1)
    comm.Recv(room, MPI.PROC_NULL, 1, status)
    say(room.tolist(), status.source, status.tag, status.count)
    say(comm.recv(source=MPI.PROC_NULL), comm.sendrecv(1, MPI.PROC_NULL, source=MPI.PROC_NULL))
    request = comm.Irecv(room, MPI.PROC_NULL)
    request.Wait(status)
    say(text(status))
    say(comm.isend(1, MPI.PROC_NULL).wait(), comm.irecv(source=MPI.PROC_NULL).wait())
    say(comm.Iprobe(MPI.PROC_NULL), comm.Probe(MPI.PROC_NULL))


@case
def objects(comm, say):
    after, before = ring(comm)
    things = {"rank": comm.rank, "list": [1, 2.5, None], "array": np.arange(3), "big": "x" * 5000}
    request = comm.isend(things, after, 2)
    status = MPI.Status()
    got = comm.recv(source=before, tag=2, status=status)
    request.wait()
    say(got["rank"], got["list"], got["array"].tolist(), len(got["big"]), status.count)
    requests = [comm.issend(k, after, k) for k in range(4)]
    incoming = [comm.irecv(source=before, tag=k) for k in range(4)]
    say(MPI.Request.waitall(incoming))
    MPI.Request.Waitall(requests)
    request = comm.isend(None, after)
    say(comm.recv(source=before))
    request.Wait()


@case
def any_source(comm, say):
    if comm.rank == 0:
        status = MPI.Status()
        got = []
        for _ in range(2 * (comm.size - 1)):
            value = comm.recv(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=status)
            got.append((status.Get_source(), status.Get_tag(), value))
        say(sorted(got))
        # Messages of one sender do not overtake each other.
        say([[tag for source, tag, _ in got if source == rank] for rank in range(1, comm.size)])
    else:
        comm.send(comm.rank * 10, 0, tag=1)
        comm.send(comm.rank * 20, 0, tag=2)


@case
def tags_select(comm, say):
    after, before = ring(comm)
    requests = [comm.isend(k, after, tag=k) for k in range(3)]
    say([comm.recv(source=before, tag=k) for k in (2, 0, 1)])
    MPI.Request.Waitall(requests)


@case
def probe(comm, say):
    after, before = ring(comm)
    status = MPI.Status()
    request = comm.Isend(np.arange(6, dtype="i8"), after, 9)
    say(comm.Probe(before, MPI.ANY_TAG, status), text(status), status.Get_count(MPI.INT64_T))
    room = np.empty(status.Get_count(MPI.INT64_T), "i8")
    comm.Recv(room, status.Get_source(), status.Get_tag())
    request.Wait()
    say(room.tolist())
    say(comm.Iprobe(MPI.ANY_SOURCE, 77))
    request = comm.isend("matched", after, 5)
    while not comm.Iprobe(before, 5, status):
        pass
    say(text(status))
    message = comm.mprobe(source=before, tag=5)
    say(message.recv())
    request.wait()
    request = comm.Isend(np.arange(3, dtype="i"), after, 6)
    message = comm.Mprobe(before, 6, status)
    room = np.zeros(3, "i")
    message.Recv(room)
    say(room.tolist(), text(status))
    request.Wait()
    say(comm.Improbe(before, 99) is None)
    comm.Barrier()


@case
def waiting(comm, say):
    after, before = ring(comm)
    room = np.zeros((4, 2))
    incoming = [comm.Irecv(room[k], before, k) for k in range(4)]
    outgoing = [comm.Isend(np.full(2, 10 * comm.rank + k, "d"), after, k) for k in range(4)]
    statuses = [MPI.Status() for _ in range(4)]
    say(MPI.Request.Waitall(incoming, statuses))
    say(room.tolist(), [text(status) for status in statuses])
    MPI.Request.Waitall(outgoing)
    say([bool(request) for request in incoming], incoming[0] == MPI.REQUEST_NULL)
    incoming = [comm.Irecv(room[k], before, k) for k in range(4)]
    outgoing = [comm.Isend(np.full(2, k, "d"), after, k) for k in range(4)]
    seen = set()
    status = MPI.Status()
    for _ in range(4):
        index = MPI.Request.Waitany(incoming, status)
        seen.add((index, status.Get_tag()))
    say(sorted(seen), MPI.Request.Waitany(incoming))
    MPI.Request.Waitall(outgoing)
    incoming = [comm.irecv(source=before, tag=k) for k in range(3)]
    outgoing = [comm.isend(f"{comm.rank} {k}", after, k) for k in range(3)]
    left = dict(enumerate(incoming))
    got = {}
    while len(got) < 3:
        indices, data = MPI.Request.waitsome(incoming)
        got.update(zip(indices, data, strict=True))
    say(sorted(got.items()), MPI.Request.waitsome(incoming), len(left))
    MPI.Request.waitall(outgoing)


@case
def testing(comm, say):
    after, before = ring(comm)
    room = np.zeros(1)
    request = comm.Irecv(room, before, 3)
    say(request.Test() if comm.size > 1 else False)
    comm.Barrier()
    out = comm.Isend(np.array([comm.rank + 0.5]), after, 3)
    status = MPI.Status()
    while not request.Test(status):
        pass
    say(room.tolist(), text(status), request.Test())
    out.Wait()
    incoming = [comm.irecv(source=before, tag=k) for k in range(2)]
    say(MPI.Request.Testall(incoming), MPI.Request.testany(incoming)[1])
    comm.Barrier()
    outgoing = [comm.isend((comm.rank, k), after, tag=k) for k in range(2)]
    while True:
        flag, data = MPI.Request.testall(incoming)
        if flag:
            break
    say(data)
    MPI.Request.Waitall(outgoing)
    say(MPI.Request.Testany(incoming), MPI.Request.Testall(incoming), MPI.Request.Testsome(incoming))
    request = comm.irecv(source=before)
    out = comm.isend("tested", after)
    while True:
        flag, value = request.test()
        if flag:
            break
    say(value)
    out.wait()


@case
def cancelling(comm, say):
    room = np.zeros(1)
    request = comm.Irecv(room, MPI.ANY_SOURCE, 1234)
    request.Cancel()
    status = MPI.Status()
    request.Wait(status)
    say(status.Is_cancelled())


@case
def persistent(comm, say):
    after, before = ring(comm)
    data, room = np.zeros(3), np.zeros(3)
    requests = [comm.Recv_init(room, before, 1), comm.Send_init(data, after, 1)]
    for turn in range(3):
        data[:] = 100 * turn + comm.rank
        MPI.Prequest.Startall(requests)
        MPI.Request.Waitall(requests)
        say(room.tolist(), [bool(request) for request in requests])
    requests[0].Start()
    requests[1].Start()
    requests[1].Wait()
    requests[0].Wait()
    for request in requests:
        request.Free()
    say([bool(request) for request in requests])


@case
def numbers_with_a_point(comm, say):
    """Ranks, tags, roots and colours are cut off at the point, as in ``dest=size / 2``."""
    after, before = ring(comm)
    request = comm.isend("object", dest=float(after), tag=3.0)
    say(comm.recv(source=float(before), tag=3.9))
    request.wait()
    into = np.zeros(3)
    request = comm.Irecv(into, source=before + 0.5, tag=4.0)
    comm.Send(np.arange(3.0), dest=float(after), tag=4.5)
    request.Wait()
    say(into.tolist())
    say(comm.sendrecv(comm.rank, dest=np.float64(after), source=float(before)))
    last = comm.size - 0.5
    say(comm.bcast(comm.rank, root=last), comm.gather(comm.rank, root=last), comm.reduce(1, root=last))
    say(comm.scatter(list(range(comm.size)) if comm.rank == comm.size - 1 else None, root=last))
    comm.Bcast(into, root=last)
    comm.Reduce(np.ones(3), into, root=0.5)
    say(into.tolist())
    part = comm.Split(comm.rank / 2, -comm.rank / 2)
    say(part.size, part.rank)
    world = comm.Get_group()
    say(world.Range_incl([(0.0, last, 1.0)]).size, world.Range_excl([(0.0, 0.5, 1.0)]).size)
    say(failing(lambda: comm.bcast(1, root="0")))
    say(failing(lambda: world.Incl([0.0])))
