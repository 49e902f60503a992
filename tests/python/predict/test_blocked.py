"""Time that a rank is blocked outside MPI: counted, told apart, and there in a real run, too."""

from __future__ import annotations

import hashlib
import select
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from predict_help import HEAD, TWIN

from wiretwin.mpi.away import KINDS, UNKNOWN, Away
from wiretwin.predict.live import run
from wiretwin.predict.predict import predict
from wiretwin.twin import Twin

PROCESSES, THREADS = KINDS[:2]
WAITS_S = 0.2
PROGRAMS = {
    "processes": f"""
import subprocess, sys
work = "import time\\nwhile time.process_time() < {WAITS_S}: pass"
subprocess.run([sys.executable, "-c", work], check=True)
""",
    "pool": """
from concurrent.futures import ThreadPoolExecutor
import hashlib, numpy as np
data = np.zeros(1 << 22, dtype=np.uint8)
with ThreadPoolExecutor(1) as pool:
    pool.submit(lambda: [hashlib.sha256(data).digest() for _ in range(40)]).result()
""",
    "untold": f"""
import select
select.select([], [], [], {WAITS_S})
""",
    "sleep": f"""
import time
time.sleep({WAITS_S})
""",
}


def blocked(kind: str, body: Callable[[], object]) -> int:
    """Return how long this thread was blocked by `kind` while it called `body`."""
    away = Away()
    away.begin()
    body()
    took = away.took_ns()
    assert took == sum(away.blocked_ns.values())
    return away.blocked_ns[kind]


def test_a_thread_that_computes_is_not_blocked() -> None:
    assert blocked(PROCESSES, lambda: sum(range(100_000))) == 0


def test_what_a_thread_waits_for_is_told_apart() -> None:
    work = "import time\nwhile time.process_time() < 0.1: pass"
    assert blocked(PROCESSES, lambda: subprocess.run([sys.executable, "-c", work], check=True)) > 0

    def elsewhere() -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(lambda: [hashlib.sha256(bytes(1 << 24)).digest() for _ in range(8)]).result()

    assert blocked(THREADS, elsewhere) > 0

    assert blocked(UNKNOWN, lambda: select.select([], [], [], 0.05)) >= 4e7


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_rank_that_is_blocked_takes_as_long_as_that(tmp_path: Path, name: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(HEAD + PROGRAMS[name] + "\ncomm.Barrier()\n", "utf-8")
    found = predict(program, twin=Twin.parse(TWIN), passes=2, out=None)
    notes = " ".join(found.warnings)
    if name == "pool":
        assert THREADS in notes
        return
    # Neither a process that computes so long nor a wait of a given length can take less, in either world.
    assert found.seconds.value >= WAITS_S
    assert run(program, launches=1, splits=0, out=tmp_path / "run").seconds.value >= WAITS_S
    if name == "processes":
        assert PROCESSES in notes
    if name == "untold":
        assert UNKNOWN in notes
        # It comes again in each pass, and so in a real run; of one pass it may be all or none.
        assert found.seconds.low > 0.5 * found.seconds.value
        once = predict(program, twin=Twin.parse(TWIN), passes=1, out=None).seconds
        assert once.low < 0.5 * once.value < 1.5 * once.value < once.high
    if name == "sleep":
        assert "blocked" not in notes


CROWDED = """
if rank == 0:
    import select
    {look}
    select.select([], [], [], 0.2)
comm.Barrier()
"""


@pytest.mark.parametrize("look", ["pass", "MPI.Wtime()"])
def test_a_rank_that_is_blocked_leaves_its_core_to_those_that_wait(tmp_path: Path, look: str) -> None:
    figure = "low = 0.5, high = 4.0, launches = 3, samples = 30 }\n"
    sharing = '[layers."mpi4py/mpich".sharing]\nidle = "yield"\n' + "".join(
        f"{name} = {{ value = {value}, {figure}"
        for name, value in (("one_core_us", 3.5), ("turn_us", 2.2), ("slice_ms", 4.0), ("kept_share", 0.5))
    )
    twin = Twin.parse(TWIN.replace("[layers.shm]", sharing + "[layers.shm]"))
    program = tmp_path / "program.py"
    program.write_text(HEAD + CROWDED.format(look=look), "utf-8")
    found = predict(program, twin=twin, ranks=4, passes=1, out=None)
    actual = run(program, ranks=4, launches=1, splits=0, out=tmp_path / "run")
    # The others take half of the core from a rank that computes, and nothing from one that sleeps.
    assert WAITS_S <= found.seconds.value < 1.5 * WAITS_S
    assert actual.seconds.value >= WAITS_S
    assert found.compute_share > 0.5
