"""An echo on a simulated network, by size, and what is read off its curve."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from wiretwin._core import lan_echo
from wiretwin.errors import InputError, SimulationError
from wiretwin.model.profiles import Network, lan_json

__all__ = ["SEED", "Curve", "Described", "Trial", "coarse", "echo", "fine", "measure", "summary", "try_echo"]

SEED = 1995


class Described(Protocol):
    """A network in every detail."""

    def lan_json(self) -> str:
        """Return its configuration as JSON."""


@dataclass(frozen=True)
class Curve:
    """Latencies by size.

    Attributes
    ----------
    sizes_bytes
        Ascending.
    latency_us
        One-way latency of each, the mean over the rounds that count.
    digest
        Of every run that the curve was read from, in order.
    """

    sizes_bytes: tuple[int, ...]
    latency_us: tuple[float, ...]
    digest: str

    @property
    def throughput_MB_s(self) -> tuple[float, ...]:
        """Twice the size over the round trip."""
        return tuple(size / time for size, time in zip(self.sizes_bytes, self.latency_us, strict=True))


def fine(step: int = 96, most: int = 8192) -> list[int]:
    """Return 4, 100, … bytes, up to `most`."""
    return list(range(4, most + 1, step))


def coarse(most: int = 1 << 20) -> list[int]:
    """Return 4 bytes and their doublings, up to `most`."""
    return [4 << power for power in range(40) if 4 << power <= most]


def echo(network: Network, sizes: Sequence[int], rounds: int, seed: int = SEED) -> list[np.ndarray]:
    """Return the round trips of each size in microseconds, the first left out.

    Raises
    ------
    SimulationError
        A message was lost.
    InputError
        The network is rejected.
    """
    runs, _ = _run(network, sizes, rounds, seed)
    return runs


def _run(
    network: Network, sizes: Sequence[int], rounds: int, seed: int
) -> tuple[list[np.ndarray], list[str]]:
    try:
        runs = lan_echo(lan_json(network), list(sizes), rounds, seed)
    except ValueError as error:
        raise InputError(reason=str(error)) from None
    except RuntimeError as error:
        raise SimulationError(str(error)) from None
    return [run["round_trip_ps"][1:] / 1e6 for run in runs], [run["digest"] for run in runs]


@dataclass(frozen=True)
class Trial:
    """An echo of one size on a network that may lose messages.

    Attributes
    ----------
    first_us
        The first round trip, if it ended.
    round_trip_us
        Those after it that ended.
    rounds, lost
        Round trips in all, and those of which a message was lost.
    cells, lost_cells
        That came to the switch, load and all, and that it had no room for.
    segments, repeated
        Segments with text that TCP sent, and those of them that it sent again.
    digest
        Of the run.
    """

    first_us: float
    round_trip_us: np.ndarray
    rounds: int
    lost: int
    cells: int
    lost_cells: int
    segments: int
    repeated: int
    digest: str


def try_echo(network: Described, sizes: Sequence[int], rounds: int, seed: int = SEED) -> list[Trial]:
    """Echo each size so many times, the first included, whatever is lost.

    Raises
    ------
    SimulationError
        A connection of TCP was given up.
    InputError
        The network is rejected.
    """
    try:
        runs = lan_echo(network.lan_json(), list(sizes), rounds, seed, patient=True)
    except ValueError as error:
        raise InputError(reason=str(error)) from None
    except RuntimeError as error:
        raise SimulationError(str(error)) from None
    return [
        Trial(
            run["round_trip_ps"][0] / 1e6 if len(run["round_trip_ps"]) else float("nan"),
            run["round_trip_ps"][1:] / 1e6,
            rounds,
            run["lost_rounds"],
            run["switched_cells"],
            run["switch_lost_cells"],
            run["sent_segments"],
            run["retransmitted_segments"],
            run["digest"],
        )
        for run in runs
    ]


def measure(network: Network, sizes: Iterable[int], seed: int = SEED, rounds: int | None = None) -> Curve:
    """Echo every size on hosts that do nothing else.

    Over the Fore interface itself all rounds but the first take the same time, which is checked, and three
    are run; the timers of TCP run on grids of their own, and the mean of ten is taken.
    """
    import hashlib

    sockets = network.stack.split("/")[0] != "fore"
    wanted = sorted(set(sizes))
    runs, digests = _run(network, wanted, rounds or (11 if sockets else 3), seed)
    for size, run in zip(wanted, runs, strict=True):
        if not sockets and np.ptp(run) > 0:
            raise SimulationError(f"an echo of {size} bytes does not repeat: {run.tolist()} us")
    whole = hashlib.sha256("".join(digests).encode()).hexdigest()[:32]
    return Curve(tuple(wanted), tuple(float(np.mean(run)) / 2 for run in runs), whole)


def summary(curve: Curve) -> dict[str, float]:
    """Read t_0, r_max and n_half off a curve.

    t_0 is the latency of its smallest size, r_max the largest throughput, n_half the size at which the
    throughput first reaches half of that, on the straight line between two sizes.
    """
    rates = np.array(curve.throughput_MB_s)
    sizes = np.array(curve.sizes_bytes, dtype=float)
    half = rates.max() / 2
    above = int(np.argmax(rates >= half))
    n_half = sizes[above]
    if above > 0:
        share = (half - rates[above - 1]) / (rates[above] - rates[above - 1])
        n_half = sizes[above - 1] + share * (sizes[above] - sizes[above - 1])
    return {
        "t0_us": curve.latency_us[0],
        "r_max_MB_s": float(rates.max()),
        "n_half_bytes": float(n_half),
    }
