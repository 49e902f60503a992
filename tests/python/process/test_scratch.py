"""Folders of runs: gone with the run, or with the next one where the run was killed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from wiretwin import folders, scratch
from wiretwin.doctor import _abandoned
from wiretwin.stacks.base import scratch as scratch_of_stack

HOLDS = """
import sys
from pathlib import Path
from types import SimpleNamespace
from wiretwin import scratch
with scratch.folder(Path(sys.argv[1]), "held") as folder:
    (folder / "data").write_bytes(b"x" * 100)
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def anew() -> None:
    """Every test begins as a process that has not swept yet."""
    scratch._sweep_once.cache_clear()


def held(parent: Path) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(parent)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_a_folder_goes_with_its_block(tmp_path: Path) -> None:
    with scratch.folder(tmp_path, "word") as folder:
        assert folder.name.startswith("wiretwin-word-")
        assert folders.abandoned(tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_goes_with_the_next_run(tmp_path: Path) -> None:
    process, left = held(tmp_path)
    try:
        assert folders.sweep(tmp_path) == [], "its owner lives"
        assert left.is_dir()
    finally:
        process.kill()
        process.communicate(timeout=30)
    assert folders.abandoned(tmp_path) == [left]
    with scratch.folder(tmp_path) as own:
        assert list(tmp_path.iterdir()) == [own]


def test_a_number_that_was_given_again_is_not_the_owner(tmp_path: Path) -> None:
    folder = tmp_path / "wiretwin-old"
    folder.mkdir()
    (folder / "owner").write_text(f"{os.getpid()} 1\n")
    assert folders.sweep(tmp_path) == [folder]


@pytest.mark.parametrize("owner", [None, "", "1", "one two", "1 2 3", "\ud800"])
def test_a_folder_that_names_no_owner_is_let_be(tmp_path: Path, owner: str | None) -> None:
    folder = tmp_path / "wiretwin-other"
    folder.mkdir()
    if owner is not None:
        (folder / "owner").write_bytes(owner.encode("utf-8", "surrogatepass"))
    assert folders.sweep(tmp_path) == []
    assert folder.is_dir()


def test_doctor_names_what_was_left(tmp_path: Path) -> None:
    assert _abandoned([]) == []
    (said,) = _abandoned([tmp_path / "wiretwin-a", tmp_path / "wiretwin-b"])
    assert "wiretwin-a, " in said.what
    assert said.what.endswith("wiretwin-b")
    assert "removed just now" in said.remedy


def test_a_stacks_folder_names_its_owner_though_another_user_has_it(tmp_path: Path) -> None:
    place = SimpleNamespace(directory=tmp_path, hosts=[None])
    with scratch_of_stack(place) as folder:  # type: ignore[arg-type]
        assert (folder / folders.OWNER).read_text().split()[0] == str(os.getpid())
        if os.geteuid() == 0:
            os.chown(folder, 65534, -1)
            (folder / folders.OWNER).write_text("1 0\n")
            assert folders.abandoned(tmp_path) == [folder]


def test_where_temporary_files_go_is_found_without_a_file_on_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def trial() -> str:
        raise AssertionError("tempfile writes a file on trial")

    monkeypatch.setattr(tempfile, "_get_default_tempdir", trial)
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert scratch.temporary() == tmp_path
    assert tempfile.gettempdir() == str(tmp_path)


@pytest.mark.parametrize("named", ["nothing", "file"])
def test_a_temporary_folder_that_cannot_be_used_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    (tmp_path / "file").touch(0o700)
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("TMPDIR", str(tmp_path / named))
    monkeypatch.setenv("TEMP", str(tmp_path))
    assert scratch.temporary() == tmp_path
