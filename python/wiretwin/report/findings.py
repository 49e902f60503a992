"""What the data say, in sentences. Two layers are ranked only where their intervals do not touch."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import polars as pl
from markupsafe import Markup

from wiretwin.fit.settled import settled
from wiretwin.plot import words
from wiretwin.plot.programs import program_name
from wiretwin.report.inputs import Inputs
from wiretwin.report.page import Step

OWN_LOAD = 2.0
"""Runnable processes that a measurement itself leaves in the load: its two ranks."""

WORST = 0.25
"""An error above which a prediction is not called one."""

BUSY = 0.5
"""Runnable processes of others, per core, above which a host is called busy."""

MOST_LOOPS = 4
"""So many things that ranks did together are in the findings."""

LOST = 0.05
"""A share of a program's actual time without a core that a reader is told of."""


@dataclass(frozen=True)
class Ranking:
    """Layers at one size, best first; `leaders` are those that the best one is not separated from."""

    order: list[dict[str, Any]]
    leaders: list[dict[str, Any]]
    unsure: list[dict[str, Any]]
    """Of them, those that have no interval, and so could be in front or not: they were launched once."""

    @property
    def clear(self) -> bool:
        """Whether one layer leads alone, by its interval."""
        return len(self.leaders) == 1 and len(self.order) > 1

    @property
    def best(self) -> dict[str, Any]:
        """The layer with the best median."""
        return self.order[0]


def rank(rows: list[dict[str, Any]], value: str, low: str, high: str, least: bool = True) -> Ranking:
    """Order rows by `value` and find those whose intervals reach the best one's.

    A row without an interval (one launch only) is never separated from another.
    """
    order = sorted(rows, key=lambda row: row[value] if least else -row[value])
    best = order[0]

    def without(row: dict[str, Any]) -> bool:
        return any(end is None or not math.isfinite(end) for end in (row[low], row[high]))

    def apart(row: dict[str, Any]) -> bool:
        if without(best) or without(row):
            return False
        return bool(best[high] < row[low] if least else best[low] > row[high])

    leaders = [best] + [row for row in order[1:] if not apart(row)]
    return Ranking(order, leaders, [row for row in leaders if without(row)])


def common_size(curves: pl.DataFrame) -> int | None:
    """Return 4 B (where Lin et al. take t_0) or else the smallest size that every layer has."""
    layers = curves["layer"].n_unique()
    shared = (
        curves.filter(pl.col("bytes") > 0).group_by("bytes").agg(pl.col("layer").n_unique().alias("count"))
    )
    sizes = [int(size) for size in shared.filter(pl.col("count") == layers)["bytes"].sort()]
    return 4 if 4 in sizes else (sizes[0] if sizes else None)


def small(inputs: Inputs) -> tuple[int, Ranking] | None:
    """Rank the layers by the one-way latency at the smallest common size."""
    size = common_size(inputs.curves)
    if size is None:
        return None
    rows = inputs.curves.filter(pl.col("bytes") == size).to_dicts()
    return size, rank(rows, "time_us", "low_us", "high_us")


def bulk(inputs: Inputs) -> Ranking | None:
    """Rank the layers by the largest throughput each reached."""
    rows = [
        part.sort("rate_MB_s", descending=True).row(0, named=True)
        for part in inputs.curves.filter(pl.col("bytes") > 0).partition_by("layer", maintain_order=True)
    ]
    return rank(rows, "rate_MB_s", "rate_low_MB_s", "rate_high_MB_s", least=False) if rows else None


