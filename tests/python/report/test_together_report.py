"""The page of a result of ranks that did something together."""

from __future__ import annotations

from pathlib import Path

import pytest

from wiretwin import plot
from wiretwin.errors import InputError
from wiretwin.report import render
from wiretwin.results import Launch, Layer, Result

TIMES = {"barrier": {0: 2000}, "iallreduce": {4: 4000, 1024: 8000}, "iallreduce_busy": {4: 1000, 1024: 8000}}
SLOWER = {"mpi/mpich": 1, "mpi/openmpi": 3}


def result(folder: Path, launches: int = 3) -> Result:
    """One layer takes three times as long as the other; the mean over the ranks is half of the slowest."""
    made = Result.create(
        folder,
        seed=1,
        created_utc="2026-01-01T00:00:00Z",
        host={"name": "here", "cores": 8},
        options={"ranks": 4, "loops": list(TIMES), "purpose": "nonblocking"},
        layers=[Layer(layer=name, name=name) for name in SLOWER],
    )
    number = 0
    for _ in range(launches):
        for name, factor in SLOWER.items():
            number += 1
            rows = [
                (loop + end, size, index, time * factor // part + index + number)
                for loop, sizes in TIMES.items()
                for size, time in sizes.items()
                for end, part in (("", 1), ("_mean", 2))
                for index in range(11)
            ]
            loops, sizes_, indices, values = zip(*rows, strict=True)
            same = {"messages": [1] * len(rows), "delay_ns": [0] * len(rows), "batch": [1] * len(rows)}
            launch = Launch(
                launch=number, name=name, order=number - 1, started_utc="", seconds=0.1, status="ok"
            )
            columns = {"loop": loops, "bytes": sizes_, "index": indices, "value_ns": values, **same}
            made.append(launch, columns)
    made.finish("complete")
    return made


def test_the_page_has_times_distributions_and_overlap_and_misses_nothing(tmp_path: Path) -> None:
    page = render(result=result(tmp_path / "r"), out=tmp_path / "r.html").read_text()
    assert "<h1" in page
    for words in (
        "What 4 ranks do together on here",
        "iallreduce: time against size",
        "iallreduce: distribution of calls of 4",
        "barrier: distribution of calls",
        "What is hidden behind computation",
        "at least",
    ):
        assert words in page, words
    assert "barrier: time against size" not in page, "a barrier has no sizes"
    assert "wiretwin measure --out measured" not in page, "no round trips are missing"
    assert "75" in page.partition("What is hidden behind computation")[2][:3000]


def test_figures_are_of_loops_that_were_measured(tmp_path: Path) -> None:
    made = result(tmp_path / "r")
    names = {trace.meta["layer"] for trace in plot.collective(made, "iallreduce").data}
    assert names == set(SLOWER)
    curves = [one for one in plot.collective(made, "iallreduce").data if one.meta["part"] == "curve"]
    assert [round(float(one.y[0])) for one in curves] == [4, 12]
    shares = plot.distribution(made, "iallreduce", 4).data[0]
    assert list(shares.x) == sorted(shares.x)
    with pytest.raises(InputError, match=r"dance.*was not measured"):
        plot.collective(made, "dance")
    with pytest.raises(InputError, match=r"iallreduce of 5 B.*was not measured"):
        plot.distribution(made, "iallreduce", 5)
