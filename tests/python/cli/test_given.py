"""What a user names that is no file of text, and what a user's limit leaves too little memory for."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from wiretwin.cli.memory import NEEDS, shortage
from wiretwin.errors import InputError
from wiretwin.given import MOST_BYTES, read_text
from wiretwin.predict import records
from wiretwin.report.inputs import gather
from wiretwin.scenario.trace import Trace

LIMIT_S = 60


def wiretwin(*words: object, memory: int | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command line under a limit on its address space, bytes."""

    def limited() -> None:
        if memory is not None:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

    argv = [sys.executable, "-c", "from wiretwin.cli import main; main()", *map(str, words)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S, preexec_fn=limited)


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


@pytest.fixture
def large(tmp_path: Path) -> Path:
    path = tmp_path / "large.toml"
    path.write_bytes(b"# nothing but words\n" * (2 << 20))
    return path


def test_what_is_no_file_of_text_is_rejected_with_the_reason(tmp_path: Path, pipe: Path, large: Path) -> None:
    for path, said in (
        (Path("/dev/zero"), "is a device; allowed: a text file"),
        (tmp_path, "is a folder; allowed: a text file"),
        (pipe, "is a pipe to which nobody writes; allowed: a text file"),
        (large, f"is too large; allowed: at most {MOST_BYTES} bytes"),
        (tmp_path / "none", "cannot be read: No such file or directory"),
    ):
        with pytest.raises(InputError) as caught:
            read_text(path)
        assert str(caught.value) == f"{path}: {said}"


def test_a_pipe_is_read_to_its_end_and_not_waited_for_in_vain(pipe: Path) -> None:
    ours = os.open(pipe, os.O_RDWR)
    try:
        with pytest.raises(InputError, match="is a pipe from which nothing comes"):
            read_text(pipe)
        os.write(ours, b"a = 1\n")
    finally:
        os.close(ours)
    read, write = os.pipe()
    writer = threading.Thread(target=lambda: (os.write(write, b"x" * 50_000), os.close(write)))
    writer.start()
    try:
        assert read_text(f"/dev/fd/{read}") == "x" * 50_000
    finally:
        writer.join(LIMIT_S)
        os.close(read)


def test_more_than_may_be_is_not_taken_from_a_pipe_either() -> None:
    read, write = os.pipe()
    os.write(write, b"x" * 2000)
    try:
        with pytest.raises(InputError, match="is too large; allowed: at most 1000 bytes"):
            read_text(f"/dev/fd/{read}", most=1000)
    finally:
        os.close(read)
        os.close(write)


def test_a_twin_that_is_no_file_ends_a_prediction_before_anything_runs(pipe: Path, large: Path) -> None:
    program = pipe.parent / "program.py"
    program.write_text("raise RuntimeError('it ran')\n")
    for path, said in ((Path("/dev/zero"), "is a device"), (pipe, "is a pipe"), (large, "is too large")):
        ended = wiretwin("predict", program, "--twin", path)
        assert (ended.returncode, ended.stdout) == (2, "")
        assert f"{path}: {said}" in ended.stderr


@pytest.mark.parametrize(
    "begins", [b"\0", b"nothing but words\n", b"[0, 0, ", b'{"nodes": [0, 0, ', b'{"\xff": 1']
)
def test_a_large_file_that_is_no_trace_and_no_record_is_rejected_by_its_first_bytes(
    begins: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large = tmp_path / "large"
    with large.open("wb") as stream:
        stream.write(begins)
        stream.truncate(40_000_000)
    pieces: list[int] = []
    read_piece = os.read

    def counted(descriptor: int, most: int) -> bytes:
        piece = read_piece(descriptor, most)
        pieces.append(len(piece))
        return piece

    monkeypatch.setattr(os, "read", counted)
    readers: tuple[Callable[[], object], ...] = (
        lambda: Trace.read(large),
        lambda: records.read(records.Prediction, large),
        lambda: records.read(records.Run, large),
        lambda: gather(predictions=[large]),
        lambda: gather(comparisons=[large]),
    )
    for reader in readers:
        pieces.clear()
        with pytest.raises(InputError, match=f"large: its beginning: .*more than {MOST_BYTES} bytes a JSON"):
            reader()
        assert sum(pieces) <= 1 << 16


def test_a_large_trace_and_a_large_record_are_read(tmp_path: Path) -> None:
    count = 300_000
    trace = Trace("long", tuple(range(10**9, 10**9 + count)), (1,) * count, 8, 2 * 10**9)
    trace.write(tmp_path / "trace.json")
    assert (tmp_path / "trace.json").stat().st_size > MOST_BYTES
    assert Trace.read(tmp_path / "trace.json") == trace
    spread = records.Spread(value=1.0, low=1.0, high=1.0)
    run = records.Run(
        program="p",
        program_sha256="0",
        args=["x" * MOST_BYTES],
        ranks=1,
        layer="l",
        launcher=[],
        library="",
        launches=[records.Launch(seconds=1.0, per_rank_s=[1.0])],
        seconds=spread,
        split=[],
        wiretwin="0",
        started_utc="2026-01-01T00:00:00Z",
    ).sealed()
    file = run.write(tmp_path)
    assert file.stat().st_size > MOST_BYTES
    assert records.read(records.Run, tmp_path) == run


@pytest.mark.parametrize(
    ("memory", "library"), [(NEEDS["numpy"] // 2, "numpy"), (NEEDS["polars"] // 4, "polars")]
)
def test_too_little_memory_to_import_a_library_has_a_name(tmp_path: Path, memory: int, library: str) -> None:
    ended = wiretwin("fit", tmp_path, memory=memory)
    assert ended.returncode == 7, ended.stderr
    limited = f"the address space of this process is limited to {memory >> 20} MiB"
    assert ended.stderr.startswith(f"wiretwin: too little memory for {library}: {limited}")
    assert "ulimit -v unlimited" in ended.stderr


def test_want_of_memory_is_told_from_other_errors() -> None:
    for error in (
        MemoryError(),
        OSError(12, "Cannot allocate memory"),
        ImportError("libx.so: failed to map segment from shared object"),
    ):
        assert str(shortage(error)).startswith("too little memory: ")
    assert shortage(ImportError("no module named x")) is None
