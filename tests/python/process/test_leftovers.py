"""Shared memory that nobody uses any more is found and removed, and nothing else."""

from __future__ import annotations

import ctypes
import mmap
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from wiretwin import leftovers
from wiretwin.leftovers import Leftovers, none_left

ORPHAN = """
import ctypes, pathlib, sys
library = ctypes.CDLL(None)
print(library.shmget(0, 4096, 0o1600))
semaphore = library.semget(0, 1, 0o1600)
library.semctl(semaphore, 0, 16, 1)  # SETVAL: now we have worked on it
print(semaphore)
pathlib.Path(sys.argv[1]).write_bytes(b"x" * 4096)
"""
"""Makes a segment, a semaphore and a file, and ends without giving them back."""


@pytest.fixture
def file() -> Iterator[Path]:
    path = Path("/dev/shm", f"mpich_shm_test_{os.getpid()}")
    yield path
    path.unlink(missing_ok=True)


def orphan(file: Path) -> tuple[int, int]:
    argv = [sys.executable, "-c", ORPHAN, str(file)]
    words = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60).stdout.split()
    return int(words[0]), int(words[1])


def test_what_a_job_has_left_is_removed(file: Path) -> None:
    with none_left(os.geteuid()):
        segment, semaphore = orphan(file)
        assert segment in Leftovers.now().segments
        assert semaphore in Leftovers.now().semaphores
    now = Leftovers.now()
    assert (segment in now.segments, semaphore in now.semaphores, file.exists()) == (False, False, False)


def test_what_is_in_use_what_was_there_and_what_belongs_to_others_stays(file: Path) -> None:
    library = ctypes.CDLL(None)
    library.shmat.restype = ctypes.c_void_p
    old = library.shmget(0, 4096, 0o1600)
    try:
        with none_left(os.geteuid()):
            own = library.shmget(0, 4096, 0o1600)  # its maker lives
            file.write_bytes(b"x" * 4096)
            with file.open("r+b") as opened:
                mapping = mmap.mmap(opened.fileno(), 4096)
        now = Leftovers.now()
        assert {old, own} <= now.segments
        assert file.exists()
        mapping.close()
        with none_left(os.geteuid() + 1):
            segment, semaphore = orphan(file)
        now = Leftovers.now()
        assert segment in now.segments
        assert semaphore in now.semaphores
        library.shmctl(segment, 0, None)
        library.semctl(semaphore, 0, 0)
    finally:
        for number in (old, own):
            library.shmctl(number, 0, None)


def test_where_the_makers_are_known_what_others_have_made_stays(file: Path) -> None:
    before = Leftovers.now()
    segment, semaphore = orphan(file)
    library = ctypes.CDLL(None)
    try:
        lost = before.lost_since(os.geteuid(), makers=())
        assert segment not in lost.segments
        assert semaphore not in lost.semaphores
        assert file in lost.files
        assert segment in before.lost_since(os.geteuid()).segments
    finally:
        library.shmctl(segment, 0, None)
        library.semctl(semaphore, 0, 0)


def test_a_file_that_its_maker_has_open_and_not_yet_mapped_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    # Not in the folder of all, where the runs of other tests remove what nobody uses.
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        monkeypatch.setattr(leftovers, "_FOLDER", Path(name))
        file = Path(name, "mpich_shm_test")
        before = Leftovers(frozenset(), frozenset(), frozenset())
        with file.open("w+b"):
            assert file not in before.lost_since(os.geteuid()).files
        assert file in before.lost_since(os.geteuid()).files


@pytest.mark.parametrize(
    ("state", "own", "shared", "uses"),
    [
        ("S (sleeping)", "0000000000000000", "0000000000000000", True),
        ("R (running)", "0000000000004000", "0000000000000002", True),
        ("R (running)", "0000000000000000", "0000000000000100", False),
        ("D (disk sleep)", "0000000000000100", "0000000000000000", False),
        ("Z (zombie)", "0000000000000000", "0000000000000000", False),
    ],
    ids=["sleeps", "other signals", "killed", "a thread killed", "ended"],
)
def test_who_has_been_killed_and_waits_for_a_core_uses_nothing(
    state: str, own: str, shared: str, uses: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = tmp_path / "4711"
    (process / "fd").mkdir(parents=True)
    (process / "fd" / "3").symlink_to("/dev/shm/mpich_shm_open")
    (process / "maps").write_text("7f00-7f01 rw-s 00000000 00:19 7  /dev/shm/mpich_shm_mapped\n")
    (process / "status").write_text(f"Name:\trank\nState:\t{state}\nSigPnd:\t{own}\nShdPnd:\t{shared}\n")
    monkeypatch.setattr(leftovers, "_PROC", tmp_path)
    assert leftovers._used() == ({"/dev/shm/mpich_shm_open", "/dev/shm/mpich_shm_mapped"} if uses else set())


def test_who_ends_while_others_are_looked_at_uses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "4711").mkdir()  # its files are gone already
    (tmp_path / "4711" / "status").write_text(
        "State:\tS\nSigPnd:\t0000000000000000\nShdPnd:\t0000000000000000\n"
    )
    monkeypatch.setattr(leftovers, "_PROC", tmp_path)
    assert leftovers._used() == set()


def test_the_description_of_a_host_stays_as_long_as_a_proxy_that_was_there_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftovers, "_HYDRA", (str(tmp_path), "hydra_hwloc_xmlfile_*"))
    monkeypatch.setattr(leftovers, "_PROXY", "python3 (of us)")
    before = Leftovers.now()
    file = tmp_path / "hydra_hwloc_xmlfile_a1b2c3"
    file.write_bytes(b"<topology/>")
    lost = before.lost_since(os.geteuid()).files
    assert file in lost
    name = "import ctypes, sys; ctypes.CDLL(None).prctl(15, b'python3 (of us)', 0, 0, 0)"  # PR_SET_NAME
    argv = [sys.executable, "-c", f"{name}; print(flush=True); sys.stdin.read()"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as proxy:
        assert proxy.stdin is not None
        assert proxy.stdout is not None
        proxy.stdout.readline()
        later = tmp_path / "hydra_hwloc_xmlfile_d4e5f6"
        later.write_bytes(b"<topology/>")
        # It was made a second before the proxy began: by another one.
        os.utime(file, (file.stat().st_mtime - 1.0,) * 2)
        assert before.lost_since(os.geteuid()).files & {file, later} == {file}
        proxy.stdin.close()
        proxy.wait(60)
    assert {file, later} <= before.lost_since(os.geteuid()).files