def headline(inputs: Inputs) -> str:
    """Say the main thing in one line."""
    parts = []
    found = small(inputs)
    if found and found[1].clear:
        size, ranking = found
        parts.append(
            f"{ranking.best['layer']} is fastest here: {words.size_text(size)} in {_time(ranking.best)}"
        )
    worst = max((abs(item["error"]) for item in inputs.comparisons), default=None)
    if worst is not None:
        count = len(inputs.comparisons)
        missed = sum(abs(item["error"]) > WORST for item in inputs.comparisons)
        what = "the program was" if count == 1 else f"{count}{words.BLANK}programs were"
        if 0 < missed < count:
            what = f"{missed} of {what}" if missed > 1 else f"1 of {count}{words.BLANK}programs was"
        how = "mispredicted by up to" if missed else "predicted within"
        parts.append(f"{what} {how} {words.within_text(worst)}")
    if not parts:
        name = inputs.host.get("name") or "this host"
        hosts = _hosts(inputs)
        if len(inputs.together):
            return f"What {(inputs.manifest.get('options') or {}).get('ranks')} ranks do together on {name}"
        return f"How {hosts} hosts on {name} talk" if hosts > 1 else f"How processes talk on {name}"
    text = "; ".join(parts)
    return text if found and found[1].clear else text[0].upper() + text[1:]


def _time(row: dict[str, Any]) -> str:
    """Write the one-way latency with its interval; in words where the interval names no value."""
    low, high = (row[end] / 1e6 for end in ("low_us", "high_us"))
    text = words.time_interval_text(row["time_us"] / 1e6, low, high)
    return text if settled(low, high) else f"a time that is {text}"


def _time_range(row: dict[str, Any]) -> str:
    return words.time_range_text(*(row[key] / 1e6 for key in ("time_us", "low_us", "high_us")))


def _rate_range(row: dict[str, Any]) -> str:
    return words.rate_range_text(row["rate_MB_s"], row["rate_low_MB_s"], row["rate_high_MB_s"])


def _hosts(inputs: Inputs) -> int:
    """Return how many hosts of a testbed the ranks lived on; 0 if it was none."""
    place: dict[str, Any] = (inputs.manifest.get("options") or {}).get("place") or {}
    return len(place.get("hosts") or []) if place.get("kind") == "testbed" else 0


def between(inputs: Inputs) -> list[str]:
    """Say between how many hosts of a testbed it was measured, and what joins them."""
    hosts = _hosts(inputs)
    if hosts < 2:
        return []
    link: dict[str, Any] = inputs.manifest["options"]["place"].get("link") or {}
    rate = f" of {words.digits(float(link['rate_bit_s']) / 1e6)} Mbit/s" if link.get("rate_bit_s") else ""
    return [f"a testbed of {hosts} hosts, link {link.get('kind', 'not known')}{rate}"]


def findings(inputs: Inputs) -> list[Markup]:
    """Return the main findings, most useful first; each holds by its interval."""
    return [
        *_slow_parts(inputs),
        *_small_messages(inputs),
        *_large_messages(inputs),
        *_together(inputs),
        *_settings(inputs),
        *_two_writes(inputs),
        *_steps(inputs),
        *_predictions(inputs),
    ]


def _slow_parts(inputs: Inputs) -> list[Markup]:
    """Name what is slow among pairs of hosts."""
    return [
        Markup("Slow on {0}: <strong>{1}</strong>: {2}.").format(found.layer, one.subject, one.evidence)
        for found in inputs.classes
        for one in found.slow
    ]


def cautions(inputs: Inputs) -> list[Markup]:
    """Return what a reader should know before believing the findings."""
    return [
        *_busy(inputs),
        *_without_a_core(inputs),
        *_cut_short(inputs),
        *_failures(inputs),
        *_misfits(inputs),
        *_doubts(inputs),
    ]


def _busy(inputs: Inputs) -> list[Markup]:
    """Say that others used the processors as well."""
    loads = [
        float(launch["load_before"])
        for launch in inputs.manifest.get("launches", [])
        if launch.get("load_before") is not None
    ]
    cores = inputs.host.get("cores")
    if not loads or not cores or statistics.median(loads) <= OWN_LOAD + BUSY * float(cores):
        return []
    return [
        Markup(
            "The host was busy while this was measured: a load of {} on {} before the typical launch."
        ).format(words.digits(statistics.median(loads), 2), words.count_text(int(cores), "core"))
    ]


