"""`--force`: what an earlier command has left is replaced, and nothing else."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from wiretwin.cli.folders import fresh, replaced
from wiretwin.errors import InputError


def old(folder: Path) -> Path:
    folder.mkdir()
    (folder / "run.json").write_text("old")
    return folder


def test_a_folder_is_replaced_once_its_successor_is_there(tmp_path: Path) -> None:
    out = old(tmp_path / "actual")
    with fresh(out, "run", force=True) as folder:
        assert list(folder.iterdir()) == []
        (folder / "run.json").write_text("new")
    assert (out / "run.json").read_text() == "new"
    assert list(tmp_path.iterdir()) == [out]


def test_what_fails_before_it_writes_leaves_the_old_one(tmp_path: Path) -> None:
    out = old(tmp_path / "actual")
    with pytest.raises(KeyboardInterrupt), fresh(out, "run", force=True):
        raise KeyboardInterrupt
    assert (out / "run.json").read_text() == "old"
    assert list(tmp_path.iterdir()) == [out]


def half_done(out: Path) -> None:
    with contextlib.suppress(KeyboardInterrupt), fresh(out, "run", force=True) as folder:
        (folder / "launches.jsonl").write_text("half")
        raise KeyboardInterrupt


def test_what_fails_later_leaves_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = old(tmp_path / "actual")
    half_done(out)
    (aside,) = set(tmp_path.iterdir()) - {out}
    assert (aside / "run.json").read_text() == "old"
    assert str(aside) in capsys.readouterr().err


@pytest.mark.parametrize("is_file", [True, False])
def test_what_no_verb_has_made_is_not_replaced(tmp_path: Path, is_file: bool) -> None:
    out = tmp_path / "precious"
    mine = out if is_file else out / "mine.txt"
    mine.parent.mkdir(exist_ok=True)
    mine.touch()
    with pytest.raises(InputError, match="is not replaced"), replaced(out, force=True):
        raise AssertionError
    assert mine.exists()


def test_without_it_or_without_a_folder_it_is_said(tmp_path: Path) -> None:
    out = old(tmp_path / "actual")
    with pytest.raises(InputError, match="or --force"), fresh(out, "run"):
        raise AssertionError
    with pytest.raises(InputError, match="with --out"), replaced(None, force=True):
        raise AssertionError
