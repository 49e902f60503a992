"""Nothing is left of any verb that starts a process, whatever signal ends it."""

from __future__ import annotations

import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from leaving import SIGNALS, leave, possible
from verbs import CASES

from wiretwin.measure.layers import parse_layers, refusal


@pytest.mark.needs_hosts
@pytest.mark.parametrize("verb", CASES)
def test_nothing_is_left_of_a_verb_that_a_signal_ends(verb: str, tmp_path: Path) -> None:
    if not possible():
        pytest.skip("this user may not make namespaces")
    case = CASES[verb]
    if case.layer is not None and (refused := refusal(parse_layers(case.layer)[0])) is not None:
        pytest.skip(str(refused))

    def one(number: signal.Signals) -> dict[str, Any]:
        folder = tmp_path / number.name
        folder.mkdir()
        return leave(case, number, folder)

    with ThreadPoolExecutor(len(SIGNALS)) as pool:
        found = dict(zip(SIGNALS, pool.map(one, SIGNALS), strict=True))
    assert not {number.name: one["left"] for number, one in found.items() if one["left"]}, found
    statuses = {number.name: one["status"] for number, one in found.items()}
    assert statuses == {"SIGINT": 130, "SIGTERM": 143, "SIGHUP": 129, "SIGKILL": -9}, found
    for number, one in found.items():
        if number is not signal.SIGKILL:
            by = "" if number is signal.SIGINT else f"{number.name}: "
            assert f"wiretwin: {by}interrupted" in str(one["said"])
