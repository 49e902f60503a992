"""Nothing is left of any verb that starts a process, whatever signal ends it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from leaving import SIGNALS, leave, possible
from verbs import CASES

from wiretwin.stacks.layers import parse_layers, refusal

AT_ONCE = 4
"""Commands under way at a time: most of what one does is waiting, and none sees another's processes."""

Found = dict[str, dict[signal.Signals, Future[dict[str, Any]]]]


@pytest.fixture(scope="module")
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Found]:
    """What comes of every verb that is asked for, by signal: begun together, and awaited by the tests."""
    asked = {item.callspec.params["verb"] for item in request.session.items if item.path == request.path}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {
            verb: {
                number: pool.submit(leave, case, number, tmp_path_factory.mktemp("leave"))
                for number in SIGNALS
            }
            for verb, case in CASES.items()
            if verb in asked and lacks(verb) is None
        }
        pool.shutdown(cancel_futures=True)


def lacks(verb: str) -> str | None:
    """Say why a verb cannot run here, if it cannot."""
    if not possible():
        return "this user may not make namespaces"
    layer = CASES[verb].layer
    refused = None if layer is None else refusal(parse_layers(layer)[0])
    return None if refused is None else str(refused)


@pytest.mark.needs_hosts
@pytest.mark.parametrize("verb", CASES)
def test_nothing_is_left_of_a_verb_that_a_signal_ends(verb: str, found: Found) -> None:
    if (reason := lacks(verb)) is not None:
        pytest.skip(reason)
    ended = {number: one.result() for number, one in found[verb].items()}
    assert not {number.name: one["left"] for number, one in ended.items() if one["left"]}, ended
    statuses = {number.name: one["status"] for number, one in ended.items()}
    assert statuses == {"SIGINT": 130, "SIGTERM": 143, "SIGHUP": 129, "SIGKILL": -9}, ended
    for number, one in ended.items():
        if number is not signal.SIGKILL:
            by = "" if number is signal.SIGINT else f"{number.name}: "
            assert f"wiretwin: {by}interrupted" in str(one["said"])
