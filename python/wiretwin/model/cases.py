"""The name of a case: what a value was predicted for, as ``key=value`` in one order for all."""

from __future__ import annotations

__all__ = ["case", "keys_of"]

CASE_KEYS = [
    "stack",
    "network",
    "host",
    "adapter",
    "nic",
    "mtu",
    "buffer_kib",
    "transfer_kib",
    "switch_over",
    "program",
    "size",
    "layer",
    "accuracy",
    "load",
    "transport",
    "flow_control",
    "session",
    "link",
    "mechanism",
    "rho",
    "ports",
    "iterations",
]
"""The keys of a case, in their order."""


def case(**keys: object) -> str:
    """Write a case: ``key=value``, in the order that all cases have."""
    unknown = set(keys) - set(CASE_KEYS)
    if unknown:
        raise ValueError(f"no such key of a case: {', '.join(sorted(unknown))}")
    return " ".join(f"{key}={keys[key]}" for key in CASE_KEYS if keys.get(key) is not None)


def keys_of(name: str) -> dict[str, str]:
    """Read a case: its keys, and their values."""
    return dict(part.split("=", 1) for part in name.split())