def _without_a_core(inputs: Inputs) -> list[Markup]:
    """Say that others used the processors while the programs ran."""
    shares = []
    for item in inputs.comparisons:
        lost = [
            float(launch["queued_s"]) / float(launch["seconds"])
            for launch in item["run"].get("launches", [])
            if launch.get("queued_s") is not None and not launch.get("split") and launch["seconds"]
        ]
        if lost and statistics.median(lost) >= LOST:
            shares.append(statistics.median(lost))
    if not shares:
        return []
    which = words.count_text(len(shares), "program")
    return [
        Markup(
            "The host was busy while {} ran: for up to {} of the actual time a rank was ready to compute and "
            "had no core. A prediction knows nothing of that: the error has it in it."
        ).format(which, words.percent_text(max(shares)))
    ]


def _cut_short(inputs: Inputs) -> list[Markup]:
    stopped: dict[str, Any] = inputs.manifest.get("stopped") or {}
    seconds = (inputs.manifest.get("options") or {}).get("budget_s")
    budget = f"the time budget of {float(seconds):g}{words.BLANK}s" if seconds else "the time budget"
    told = []
    for end, by, more in (
        ("budget", budget, "; a larger one makes them narrower"),
        ("interrupt", "an interrupt", ""),
    ):
        short = [name for name, why in stopped.items() if why == end]
        if short:
            which = "Every layer" if len(short) == len(stopped) else words.list_text(short)
            verb = "was" if len(short) in (1, len(stopped)) else "were"
            told.append(
                Markup("{} {} stopped by {} before the intervals were narrow enough{}.").format(
                    which, verb, by, more
                )
            )
    return told


def _failures(inputs: Inputs) -> list[Markup]:
    launches = inputs.manifest.get("launches", [])
    bad = sum(launch.get("status") != "ok" for launch in launches)
    if not bad:
        return []
    return [
        Markup("{} of {} did not end well; the reasons stand at the end.").format(
            bad, words.count_text(len(launches), "launch", "launches")
        )
    ]


def leaders_by_size(inputs: Inputs) -> list[tuple[int, int, list[dict[str, Any]], Ranking]]:
    """Join neighbouring sizes with the same fastest layers: first size, last size, leaders, last ranking.

    A size is compared where every layer was measured at it that carries messages so long.
    """
    longest = inputs.curves.group_by("layer").agg(pl.col("bytes").max())["bytes"].to_list()
    out: list[tuple[int, int, list[dict[str, Any]], Ranking]] = []
    if len(longest) < 2:
        return out
    for part in (
        inputs.curves.filter(pl.col("bytes") > 0).sort("bytes").partition_by("bytes", maintain_order=True)
    ):
        size = int(part["bytes"][0])
        if len(part) < 2 or len(part) != sum(most >= size for most in longest):
            continue
        ranking = rank(part.to_dicts(), "time_us", "low_us", "high_us")
        names = {row["layer"] for row in ranking.leaders}
        if out and {row["layer"] for row in out[-1][2]} == names:
            out[-1] = (out[-1][0], size, ranking.leaders, ranking)
        else:
            out.append((size, size, ranking.leaders, ranking))
    return out


def _name(layer: object) -> Markup:
    return Markup("<strong>{}</strong>").format(layer)


def _small_messages(inputs: Inputs) -> list[Markup]:
    found = small(inputs)
    if found is None or len(found[1].order) < 2:
        return []
    size, ranking = found
    at = words.size_text(size)
    if not ranking.clear:
        return [_shared(f"At {at}", ranking, _time_range, "fastest")]
    after = min(ranking.order[1:], key=lambda row: row["low_us"])
    return [
        Markup("{} carries {} one way in {}; the next, {}, takes at least {} as long: {}.").format(
            _name(ranking.best["layer"]),
            at,
            _time(ranking.best),
            _name(after["layer"]),
            words.at_least_text(after["low_us"] / ranking.best["high_us"]),
            _time(after),
        )
    ]


