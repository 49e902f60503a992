"""A twin as the parameters of other simulators: SimGrid's SMPI, and LogGOPSim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from wiretwin.errors import InputError
from wiretwin.twin import Costs, Quantity, Segment

__all__ = ["LogGops", "SimGrid", "loggopsim", "simgrid"]

_LEAST_NS = 1.0
"""The least latency for SimGrid: that of a twin may be below nothing, where both ends work at once."""
_PARTS: tuple[Quantity, ...] = ("overhead_send", "latency", "overhead_recv")


@dataclass(frozen=True, slots=True)
class LogGops:
    """The parameters of LogGOPSim (Hoefler et al. 2010), as integers in picoseconds and bytes.

    Attributes
    ----------
    latency_ps, overhead_ps, gap_ps
        L, o and g.
    gap_per_byte_ps, overhead_per_byte_ps
        G and O.
    rendezvous_bytes
        S: messages longer than this wait for their receiver.
    fitted_bytes
        The longer of the two sizes at which one message takes what it takes by the twin; the other is 1 byte.
    worst_percent, worst_bytes
        By how much one message misses that at worst, between 1 byte and `fitted_bytes`, and where.
    """

    latency_ps: int
    overhead_ps: int
    gap_ps: int
    gap_per_byte_ps: int
    overhead_per_byte_ps: int
    rendezvous_bytes: int
    fitted_bytes: int
    worst_percent: float
    worst_bytes: int

    @property
    def options(self) -> list[str]:
        """The words of its command line."""
        named = {
            "L": self.latency_ps,
            "o": self.overhead_ps,
            "g": self.gap_ps,
            "G": self.gap_per_byte_ps,
            "O": self.overhead_per_byte_ps,
            "S": self.rendezvous_bytes,
        }
        return [word for name, value in named.items() for word in (f"-{name}", str(value))]

    def one_way_ps(self, size: int) -> int:
        """Return what a message of 1 byte or more takes, from its send's beginning to its receive's end."""
        per_byte_ps = self.gap_per_byte_ps + 2 * self.overhead_per_byte_ps
        return 2 * self.overhead_ps + self.latency_ps + (size - 1) * per_byte_ps


def loggopsim(costs: Costs, fitted_bytes: int = 65536) -> LogGops:
    """Return a layer's costs as LogGOPSim has them: one line each, the same at both ends.

    Parameters
    ----------
    costs
        What a twin has of the layer.
    fitted_bytes
        The longer size at which both agree, from 2 to 2^30.

    Raises
    ------
    InputError
        The size is out of range; the twin has no overheads of the layer; a value does not fit LogGOPSim's
        integers.
    """
    if not 2 <= fitted_bytes <= 1 << 30:
        raise InputError(key="--fit-size", value=fitted_bytes, allowed="2 to 1073741824 bytes")
    _whole(costs)
    span = fitted_bytes - 1
    one, long = ([costs.at(part, size) * 1000 for part in _PARTS] for size in (1, fitted_bytes))
    per_byte_ps = max(0.0, (sum(long) - sum(one)) / span)
    # The overheads grow together by no more than the whole does.
    overhead_per_byte_ps = max(0.0, min((long[0] + long[2] - one[0] - one[2]) / 2 / span, per_byte_ps / 2))
    overhead_ps = max(0, round((one[0] + one[2]) / 2))
    overhead_each = int(overhead_per_byte_ps)
    made = LogGops(
        latency_ps=max(0, round(sum(one)) - 2 * overhead_ps),
        overhead_ps=overhead_ps,
        gap_ps=max(0, round(costs.at("gap", 1) * 1000)) if costs.gap else overhead_ps,
        gap_per_byte_ps=max(0, round(per_byte_ps - 2 * overhead_each)),
        overhead_per_byte_ps=overhead_each,
        rendezvous_bytes=(costs.rendezvous_from_bytes or 1 << 30) - 1,
        fitted_bytes=fitted_bytes,
        worst_percent=0.0,
        worst_bytes=1,
    )
    for name in ("latency_ps", "overhead_ps", "gap_ps"):
        if getattr(made, name) >= 1 << 31:
            reason = "is too long for LogGOPSim's integers of 32 bits in picoseconds"
            raise InputError(key=name, value=getattr(made, name), reason=reason)
    sizes = {size for shift in range(31) if (size := 1 << shift) <= fitted_bytes} | {fitted_bytes}
    sizes |= {
        end for part in _PARTS for one in getattr(costs, part) for end in (one.from_bytes - 1, one.from_bytes)
    }
    misses = [
        (abs(made.one_way_ps(size) / (1000 * sum(costs.at(part, size) for part in _PARTS)) - 1), size)
        for size in sizes
        if 1 <= size <= fitted_bytes
    ]
    worst, at = max(misses)
    return LogGops(**{name: getattr(made, name) for name in made.__slots__[:-2]}, worst_percent=100 * worst,
                   worst_bytes=at)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SimGrid:
    """The parameters of SimGrid's SMPI.

    Attributes
    ----------
    latency_s, bandwidth_bytes_s
        Of the links between any two hosts, before the factors.
    config
        Options by name, ``smpi/os``, as SMPI takes them.
    """

    latency_s: float
    bandwidth_bytes_s: float
    config: dict[str, str]

    def platform(self, hosts: int, cores: int = 1) -> str:
        """Return a platform file with so many hosts, each with so many cores, and these options in it.

        Raises
        ------
        InputError
            There are to be less than two hosts, or more than a million.
        """
        if not 2 <= hosts <= 1_000_000:
            raise InputError(key="--hosts", value=hosts, allowed="2 to 1000000")
        options = "\n".join(f'    <prop id="{name}" value="{value}"/>' for name, value in self.config.items())
        return (
            "<?xml version='1.0'?>\n"
            '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n'
            '<platform version="4.1">\n'
            f"  <config>\n{options}\n  </config>\n"
            # A message passes two links: its sender's and its receiver's.
            f'  <cluster id="twin" prefix="host-" suffix="" radical="0-{hosts - 1}" speed="1Gf" '
            f'core="{cores}" bw="{self.bandwidth_bytes_s:.9g}Bps" lat="{self.latency_s / 2:.9g}s"/>\n'
            "</platform>\n"
        )


def simgrid(costs: Costs) -> SimGrid:
    """Return a layer's costs as SMPI has them: overheads by size, factors of a link's latency and rate.

    Raises
    ------
    InputError
        The twin has no overheads of the layer.
    """
    _whole(costs)
    lines = costs.latency
    bases_ns = [max(_LEAST_NS, line.base_ns.value) for line in lines]
    rates = [1e9 / line.per_byte_ns.value if line.per_byte_ns.value > 0 else None for line in lines]
    latency_ns, bandwidth = min(bases_ns), max((rate for rate in rates if rate), default=1e12)
    threshold = str(costs.rendezvous_from_bytes or 1 << 30)
    config = {
        "smpi/os": _sections(costs.overhead_send),
        "smpi/ois": _sections(costs.overhead_send),
        "smpi/or": _sections(costs.overhead_recv),
        # A factor holds from its size on.
        "smpi/lat-factor": ";".join(
            f"{line.from_bytes}:{base / latency_ns:.9g}" for line, base in zip(lines, bases_ns, strict=True)
        ),
        "smpi/bw-factor": ";".join(
            f"{line.from_bytes}:{(rate or bandwidth) / bandwidth:.9g}"
            for line, rate in zip(lines, rates, strict=True)
        ),
        "smpi/async-small-thresh": threshold,
        "smpi/send-is-detached-thresh": threshold,
        "network/TCP-gamma": "0",
    }
    return SimGrid(latency_ns / 1e9, bandwidth, config)


def _sections(segments: Sequence[Segment]) -> str:
    """Return costs by size as SMPI has them: a section is for messages longer than its first number."""
    return ";".join(
        f"{max(0, line.from_bytes - 1)}:{line.base_ns.value / 1e9:.9g}:{line.per_byte_ns.value / 1e9:.9g}"
        for line in segments
    )


def _whole(costs: Costs) -> None:
    parts: dict[str, Any] = {part: getattr(costs, part) for part in _PARTS}
    if missing := [part for part, lines in parts.items() if not lines]:
        reason = f"the twin has no {missing[0]} of it"
        raise InputError(key="--layer", reason=reason, allowed="a layer that was measured with endpoints")
