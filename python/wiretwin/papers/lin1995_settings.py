"""Lin et al. 1995: what is measured on which network."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from typing import Any

from wiretwin.model.cases import case, keys_of
from wiretwin.model.profiles import Network
from wiretwin.model.values import DATA

__all__ = [
    "ADAPTERS",
    "BACKGROUND",
    "HOSTS",
    "NETWORKS",
    "PAPER",
    "Setting",
    "fore_setting",
    "paper",
    "program_setting",
    "renamed",
    "sized",
    "socket_setting",
]

PAPER = "lin1995"
HOSTS = ("sparc1+", "sparc2", "4/690")
ADAPTERS = ("series-100", "series-200")
NETWORKS = ("atm", "fddi", "ethernet")

BACKGROUND = {
    "tick_ps": 10_000_000_000,
    "tick_work_ps": 100_000_000,
    "wake_ps": 50_000_000_000,
    "wake_work_ps": 500_000_000,
}
"""What else a workstation does, a choice: the clock interrupts 100 times a second for 100 us, and other
processes run for 500 us on average, 20 times a second (exponentially distributed)."""


@dataclass(frozen=True)
class Setting:
    """A row of a table: its case and the network it is measured on."""

    case: str
    network: Network


def paper() -> dict[str, Any]:
    """Return the data file of this paper."""
    return tomllib.loads((DATA / "papers" / "lin1995.toml").read_text(encoding="utf-8"))


def fore_setting(host: str, adapter: str, *, switch: bool, stack: str = "fore/aal5") -> Setting:
    """Name the Fore interface, through the switch or back to back."""
    name = case(stack=stack, network="atm", host=host, adapter=adapter)
    return Setting(name, Network(stack, host, adapter, switch="asx100" if switch else None))


def program_setting(host: str, stack: str = "fore/aal5") -> Setting:
    """Name the Fore interface as programs use it, with segmentation and retransmission of their own."""
    setting = fore_setting(host, "series-200", switch=True, stack=stack)
    layer, lower = stack.split("/")
    return Setting(setting.case, replace(setting.network, stack=f"{layer}+reliable/{lower}"))


def socket_setting(
    network: str,
    host: str = "4/690",
    buffer_kib: int = 32,
    *,
    nodelay: bool = True,
    layer: str = "socket",
    transport: str = "tcp",
) -> Setting:
    """Name stream sockets, or a message layer on them, over one of the three networks."""
    lower = {"atm": "aal5"}.get(network, network)
    adapter = "series-200" if network == "atm" else None
    stack = f"{layer}/{transport}/{lower}"
    name = case(
        stack=stack,
        network=network,
        host=host,
        adapter=adapter,
        buffer_kib=buffer_kib,
        transport=None if nodelay else "nagle",
    )
    made = Network(
        stack,
        host,
        adapter or "frames",
        switch="asx100" if network == "atm" else None,
        buffer_kib=buffer_kib,
        nodelay=nodelay,
    )
    return Setting(name, made)


def sized(name: str, size: int, **more: object) -> str:
    """Return a case with a size, and what else is given."""
    return renamed(name, size=size, **more)


def renamed(name: str, **values: object) -> str:
    """Return a case with these values in place of its own."""
    keys = keys_of(name)
    return case(**{**keys, **values})
