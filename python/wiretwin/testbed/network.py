"""The network of a testbed: interfaces, bridge, shared medium. Each function runs inside one namespace.

The bridge has a namespace of its own, so that nothing of it is seen on the machine. There is no IPv6, and
the hosts know each other's Ethernet addresses from the start: what an interface counts is what the
hosts' programs sent.
"""

from __future__ import annotations

import contextlib
import ipaddress
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wiretwin.testbed.plan import INTERFACE, PREFIX_LENGTH, TRUNK, Host, Link

__all__ = ["join_hosts", "make_bridges", "set_up_host"]

BRIDGE = "bridge"
MEDIUM = "medium"
CONGESTION = "reno"
SYSCTLS = {
    "net/ipv6/conf/all/disable_ipv6": "1",
    "net/ipv6/conf/default/disable_ipv6": "1",
    "net/ipv4/tcp_congestion_control": CONGESTION,
    # What one launch learnt about the path does not change the next.
    "net/ipv4/tcp_no_metrics_save": "1",
}


SOURCE_ADDRESS = 12
"""Where an IP header has it (RFC 791, 3.1)."""


def _settings() -> None:
    for name, value in SYSCTLS.items():
        path = Path("/proc/sys", name)
        if path.exists():
            path.write_text(value)


def _up(route: Any, name: str) -> int:
    index = int(route.link_lookup(ifname=name)[0])
    route.link("set", index=index, state="up")
    return index


def make_bridges(link: Link) -> None:
    """Make a bridge for each switch, and what joins them in a row, in a namespace of their own."""
    from pyroute2 import IPRoute

    _settings()
    with IPRoute() as route:
        for number in range(link.switches):
            route.link(
                "add", ifname=f"{BRIDGE}{number}", kind="bridge", br_forward_delay=0, br_mcast_snooping=0
            )
            index = int(route.link_lookup(ifname=f"{BRIDGE}{number}")[0])
            route.link("set", index=index, mtu=link.mtu)
            _up(route, f"{BRIDGE}{number}")
        for number in range(link.switches - 1):
            ends = f"{TRUNK}{number}a", f"{TRUNK}{number}b"
            route.link(
                "add", ifname=ends[0], kind="veth", mtu=link.mtu, peer={"ifname": ends[1], "mtu": link.mtu}
            )
            for place, end in enumerate(ends):
                port = int(route.link_lookup(ifname=end)[0])
                route.link(
                    "set", index=port, master=int(route.link_lookup(ifname=f"{BRIDGE}{number + place}")[0])
                )
                _up(route, end)
                _slow(route, port, link, TRUNK)


def _slow(route: Any, index: int, link: Link, name: str) -> None:
    """Let what an interface sends take the lower rate that its host or cable has, if it has one."""
    rate_bit_s = link.slow_bit_s.get(name)
    if rate_bit_s is None:
        return
    frame = link.mtu + 14
    rate = f"{rate_bit_s}bit"
    route.tc("add", "htb", index, 0x10000, default=0x10)
    route.tc(
        "add-class", "htb", index, 0x10010, parent=0x10000, rate=rate, ceil=rate, burst=frame, cburst=frame,
        mtu=frame,
    )  # fmt: skip


