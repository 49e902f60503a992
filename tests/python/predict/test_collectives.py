"""Algorithms chosen for Open MPI are those that it then runs: it counts the messages that were simulated."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from wiretwin.errors import InputError
from wiretwin.predict.collectives import OPENMPI, Choice, choose, offered, openmpi_rules, rounds

NBYTES = 6144
PROGRAM = """\
#include <mpi.h>
#include <string.h>
static int a[1 << 14], b[1 << 14];
int main(int argc, char **argv) {
    const char *what = argv[1];
    int n = 1536;
    MPI_Init(&argc, &argv);
    if (!strcmp(what, "bcast")) MPI_Bcast(a, n, MPI_INT, 0, MPI_COMM_WORLD);
    if (!strcmp(what, "reduce")) MPI_Reduce(a, b, n, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (!strcmp(what, "allreduce")) MPI_Allreduce(a, b, n, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (!strcmp(what, "allgather")) MPI_Allgather(a, n, MPI_INT, b, n, MPI_INT, MPI_COMM_WORLD);
    if (!strcmp(what, "alltoall")) MPI_Alltoall(a, n, MPI_INT, b, n, MPI_INT, MPI_COMM_WORLD);
    if (!strcmp(what, "barrier")) MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
"""
SENT = re.compile(r"^[EI]\t(\d+)\t(\d+)\t(\d+) bytes\t(\d+) msgs sent", re.MULTILINE)
EVERY = [(name, algorithm) for name, (_, numbers) in OPENMPI.items() for algorithm in numbers]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("openmpi")
    (folder / "one.c").write_text(PROGRAM)
    subprocess.run(["mpicc.openmpi", "one.c", "-o", "one"], cwd=folder, check=True, timeout=60)
    return folder / "one"


@pytest.mark.parametrize(("name", "algorithm"), EVERY)
def test_open_mpi_sends_the_messages_that_were_simulated(
    name: str, algorithm: str, program: Path, tmp_path: Path
) -> None:
    ranks = 6 if offered(name, algorithm, 6, NBYTES) else 4
    assert offered(name, algorithm, ranks, NBYTES)
    rules = tmp_path / "coll.rules"
    rules.write_text(openmpi_rules([Choice(name, NBYTES, {algorithm: 0.0})], ranks))
    settings = {
        "coll_tuned_use_dynamic_rules": "1",
        "coll_tuned_dynamic_rules_filename": str(rules),
        "pml_monitoring_enable": "2",
        "pml_monitoring_enable_output": "3",
        "pml_monitoring_filename": str(tmp_path / "sent"),
    }
    given = [word for key, value in settings.items() for word in ("--mca", key, value)]
    subprocess.run(
        ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks), *given, program, name],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    said = "".join(path.read_text() for path in tmp_path.glob("sent*"))
    real = {(int(a), int(b)): (int(n), int(m)) for a, b, n, m in SENT.findall(said)}
    length, count = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    nbytes = 0 if name == "barrier" else NBYTES
    for rank in range(ranks):
        for steps in rounds(name, algorithm, rank, ranks, nbytes):
            for what, other, _, size in steps:
                if what == "send":
                    length[rank, other] += size
                    count[rank, other] += 1
    assert real == {pair: (length[pair], count[pair]) for pair in count}


def test_long_messages_are_cut_and_short_ones_are_not() -> None:
    found = choose(ranks=8, twin="nothing", network="star:hosts=8,rate=1Gbit/s", sizes=[4, 1 << 20])
    best = {(one.collective, one.nbytes): one for one in found}
    # A whole message passed on three times takes longer than pieces that are scattered and gathered.
    assert best["bcast", 1 << 20].algorithm.startswith("scatter_")
    assert best["bcast", 1 << 20].seconds["binomial"] > 2 * min(best["bcast", 1 << 20].seconds.values())
    assert best["allreduce", 1 << 20].algorithm == "reduce_scatter_allgather"
    assert best["allreduce", 4].algorithm == "recursive_doubling"
    lines = [line.split("#")[0].split() for line in openmpi_rules(found, 8).splitlines()]
    at = lines.index(["7"])
    assert lines[at + 1 : at + 4] == [["2"], ["8"], ["2"]]
    assert lines[at + 4][:2] == ["0", str(OPENMPI["bcast"][1][best["bcast", 4].algorithm])]
    assert lines[at + 5][:2] == ["1048576", str(OPENMPI["bcast"][1][best["bcast", 1 << 20].algorithm])]
    assert lines[at + 6 : at + 9] == [["9"], ["1"], ["0", "0", "0", "0"]]
    with pytest.raises(InputError, match="--ranks"):
        choose(ranks=1, twin="nothing", network=None)
    with pytest.raises(InputError, match="--size"):
        choose(ranks=2, twin="nothing", network=None, sizes=[3])
