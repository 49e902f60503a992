"""The specification of a probe written in Python: read, and rejected by key, value and what is allowed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NoReturn

__all__ = ["PROTOCOL", "read"]

PROTOCOL = 1
"""The version of the probe protocol."""
STEP_KEYS: dict[str, tuple[float, float, float | None]] = {
    "bytes": (0, 1 << 30, None),
    "messages": (1, 1 << 24, 1),
    "delay_ns": (0, 10**10, 0),
    "warmup": (0, 1 << 24, 16),
    "min_samples": (1, 1 << 24, 20),
    "max_samples": (1, 1 << 24, 2000),
    "budget_ms": (0, 3_600_000, 20.0),
    "batch": (0, 1 << 20, 0),
}
"""Keys of a step besides ``loop``: least, most, default (none: required)."""
SPEC_KEYS = (
    "protocol",
    "layer",
    "rank",
    "size",
    "options",
    "directory",
    "pin_cpu",
    "limit_s",
    "interface",
    "schedule",
    "together",
)


def read(
    path: str, layers: tuple[str, ...], loops: tuple[str, ...], together: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Read a specification and reject whatever is wrong in it; defaults are filled in.

    Parameters
    ----------
    path
        The file.
    layers
        The layers that are served.
    loops
        The loops there are of two ranks.
    together
        Those of what any number of ranks do together.

    Raises
    ------
    ValueError
        Names the key, its value and what is allowed.
    """
    spec = json.loads(Path(path).read_text())
    if not isinstance(spec, dict):
        raise ValueError(f"{type(spec).__name__} is not allowed: a JSON object")
    known(spec, "", SPEC_KEYS)
    one_of(spec, "", "protocol", PROTOCOL)
    if spec.get("layer") not in layers:
        refuse("layer", spec.get("layer"), ", ".join(layers))
    one_of(spec, "", "rank", None)
    one_of(spec, "", "size", None)
    options = spec.setdefault("options", {})
    if not isinstance(options, dict):
        refuse("options", options, "a JSON object")
    known(options, "options.", ())
    if not isinstance(spec.get("directory"), str):
        refuse("directory", spec.get("directory"), "a path")
    number(spec, "", "limit_s", 0, 86_400, None, whole=False)
    interface = spec.setdefault("interface", None)
    if interface is not None and not (isinstance(interface, str) and interface):
        refuse("interface", interface, "the name of an interface, or null")
    pins = spec.get("pin_cpu")
    # Those of ranks on other hosts are none of those that this process may use.
    there = range(os.cpu_count() or 1)
    whole = isinstance(pins, list) and all(type(core) is int and core in there for core in pins)
    if pins is not None and not (whole and len(pins) >= 2):
        refuse("pin_cpu", pins, f"null, or two cores of {list(there)} or more")
    for key in ("schedule", "together"):
        spec.setdefault(key, None)
    key, known_loops = ("schedule", loops) if spec["together"] is None else ("together", together)
    if not isinstance(spec[key], list):
        refuse(key, spec[key], "a list of steps")
    if key == "together" and spec["schedule"] is not None:
        refuse("schedule", spec["schedule"], "one of schedule and together")
    for place, step in enumerate(spec[key]):
        check_step(step, f"{key}[{place}]", known_loops)
    return spec


def check_step(step: object, key: str, loops: tuple[str, ...]) -> None:
    """Reject a step that is wrong; fill in the defaults of one that is right."""
    if not isinstance(step, dict):
        refuse(key, step, "a JSON object")
    known(step, f"{key}.", ("loop", *STEP_KEYS))
    if step.get("loop") not in loops:
        refuse(f"{key}.loop", step.get("loop"), ", ".join(loops))
    for name, (least, most, default) in STEP_KEYS.items():
        number(step, f"{key}.", name, least, most, default, whole=name != "budget_ms")
    if step["loop"] == "two_write" and step["bytes"] < 2:
        refuse(f"{key}.bytes", step["bytes"], "at least 2 for two writes")
    if step["min_samples"] > step["max_samples"]:
        refuse(f"{key}.max_samples", step["max_samples"], f"at least min_samples, {step['min_samples']}")


def number(
    table: dict[str, Any],
    place: str,
    key: str,
    least: float,
    most: float,
    default: float | None,
    *,
    whole: bool,
) -> None:
    """Reject a number that is absent, of the wrong kind or out of range; fill in its default."""
    value: Any = table.setdefault(key, default)
    right = isinstance(value, int if whole else int | float) and not isinstance(value, bool)
    if not right or not least <= value <= most or (not whole and value == 0):
        kind = "a whole number" if whole else "a number above 0"
        refuse(place + key, value, f"{kind} from {least:g} to {most:g}" if whole else f"{kind}, to {most:g}")


def known(table: dict[str, Any], place: str, keys: tuple[str, ...]) -> None:
    """Reject a key that is not in the list."""
    for key in table:
        if key not in keys:
            refuse(place + key, table[key], ", ".join(keys) or "no option here")


def one_of(table: dict[str, Any], place: str, key: str, allowed: object) -> None:
    """Reject a value other than the one that is allowed."""
    if key not in table or table[key] != allowed:
        refuse(place + key, table.get(key), json.dumps(allowed))


def refuse(key: str, value: object, allowed: str) -> NoReturn:
    """Say what is wrong with a specification."""
    raise ValueError(f"{key}: {json.dumps(value)} is not allowed: {allowed}")
