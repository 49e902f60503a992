"""What a probe writes, line by line: the samples of each step as soon as it has ended.

They are read when a launch has ended, and by whoever opens a result whose measuring process was killed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

__all__ = ["allowed", "columns", "events", "steps"]

NETWORK_KEYS = ("payload_out", "payload_in", "bytes_out", "bytes_in", "packets_out", "packets_in")


def events(data: bytes) -> Iterator[tuple[bytes, Any]]:
    """Yield each line that is JSON with what it says; one cut off, or a library's, is passed over."""
    for line in data.splitlines():
        try:
            yield line, json.loads(line)
        except (ValueError, RecursionError):
            continue


def steps(data: bytes) -> list[dict[str, Any]]:
    """Return the steps that have samples, in order; lines that are not allowed are passed over."""
    found = [event for _, event in events(data) if isinstance(event, dict)]
    return [
        event for event in found if event.get("event") == "samples" and allowed(event) and event["values_ns"]
    ]


def allowed(event: dict[str, Any]) -> bool:
    """Whether a samples line has every key, with values that the columns of a result can hold."""

    def whole(value: object, least: int, bits: int) -> bool:
        return type(value) is int and least <= value < 1 << bits

    values, first = event.get("values_ns"), event.get("first_ns", -1)
    network = event.get("network", dict.fromkeys(NETWORK_KEYS, 0))
    return (
        isinstance(network, dict)
        and sorted(network) == sorted(NETWORK_KEYS)
        and all(whole(count, 0, 64) for count in network.values())
        and isinstance(event.get("loop"), str)
        and whole(event.get("bytes"), 0, 64)
        and whole(event.get("messages"), 1, 32)
        and whole(event.get("delay_ns"), 0, 64)
        and whole(event.get("batch"), 1, 32)
        and whole(event.get("lost", 0), 0, 64)
        and (first is None or whole(first, 0, 64))
        and isinstance(values, list)
        and all(whole(value, 0, 64) for value in values)
    )


def columns(steps: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the samples as columns of a result folder; nothing if there are none."""
    import numpy as np

    if not steps:
        return None
    # Where the first iteration was lost (datagrams), the step begins with the second.
    begins = [int(step["first_ns"] is None) for step in steps]
    lengths = [1 - begin + len(step["values_ns"]) for begin, step in zip(begins, steps, strict=True)]

    def spread(key: str, kind: type) -> Any:
        return np.repeat(np.array([step[key] for step in steps], dtype=kind), lengths)

    ranges = zip(begins, lengths, strict=True)
    index = np.concatenate([np.arange(begin, begin + length, dtype=np.uint32) for begin, length in ranges])
    values = [
        np.array([step["first_ns"], *step["values_ns"]][begin:], dtype=np.uint64)
        for begin, step in zip(begins, steps, strict=True)
    ]
    return {
        "loop": spread("loop", object),
        "bytes": spread("bytes", np.uint64),
        "messages": spread("messages", np.uint32),
        "delay_ns": spread("delay_ns", np.uint64),
        # The first iteration is timed by itself, whatever the batch of those that follow.
        "batch": np.where(index == 0, np.uint32(1), spread("batch", np.uint32)),
        "index": index,
        "value_ns": np.concatenate(values),
    }
