"""Hosts without hosts: namespaces of this machine, joined by a link, with names and folders of their own.

``Testbed.up(2)`` makes one and is a context manager; it is a `wiretwin.place.Place`.

- `bed`: make, find, enter, take down
- `plan`: what is asked for, checked
- `keeper`: the process that makes and holds a testbed; `private` and `network` are what it makes,
  `processes` the processes it ends
- `enter`: the way into a host, also as a remote shell
- `state`: the folder by which others find it; `kernel`: the system calls
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wiretwin.testbed.bed import Testbed
    from wiretwin.testbed.plan import Link, parse_link

__all__ = ["Link", "Testbed", "parse_link"]
_HOME = {"Testbed": "bed", "Link": "plan", "parse_link": "plan"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"wiretwin.testbed.{_HOME[name]}"), name)
