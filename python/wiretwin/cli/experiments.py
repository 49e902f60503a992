"""What each experiment of the papers is about, in a line, for those who ask which there are."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["ABOUT"]

ABOUT: Mapping[str, Mapping[str, str]] = {
    "lin1995": {
        "table1": "four interfaces through an ATM switch: t_0, r_max and n_half",
        "table2": "stream sockets over Ethernet, FDDI and ATM: t_0, r_max and n_half",
        "table3": "the Fore interface back to back, by host and adapter",
        "table4": "the Fore interface through a switch, by host, adapter and adaptation layer",
        "table5": "matrix multiplication on four hosts: time by interface and network",
        "table6": "a differential equation on four hosts: time by interface and network",
        "table7": "which abilities each interface has, by trying them",
        "figure7": "how single echoes vary on hosts that do other things too",
        "figure8": "TCP_NODELAY, socket buffers, and the sizes that stall, by network",
        "figure9": "the size of socket buffers, by host",
        "figure10": "PVM through its daemons and from task to task",
        "figure11": "the interfaces of table1, latency by size",
        "figure12": "three networks, latency by size",
        "first-message": "how much longer the first round trip takes than the others",
        "under-load": "latency beside other traffic to both hosts",
        "upgrades": "faster hosts, adapters and links: t_0, r_max and n_half",
        "scaling": "the differential equation on more and more hosts",
        "pvm-fore": "PVM on the Fore interface in place of TCP",
        "properties": "further abilities of the interfaces, by trying them on ATM",
        "circuits": "how long circuits take to be there, and one message to many",
    },
    "chen1996": {
        "pim": "parallel iterative matching: how full a switch can be",
        "echo-under-load": "a round trip beside streams that share its output",
        "parking-lot": "fair shares of sessions that join at one switch after another",
        "six-sessions": "six greedy streams, over queues that lose cells and with credits",
        "pvm": "a round trip of PVM, by transport and size",
        "md": "molecular dynamics: speed-up by transport and number of hosts",
        "mixed": "calls, a parallel program and streams that share hosts",
    },
    "ong2000": {
        "tcp": "TCP at an MTU of 1500, by adapter",
        "mtu": "TCP by MTU, socket buffer and adapter",
        "drivers": "TCP over other drivers of ACEnic, which have it interrupt at other times",
        "mpi": "LAM and MPICH at an MTU of 1500, by adapter",
        "mpi-mtu9000": "LAM and MPICH at an MTU of 9000, by adapter",
        "via": "VIA by adapter",
        "mvich": "MVICH over VIA, by adapter",
        "open-vis": "left open by the authors: VIA and MVICH by MTU and longest descriptor",
        "open-mpich": "left open by the authors: MPICH by socket buffer and switch-over",
        "open-cpu": "left open by the authors: what of the time the processors work",
        "open-collectives": "left open by the authors: collectives, by library and number of hosts",
        "now": "then and now, by network",
    },
    "vila1998": {
        "latency": "latency of a program's messages, by mechanism and load",
        "cell-loss": "cells lost, by mechanism and load",
        "abr-utilisation": "how much of what ABR grants is used, by load",
        "bandwidth": "rates by service category, and what they cost",
    },
}
"""By paper and experiment."""
