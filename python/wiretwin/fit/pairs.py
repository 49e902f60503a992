"""Pairs of hosts: how long a message takes between every two, the classes they fall into, and what is slow.

A *class* is found, not given: hosts fall into groups where the pairs inside a group are fast and those
across are slow, as those of one switch and of two are. Times are sorted, and each gap between two neighbours
is tried as the border: the groups are then the hosts that fast pairs join. Some gap in many noisy times is
always wide, so a border counts only if nearly all pairs inside groups are below it and nearly all across are
above.

A host or its adapter is slow where even its fastest pair is slower than the fastest pairs of the other hosts.
What makes it slow can hide how far it is from the others: where its pairs do not tell its group, it is put
into the group of its neighbour in the order of the hosts, and said to be there without evidence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

import polars as pl

from wiretwin.fit.stats import interval
from wiretwin.quantity import format_size, format_time

if TYPE_CHECKING:
    from wiretwin.results import Result

__all__ = ["Class", "Classes", "Slow", "classes_of", "classify", "pair_table", "reference"]

GAP = 1.3
"""Times that differ by less are of one class: hosts alike, measured one after the other, differ by tens of
per cent while something else runs."""
CLEAN = 0.9
"""So many of the pairs inside groups, and of those across, have to be on their side of a border."""
SLOW = 1.5
"""A host, a link or a pair is called slow where it takes so many times what others of its kind do."""
SLOW_ONCE = 3.0
"""The same, of a host for which a single launch of one pair speaks: by as much do launches differ whose ranks
are on cores near to each other and far apart (`wiretwin.states`)."""

SCHEMA = {
    "layer": pl.String,
    "a": pl.String,
    "b": pl.String,
    "bytes": pl.UInt64,
    "launches": pl.UInt32,
    "value_us": pl.Float64,
    "low_us": pl.Float64,
    "high_us": pl.Float64,
}

Times = Mapping[tuple[str, str], float]


def pair_table(result: Result) -> pl.DataFrame:
    """Return one row a layer, pair and size: the one-way latency of the typical launch with its interval.

    The hosts `a` and `b` are in the order of the measurement; a host with itself has both alike. Launches
    with other loops than round trips are left out.
    """
    launches = {
        one.launch: one for one in result.manifest.launches if one.hosts is not None and not one.whole
    }
    echo = result.samples().filter(
        (pl.col("loop") == "echo") & pl.col("launch").is_in(list(launches)) & (pl.col("index") > 0)
    )
    each = (
        echo.with_columns(half_us=pl.col("value_ns") / pl.col("batch") / 2000.0)
        .group_by("layer", "launch", "bytes", maintain_order=True)
        .agg(pl.col("half_us").median())
    )
    found: dict[tuple[str, str, str, int], list[float]] = {}
    for layer, launch, size, half_us in each.iter_rows():
        hosts = launches[launch].hosts
        assert hosts is not None, "chosen for having them"
        found.setdefault((layer, *hosts, size), []).append(half_us)
    rows = []
    for (layer, a, b, size), values in sorted(found.items()):
        known = interval(values)
        rows.append((layer, a, b, size, len(values), known.value, known.low, known.high))
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


@dataclass(frozen=True)
class Slow:
    """Something slow, and what says so.

    Attributes
    ----------
    kind
        ``host``: at every size; ``adapter``: of a host, for long messages only; ``link``: between groups of
        hosts; ``pair``: two hosts whose other pairs are not slow.
    hosts
        The hosts concerned: one, two, or those of both groups.
    bytes
        The size at which it shows most.
    times
        How many times it takes what others of its kind do.
    evidence
        The figures, in words.
    """

    kind: str
    hosts: tuple[str, ...]
    bytes: int
    times: float
    evidence: str

    @property
    def subject(self) -> str:
        """What is slow, in words."""
        names = {
            "host": f"host {self.hosts[0]}",
            "adapter": f"the adapter or cable of {self.hosts[0]}",
            "pair": " and ".join(self.hosts[:2]),
        }
        return names.get(self.kind, "the link between " + " and ".join(self.hosts))

    def __str__(self) -> str:
        return f"{self.subject}: {self.evidence}"


@dataclass(frozen=True)
class Class:
    """Pairs that are alike.

    Attributes
    ----------
    name
        ``same host``, ``same switch``, ``further``, ``further 2``, …; ``between hosts`` where there is one.
    pairs
        Them, without those of slow hosts.
    times_us
        The median one-way latency by size.
    """

    name: str
    pairs: tuple[tuple[str, str], ...]
    times_us: dict[int, float]

    @property
    def rate_MB_s(self) -> float:
        """The rate of the longest message, bytes over one-way latency, in 10⁶ bytes/s."""
        return max(self.times_us) / self.times_us[max(self.times_us)]


@dataclass(frozen=True)
class Classes:
    """What the pairs of one layer say of the hosts and what joins them.

    Attributes
    ----------
    layer
        The layer.
    hosts
        In the order of the measurement.
    groups
        Groups of hosts that are near each other, as a switch has them; one where no border was found.
    classes
        From the fastest on.
    slow
        What is slow.
    unplaced
        Slow hosts whose pairs do not tell their group: each is in the group of its neighbour in `hosts`.
    """

    layer: str
    hosts: tuple[str, ...]
    groups: tuple[tuple[str, ...], ...]
    classes: tuple[Class, ...]
    slow: tuple[Slow, ...]
    unplaced: tuple[str, ...] = ()

    @property
    def near(self) -> str:
        """The groups of hosts, in words, with the hosts that no evidence has put where they are."""
        words = "; ".join(", ".join(group) for group in self.groups)
        if self.unplaced:
            words += f" (the times do not tell the group of {' and '.join(self.unplaced)})"
        return words


def classify(
    table: pl.DataFrame, layer: str, hosts: Sequence[str], groups: Sequence[Sequence[str]] = ()
) -> Classes:
    """Find the classes of a layer's pairs, and name what is slow.

    Parameters
    ----------
    table
        As `pair_table`.
    layer
        The layer.
    hosts
        All hosts, in order.
    groups
        The hosts of each switch, where a topology is known; by default they are found.
    """
    own = table.filter(pl.col("layer") == layer)
    by_size: dict[int, dict[tuple[str, str], float]] = {}
    launches: dict[tuple[str, str], int] = {}
    for a, b, size, value, count in own.select("a", "b", "bytes", "value_us", "launches").iter_rows():
        by_size.setdefault(size, {})[a, b] = value
        launches[a, b] = count
    between = {
        size: {pair: t for pair, t in times.items() if pair[0] != pair[1]} for size, times in by_size.items()
    }
    between = {size: times for size, times in sorted(between.items()) if times}
    itself = {size: {p: t for p, t in times.items() if p[0] == p[1]} for size, times in by_size.items()}
    slow = _slow_hosts(between, itself, launches, hosts)
    lame = {one.hosts[0] for one in slow}
    sound = {
        size: {pair: t for pair, t in times.items() if not lame & set(pair)}
        for size, times in between.items()
    }
    unplaced: list[str] = []
    if not groups:
        groups = _groups(sound, [host for host in hosts if host not in lame])
        groups, unplaced = _joined(groups, between, hosts, lame)
    at = {host: number for number, members in enumerate(groups) for host in members}
    inside = {size: {p: t for p, t in times.items() if at[p[0]] == at[p[1]]} for size, times in sound.items()}
    across = {size: {p: t for p, t in times.items() if at[p[0]] != at[p[1]]} for size, times in sound.items()}
    slow += _slow_links(inside, across, groups)
    slow += [one for part in (inside, across) for one in _slow_pairs(part, at)]
    near = "same switch" if len(groups) > 1 else "between hosts"
    named = [("same host", itself), (near, inside), ("further", across)]
    classes = [made for name, part in named if (made := _class(name, part)) is not None]
    members = tuple(tuple(one) for one in groups)
    return Classes(layer, tuple(hosts), members, tuple(classes), tuple(slow), tuple(unplaced))


def classes_of(result: Result, groups: Sequence[Sequence[str]] = ()) -> list[Classes]:
    """Classify the pairs of each layer of a result; nothing where no pairs of hosts were measured."""
    table, hosts = pair_table(result), result.manifest.options.get("between", [])
    layers = dict.fromkeys(table["layer"])
    return [classify(table, layer, hosts, groups) for layer in layers]


def reference(table: pl.DataFrame, layer: str) -> tuple[str, str] | None:
    """Return the typical pair of the fastest class between hosts: that of the middle time; none if none."""
    own = table.filter((pl.col("layer") == layer) & (pl.col("a") != pl.col("b")))
    hosts = list(dict.fromkeys([*own["a"], *own["b"]]))
    found = classify(table, layer, hosts)
    near = next((one for one in found.classes if one.name != "same host"), None)
    if near is None:
        return None
    size = min(near.times_us)
    times = {
        (a, b): value
        for a, b, value in own.filter(pl.col("bytes") == size).select("a", "b", "value_us").iter_rows()
        if (a, b) in near.pairs
    }
    return sorted(times, key=lambda pair: (times[pair], pair))[len(times) // 2]


def _class(name: str, by_size: Mapping[int, Times]) -> Class | None:
    pairs = sorted({pair for times in by_size.values() for pair in times})
    if not pairs:
        return None
    return Class(
        name, tuple(pairs), {size: median(times.values()) for size, times in by_size.items() if times}
    )


def _slow_hosts(
    by_size: Mapping[int, Times],
    itself: Mapping[int, Times],
    launches: Mapping[tuple[str, str], int],
    hosts: Sequence[str],
) -> list[Slow]:
    """Name the hosts whose fastest pair is slower than the fastest pairs of the others.

    How much slower one of two equal hosts may be is seen in the hosts by themselves: where messages within
    some hosts take twice as long as within most, for a while or for good, so may those between two.
    """
    found: dict[str, list[tuple[int, float, str]]] = {}
    for size, times in by_size.items():
        nearest = {
            host: min(((t, pair) for pair, t in times.items() if host in pair), default=None)
            for host in hosts
        }
        known = {host: best for host, best in nearest.items() if best is not None}
        for host, (least, pair) in known.items():
            # Its partner may be nearest to nobody but it, so that both look slow where few pairs are known.
            others = [best[0] for other, best in known.items() if other != host and host not in best[1]]
            if len(others) < 2:
                continue
            usual = median(others)
            within = [t for pair, t in itself.get(size, {}).items() if host not in pair]
            uneven = max(within) / median(within) if within else 1.0
            speak = sum(launches[one] for one, t in times.items() if host in one and t <= SLOW * least)
            slow = SLOW if speak > 1 else SLOW_ONCE
            # A few others may be slow, too, and what keeps a core busy for a while slows pairs of any host.
            if least > slow * uneven * sorted(others)[3 * len(others) // 4]:
                pairs = sum(host in one for one in times)
                words = (
                    f"even its fastest of {pairs} pairs, {' and '.join(pair)}, takes {_time(least)} for "
                    f"{format_size(size)}; the fastest pairs of the others take {_time(min(others))} to "
                    f"{_time(max(others))}"
                )
                found.setdefault(host, []).append((size, least / usual, words))
    named = []
    for host, seen in found.items():
        size, times_as_long, words = max(seen, key=lambda one: one[1])
        everywhere = {one[0] for one in seen} == set(by_size)
        named.append(Slow("host" if everywhere else "adapter", (host,), size, times_as_long, words))
    return named


def _groups(by_size: Mapping[int, Times], hosts: Sequence[str]) -> list[list[str]]:
    """Return the groups of hosts that the widest clean border, at any size, makes; one if there is none."""
    best: tuple[float, list[list[str]]] = (GAP, [list(hosts)])
    for times in by_size.values():
        ordered = sorted(times.values())
        for fast, next_ in pairwise(ordered):
            if next_ / fast <= best[0]:
                continue
            groups = _components(hosts, [pair for pair, t in times.items() if t <= fast])
            at = {host: number for number, members in enumerate(groups) for host in members}
            inside = [t <= fast for pair, t in times.items() if at[pair[0]] == at[pair[1]]]
            across = [t > fast for pair, t in times.items() if at[pair[0]] != at[pair[1]]]
            if len(groups) < 2 or not inside or not across or min(map(len, groups)) < 2:
                continue
            if min(sum(inside) / len(inside), sum(across) / len(across)) >= CLEAN:
                best = (next_ / fast, groups)
    return best[1]


def _components(hosts: Sequence[str], joined: Sequence[tuple[str, str]]) -> list[list[str]]:
    """Return the groups of hosts that pairs join, each in order, in the order of their first hosts."""
    root = {host: host for host in hosts}

    def find(host: str) -> str:
        while root[host] != host:
            root[host] = root[root[host]]
            host = root[host]
        return host

    for a, b in joined:
        root[find(a)] = find(b)
    groups: dict[str, list[str]] = {}
    for host in hosts:
        groups.setdefault(find(host), []).append(host)
    return list(groups.values())


def _joined(
    groups: Sequence[Sequence[str]], by_size: Mapping[int, Times], hosts: Sequence[str], lame: set[str]
) -> tuple[list[list[str]], list[str]]:
    """Put each slow host into a group; return the groups, and the hosts whose pairs do not tell theirs.

    A host belongs where all its pairs are faster than all its pairs with every other group, by the gap that
    a border between groups needs, at the size where this is clearest. Otherwise the sound host next to it in
    the order of `hosts` decides, for hosts of one switch are mostly numbered one after the other.
    """
    chosen = {host: number for number, group in enumerate(groups) for host in group}
    sound = [host for host in hosts if host in chosen]
    unplaced = []
    for host in (host for host in hosts if host in lame):
        best, told = GAP, None
        for times in by_size.values():
            to = [
                [t for pair, t in times.items() if host in pair and set(pair) & set(group)]
                for group in groups
            ]
            ordered = sorted((max(own), number) for number, own in enumerate(to) if own)
            if len(ordered) < 2:
                continue
            (furthest, nearest), others = ordered[0], [number for _, number in ordered[1:]]
            apart = min(t for number in others for t in to[number]) / furthest
            if apart > best:
                best, told = apart, nearest
        if told is None:
            at = hosts.index(host)
            told = chosen[min(sound, key=lambda one: abs(hosts.index(one) - at))] if sound else 0
            unplaced += [host] if len(groups) > 1 else []
        chosen[host] = told
    return [[host for host in hosts if chosen[host] == number] for number in range(len(groups))], unplaced


def _slow_links(
    inside: Mapping[int, Times], across: Mapping[int, Times], groups: Sequence[Sequence[str]]
) -> list[Slow]:
    """Name the links between groups over which pairs have a lower rate than their hosts have inside.

    Further away takes longer for the shortest message, too, which is not slow: what counts is what a long
    message takes beyond a short one.
    """
    slow = []
    least = min(inside, default=0)
    for number, ours in enumerate(groups):
        for theirs in groups[number + 1 :]:
            ends, worst = {*ours, *theirs}, None
            for size in inside:
                over = _beyond(across[size], across[least], ends)
                within = _beyond(inside[size], inside[least], ends)
                if size == least or not over or not within:
                    continue
                ratio = median(over) / median(within)
                if min(over) <= max(within) or ratio < SLOW:
                    continue
                words = (
                    f"beyond {format_size(least)}, {format_size(size)} take {_time(min(over))} to "
                    f"{_time(max(over))} for all {len(over)} pairs across, {_time(min(within))} to "
                    f"{_time(max(within))} for the {len(within)} on either side: "
                    f"{size / median(over):.0f} MB/s across, {size / median(within):.0f} MB/s within"
                )
                worst = Slow("link", (", ".join(ours), ", ".join(theirs)), size, ratio, words)
            if worst is not None:
                slow.append(worst)
    return slow


def _beyond(long: Times, short: Times, ends: set[str]) -> list[float]:
    """Return what long messages take beyond short ones, of the pairs between these hosts; above 0."""
    pairs = [pair for pair in long if pair in short and set(pair) <= ends]
    return [max(long[pair] - short[pair], short[pair] / 100) for pair in pairs]


def _slow_pairs(by_size: Mapping[int, Times], at: Mapping[str, int]) -> list[Slow]:
    """Name the pairs that are slow where all others of their groups are not."""
    found: dict[tuple[str, str], list[Slow]] = {}
    for size, times in by_size.items():
        for pair, time in times.items():
            alike = [
                t
                for other, t in times.items()
                if other != pair and {at[other[0]], at[other[1]]} == {at[pair[0]], at[pair[1]]}
            ]
            if len(alike) < 2 or time <= SLOW * max(alike):
                continue
            words = (
                f"takes {_time(time)} for {format_size(size)}; {len(alike)} pairs like it take "
                f"{_time(min(alike))} to {_time(max(alike))}"
            )
            found.setdefault(pair, []).append(Slow("pair", pair, size, time / median(alike), words))
    # One size alone is a moment at which something else ran.
    return [max(seen, key=lambda one: one.times) for seen in found.values() if len(seen) > 1]


def _time(us: float) -> str:
    return format_time(us / 1e6)
