"""Results of ranks that did something together: what they say, how they are compared, what is rejected."""

from __future__ import annotations

from pathlib import Path

import pytest
from stacks_help import installed

from wiretwin.errors import InputError
from wiretwin.fit.together import loops_of, together_table
from wiretwin.measure import measure
from wiretwin.measure.together import PURPOSES
from wiretwin.results import Result
from wiretwin.stacks.word import TOGETHER
from wiretwin.understand.changes import changes


def measured(
    folder: Path,
    ranks: int = 2,
    loops: str = "ibarrier,iallreduce_busy",
) -> Result:
    return measure(
        "mpi/mpich",
        purpose="nonblocking",
        ranks=ranks,
        loops=loops,
        sizes="4,64",
        budget=None,
        launches=3,
        out=folder,
    )


def test_a_result_says_what_was_asked_and_is_compared_loop_by_loop(tmp_path: Path) -> None:
    installed("mpi/mpich")
    first, second = measured(tmp_path / "first"), measured(tmp_path / "second")
    options = first.manifest.options
    assert (options["ranks"], options["loops"]) == (2, ["ibarrier", "iallreduce", "iallreduce_busy"])
    assert first.manifest.not_measured == {}
    assert loops_of(first.samples()) == options["loops"]
    table = together_table(first.samples(), 2)
    busy = table.filter(table["loop"] == "iallreduce_busy")
    assert [row["bytes"] for row in busy.to_dicts()] == [4, 64]
    assert all(0.0 <= row["overlap"] <= 1.0 for row in busy.to_dicts())
    assert all(row["low_us"] <= row["value_us"] <= row["high_us"] for row in table.to_dicts())
    assert all(row["p50_us"] <= row["p99_us"] <= row["most_us"] for row in table.to_dicts())

    found = changes(first, second)
    names = [f"mpi/mpich {loop}" for loop in ("iallreduce", "iallreduce_busy", "ibarrier")]
    assert list(dict.fromkeys(row.layer for row in found.rows)) == names
    assert {row.layer for row in changes(first, second, loop="ibarrier").rows} == {"mpi/mpich"}

    three = measured(tmp_path / "three", 3, loops="ibarrier")
    with pytest.raises(
        InputError,
        match=r"ranks: 3 is not allowed here; allowed: a result of as many ranks as .*first has: 2",
    ):
        changes(first, three)


def test_a_load_is_a_share_of_what_was_carried_and_counts_from_when_a_message_was_due(tmp_path: Path) -> None:
    result = measure(
        "socket/unix", purpose="load", ranks=2, sizes="64", budget=None, launches=3, out=tmp_path / "load"
    )
    table = together_table(result.samples(), 2).filter(together_table(result.samples(), 2)["loop"] == "load")
    delays = table["delay_ns"].to_list()
    assert len(delays) == 4
    assert delays == sorted(delays)
    assert table["load"].to_list() == sorted(table["load"].to_list(), reverse=True)
    assert all(row["p50_us"] <= row["p95_us"] <= row["p99_us"] <= row["p999_us"] for row in table.to_dicts())
    # The first launch tells what the layer carries; all later ones have the same loads.
    assert set(table["launches"]) == {2}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (
            {"purpose": "collectives", "loops": "dance"},
            r"--loops.*dance.* is no loop of collectives.*barrier, bcast",
        ),
        ({"purpose": "curves", "loops": "bcast"}, r"--loops.*curves has its own.*--for collectives or"),
        ({"purpose": "fit", "ranks": 3}, r"--ranks.*fit is of two ranks"),
        ({"purpose": "pairs", "ranks": 1}, r"--ranks: 1 is not allowed here; allowed: 2 to 1024"),
        ({"purpose": "dance"}, r"purpose.*dance.*curves, fit, collectives"),
    ],
)
def test_what_cannot_be_is_rejected_before_anything_runs(more: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        measure("shm", **more)  # type: ignore[arg-type]


def test_every_purpose_has_loops_that_some_layer_has() -> None:
    for purpose in PURPOSES.values():
        assert set(purpose.usual) <= set(purpose.loops) <= TOGETHER
