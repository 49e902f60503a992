"""Algorithms chosen for MPICH are those that each edition of it then runs: it sends what was simulated."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from wiretwin.errors import InputError
from wiretwin.predict.collectives import MPICH, Choice, choose, offered, rounds
from wiretwin.predict.mpich_rules import environment, mpich_rules, own_rules
from wiretwin.stacks.simulated import mpich_of

NBYTES = 6144
PROGRAM = """\
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
static int a[1 << 14], b[1 << 14];
static long count, bytes;
static int on;
typedef void *send_t(void *, const void *, size_t, uint64_t, const void *);
/* The library finds this function of UCX first, by which each of its messages leaves. */
void *ucp_tag_send_nbx(void *to, const void *buffer, size_t length, uint64_t tag, const void *more) {
    send_t *real = (send_t *)dlsym(RTLD_NEXT, "ucp_tag_send_nbx");
    count += on;
    bytes += on ? length : 0;
    return real(to, buffer, length, tag, more);
}
static void own(void *in, void *inout, int *n, MPI_Datatype *type) {
    for (int i = 0; i < *n; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}
int main(int argc, char **argv) {
    const char *what = argv[1];
    int n = 1536, rank;
    MPI_Op op = MPI_SUM;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc > 2)
        MPI_Op_create(own, 1, &op);
    on = 1;
    if (!strcmp(what, "bcast")) MPI_Bcast(a, n, MPI_INT, 0, MPI_COMM_WORLD);
    if (!strcmp(what, "reduce")) MPI_Reduce(a, b, n, MPI_INT, op, 0, MPI_COMM_WORLD);
    if (!strcmp(what, "allreduce")) MPI_Allreduce(a, b, n, MPI_INT, op, MPI_COMM_WORLD);
    if (!strcmp(what, "allgather")) MPI_Allgather(a, n, MPI_INT, b, n, MPI_INT, MPI_COMM_WORLD);
    if (!strcmp(what, "alltoall")) MPI_Alltoall(a, n, MPI_INT, b, n, MPI_INT, MPI_COMM_WORLD);
    on = 0;
    printf("sent %d %ld %ld\\n", rank, count, bytes);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
"""
BESIDE = Path(sys.executable).parent
EDITIONS = {
    "mpi/mpich": ("mpicc.mpich", "mpiexec.mpich"),
    "mpi/mpich+wheel": (str(BESIDE / "mpicc"), str(BESIDE / "mpiexec")),
}
EVERY = [(name, algorithm) for name, algorithms in MPICH.items() for algorithm in algorithms]
Sent = dict[int, tuple[int, int]]
"""By rank how many messages it sent, and their bytes."""


@pytest.fixture(scope="module", params=EDITIONS)
def edition(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    layer = str(request.param)
    folder = tmp_path_factory.mktemp("mpich")
    (folder / "one.c").write_text(PROGRAM)
    compile_ = [EDITIONS[layer][0], "-rdynamic", "one.c", "-o", "one", "-ldl"]
    subprocess.run(compile_, cwd=folder, check=True, timeout=60)
    return layer, folder / "one"


@pytest.fixture
def sent(edition: tuple[str, Path]) -> Callable[..., Sent]:
    """Run the program under UCX, between processes without shared memory, and return what each sent."""

    def run(ranks: int, more: dict[str, str], *words: str) -> Sent:
        layer, program = edition
        fixed = {"MPIR_CVAR_NOLOCAL": "1", "MPIR_CVAR_CH4_NETMOD": "ucx"}
        beside = {"LD_LIBRARY_PATH": str(BESIDE.parent / "lib")} if layer.endswith("wheel") else {}
        argv = [EDITIONS[layer][1], "-launcher", "fork", "-n", str(ranks), str(program), *words]
        env = {**os.environ, **fixed, **beside, **more}
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        lines = [line.split() for line in done.stdout.splitlines() if line.startswith("sent ")]
        return {int(rank): (int(count), int(nbytes)) for _, rank, count, nbytes in lines}

    return run


def simulated(name: str, algorithm: str, ranks: int) -> Sent:
    """What each rank sends of the schedule."""
    found = {}
    for rank in range(ranks):
        steps = [step for some in rounds(name, algorithm, rank, ranks, NBYTES, "mpich") for step in some]
        sizes = [size for what, _, _, size in steps if what == "send"]
        found[rank] = (len(sizes), sum(sizes))
    return found


def chosen(folder: Path, layer: str, name: str, algorithm: str, ranks: int) -> dict[str, str]:
    """Write the rules of one algorithm; the variables that name them."""
    choices, file = [Choice(name, NBYTES, {algorithm: 0.0})], folder / "coll.json"
    file.write_text(mpich_rules(choices, ranks, own_rules(mpich_of(layer))))
    return environment(choices, file)


@pytest.mark.parametrize(("name", "algorithm"), EVERY)
def test_mpich_sends_the_messages_that_were_simulated(
    name: str, algorithm: str, edition: tuple[str, Path], sent: Callable[..., Sent], tmp_path: Path
) -> None:
    ranks = 6 if offered(name, algorithm, 6, NBYTES, "mpich") else 4
    assert offered(name, algorithm, ranks, NBYTES, "mpich")
    expected = simulated(name, algorithm, ranks)
    if (name, algorithm, edition[0]) == ("alltoall", "scattered", "mpi/mpich"):
        # MPICH 4.0 sends its own block to itself, too.
        expected = {rank: (count + 1, nbytes + NBYTES) for rank, (count, nbytes) in expected.items()}
    assert sent(ranks, chosen(tmp_path, edition[0], name, algorithm, ranks), name) == expected


def test_an_operation_of_the_program_and_other_numbers_of_ranks_stay_with_mpichs_own_rules(
    edition: tuple[str, Path], sent: Callable[..., Sent], tmp_path: Path
) -> None:
    told = chosen(tmp_path, edition[0], "reduce", "reduce_scatter_gather", 4)
    binomial = simulated("reduce", "binomial", 4)
    assert sent(4, told, "reduce") != binomial
    assert sent(4, told, "reduce", "own") == binomial
    # Of 6,144 bytes its own rules make pieces, so the file for 4 ranks is one that does not.
    told = chosen(tmp_path, edition[0], "reduce", "binomial", 4)
    assert sent(4, told, "reduce") == binomial
    assert sent(5, told, "reduce") == sent(5, {}, "reduce") != simulated("reduce", "binomial", 5)


def test_the_file_has_every_collective_that_the_library_has(tmp_path: Path) -> None:
    own = own_rules(mpich_of("mpi/mpich+wheel"))
    found = choose(ranks=8, twin="nothing", network="star:hosts=8,rate=1Gbit/s", library="mpich")
    text = mpich_rules(found, 8, own)
    rules = json.loads(text)
    assert list(rules) == list(own)
    assert len(text) % 4096
    assert {name for name in own if rules[name] != own[name]} == {f"collective={name}" for name in MPICH}
    # A whole message passed on three times takes longer than pieces that are scattered and gathered.
    lengths = rules["collective=bcast"]["comm_type=intra"]["comm_size<=8"]
    assert next(iter(lengths.values())) == {"algorithm=MPIR_Bcast_intra_binomial": {}}
    assert "scatter" in str(lengths["avg_msg_size=any"])
    with pytest.raises(InputError, match=r"--layer: 'socket/tcp'.*mpi/mpich or mpi4py/mpich"):
        mpich_of("socket/tcp")
    other = tmp_path / "libmpi.so"
    other.write_bytes(b'\0{"collective=bcast":{}}\0')
    with pytest.raises(InputError, match=r"no rules of its own.*MPICH 4\.0"):
        own_rules(other)
