"""Two results compared: what changed beyond noise, what did not, what only one has."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

import wiretwin as wt
from wiretwin.cli.app import _build
from wiretwin.errors import InputError
from wiretwin.results import Launch, Layer, Result
from wiretwin.understand.changes import changes

SIZES = [2**k for k in range(20)]


def made(
    folder: Path,
    *,
    seed: int,
    factor: NDArray[np.float64] | float = 1.0,
    launches: int = 5,
    layers: Sequence[str] = ("shm",),
    sizes: Sequence[int] = SIZES,
) -> Result:
    """A result whose launches scatter by 2 %, with times multiplied by a factor."""
    random = np.random.default_rng(seed)
    result = Result.create(
        folder,
        seed=seed,
        created_utc="2026-01-01T00:00:00Z",
        layers=[Layer(layer=name, name=name) for name in layers],
    )
    for number in range(1, launches * len(layers) + 1):
        times = 1e5 * (1 + np.array(sizes) / 4096) * factor * np.exp(random.normal(0, 0.02, len(sizes)))
        columns = {
            "loop": ["echo"] * len(sizes),
            "bytes": list(sizes),
            "value_ns": [round(time) for time in times],
        }
        columns |= {"messages": [1] * len(sizes), "delay_ns": [0] * len(sizes), "batch": [1] * len(sizes)}
        name = layers[number % len(layers)]
        launch = Launch(launch=number, name=name, order=number, started_utc="now", seconds=1.0, status="ok")
        result.append(launch, columns | {"index": [1] * len(sizes)})
    result.finish("complete")
    return result


def test_a_change_at_some_sizes_is_found_there_and_nowhere_else(tmp_path: Path) -> None:
    factor = np.where(np.arange(20) < 10, 1.0, 1.3)
    before, after = made(tmp_path / "a", seed=1), made(tmp_path / "b", seed=2, factor=factor)
    found = wt.compare(before, after)
    slower = {row.bytes for row in found.of("slower")}
    assert slower >= set(SIZES[10:])
    assert len(slower - set(SIZES[10:])) <= 1
    assert not found.of("faster", "inconclusive", "only before", "only after")
    for row in found.rows[10:]:
        assert row.low is not None
        assert row.high is not None
        assert row.low < 1.3 * 1.05
        assert row.high > 1.3 * 0.95
    # And the other way round.
    back = changes(after, before)
    assert {row.bytes for row in back.of("faster")} == slower
    for row, other in zip(found.rows, back.rows, strict=True):
        assert row.ratio is not None
        assert other.ratio is not None
        assert math.isclose(row.ratio * other.ratio, 1.0)


def test_noise_alone_is_hardly_ever_called_a_change(tmp_path: Path) -> None:
    wrong = 0
    for trial in range(20):
        pair = [made(tmp_path / f"{trial}-{side}", seed=100 + 2 * trial + side) for side in (0, 1)]
        wrong += bool(changes(*pair).of("slower", "faster"))
    # Expected in one pair of twenty; intervals of 95 % by themselves would cry wolf in two of three.
    assert wrong <= 4


def test_no_change_excludes_a_change_and_inconclusive_does_not(tmp_path: Path) -> None:
    few = [made(tmp_path / f"few-{side}", seed=side, launches=3) for side in (1, 2)]
    many = [made(tmp_path / f"many-{side}", seed=side, launches=15) for side in (3, 4)]
    assert {row.verdict for row in changes(*many).rows} == {"no change"}
    for row in changes(*many).rows:
        assert row.low is not None
        assert row.high is not None
        assert 1 / 1.1 <= row.low <= row.high <= 1.1
    # The same launches cannot exclude a change of half a per cent, nor three launches one of 2 %.
    assert {row.verdict for row in changes(*many, change=0.005).rows} == {"inconclusive"}
    found = changes(*few, change=0.02)
    assert {row.verdict for row in found.rows} == {"inconclusive"}
    assert "inconclusive at 20 of 20 sizes (it would take " in found.summary()[0]
    with pytest.raises(InputError, match="change: 0 is not allowed"):
        changes(*many, change=0)


def test_what_one_result_lacks_is_said(tmp_path: Path) -> None:
    before = made(tmp_path / "a", seed=1, layers=("shm", "socket/unix"))
    after = made(tmp_path / "b", seed=2, sizes=SIZES[4:])
    found = changes(before, after)
    assert {row.bytes for row in found.of("only before") if row.layer == "shm"} == set(SIZES[:4])
    assert {row.bytes for row in found.of("only before") if row.layer == "socket/unix"} == set(SIZES)
    assert found.summary()[1] == "socket/unix: 20 sizes only before"


def test_one_launch_says_nothing(tmp_path: Path) -> None:
    pair = [made(tmp_path / name, seed=1, launches=1) for name in ("a", "b")]
    assert {row.verdict for row in changes(*pair).rows} == {"inconclusive"}


def test_the_command_prints_the_table_and_writes_the_page(tmp_path: Path) -> None:
    made(tmp_path / "a", seed=1)
    made(tmp_path / "b", seed=2, factor=1.5)
    page = tmp_path / "changes.html"
    done = CliRunner().invoke(
        _build(), ["compare", str(tmp_path / "a"), str(tmp_path / "b"), "--format", "json", "-o", str(page)]
    )
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)
    assert len(rows) == len(SIZES)
    assert {row["verdict"] for row in rows} == {"slower"}
    assert "20 of 20 sizes changed beyond noise" in page.read_text()


def test_a_result_and_something_else_are_refused(tmp_path: Path) -> None:
    result = made(tmp_path / "a", seed=1)
    (tmp_path / "b").mkdir()
    done = CliRunner().invoke(_build(), ["compare", str(tmp_path / "a"), str(tmp_path / "b")])
    assert isinstance(done.exception, InputError)
    assert "is no result, and the other is" in str(done.exception)
    with pytest.raises(InputError, match="two results"):
        wt.compare(result, str(tmp_path))  # type: ignore[call-overload]
    with pytest.raises(InputError, match="loop: 'none' is in neither"):
        changes(result, result, loop="none")
