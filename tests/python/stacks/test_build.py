"""Shims are built once, safely, and a compiler's refusal is shown."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from wiretwin.stacks import StackError
from wiretwin.stacks import build as module
from wiretwin.stacks.build import build, cache_folder

REFERENCE = "reference_tcp.c"


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    build.cache_clear()
    yield
    build.cache_clear()


def test_a_shim_is_built_once_and_found_again() -> None:
    made = build(REFERENCE, ("cc",))
    stamp = made.stat().st_mtime_ns
    build.cache_clear()
    assert build(REFERENCE, ("cc",)) == made
    assert made.stat().st_mtime_ns == stamp
    assert [path.name for path in made.parent.iterdir()] == [made.name]


def test_it_is_one_shim_in_whichever_folder_one_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = build(REFERENCE, ("cc",))
    build.cache_clear()
    monkeypatch.chdir(tmp_path)
    assert build(REFERENCE, ("cc",)) == made


def test_other_flags_and_another_source_are_another_shim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = build(REFERENCE, ("cc",))
    assert build(REFERENCE, ("cc",), flags=("-O0",)) != made
    changed = tmp_path / "shim"
    changed.mkdir()
    for source in module.SOURCES.iterdir():
        text = source.read_text().replace("#define WT_ABI 1", "#define WT_ABI 2")
        (changed / source.name).write_text(text)
    monkeypatch.setattr(module, "SOURCES", changed)
    build.cache_clear()
    assert build(REFERENCE, ("cc",)) != made


def test_a_refusal_of_the_compiler_is_shown_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken.c").write_text("int wt_abi(void) { return nonsense; }\n")
    monkeypatch.setattr(module, "SOURCES", tmp_path)
    with pytest.raises(
        StackError, match=r"building the shim broken\.c with cc ended with status 1:\n"
    ) as caught:
        build("broken.c", ("cc",))
    assert "nonsense" in str(caught.value)
    assert list(cache_folder().iterdir()) == []
    with pytest.raises(StackError, match=r"broken\.c with no-such-cc: no such compiler"):
        build("broken.c", ("no-such-cc",))


def test_builds_at_once_all_succeed_and_leave_one_file() -> None:
    code = f"from wiretwin.stacks.build import build; print(build({REFERENCE!r}, ('cc',)))"
    argv = [sys.executable, "-c", code]
    running = [subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) for _ in range(6)]
    made = {process.communicate(timeout=120)[0].strip() for process in running}
    assert {process.returncode for process in running} == {0}
    (path,) = made
    assert [one.name for one in Path(path).parent.iterdir()] == [Path(path).name]


def test_a_folder_that_others_can_write_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_to_all = tmp_path / "cache" / "wiretwin" / "shims"
    open_to_all.mkdir(parents=True)
    open_to_all.chmod(0o777)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    assert cache_folder() == tmp_path / "temporary" / f"wiretwin-{os.getuid()}" / "shims"
    (tmp_path / "temporary" / f"wiretwin-{os.getuid()}").chmod(0o777)
    with pytest.raises(StackError, match="others may write to it"):
        cache_folder()
