"""Samples of a machine whose parameters are known: what every fit is checked against.

The machine is LogGP by message size (Alexandrov et al. 1995; the parametrised round trip as in Hoefler et
al. 2007). Its noise is what a shared host does: every launch is a little slower or faster as a whole,
every step of a launch too, every sample besides, and now and then a step is spoilt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from wiretwin.fit.stats import Array

__all__ = ["HALF_OCTAVES", "Lines", "Machine", "Noise", "noisy"]

HALF_OCTAVES: NDArray[np.int64] = np.unique(
    np.concatenate(([1, 2, 4, 8], np.round(2 ** np.arange(4, 23.01, 0.5)).astype(np.int64)))
)
"""Sizes from 1 B to 8 MiB, two an octave from 16 B on."""


@dataclass(frozen=True)
class Lines:
    """Straight lines by size: ``(from_bytes, base_ns, per_byte_ns)``, ascending from 0."""

    lines: tuple[tuple[int, float, float], ...]

    def __call__(self, sizes: ArrayLike) -> Array:
        """Time at each size, in ns."""
        at = np.asarray(sizes, dtype=np.float64)
        start, base, rate = (np.array(column) for column in zip(*self.lines, strict=True))
        which = np.searchsorted(start, at, side="right") - 1
        return np.asarray(base[which] + rate[which] * at, dtype=np.float64)


@dataclass(frozen=True)
class Noise:
    """Standard deviations of the logarithm, and how often a step of a launch is spoilt and by what factor."""

    launch: float = 0.02
    step: float = 0.01
    sample: float = 0.02
    spoilt: float = 0.03
    spoilt_by: float = 0.3


QUIET = Noise(0.0, 0.0, 0.0, 0.0, 0.0)


def noisy(times: Array, launches: int, noise: Noise, random: np.random.Generator) -> Array:
    """Return launch medians of the given times: launches by times. Their median is the time itself."""
    shape = (launches, times.size)
    y = times * np.exp(random.normal(0, noise.launch, (launches, 1)) + random.normal(0, noise.step, shape))
    spoilt = random.random(shape) < noise.spoilt
    return np.asarray(y * np.where(spoilt, 1 + random.exponential(noise.spoilt_by, shape), 1.0))


@dataclass(frozen=True)
class Machine:
    """A machine with known parameters."""

    send: Lines
    recv: Lines
    latency: Lines
    gap: Lines
    call_ns: float = 100.0
    fetch: Lines | None = None
    """What a receive takes whose sender is away; without it, the loop `fetch` waits for the sender."""

    def half_round_trip(self, sizes: ArrayLike) -> Array:
        """Return o_s + L + o_r at each size, in ns."""
        return self.send(sizes) + self.latency(sizes) + self.recv(sizes)

    def samples(
        self,
        *,
        layer: str = "synthetic",
        sizes: Sequence[int] | NDArray[np.int64] = HALF_OCTAVES,
        endpoint_sizes: Sequence[int] | NDArray[np.int64] | None = None,
        prtt_limit: int = 2**62,
        launches: int = 5,
        each: int = 9,
        messages: int = 16,
        batch: int = 1,
        noise: Noise = QUIET,
        loops: Sequence[str] = ("echo", "call", "send_busy", "recv_busy", "stream", "prtt"),
        seed: int = 0,
    ) -> pl.DataFrame:
        """Return samples as a result has them.

        Parameters
        ----------
        layer
            Its name.
        sizes
            Of the echo, in bytes.
        endpoint_sizes
            Of the other loops; by default every second size.
        prtt_limit
            Largest size of the parametrised round trip.
        launches, each
            Launches, and samples of each step in one of them, after the first iteration.
        messages
            Messages of a parametrised round trip or stream.
        batch
            Iterations in a sample of the echo.
        noise
            Of the launches, steps and samples.
        loops
            The loops to run.
        seed
            Of the noise.
        """
        random = np.random.default_rng(seed)
        all_sizes = np.asarray(sizes, dtype=np.int64)
        few = all_sizes[::2] if endpoint_sizes is None else np.asarray(endpoint_sizes, dtype=np.int64)
        # Loop, bytes, messages, delay, batch, time without the delays: spinning takes the time it is given.
        steps: list[tuple[str, int, int, int, int, float]] = []
        for s in all_sizes.tolist():
            steps.append(("echo", s, 1, 0, batch, 2 * self._half(s)))
        steps.append(("call", 0, 1, 0, 1, self.call_ns))
        for s in few.tolist():
            one, gap, send = 2 * self._half(s), float(self.gap(s)), float(self.send(s))
            steps.append(("send_busy", s, 1, 0, 1, send))
            steps.append(("recv_busy", s, 1, int(2 * one) + 20_000, 1, float(self.recv(s))))
            alone = 2 * one + 20_000 + float(self.recv(s)) if self.fetch is None else float(self.fetch(s))
            steps.append(("fetch", s, 1, 0, 1, alone))
            acknowledged = (messages - 1) * gap + self._half(s) + self._half(int(all_sizes[0]))
            steps.append(("stream", s, messages, 0, 1, acknowledged))
            if s <= prtt_limit:
                delay = int(1.5 * one) + 1000
                steps.append(("prtt", s, 1, 0, 1, one))
                steps.append(("prtt", s, messages, 0, 1, one + (messages - 1) * gap))
                steps.append(("prtt", s, messages, delay, 1, one + (messages - 1) * send))
        steps = [step for step in steps if step[0] in loops]
        medians = noisy(np.array([step[5] for step in steps]), launches, noise, random)
        shape = (launches, len(steps), each + 1)
        values = medians[:, :, None] * np.exp(random.normal(0, noise.sample, shape))
        # The first iteration finds everything cold.
        values[:, :, 0] *= 10.0
        values *= np.array([step[4] for step in steps])[None, :, None]
        values += np.array([(s[2] - 1) * s[3] for s in steps], dtype=np.float64)[None, :, None]
        launch, step, index = np.indices(shape)

        def column(k: int) -> NDArray[np.int64]:
            return np.asarray(np.array([s[k] for s in steps], dtype=np.int64)[step.ravel()])

        return pl.DataFrame(
            {
                "launch": (launch.ravel() + 1).astype(np.uint32),
                "layer": pl.Series([layer]).extend_constant(layer, launch.size - 1),
                "loop": np.array([s[0] for s in steps])[step.ravel()],
                "bytes": column(1).astype(np.uint64),
                "messages": column(2).astype(np.uint32),
                "delay_ns": column(3).astype(np.uint64),
                "batch": column(4).astype(np.uint32),
                "index": index.ravel().astype(np.uint32),
                "value_ns": np.rint(values.ravel()).astype(np.uint64),
            }
        )

    def _half(self, size: int) -> float:
        return float(self.half_round_trip(size))
