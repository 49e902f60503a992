"""What the time between two MPI calls costs, in the simulated world.

A `ComputeSource` is asked once for every stretch of computation. Its key is the rank, the number of
the stretch, and the digest of the rank's path up to and including the call that ends it.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from wiretwin.errors import InputError


class ComputeSource(Protocol):
    """Decides what computation costs."""

    def begin(self, ranks: int) -> None:
        """Prepare for a run of `ranks` ranks."""

    def charge(self, rank: int, call: int, digest: int, site: tuple[str, int], measured_ps: int) -> int:
        """Return what the stretch costs, in picoseconds.

        Parameters
        ----------
        rank, call
            Whose stretch it is, and which of it, from 0.
        digest
            The path of the rank so far.
        site
            File and line of the call that ends it.
        measured_ps
            What it took in this pass: CPU time of the thread, without the simulator's own.
        """

    def warnings(self) -> list[str]:
        """Return what a reader of the result should know."""


@dataclass(frozen=True, slots=True)
class Pass:
    """The computation of one pass: durations in picoseconds and path digests, by rank.

    `crossing_ns` is how far the first two ranks were apart before and after, if they could tell;
    `asleep_ps`, by rank and stretch, for how long of it no core was needed, where that is any time.
    """

    durations_ps: list[list[int]]
    digests: list[list[int]]
    crossing_ns: tuple[float, float] | None = None
    asleep_ps: list[dict[int, int]] = field(default_factory=list)


class Measured:
    """What this pass itself took, times `scale`."""

    def __init__(self, scale: float = 1.0) -> None:
        if not scale > 0:
            raise InputError(key="compute scale", value=scale, allowed="a number above 0")
        self.scale = scale

    def begin(self, ranks: int) -> None:
        """Nothing to prepare."""

    def charge(self, rank: int, call: int, digest: int, site: tuple[str, int], measured_ps: int) -> int:
        """Return the measured time."""
        return measured_ps if self.scale == 1.0 else round(measured_ps * self.scale)

    def warnings(self) -> list[str]:
        """Nothing to say."""
        return []


class Replay:
    """The durations of an earlier run, exactly.

    Parameters
    ----------
    durations_ps
        Of each rank, as `SimulatedRun.compute.durations_ps` has them.
    digests
        The paths that belong to them; a run that leaves them is rejected.
    """

    def __init__(
        self, durations_ps: Sequence[Sequence[int]], digests: Sequence[Sequence[int]] | None = None
    ) -> None:
        self._durations = [list(rank) for rank in durations_ps]
        self._digests = None if digests is None else [list(rank) for rank in digests]

    def begin(self, ranks: int) -> None:
        """Check that the recording is of as many ranks."""
        if len(self._durations) != ranks:
            raise InputError(
                key="recorded computation", value=len(self._durations), allowed=f"durations of {ranks} ranks"
            )

    def charge(self, rank: int, call: int, digest: int, site: tuple[str, int], measured_ps: int) -> int:
        """Return the recorded time."""
        durations = self._durations[rank]
        if call >= len(durations):
            raise InputError(
                key=f"recorded computation of rank {rank}",
                value=f"{len(durations)} stretches",
                reason=f"end before the call at {site[0]}:{site[1]}: the program takes another path",
            )
        if self._digests is not None and self._digests[rank][call] != digest:
            raise InputError(
                key=f"recorded computation of rank {rank}",
                value=f"stretch {call}",
                reason=f"was recorded on another path than the one that leads to {site[0]}:{site[1]}",
            )
        return durations[call]

    def warnings(self) -> list[str]:
        """Nothing to say."""
        return []


@dataclass(slots=True)
class _Departure:
    count: int = 0
    first: tuple[str, int] | None = None
    call: int = 0


class Aggregated:
    """The least or the median of what several passes took for the same stretch on the same path.

    A stretch that no pass took on this path costs what it takes in this run, and is reported.
    """

    def __init__(
        self, passes: Sequence[Pass], statistic: Literal["minimum", "median"] = "median", scale: float = 1.0
    ) -> None:
        if not passes:
            raise InputError(key="passes", value=0, allowed="1 or more")
        if statistic not in ("minimum", "median"):
            raise InputError(key="statistic", value=statistic, allowed="minimum, median")
        self._passes = list(passes)
        self._statistic = statistic
        self._scale = scale
        self._table: list[list[dict[int, int]]] = []
        self._lost: dict[int, _Departure] = {}

    def begin(self, ranks: int) -> None:
        """Bring the passes together."""
        pick = min if self._statistic == "minimum" else statistics.median_low
        self._lost = {}
        self._table = []
        for rank in range(ranks):
            mine = [one for one in self._passes if rank < len(one.durations_ps)]
            calls = max((len(one.durations_ps[rank]) for one in mine), default=0)
            table: list[dict[int, int]] = []
            for call in range(calls):
                found: dict[int, list[int]] = {}
                for one in mine:
                    if call < len(one.durations_ps[rank]):
                        found.setdefault(one.digests[rank][call], []).append(one.durations_ps[rank][call])
                table.append({digest: pick(values) for digest, values in found.items()})
            self._table.append(table)

    def charge(self, rank: int, call: int, digest: int, site: tuple[str, int], measured_ps: int) -> int:
        """Return the statistic over the passes."""
        table = self._table[rank]
        value = table[call].get(digest) if call < len(table) else None
        if value is None:
            lost = self._lost.setdefault(rank, _Departure(first=site, call=call))
            lost.count += 1
            value = measured_ps
        return value if self._scale == 1.0 else round(value * self._scale)

    def asleep_ps(self, rank: int, call: int) -> int:
        """Return for how long of a stretch no core is needed, as the first pass has it, in picoseconds."""
        asleep = self._passes[0].asleep_ps
        return asleep[rank].get(call, 0) if asleep else 0

    def warnings(self) -> list[str]:
        """Say which ranks took a path that no pass had taken."""
        said = []
        for rank, lost in sorted(self._lost.items()):
            file, line = lost.first or ("?", 0)
            said.append(
                f"rank {rank} took another path than the {len(self._passes)} passes from its stretch "
                f"{lost.call}, which ends at {file}:{line}: {lost.count} stretches cost what they took in "
                "this run"
            )
        return said


@dataclass(slots=True)
class Given:
    """Computation as told: a constant, or a constant for each line that ends it.

    Attributes
    ----------
    default_ps
        What a stretch costs, in picoseconds.
    per_line_ps
        What a stretch that ends at a line of the script costs.
    """

    default_ps: int = 0
    per_line_ps: dict[int, int] = field(default_factory=dict)

    def begin(self, ranks: int) -> None:
        """Check the values."""
        for value in [self.default_ps, *self.per_line_ps.values()]:
            if value < 0:
                raise InputError(key="given computation", value=value, allowed="0 and above, in picoseconds")

    def charge(self, rank: int, call: int, digest: int, site: tuple[str, int], measured_ps: int) -> int:
        """Return the given time."""
        return self.per_line_ps.get(site[1], self.default_ps)

    def warnings(self) -> list[str]:
        """Nothing to say."""
        return []
