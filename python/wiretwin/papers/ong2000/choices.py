"""Ong & Farrell 2000: what its tables say under other choices."""

from __future__ import annotations

from wiretwin.model.gigabit import Setting
from wiretwin.model.netpipe import bases, netpipe
from wiretwin.papers.choices import Draw
from wiretwin.papers.records import Key

__all__ = ["under"]

MOST = 1 << 20
DESCRIPTOR = 32 << 10


def under(draw: Draw) -> dict[Key, float]:
    """Return the values whose results are opened, at the lengths of ``--quick``."""
    overrides = {
        (sheet, name): float(value) for key, value in draw.items() for sheet, _, name in [key.rpartition(".")]
    }
    found: dict[Key, float] = {}
    of_tcp = [
        ("mtu", Setting(nic, mtu, buffer_kib))
        for nic in ("acenic", "sk-net")
        for mtu in (4500, 8500)
        for buffer_kib in (64, 128)
    ]
    of_mpi = [
        ("mpi", Setting(nic, 1500, library=library))
        for library in ("mpi-lam", "mpi-mpich")
        for nic in ("acenic", "sk-net")
    ]
    for experiment, one in (*of_tcp, *of_mpi):
        curve = netpipe(one.under(overrides), [1, *(size for size in bases(MOST) if size >= 1 << 14)])
        found[experiment, one.case, "latency_us"] = curve.time_us[0]
        found[experiment, one.case, "throughput_Mbit_s"] = curve.peak_Mbit_s
    one = Setting("gnic-ii", library="mpi-mvich")
    curve = netpipe(one.under(overrides), [1, DESCRIPTOR])
    found["mvich", one.case, "latency_us"] = curve.time_us[0]
    found["mvich", f"{one.case} size={DESCRIPTOR}", "throughput_Mbit_s"] = curve.throughput_Mbit_s[1]
    return found