def _together(inputs: Inputs) -> list[Markup]:
    """Say which layer is fastest at the first things that ranks did together, with the shortest messages."""
    found: list[Markup] = []
    for loop in list(dict.fromkeys(inputs.together["loop"].to_list()))[:MOST_LOOPS]:
        part = inputs.together.filter(pl.col("loop") == loop, pl.col("delay_ns") == 0)
        if not len(part):
            continue
        size = int(part["bytes"].min())  # type: ignore[arg-type]
        rows = part.filter(pl.col("bytes") == size).with_columns(time_us="value_us").to_dicts()
        at = f"{loop} of {words.size_text(size)}" if size else loop
        ranking = rank(rows, "time_us", "low_us", "high_us")
        if len(rows) == 1 or not ranking.clear:
            times = [f"{_name(row['layer'])} {_time(row)}" for row in ranking.order]
            tied = "" if len(rows) == 1 else "; the intervals of the fastest overlap"
            found.append(Markup("{}: {}{}.").format(at, Markup(words.list_text(times)), tied))
            continue
        after = min(ranking.order[1:], key=lambda row: row["low_us"])
        ratio = words.at_least_text(after["low_us"] / ranking.best["high_us"])
        found.append(
            Markup("{} takes {} in {}; the next, {}, takes at least {} as long: {}.").format(
                at,
                _time(ranking.best),
                _name(ranking.best["layer"]),
                _name(after["layer"]),
                ratio,
                _time(after),
            )
        )
    return found


def _shared(where: str, ranking: Ranking, figure: Callable[[dict[str, Any]], str], verdict: str) -> Markup:
    if ranking.unsure:
        return _launched_once(where, ranking, verdict)
    if len(ranking.leaders) == len(ranking.order) and len(ranking.order) > 3:
        return Markup("{} the layers cannot be told apart: their intervals overlap.").format(where)
    named = [str(Markup("{} ({})").format(_name(row["layer"]), figure(row))) for row in ranking.leaders]
    which = "neither" if len(named) == 2 else "none"
    return Markup("{} the intervals of {} overlap, so {} is called {}.").format(
        where, Markup(words.list_text(named)), which, verdict
    )


def _launched_once(where: str, ranking: Ranking, verdict: str) -> Markup:
    """Say that nothing can be said: one launch has no interval."""
    once = [str(_name(row["layer"])) for row in ranking.unsure]
    if len(once) == len(ranking.order):
        who = "every layer was" if len(once) > 2 else "both were"
    else:
        who = f"{words.list_text(once)} {'was' if len(once) == 1 else 'were'}"
    return Markup("{} none is called {}: {} launched only once, which does not allow a ranking.").format(
        where, verdict, Markup(who)
    )


def _large_messages(inputs: Inputs) -> list[Markup]:
    ranking = bulk(inputs)
    if ranking is None or len(ranking.order) < 2:
        return []
    best = ranking.best
    if not ranking.clear:
        return [_shared("For large messages", ranking, _rate_range, "the fastest")]
    after = ranking.order[1]
    return [
        Markup("{} has the largest throughput, {} with messages of {}; next comes {} with {}.").format(
            _name(best["layer"]),
            _rate(best),
            words.size_text(best["bytes"]),
            _name(after["layer"]),
            _rate(after),
        )
    ]


def _settings(inputs: Inputs, most: int = 3) -> list[Markup]:
    """Say what a setting changes at the smallest common size, where it changes anything for certain."""
    found = small(inputs)
    if found is None:
        return []
    size, ranking = found
    rows = {row["layer"]: row for row in ranking.order}
    changes = []
    for layer, row in rows.items():
        base, _, variant = layer.partition("+")
        if not variant or base not in rows:
            continue
        plain = rows[base]
        pair = rank([plain, row], "time_us", "low_us", "high_us")
        if pair.clear:
            faster = row["time_us"] < plain["time_us"]
            # The bound of the intervals that is nearer to no difference.
            bound = row["high_us"] / plain["low_us"] if faster else row["low_us"] / plain["high_us"]
            changes.append((bound, base, variant))
    changes.sort(key=lambda change: -abs(math.log(change[0])))
    out = []
    for ratio, base, variant in changes[:most]:
        what = (
            f"takes at least {words.share_text(1 - ratio)} off"
            if ratio < 1
            else f"costs at least {_more(ratio)} more than"
        )
        out.append(
            Markup("On {}, the setting <code>{}</code> {} the time of {}.").format(
                _name(base), variant, what, words.size_text(size)
            )
        )
    return out


