"""A folder kept alike: what one machine completes the others get, once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from wiretwin import scratch
from wiretwin.remote.folder import LARGEST, Mirror, Watch


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Mirror, Mirror]:
    roots = [tmp_path / name for name in ("one", "two")]
    for root in roots:
        root.mkdir()
    return Mirror(roots[0]), Mirror(roots[1])


def carry(source: Mirror, target: Mirror) -> list[str]:
    messages = source.changes()
    for message in messages:
        target.take(message)
    return [f"{message['do']} {message['path']}" for message in messages]


def test_files_and_folders_get_across_once(pair: tuple[Mirror, Mirror]) -> None:
    one, two = pair
    (one.root / "launch").mkdir(mode=0o700)
    script = one.root / "launch" / "agent"
    script.write_bytes(b"#!/bin/sh\n\0")
    script.chmod(0o755)
    assert carry(one, two) == ["folder launch", "file launch/agent"]
    there = two.root / "launch" / "agent"
    assert there.read_bytes() == b"#!/bin/sh\n\0"
    assert there.stat().st_mode & 0o777 == 0o755
    # Neither side tells the other what it had from it.
    assert carry(two, one) == []
    assert carry(one, two) == []
    there.write_bytes(b"changed")
    assert carry(two, one) == ["file launch/agent"]
    assert script.read_bytes() == b"changed"


def test_a_program_never_gets_across_before_it_can_be_executed(
    pair: tuple[Mirror, Mirror], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A launcher's daemon on another machine fails where the remote shell it is told of does not run."""
    one, two = pair
    looks = []

    def looking(path: Path, mode: int, base: Callable[[Path, int], None] = Path.chmod) -> None:
        if path.parent == one.root:
            looks.append(path.name)
            carry(one, two)
        base(path, mode)

    monkeypatch.setattr(Path, "chmod", looking)
    scratch.program(one.root / "agent", "#!/bin/sh\n")
    carry(one, two)
    assert looks
    assert [path.name for path in two.root.iterdir()] == ["agent"]
    assert (two.root / "agent").stat().st_mode & 0o777 == 0o755


def test_what_is_removed_goes_on_the_other_side(pair: tuple[Mirror, Mirror]) -> None:
    one, two = pair
    (one.root / "launch" / "deep").mkdir(parents=True)
    (one.root / "launch" / "deep" / "rank-0").write_text("here")
    carry(one, two)
    (one.root / "launch" / "deep" / "rank-0").unlink()
    (one.root / "launch" / "deep").rmdir()
    (one.root / "launch").rmdir()
    carry(one, two)
    assert list(two.root.iterdir()) == []


@pytest.mark.parametrize("name", ["stdout-0", "stderr-1", "owner", "log"])
def test_what_a_machine_keeps_writing_to_stays_there(pair: tuple[Mirror, Mirror], name: str) -> None:
    one, two = pair
    (one.root / name).write_text("words")
    assert carry(one, two) == []


def test_links_sockets_and_long_files_stay(pair: tuple[Mirror, Mirror]) -> None:
    one, two = pair
    (one.root / "link").symlink_to("/etc/passwd")
    os.mkfifo(one.root / "pipe")
    (one.root / "long").write_bytes(bytes(LARGEST + 1))
    (one.root / "longest").write_bytes(bytes(LARGEST))
    assert carry(one, two) == ["file longest"]


@pytest.mark.parametrize("path", ["../out", "/out", "launch/../../out"])
def test_a_path_that_leads_out_is_refused(pair: tuple[Mirror, Mirror], path: str) -> None:
    one, _ = pair
    with pytest.raises(ValueError, match="not a path within the folder"):
        one.take({"do": "file", "path": path, "mode": 0o600, "data": ""})
    assert not (one.root.parent / "out").exists()


def test_a_watch_tells_of_whole_files_only(tmp_path: Path) -> None:
    watch = Watch(tmp_path)
    try:
        assert not watch.read()
        with (tmp_path / "rank-0").open("w") as file:
            file.write("half")
            file.flush()
            assert not watch.read()
        assert watch.read()
        (tmp_path / "stdout-0").write_text("words")
        assert not watch.read()
        (tmp_path / "sub").mkdir()
        assert watch.read()
        watch.add(tmp_path / "sub")
        (tmp_path / "sub" / "rank-1").write_text("whole")
        assert watch.read()
    finally:
        watch.close()
