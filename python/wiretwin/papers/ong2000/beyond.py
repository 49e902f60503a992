"""What Ong & Farrell left open: longer descriptors, MPICH's buffers, shares of processors, collectives."""

from __future__ import annotations

from collections.abc import Callable

from wiretwin.model.cases import case, keys_of
from wiretwin.model.gigabit import Setting
from wiretwin.model.netpipe import SEED, bases, netpipe
from wiretwin.papers.ong2000.today import now

__all__ = ["EXPERIMENTS", "Found"]

Found = tuple[str, str, float]
"""Case, metric and value."""

QUICK_MOST = 1 << 17
MOST = 1 << 22


def _summary(one: Setting, wanted: list[int]) -> tuple[list[Found], str]:
    curve = netpipe(one, wanted)
    found = [
        (one.case, "latency_us", curve.time_us[0]),
        (one.case, "throughput_Mbit_s", curve.peak_Mbit_s),
    ]
    return found, curve.digest


def _vis(quick: bool) -> tuple[list[Found], list[str]]:
    """VIs and MVICH on SK-NET, by MTU, and with descriptors of more than 32 KB."""
    found, runs = [], []
    for library in ("via", "mpi-mvich"):
        for mtu in (1500, 9000):
            for transfer_kib in (32, 256) if quick else (32, 64, 256, 1024):
                one = Setting("sk-net", mtu, library=library, transfer_kib=transfer_kib)
                most = min(one.most_bytes or MOST, QUICK_MOST if quick else MOST)
                made, digest = _summary(one, bases(most))
                found += made
                runs.append(digest)
    return found, runs


def _mpich(quick: bool) -> tuple[list[Found], list[str]]:
    """MPICH by socket buffer and switch-over, on SK-NET at both MTUs."""
    found, runs = [], []
    buffers = (4, 32) if quick else (4, 8, 16, 32)
    switches = (128_000,) if quick else (16_384, 65_536, 128_000, 1 << 20)
    for mtu in (1500, 9000):
        for kib in buffers:
            for switch_over in switches:
                one = Setting("sk-net", mtu, library="mpi-mpich", asked_kib=kib, switch_over=switch_over)
                made, digest = _summary(one, [1, *(size for size in bases(MOST >> 2) if size >= 1 << 14)])
                found += made
                runs.append(digest)
    return found, runs


STACKS = (None, "mpi-lam", "mpi-mpich", "via", "mpi-mvich")
SHARE_SIZES = (1, 1024, 32_768)


def _shares(quick: bool) -> tuple[list[Found], list[str]]:
    """Share of the processors' time that each layer takes of a round trip, on GNIC-II."""
    from wiretwin.model.anatomy import cpu_shares

    found, runs = [], []
    for library in STACKS:
        one = Setting("gnic-ii", library=library)
        for size in SHARE_SIZES[1:] if quick else SHARE_SIZES:
            shares, digest = cpu_shares(one, size)
            for layer, share in shares.items():
                parts = keys_of(one.case)
                found.append((case(**{**parts, "size": size, "layer": layer}), "cpu_share", share))
            runs.append(digest)
    return found, runs


COLLECTIVES = ("barrier", "bcast", "allreduce", "alltoall")
CALLS = 3
"""Calls of a collective; the last one counts."""


def _collectives(quick: bool) -> tuple[list[Found], list[str]]:
    """Call collectives as each library did them, around a switch, on SK-NET."""
    from wiretwin._core import lan_collective

    found, runs = [], []
    for library in ("mpi-lam", "mpi-mpich", "mpi"):
        for hosts in (4, 8) if quick else (4, 8, 16):
            one = Setting("sk-net", library=library, hosts=hosts)
            for name in COLLECTIVES:
                for size in (0,) if name == "barrier" else (1024, 65_536):
                    times, digest = lan_collective(one.lan_json(), name, size, CALLS, SEED)
                    parts = keys_of(one.case)
                    named = case(**{**parts, "program": name, "size": size or None})
                    found.append((named, "time_us", times[-1] / 1e6))
                    runs.append(digest)
    return found, runs


EXPERIMENTS: dict[str, Callable[[bool], tuple[list[Found], list[str]]]] = {
    "open-vis": _vis,
    "open-mpich": _mpich,
    "open-cpu": _shares,
    "open-collectives": _collectives,
    "now": now,
}
"""By name: makes values, and the digests of the runs."""
