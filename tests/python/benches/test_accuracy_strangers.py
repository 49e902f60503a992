"""The lists of public programs, and that their table keeps what it has of set-ups not run again."""

from __future__ import annotations

import re
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