def _rate(row: dict[str, Any]) -> str:
    """Write a throughput with its interval; in words where the interval names no value."""
    low, high = row["rate_low_MB_s"], row["rate_high_MB_s"]
    text = words.rate_interval_text(row["rate_MB_s"], low, high)
    return text if settled(low, high) else f"a throughput that is {text}"


def _more(ratio: float) -> str:
    return words.share_text(ratio - 1) if ratio < 2 else f"{words.digits(ratio - 1, 2)} times"


def _two_writes(inputs: Inputs) -> list[Markup]:
    """Name a request written in two pieces, where that costs half as much again as an echo or more."""
    two, echo = inputs.loops.get("two_write"), inputs.loops.get("echo")
    if two is None or echo is None:
        return []
    worst: tuple[float, dict[str, Any], dict[str, Any]] | None = None
    plain = {(row["layer"], row["bytes"]): row for row in echo.to_dicts()}
    for row in two.to_dicts():
        other = plain.get((row["layer"], row["bytes"]))
        if other is None or not row["low_ns"] > other["high_ns"]:
            continue
        ratio = row["low_ns"] / other["high_ns"]
        if ratio >= 1.5 and (worst is None or ratio > worst[0]):
            worst = (ratio, row, other)
    if worst is None:
        return []
    ratio, row, other = worst
    return [
        Markup(
            "On {}, a request of {} written in two pieces takes {} to be answered, in one piece {}."
        ).format(
            _name(row["layer"]),
            words.size_text(row["bytes"]),
            words.time_text(row["value_ns"] / 1e9),
            words.time_text(other["value_ns"] / 1e9),
        )
    ]


def _steps(inputs: Inputs) -> list[Markup]:
    out = []
    for name, layer in inputs.twin.get("layers", {}).items():
        if layer.get("rendezvous_from_bytes"):
            size = words.size_text(layer["rendezvous_from_bytes"])
            out.append(
                Markup("By the fit, {} waits for its receiver (rendezvous) from {} on.").format(
                    _name(name), size
                )
            )
    return out[:3]


def errors(inputs: Inputs) -> tuple[float, float] | None:
    """Median and largest absolute error of the predictions, as shares."""
    values = sorted(abs(float(item["error"])) for item in inputs.comparisons)
    if not values:
        return None
    middle = len(values) // 2
    median = values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2
    return median, values[-1]


def frozen_before(comparison: dict[str, Any]) -> bool:
    """Whether the prediction says that it was recorded before its run started."""
    frozen = str(comparison["prediction"].get("frozen_utc") or "")
    started = str(comparison["run"].get("started_utc") or "")
    return bool(frozen and started and frozen[:19] <= started[:19])


def _predictions(inputs: Inputs) -> list[Markup]:
    found = errors(inputs)
    if found is None:
        return []
    worst = max(inputs.comparisons, key=lambda item: abs(item["error"]))
    when = " before it ran" if all(map(frozen_before, inputs.comparisons)) else ""
    if len(inputs.comparisons) == 1:
        sign = "too long" if worst["error"] > 0 else "too short"
        return [
            Markup("{} was predicted{} to take {}; it took {} ({} {}).").format(
                _name(program_name(worst["prediction"])),
                when,
                words.time_text(worst["prediction"]["seconds"]["value"]),
                words.time_text(worst["run"]["seconds"]["value"]),
                words.percent_text(abs(worst["error"])),
                sign,
            )
        ]
    return [
        Markup("{} were predicted{}: the median error is {}, the worst {} ({}).").format(
            words.count_text(len(inputs.comparisons), "program"),
            when.replace("it", "they"),
            words.percent_text(found[0]),
            words.percent_text(found[1]),
            _name(program_name(worst["prediction"])),
        )
    ]


