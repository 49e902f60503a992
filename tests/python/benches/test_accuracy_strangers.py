"""The lists of public programs, and that their table keeps what it has of set-ups not run again."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

BENCHES = Path(__file__).parents[3] / "benches"


def row(script: str, ranks: int, **changes: Any) -> dict[str, Any]:
    past = {
        "edition": "5", "setup": "crowded", "program": script, "ranks": ranks, "when": "2026-11-27",
        "predicted_s": "0.1", "compute_share": "0.5", "below": "0.1", "above": "0.1",
        "launches_s": "0.11 0.12",
    }  # fmt: skip
    spread = {"value": 0.1, "low": 0.09, "high": 0.12}
    whole = {"script": script, "ranks": ranks, "past": past, "predicted": spread, "actual": spread}
    return whole | {"printed": "same"} | changes


def test_rows_of_other_set_ups_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHES))
    monkeypatch.delitem(sys.modules, "accuracy_strangers", raising=False)
    import accuracy_strangers

    first = accuracy_strangers.markdown([row("a/b.py", 2), row("a/c.py", 4), row("a/d.py", 4, failed="no")])
    again = accuracy_strangers.markdown([row("a/e.py", 4)], first)
    assert re.findall(r"^\| `(\S+)` \| (\d)", again, re.MULTILINE) == [("a/b.py", "2"), ("a/e.py", "4")]
    assert re.findall(r"^\| (\d) \| (\d)", again, re.MULTILINE) == [("2", "1"), ("4", "1")]
    assert next(line for line in first.splitlines() if "a/b.py" in line) in again.splitlines()
    assert len(re.findall(r"^\|---", again, re.MULTILINE)) == 2


def test_lists_have_each_program_once_and_few_of_one_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHES))
    import strangers

    for kind in strangers.LISTS.values():
        listed = kind.read()
        assert len({one.name for one in listed}) == len(listed)
        sources = Counter(one.columns["repository"].split("/")[0] for one in listed)
        assert max(sources.values()) <= 3, sources.most_common(1)
        assert all(re.fullmatch("[0-9a-f]{40}", one.columns["commit"]) for one in listed)


def test_a_script_beside_the_repository_builds_a_program(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(BENCHES))
    import strangers

    repository = tmp_path / "a+b"
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", str(repository)]
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    (repository / "page").write_text("of it", "utf-8")
    subprocess.run([*git, "add", "page"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "all"], check=True)
    columns = {"repository": "a/b", "commit": "HEAD", "parts": "", "folder": ".",
               "program": "made", "arguments": ""}  # fmt: skip
    one = strangers.Listed(columns, strangers.built)
    with pytest.raises(strangers.NotThereError, match="nothing says how"):
        one.program(tmp_path, tmp_path / "out", 2)
    (tmp_path / "a+b.build").write_text('echo "$MPICC" > "$1"', "utf-8")
    found, _ = one.program(tmp_path, tmp_path / "out", 2)
    assert found.read_text("utf-8") == "mpicc.openmpi\n"
