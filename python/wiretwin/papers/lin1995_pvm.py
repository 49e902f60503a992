"""Lin et al. 1995: PVM, from task to task and through its daemons."""

from __future__ import annotations

from typing import Any

from wiretwin.papers.lin1995_settings import Setting, socket_setting

__all__ = ["PVM_KEYS", "ROUTES", "VERSIONS", "is_pvm", "pvm_setting"]

ROUTES = {"advise": "tcp", "normal": "udp"}
"""What crosses the network, by route."""

PVM_KEYS = ("pvm_library_us", "pvm_copy_factor")
"""The free constants of PVM, fitted to its row of table 1 with all below it as it is."""


VERSIONS: dict[str, dict[str, Any]] = {
    "3.2.4": {"nodelay": False},
    "3.2.5": {"nodelay": True, "buffer_kib": 32},
}
"""What versions of PVM set on the sockets between tasks: an input of the paper."""


def is_pvm(name: str) -> bool:
    """Whether a case is one of PVM."""
    return name.startswith("stack=pvm-")


def pvm_setting(
    route: str, network: str = "atm", host: str = "4/690", buffer_kib: int = 32, *, nodelay: bool = True
) -> Setting:
    """Name PVM over one of the three networks.

    By default sockets are as PVM 3.2.5 sets them; see `VERSIONS`.
    """
    layer, transport = f"pvm-{route}", ROUTES[route]
    return socket_setting(network, host, buffer_kib, nodelay=nodelay, layer=layer, transport=transport)
