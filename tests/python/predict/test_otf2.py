"""Traces in OTF2, made of recorded runs as Score-P would write them, and replayed."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import otf2
import pytest
from predict_help import wiretwin
from trace_help import NOTHING, recorded

from wiretwin import trace
from wiretwin.errors import InputError
from wiretwin.trace.otf2 import read_otf2

BODY = """
    MPI_Request both[2];
    for (int turn = 0; turn < 3; turn++) {
        MPI_Irecv(bytes, 100, MPI_INT, turn ? left : MPI_ANY_SOURCE, 3, WORLD, &both[0]);
        MPI_Isend(bytes + 4096, 25, MPI_INT, right, 3, WORLD, &both[1]);
        MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
    }
    MPI_Sendrecv(bytes, 1 << 18, MPI_CHAR, right, 1,
                 bytes + (1 << 19), 1 << 18, MPI_CHAR, left, 1, WORLD, &status);
    if (rank == 0)
        MPI_Send(bytes, 5000, MPI_CHAR, 1, 9, WORLD);
    if (rank == 1)
        MPI_Recv(bytes, 5000, MPI_CHAR, 0, 9, WORLD, &status);
    MPI_Comm half;
    MPI_Comm_split(WORLD, rank % 2, rank, &half);
    MPI_Bcast(bytes, 1000, MPI_CHAR, 1, half);
    MPI_Barrier(half);
    MPI_Comm_free(&half);
    MPI_Allreduce(bytes, bytes + 65536, 100, MPI_DOUBLE, MPI_SUM, WORLD);
    MPI_Reduce(bytes, bytes + 65536, 300, MPI_DOUBLE, MPI_SUM, 1, WORLD);
    MPI_Scan(bytes, bytes + 65536, 30, MPI_DOUBLE, MPI_SUM, WORLD);
    MPI_Exscan(bytes, bytes + 65536, 40, MPI_DOUBLE, MPI_SUM, WORLD);
    MPI_Gather(bytes, 70, MPI_CHAR, bytes + 65536, 70, MPI_CHAR, 2, WORLD);
    MPI_Scatter(bytes, 80, MPI_CHAR, bytes + 65536, 80, MPI_CHAR, 3, WORLD);
    MPI_Alltoall(bytes, 90, MPI_CHAR, bytes + 65536, 90, MPI_CHAR, WORLD);
    MPI_Allgather(bytes, 60, MPI_CHAR, bytes + 65536, 60, MPI_CHAR, WORLD);
    int counts[64], at[64];
    for (int one = 0; one < size; one++) {
        counts[one] = one + 1;
        at[one] = 64 * one;
    }
    MPI_Allgatherv(bytes, rank + 1, MPI_INT, bytes + 65536, counts, at, MPI_INT, WORLD);
    MPI_Gatherv(bytes, rank + 1, MPI_INT, bytes + 65536, counts, at, MPI_INT, 1, WORLD);
    MPI_Scatterv(bytes, counts, at, MPI_INT, bytes + 65536, rank + 1, MPI_INT, 2, WORLD);
