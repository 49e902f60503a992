"""NetPIPE on a simulated network: its sizes, its method, and what is read off its curve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wiretwin._core import lan_netpipe
from wiretwin.errors import InputError, SimulationError
from wiretwin.model.gigabit import Setting, paper

__all__ = ["Signature", "bases", "netpipe", "sizes"]

SEED = 2000
MEGABIT = 1 << 20
"""Bits of a megabit as NetPIPE 2 has it."""


def bases(most: int) -> list[int]:
    """Return the sizes before they are perturbed: 1, 2, 3, 4, 6, 8, 12, …, up to `most`."""
    found, power = [1], 2
    while power <= most:
        found += [size for size in (power, power * 3 // 2) if size <= most]
        power *= 2
    return found


def sizes(most: int | None = None) -> list[int]:
    """Return NetPIPE's sizes."""
    method = paper()["netpipe"]
    step, begin = method["perturbation_bytes"], method["perturbed_from_bytes"]
    listed: set[int] = set()
    for base in bases(most or method["most_bytes"]):
        listed |= {base} if base < begin else {base - step, base, base + step}
    return sorted(listed)


@dataclass(frozen=True)
class Signature:
    """A curve.

    Attributes
    ----------
    sizes_bytes, time_us
        Ascending sizes, and the time of a message of each: the one-way latency.
    digest
        Of the run.
    """

    sizes_bytes: tuple[int, ...]
    time_us: tuple[float, ...]
    digest: str

    @property
    def throughput_Mbit_s(self) -> tuple[float, ...]:
        """Throughputs, in NetPIPE's megabits."""
        pairs = zip(self.sizes_bytes, self.time_us, strict=True)
        return tuple(8 * size / MEGABIT / (time * 1e-6) for size, time in pairs)

    @property
    def peak_Mbit_s(self) -> float:
        """The largest of them."""
        return max(self.throughput_Mbit_s)


def netpipe(setting: Setting, wanted: Sequence[int], seed: int = SEED, *, full: bool = False) -> Signature:
    """Measure these sizes with the program `netpipe`; with `full`, trials run to their end.

    Raises
    ------
    InputError
        The network is rejected, or a message is.
    SimulationError
        A connection was given up.
    """
    ordered = sorted(set(wanted))
    most = setting.most_bytes
    if most is not None and ordered and ordered[-1] > most:
        raise InputError(
            key="size", value=ordered[-1], allowed=f"at most {most} bytes, which a descriptor takes"
        )
    try:
        points, digest = lan_netpipe(setting.lan_json(), ordered, seed, full)
    except ValueError as error:
        raise InputError(reason=str(error)) from None
    except RuntimeError as error:
        raise SimulationError(str(error)) from None
    return Signature(tuple(size for size, _, _ in points), tuple(time / 1e3 for _, time, _ in points), digest)