def join_hosts(hosts: Sequence[Host], link: Link, namespaces: Mapping[str, int]) -> None:
    """Make a pair of interfaces for each host: one a port of its bridge, the other in the host.

    Runs in the bridge's namespace; `namespaces` are descriptors of the hosts' network namespaces.
    """
    from pyroute2 import IPRoute

    with IPRoute() as route:
        bridges = [int(route.link_lookup(ifname=f"{BRIDGE}{at}")[0]) for at in range(link.switches)]
        for place, host in enumerate(hosts):
            bridge = bridges[place * link.switches // len(hosts)]
            route.link(
                "add",
                ifname=host.name,
                kind="veth",
                mtu=link.mtu,
                peer={
                    "ifname": INTERFACE,
                    "address": host.mac,
                    "mtu": link.mtu,
                    "net_ns_fd": namespaces[host.name],
                },
            )
            port = int(route.link_lookup(ifname=host.name)[0])
            route.link("set", index=port, master=bridge)
            _up(route, host.name)
            _slow(route, port, link, host.name)
        if link.kind == "shared":
            assert link.rate_bit_s is not None
            _share_medium(route, hosts, link.rate_bit_s, link.mtu)


def _share_medium(route: Any, hosts: Sequence[Host], rate_bit_s: int, mtu: int) -> None:
    """Lead what every host sends through one queue: a class for the medium, below it a class each.

    Each class is promised its part of the rate and may borrow what the others leave (hierarchical token
    buckets, round robin between those that borrow): fair between hosts, and no faster than the medium,
    whoever talks to whom.
    """
    from pyroute2.protocols import ETH_P_ALL, ETH_P_IP

    route.link("add", ifname=MEDIUM, kind="ifb")
    medium = _up(route, MEDIUM)
    frame = mtu + 14
    rate = f"{rate_bit_s}bit"
    part = f"{rate_bit_s // (len(hosts) + 1)}bit"
    # The burst is one frame: what a medium that is free takes at once.
    shape = {"burst": frame, "cburst": frame, "mtu": frame}

    def leaf(number: int) -> int:
        minor = 0x10010 + number
        route.tc(
            "add-class", "htb", medium, minor, parent=0x10001, rate=part, ceil=rate, quantum=frame, **shape
        )
        return minor

    route.tc("add", "htb", medium, 0x10000, default=0x10)
    route.tc("add-class", "htb", medium, 0x10001, parent=0x10000, rate=rate, ceil=rate, **shape)
    leaf(0)  # what is not IP, whoever sent it
    for host in hosts:
        source = "".join(f"{int(octet):02x}" for octet in host.address.split("."))
        route.tc(
            "add-filter",
            "u32",
            medium,
            parent=0x10000,
            prio=1,
            protocol=ETH_P_IP,
            target=leaf(host.number),
            keys=[f"0x{source}/0xffffffff+{SOURCE_ADDRESS}"],
        )
        port = int(route.link_lookup(ifname=host.name)[0])
        route.tc("add", "ingress", port, 0xFFFF0000)
        action = {"kind": "mirred", "direction": "egress", "action": "redirect", "ifindex": medium}
        route.tc(
            "add-filter", "u32", port, parent=0xFFFF0000, prio=1, protocol=ETH_P_ALL, target=0x10000,
            keys=["0x0/0x0+0"], action=action,
        )  # fmt: skip


def set_up_host(host: Host, hosts: Sequence[Host], link: Link) -> None:
    """Give the host its address and what it knows of the others; its interface is there."""
    from pyroute2 import IPRoute

    _settings()
    with IPRoute() as route:
        _up(route, "lo")
        index = int(route.link_lookup(ifname=INTERFACE)[0])
        if link.kind == "wire":
            route.link("set", index=index, address=host.mac, mtu=link.mtu)
        if link.kind != "wire" and not link.offload:
            _no_offload(INTERFACE)
        _up(route, INTERFACE)
        _slow(route, index, link, host.name)
        # The kernel does not derive it, and what broadcasts (RPC, say) asks for it.
        everyone = str(ipaddress.ip_interface(f"{host.address}/{PREFIX_LENGTH}").network.broadcast_address)
        route.addr("add", index=index, address=host.address, prefixlen=PREFIX_LENGTH, broadcast=everyone)
        for other in hosts:
            if other != host:
                route.neigh("add", dst=other.address, lladdr=other.mac, ifindex=index, state=_PERMANENT)


_PERMANENT = 0x80
"""NUD_PERMANENT of ``linux/neighbour.h``."""
FEATURES = (
    "tx-tcp-segmentation",
    "tx-tcp-ecn-segmentation",
    "tx-generic-segmentation",
    "tx-udp-segmentation",
    "rx-gro",
)


def _no_offload(interface: str) -> None:
    """Switch off what lets the kernel hand over more than a frame at a time."""
    from pyroute2 import Ethtool

    tool = Ethtool()
    try:
        features = tool.get_features(interface)
        for name in FEATURES:
            with contextlib.suppress(KeyError):
                features.features[name].enable = False
        tool.set_features(interface, features)
    finally:
        tool.close()