def misfits(inputs: Inputs, below: float) -> tuple[int, int]:
    """Count fitted half-round-trip segments: those a straight line does not fit, and all."""
    segments = [
        part
        for name, layer in inputs.twin.get("layers", {}).items()
        if not inputs.layers or name in inputs.layers
        for part in layer.get("half_round_trip", [])
    ]
    bad = [
        part for part in segments if part.get("lack_of_fit_p") is not None and part["lack_of_fit_p"] < below
    ]
    return len(bad), len(segments)


def _misfits(inputs: Inputs) -> list[Markup]:
    from wiretwin.plot.fits import LACK_OF_FIT_P

    bad, count = misfits(inputs, LACK_OF_FIT_P)
    if not bad:
        return []
    return [
        Markup("{} of {} fitted segments {} more than a straight line allows; flagged below.").format(
            bad, count, "bends" if bad == 1 else "bend"
        )
    ]


def _doubts(inputs: Inputs, most: int = 3) -> list[Markup]:
    """Name the layers whose fitted lines leave much of what was measured, the worst first."""
    from wiretwin.fit.residuals import Doubt, doubts
    from wiretwin.plot.fits import residual_table

    if not inputs.twin.get("layers") or not len(inputs.curves):
        return []
    found: list[Doubt] = []
    table = residual_table(inputs.curves, inputs.twin)
    for (name,), part in table.group_by("layer", maintain_order=True):
        sizes, measured, fitted = (
            part[key].cast(pl.Float64).to_numpy() for key in ("bytes", "measured_us", "fitted_us")
        )
        segments = inputs.twin["layers"][name]["half_round_trip"]
        found += doubts(str(name), sizes, measured, fitted, [int(one["from_bytes"]) for one in segments])
    found.sort(key=lambda one: -abs(one.residual))
    rest = len(found) - most
    more = (
        [Markup("The fit is doubtful at {} more places; see what it leaves.").format(rest)]
        if rest > 0
        else []
    )
    return [Markup("The fit is doubtful. {}.").format(one) for one in found[:most]] + more


def loop(inputs: Inputs) -> list[Step]:
    """Return the six steps with this run's figures; a step that was not taken has none."""
    segments = sum(len(layer.get("half_round_trip", [])) for layer in inputs.twin.get("layers", {}).values())
    messages = sum(int(item.get("messages") or 0) for item in inputs.predictions)
    runs = [item["run"] for item in inputs.comparisons]
    launches = sum(len(run.get("launches", [])) for run in runs)
    found = errors(inputs)
    count = words.count_text
    return [
        Step(
            "measure",
            count(len(inputs.layers), "layer") if inputs.layers else "",
            f"{count(inputs.launches, 'launch', 'launches')}, {count(inputs.samples, 'sample')}",
        ),
        Step(
            "fit",
            count(segments, "segment") if inputs.twin else "",
            f"of {count(len(inputs.twin.get('layers', {})), 'layer')}, each with its interval",
        ),
        Step(
            "simulate",
            (count(messages, "message") if messages else "virtual time") if inputs.predictions else "",
            f"on {_ranks(inputs.predictions)}" if inputs.predictions else "",
        ),
        Step(
            "predict",
            _times(inputs.predictions),
            "recorded before the run"
            if inputs.comparisons and all(map(frozen_before, inputs.comparisons))
            else "predicted time",
        ),
        Step("run", _times(runs), count(launches, "real launch", "real launches")),
        Step(
            "compare",
            words.percent_text(found[0]) if found else "",
            (f"median error, worst {words.percent_text(found[1])}" if len(runs) > 1 else "error")
            if found
            else "",
        ),
    ]


def _ranks(records: list[dict[str, Any]]) -> str:
    ranks = sorted({int(record["ranks"]) for record in records})
    return f"{words.list_text([str(rank) for rank in ranks])} rank{'s' if ranks != [1] else ''}"


def _times(records: list[dict[str, Any]]) -> str:
    if len(records) == 1:
        return words.time_text(records[0]["seconds"]["value"])
    return words.count_text(len(records), "program") if records else ""
