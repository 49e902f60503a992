"""Baselines: what is kept, what is compared with, what is rejected, the page."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from test_changes import made
from typer.testing import CliRunner

from wiretwin.cli.app import _build
from wiretwin.errors import InputError
from wiretwin.results import Result
from wiretwin.understand.baselines import baselines, history, keep, newest, of_name

SIZES = [2**k for k in range(6)]
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def measured(folder: Path, day: int, *, factor: float = 1.0, state: str = "complete") -> Result:
    """A result of a day."""
    made(folder, seed=day, sizes=SIZES, factor=factor)
    manifest = folder / "manifest.json"
    content = json.loads(manifest.read_text())
    content |= {"created_utc": (EPOCH + timedelta(days=day)).isoformat(), "state": state}
    manifest.write_text(json.dumps(content))
    return Result.open(folder)


def cli(*words: str | Path) -> subprocess.CompletedProcess[str]:
    done = CliRunner().invoke(_build(), [str(word) for word in words])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return subprocess.CompletedProcess(words, done.exit_code, done.stdout, done.stderr)


def test_the_newest_result_is_compared_with(tmp_path: Path) -> None:
    main = of_name("main", tmp_path / "kept")
    keep(measured(tmp_path / "one", 1, factor=2.0), main)
    last = keep(measured(tmp_path / "two", 2), main)
    assert newest(main) == last == main / "20260103-000000"
    measured(tmp_path / "new", 3)
    done = cli("compare", main, tmp_path / "new", "--fail-above", "30%")
    assert done.returncode == 0, done.stderr
    assert "gate: passed" in done.stderr
    slower = measured(tmp_path / "slower", 4, factor=2.0)
    done = cli("compare", main, slower.path, "--fail-above", "30%")
    assert done.returncode == 1
    assert "gate: failed" in done.stderr


def test_nothing_that_was_kept_is_overwritten(tmp_path: Path) -> None:
    main = of_name("main", tmp_path)
    keep(measured(tmp_path / "two", 2), main)
    before = {path: path.read_bytes() for path in main.rglob("*") if path.is_file()}
    for day in (1, 2):
        with pytest.raises(InputError, match="measured after 20260103-000000"):
            keep(measured(tmp_path / f"again-{day}", day), main)
    assert {path: path.read_bytes() for path in main.rglob("*") if path.is_file()} == before


def test_what_was_interrupted_is_no_baseline(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is interrupted"):
        keep(measured(tmp_path / "one", 1, state="interrupted"), of_name("main", tmp_path / "kept"))
    assert not (tmp_path / "kept").exists()


@pytest.mark.parametrize("name", ["", "..", "a/b", ".hidden", "a" * 65, "a b"])
def test_a_name_is_the_name_of_a_folder(name: str) -> None:
    with pytest.raises(InputError, match="1 to 64 letters"):
        of_name(name)


def test_the_history_compares_each_result_with_the_one_before(tmp_path: Path) -> None:
    main = of_name("main", tmp_path / "kept")
    for day, factor in enumerate((1.0, 2.0, 2.0)):
        keep(measured(tmp_path / f"result-{day}", day, factor=factor), main)
    found = history(main)
    assert len(found.values) == 3 * len(SIZES)
    assert [len(step.of("slower")) for step in found.steps] == [len(SIZES), 0]
    values = {(row.number, row.bytes): row for row in found.values}
    assert values[1, 32].us == pytest.approx(2 * values[0, 32].us, rel=0.05)
    assert all(row.low <= row.us <= row.high for row in found.values)


def test_by_command(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    for day in range(2):
        result = measured(tmp_path / f"result-{day}", day)
        assert cli("baseline", "keep", "main", result.path, "--folder", kept).returncode == 0
    listed = json.loads(cli("baseline", "list", "--folder", kept, "--format", "json").stdout)
    assert [(row["name"], row["results"], row["layers"]) for row in listed] == [("main", 2, "shm")]
    page = tmp_path / "history.html"
    done = cli("baseline", "history", "main", "--folder", kept, "-o", page, "--format", "csv")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 1 + 2 * len(SIZES)
    assert "main: 2 results" in page.read_text()


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    keep(measured(tmp_path / "one", 1), of_name("main", tmp_path / "kept"))
    with pytest.raises(InputError, match="allowed: main"):
        history(of_name("other", tmp_path / "kept"))
    assert baselines(tmp_path / "nothing") == {}
    with pytest.raises(InputError, match="stream"):
        history(of_name("main", tmp_path / "kept"), loop="stream")