"""
EQUAL = ("BARRIER", "BCAST", "REDUCE", "ALLREDUCE", "GATHER", "SCATTER", "ALLGATHER", "ALLTOALL",
         "REDUCE_SCATTER_BLOCK", "SCAN", "EXSCAN")  # fmt: skip
WITH_COUNTS = {"GATHER": "GATHERV", "SCATTER": "SCATTERV", "ALLGATHER": "ALLGATHERV"}


def amounts(what: str, block: int, me: int, ranks: int, root: int, counts: list[int]) -> tuple[int, int]:
    """Return what Score-P says that a rank sent and received in a collective."""
    if what in ("GATHERV", "SCATTERV"):
        # The whole length of each rank's block stands in the ranks' own files.
        pair = (counts[me], sum(counts) if me == root else 0)
        return pair if what == "GATHERV" else pair[::-1]
    if what == "ALLGATHERV":
        return ranks * counts[me], sum(counts)
    if what in ("REDUCE", "GATHER"):
        return block, ranks * block if me == root else 0
    if what in ("BCAST", "SCATTER"):
        return ranks * block if me == root else 0, block
    if what == "SCAN":
        return (ranks - me) * block, (me + 1) * block
    if what == "EXSCAN":
        return (ranks - me - 1) * block, me * block
    return (0, 0) if what == "BARRIER" else (ranks * block, ranks * block)


def written(found: trace.Trace, folder: Path) -> Path:
    """Write a recorded run as a trace in OTF2; return its anchor file."""
    with otf2.writer.open(str(folder), timer_resolution=1_000_000_000) as archive:
        definitions = archive.definitions
        node = definitions.system_tree_node("host")
        locations = []
        for rank in range(found.ranks):
            group = definitions.location_group(f"MPI Rank {rank}", system_tree_parent=node)
            locations.append(definitions.location("Master thread", group=group))
        kinds, mpi = otf2.GroupType, otf2.Paradigm.MPI
        definitions.group("", group_type=kinds.COMM_LOCATIONS, paradigm=mpi, members=locations)
        comms: dict[tuple[int, ...], list[Any]] = {}
        counts = [[4 * (one + 1) for one in range(found.ranks)]]

        def comm_of(members: tuple[int, ...], nth: int) -> Any:
            some = comms.setdefault(members, [])
            while len(some) <= nth:
                group = definitions.group(
                    "", group_type=kinds.COMM_GROUP, paradigm=mpi, members=[locations[one] for one in members]
                )
                some.append(definitions.comm("", group=group))
            return some[nth]

        region = {}

        def region_of(name: str) -> Any:
            return region.setdefault(
                name, definitions.region(name, region_role=otf2.RegionRole.FUNCTION, paradigm=mpi)
            )

        for rank, location in enumerate(locations):
            events, now = archive.event_writer_from_location(location), 10
            raw = (found.path / str(rank)).read_bytes()[24:]
            members: dict[int, list[int]] = {}
            completed: list[tuple[int, ...]] = []
            receives: set[int] = set()
            events.enter(1, region_of("MPI_Init"))
            events.leave(now, region_of("MPI_Init"))
            for place in range(0, len(raw), 48):
                kind, peer, tag, context, size, request, computed, inside = struct.unpack(
                    "<4i4Q", raw[place : place + 48]
                )
                if kind == 10:
                    members.setdefault(context, []).append(peer)
                    continue
                if kind == 5:
                    completed.append((peer, tag, context, size, request))
                    continue
                if kind in (7, 9):  # a probe is received behind; counts are of the ranks' own
                    continue
                comm = None
                if context in members:
                    own = tuple(members[context])
                    nth = [tuple(members[one]) for one in sorted(members) if one < context].count(own)
                    comm = comm_of(own, nth)
                now += computed
                name = {1: "MPI_Send", 2: "MPI_Isend", 3: "MPI_Recv", 4: "MPI_Irecv", 6: "MPI_Waitall",
                        8: "MPI_Collective", 12: "MPI_Finalize"}[kind]  # fmt: skip
                events.enter(now, region_of(name))
                if kind == 1:
                    events.mpi_send(now, peer, comm, tag, size)
                elif kind == 2:
                    events.mpi_isend(now, peer, comm, tag, size, request)
                elif kind == 3:
                    events.mpi_recv(now, peer, comm, tag, size)
                elif kind == 4:
                    receives.add(request)
                    events.mpi_irecv_request(now, request)
                elif kind == 8:
                    what = EQUAL[tag]
                    if size == 0 and what in WITH_COUNTS:
                        what = WITH_COUNTS[what]
                    ranks = members[context]
                    sent = amounts(what, size, ranks.index(rank), len(ranks), peer, counts[0])
                    operation = getattr(otf2.CollectiveOp, what)
                    events.mpi_collective_begin(now)
                    events.mpi_collective_end(now, operation, comm, peer, *sent)
                now += inside
                if kind == 6:
                    for who, which, where, length, number in completed:
                        if number not in receives:
                            events.mpi_isend_complete(now, number)
                            continue
                        own = tuple(members[where])
                        events.mpi_irecv(now, who, comm_of(own, 0), which, length, number)
                    completed = []
                events.leave(now, region_of(name))
    return folder / "traces.otf2"


def test_a_trace_is_replayed_as_the_run_that_it_is_of() -> None:
    found = recorded(BODY, 4)
    anchor = written(found, Path("scorep"))
    network = "star:rate=10Gbit/s,delay=1us"
    first, second = (trace.replay(path, twin="nothing", network=network) for path in ("recorded", anchor))
    assert first.messages == second.messages > 40
    # Posted receives have the length of what came; nothing else is another.
    assert second.seconds.value == pytest.approx(first.seconds.value, rel=1e-9)
    more = trace.replay(anchor, twin="nothing", network=network, compute_scale=100)
    assert more.seconds.value > second.seconds.value
    said = wiretwin("replay", anchor, *NOTHING)
    assert said.code == 0, said.err


def test_what_is_no_trace_is_rejected(tmp_path: Path) -> None:
    broken = tmp_path / "traces.otf2"
    for text, words in ((None, "no such file"), ("nothing", "cannot be read")):
        if text is not None:
            broken.write_text(text)
        with pytest.raises(InputError, match=words):
            read_otf2(broken, tmp_path)
