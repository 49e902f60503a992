"""The fit: from a result to a twin."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
from pydantic import ValidationError

from wiretwin import states
from wiretwin.errors import InputError
from wiretwin.faults import explain
from wiretwin.fit import cluster, first, loggp, looped
from wiretwin.fit.cold import cold
from wiretwin.fit.curve import curve_figures
from wiretwin.fit.given import check_samples
from wiretwin.fit.interrupt import interrupt
from wiretwin.fit.loggp import Endpoint, Launches, Line
from wiretwin.fit.onestate import differ
from wiretwin.fit.segments import MIN_SIZES, Piece, fit_segments
from wiretwin.fit.sharing import sharing
from wiretwin.fit.stats import ByLaunch, Interval, by_launch, held, interval, summarise
from wiretwin.loops import EXCHANGED_BYTES
from wiretwin.results import Result
from wiretwin.stacks.layers import nature_of
from wiretwin.states import Ends
from wiretwin.twin import (
    Base,
    Checks,
    Crossing,
    Figure,
    Host,
    Layer,
    LoopedCall,
    Rate,
    Segment,
    Source,
    State,
    Twin,
)

__all__ = ["fit", "missing_for_endpoints"]

MIN_LAUNCHES = 2
MOST_SIZES = 250
"""More sizes than this are averaged with their neighbours before segments are sought."""

Endpoints = Literal["auto", "require", "skip"]
Overlap = Literal["reduce", "keep"]


class _TooLittleError(InputError):
    """A layer was measured too little for a curve with intervals."""


def fit(
    result: Result | pl.DataFrame | str | Path,
    *,
    layers: Sequence[str] | None = None,
    endpoints: Endpoints = "auto",
    overlap: Overlap = "reduce",
    confidence: float = 0.95,
    tolerance: float = 0.02,
    host: Mapping[str, Any] | None = None,
    created_utc: str | None = None,
) -> Twin:
    """Fit a twin to what was measured.

    Parameters
    ----------
    result
        A result, opened or the path of its folder, or its samples as a data frame.
    layers
        The layers to fit; by default all that were measured. One that was measured too little for an interval
        is then left out, and ``source.left_out`` of the twin says what it lacks.
    endpoints
        ``auto``: overheads, latency and gap where the loops for them were measured, else the curve alone;
        ``require``: reject a layer without them; ``skip``: the curve alone.
    overlap
        Where the two overheads together exceed the one-way latency, because both ends are busy at the
        same time: ``reduce`` both in proportion until the latency is 0, or ``keep`` them as measured,
        with a negative latency.
    confidence
        Of every interval.
    tolerance
        Share of the time below which a deviation from a straight line is not worth a break.
    host
        Keys of the twin's host table that replace those of the result.
    created_utc
        By default the time at which the result was created, so that a fit of the same result is the same.

    Raises
    ------
    InputError
        If a layer that was named was not measured, or too little of it, or too little of every layer; the
        message names layer, loop and sizes.
    """
    if not 0 < confidence < 1:
        raise InputError(key="confidence", value=confidence, allowed="above 0 and below 1")
    if not 0 < tolerance < 1:
        raise InputError(key="tolerance", value=tolerance, allowed="above 0 and below 1")
    if isinstance(result, str | Path):
        result = Result.open(result)
    joined: dict[str, str] = {}
    if isinstance(result, Result) and cluster.has_pairs(result):
        network, found = cluster.network_of(result)
        joined = {
            "between": f"two of {len(found.hosts)} hosts",
            "network": cluster.reference_network(network),
        }
        result = cluster.reference_launches(result)
    if isinstance(result, Result):
        samples, digest = result.samples(), result.digest()
        facts: dict[str, Any] = dict(result.manifest.host)
        facts |= joined or _joined(result.manifest.options.get("place") or {})
        created = result.manifest.created_utc
        place: str | None = str(result.path)
        clocks = {layer.name: layer.clock.cost_ns for layer in result.manifest.layers if layer.clock}
        crossings = {launch.launch: launch.crossing_ns for launch in result.manifest.launches}
    else:
        samples, digest = result, _digest(result)
        facts, created, place, clocks, crossings = {}, "unknown", None, {}, {}
    measured = sorted(samples["layer"].unique().to_list())
    if not measured:
        raise InputError(place, reason="holds no samples", allowed="at least two launches of one layer")
    for name in layers or ():
        if name not in measured:
            raise InputError(place, "layers", name, allowed=", ".join(measured), reason="was not measured")
    check_samples(samples, place)
    summary = summarise(samples)

    def costs(name: str, rows: pl.DataFrame, ends: pl.DataFrame) -> dict[str, Any]:
        try:
            return _fit_costs(
                name,
                rows,
                ends,
                endpoints=endpoints,
                keep_overlap=overlap == "keep",
                confidence=confidence,
                tolerance=tolerance,
                clock_ns=clocks.get(name, 0.0),
                exchange_ns=next(
                    (1e3 * c.takes_us.value for c in called[name] if c.kind == "Sendrecv"), None
                ),
                place=place,
            )
        except ValidationError as error:
            said = explain(error.title, error, Layer)
            reason = f"the samples give what no twin can hold: {said}"
            raise InputError(place, f"layer {name}", reason=reason) from error

    fitted = {}
    left_out: dict[str, str] = {}
    called: dict[str, tuple[LoopedCall, ...]] = {}
    for name in layers or measured:
        of_layer = summary.filter(pl.col("layer") == name)
        called[name] = looped.looped_calls(of_layer, confidence)
        loops = (first.LOOP, first.EARLY, looped.LOOP, looped.SHARED)
        of_calls = (pl.col("loop").str.starts_with(one) for one in loops)
        rows = of_layer.filter(~pl.any_horizontal(of_calls))
        try:
            whole = costs(name, rows, rows)
        except _TooLittleError as error:
            if layers or len(left_out) == len(measured) - 1:
                raise
            left_out[name] = str(error.reason)
            continue
        apart = _in_states(name, rows, crossings, costs, "overhead_send" in whole) if crossings else []
        whole["crossing_ns"] = _crossing(crossings.get(launch) for launch in rows["launch"].unique())
        layer = Layer(**whole, states=tuple(apart))
        own = samples.filter(pl.col("layer") == name)
        beside = {
            "sharing": sharing(own, layer, confidence, between="between" in facts),
            "interrupt": interrupt(rows, layer.rendezvous_from_bytes, confidence),
            "first": first.first_calls(own, confidence) + first.early_messages(own, confidence),
            "cold": cold(rows, confidence),
            "looped": called[name],
            "largest_bytes": rows.filter(pl.col("loop") == "echo")["bytes"].max(),
        }
        fitted[name] = layer.model_copy(update=beside)
    return Twin(
        created_utc=created_utc or created,
        source=Source(
            digest=digest,
            samples=samples.height,
            launches=samples["launch"].n_unique(),
            confidence=confidence,
            left_out=left_out or None,
        ),
        host=_host(facts, host or {}),
        layers=fitted,
    )


def missing_for_endpoints(summary: pl.DataFrame) -> list[str]:
    """List what a layer's summary lacks for overheads and latency, in words; empty if nothing.

    Parameters
    ----------
    summary
        Rows of one layer, as `wiretwin.fit.stats.summarise` gives them.
    """
    launches = _launches(summary)
    lacking = []
    for loops, found in (
        (
            "prtt (messages above 1, delay_ns longer than a round trip) or send_busy",
            loggp.overhead_send(summary, launches),
        ),
        ("recv_busy", loggp.overhead_recv(summary, launches)),
    ):
        best = max((_usable(endpoint.found) for endpoint in found), default=0)
        if best < MIN_SIZES:
            lacking.append(
                f"{loops}: {best} size{'s' if best != 1 else ''} with at least {MIN_LAUNCHES} launches, "
                f"needed are {MIN_SIZES}"
            )
    return lacking


def _in_states(
    name: str,
    rows: pl.DataFrame,
    crossings: Mapping[int, Ends | None],
    costs: Callable[[str, pl.DataFrame, pl.DataFrame], dict[str, Any]],
    has_endpoints: bool,
) -> list[State]:
    """Fit the states of the host that a layer was measured in apart; none if all launches are of one.

    A state in which too little was measured for a fit is left out. One in which too little was measured for
    overheads, while all launches together have them, takes those of all launches: what its ends pay differs
    from it by less than nothing at all would.
    """
    launches = rows["launch"].unique().sort().to_list()
    found = states.groups([crossings.get(launch) for launch in launches])
    members = [[launches[index] for index in group] for group in found]
    if len(members) < 2 or not differ(rows, members):
        return []
    result = []
    for place, group in enumerate(members):
        own = rows.filter(pl.col("launch").is_in(group))
        try:
            fitted = costs(name, own, rows if has_endpoints and missing_for_endpoints(own) else own)
        except InputError:
            continue
        fitted["crossing_ns"] = _crossing(crossings[launch] for launch in group)
        result.append(State(name=states.name(place, len(members)), **fitted))
    return result


def _crossing(found: Iterable[Ends | None]) -> Crossing | None:
    times = [time for ends in found if ends is not None for time in ends]
    return Crossing(low=min(times), high=max(times)) if times else None


def _fit_costs(
    name: str,
    summary: pl.DataFrame,
    ends: pl.DataFrame,
    *,
    endpoints: Endpoints,
    keep_overlap: bool,
    confidence: float,
    tolerance: float,
    clock_ns: float,
    exchange_ns: float | None,
    place: str | None,
) -> dict[str, Any]:
    """Fit what messages cost over all launches in `summary`, and at both ends over those in `ends`.

    Returns the keys of the twin.
    """
    launches = _launches(ends)
    # A round trip of no time is a clock too coarse to see it.
    seen = (pl.col("loop") == "echo") & (pl.col("value_ns") > 0)
    echo = by_launch(summary.filter(seen), launches=launches)
    _require_curve(name, echo, place)
    figures = curve_figures(echo, confidence)

    def pieces(found: ByLaunch, scale: ByLaunch | None = None) -> list[Piece]:
        few = found.at_most(MOST_SIZES)
        share = None
        if scale is not None:
            # A difference of round trips is as uncertain as they are: a tenth of one at the least.
            whole = np.interp(few.sizes, scale.sizes, np.nanmedian(scale.values, axis=0) / 2)
            share = np.maximum(np.abs(np.nanmedian(few.values, axis=0)), 0.1 * whole)
        return fit_segments(few.sizes, few.values, scale=share, confidence=confidence, tolerance=tolerance)

    half = ByLaunch(echo.sizes, echo.values / 2, echo.samples)
    half_pieces = pieces(half)
    parts: dict[str, Any] = {}
    checks: dict[str, Any] = {}
    lacking = [] if endpoints == "skip" else missing_for_endpoints(ends)
    if endpoints == "require" and lacking:
        raise InputError(place, f"layer {name}", reason=f"was measured too little: {'; '.join(lacking)}")
    if lacking:
        checks["endpoints_lack"] = "; ".join(lacking)
    elif endpoints != "skip":
        send = loggp.overhead_send(ends, launches, clock_ns)
        recv = loggp.overhead_recv(ends, launches, clock_ns)
        parts, checks = _endpoints(
            echo,
            half_pieces,
            pieces,
            send,
            recv,
            timed=loggp.timed_alone(ends, launches, clock_ns),
            confidence=confidence,
            keep_overlap=keep_overlap,
            streams=nature_of(name).streams,
            exchange_ns=exchange_ns,
        )
        cold = loggp.recv_over_stream(ends, clock_ns)
        if cold is not None:
            checks["recv_busy_over_stream_percent"] = 100 * cold
        fetched = loggp.fetch(ends, parts["rendezvous_from_bytes"], clock_ns)
        if fetched is not None and _usable(fetched.found) >= MIN_SIZES:
            found = _positive(fetched.found)
            parts["fetch"] = _segments(loggp.lines(loggp.snapped(pieces(found), half_pieces)), found)
        if ends is not summary:
            checks["endpoints_of"] = "all states"
    if endpoints != "skip":
        between = [e for e in loggp.gap(ends, launches, clock_ns) if _usable(e.found) >= MIN_SIZES]
        if between:
            found = _positive(between[0].found)
            parts["gap"] = _segments(loggp.lines(loggp.snapped(pieces(found, echo), half_pieces)), found)
            checks["gap_by"] = between[0].method
    call = ends.filter(pl.col("loop") == "call")
    if call.height and call["launch"].n_unique() >= MIN_LAUNCHES:
        each = call.group_by("launch").agg(pl.col("value_ns").median())["value_ns"].to_numpy()
        parts["call_ns"] = _figure(
            interval(each, confidence), call["launch"].n_unique(), int(call["samples"].sum())
        )
    if nature_of(name).streams:
        parts.pop("rendezvous_from_bytes", None)
        parts.pop("fetch", None)
    r_max = Interval(figures.r_max.value * 1e3, figures.r_max.low * 1e3, figures.r_max.high * 1e3)
    t_0 = Interval(figures.t_0_ns.value / 1e3, figures.t_0_ns.low / 1e3, figures.t_0_ns.high / 1e3)
    return parts | {
        "t_0_us": _figure(t_0, figures.launches, figures.t_0_samples),
        "t_0_bytes": figures.t_0_bytes,
        "r_max_MB_s": _figure(r_max, figures.launches, figures.samples),
        "n_half_bytes": _figure(figures.n_half_bytes, figures.launches, figures.samples),
        "half_round_trip": _segments(loggp.lines(half_pieces), half),
        "checks": Checks(**checks) if checks else None,
    }


def _endpoints(
    echo: ByLaunch,
    half_pieces: list[Piece],
    pieces: Any,
    send: list[Endpoint],
    recv: list[Endpoint],
    *,
    timed: list[ByLaunch] | None,
    confidence: float,
    keep_overlap: bool,
    streams: bool,
    exchange_ns: float | None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Fit both overheads and the latency between them; the twin's keys, and those of its checks.

    Where the layer `streams`, or an exchange takes what both ends alone do, what was taken off the overheads
    was no error: the ends had worked at once.
    """
    chosen = next(e for e in send if _usable(e.found) >= MIN_SIZES)
    sending, receiving = _positive(chosen.found), _positive(recv[0].found)
    send_pieces = loggp.snapped(pieces(sending, echo), half_pieces)
    recv_pieces = loggp.snapped(pieces(receiving, echo), half_pieces)
    split = loggp.compose(
        half_pieces,
        send_pieces,
        recv_pieces,
        largest=int(echo.sizes[-1]),
        confidence=confidence,
        keep_overlap=keep_overlap,
    )
    parts = {
        "overhead_send": _segments(split.send, sending),
        "overhead_recv": _segments(split.recv, receiving),
        "latency": _segments(split.latency, None),
        "rendezvous_from_bytes": loggp.rendezvous(half_pieces, send_pieces, timed),
    }
    in_turn = exchange_ns is not None and loggp.in_turn(
        split, send_pieces, recv_pieces, EXCHANGED_BYTES, exchange_ns
    )
    if split.reduced_share > 0 and (streams or in_turn):
        parts["busy_send"] = _segments(loggp.lines(send_pieces), sending)
        parts["busy_recv"] = _segments(loggp.lines(recv_pieces), receiving)
    checks: dict[str, Any] = {"overhead_send_by": chosen.method}
    if split.negative_latency_ns > 0:
        checks["negative_latency_ns"] = split.negative_latency_ns
        checks["negative_latency_at_bytes"] = split.negative_latency_at_bytes
    if split.reduced_share > 0:
        checks["overhead_reduced_percent"] = 100 * split.reduced_share
    apart = loggp.send_disagreement(send)
    if apart is not None:
        checks["send_busy_percent"] = 100 * apart.median
        checks["send_busy_worst_percent"] = 100 * apart.worst
        checks["send_busy_worst_at_bytes"] = apart.worst_at_bytes
    return parts, checks


def _launches(summary: pl.DataFrame) -> Launches:
    return np.unique(summary["launch"].to_numpy()).astype(np.int64)


def _usable(found: ByLaunch) -> int:
    """Count the sizes that enough launches have."""
    return int((np.isfinite(found.values).sum(axis=0) >= MIN_LAUNCHES).sum())


def _positive(found: ByLaunch) -> ByLaunch:
    """Keep the sizes that at least two launches have."""
    keep = np.isfinite(found.values).sum(axis=0) >= MIN_LAUNCHES
    return ByLaunch(found.sizes[keep], found.values[:, keep], found.samples[keep])


def _require_curve(name: str, echo: ByLaunch, place: str | None) -> None:
    launches = int(np.isfinite(echo.values).any(axis=1).sum())
    sizes = int((echo.sizes > 0).sum())
    allowed = f"loop echo in at least {MIN_LAUNCHES} launches at {MIN_SIZES} or more sizes above 0"
    if launches < MIN_LAUNCHES:
        raise _TooLittleError(
            place,
            f"layer {name}",
            reason=f"has {launches} launch{'es' if launches != 1 else ''} with loop echo; "
            "an interval between launches needs more",
            allowed=allowed,
        )
    if sizes < MIN_SIZES:
        have = ", ".join(str(s) for s in echo.sizes)
        raise _TooLittleError(
            place, f"layer {name}", reason=f"has loop echo at {have or 'no'} bytes only", allowed=allowed
        )


def _figure(found: Interval, launches: int, samples: int) -> Figure:
    return Figure(**held(found, Figure.RANGE), launches=launches, samples=samples)


def _segments(lines: Sequence[Line], found: ByLaunch | None) -> tuple[Segment, ...]:
    """Write lines as the twin's segments; ``found`` counts the samples, None for a derived quantity."""
    segments = []
    ends: list[int | None] = [*(line.from_bytes for line in lines[1:]), None]
    for line, end in zip(lines, ends, strict=True):
        piece = line.source
        adjusted = piece is None or (line.base, line.rate) != (piece.base, piece.rate)
        own_break = piece is not None and piece.from_bytes == line.from_bytes > 0
        count = 0
        if found is not None:
            inside = found.sizes >= line.from_bytes
            if end is not None:
                inside &= found.sizes < end
            count = int(found.samples[inside].sum())
        segments.append(
            Segment(
                from_bytes=line.from_bytes,
                to_bytes=end,
                base_ns=Base(**held(line.base, Base.RANGE)),
                per_byte_ns=Rate(**held(line.rate, Rate.RANGE)),
                samples=count,
                lack_of_fit_p=None if adjusted or piece is None else piece.lack_of_fit_p,
                break_p=piece.break_p if own_break and piece else None,
                from_bytes_low=piece.from_low if own_break and piece else None,
                from_bytes_high=piece.from_high if own_break and piece else None,
            )
        )
    return tuple(segments)


def _host(facts: Mapping[str, Any], given: Mapping[str, Any]) -> Host:
    cores = facts.get("cores") or len(facts.get("cpus_usable", ())) or facts.get("cpus") or 1
    known: dict[str, Any] = {
        "name": str(facts.get("name", "unknown")),
        "cpu_model": str(facts.get("cpu_model", "unknown")),
        "cores": int(cores),
        "kernel": str(facts.get("system", facts.get("kernel", "unknown"))),
        "governor": str(facts.get("governor", "unknown")),
        "between": facts.get("between"),
        "network": facts.get("network"),
        "hypervisor": str(facts.get("virtualisation", "none found")),
    }
    for key in given:
        if key not in Host.model_fields:
            raise InputError(key=f"host.{key}", reason="is not known", allowed=", ".join(Host.model_fields))
    return Host(**(known | dict(given)))


def _joined(place: Mapping[str, Any]) -> dict[str, str]:
    """Return what joined the hosts of a place, where they are several: in words and, if known, as a network.

    A wire between two hosts is a cable, between more a switch with a cable to each (`docs/models/wire.md`).
    """
    hosts = len(place.get("hosts", ()))
    if hosts < 2:
        return {}
    link = place.get("link") or {}
    rate = link.get("rate_bit_s")
    words = [str(place.get("kind")), *([str(link["kind"])] if "kind" in link else [])]
    if rate:
        words.append(f"{rate / 1e6:g} Mbit/s")
    found = {"between": " ".join(words)}
    if link.get("kind") == "wire" and link.get("medium") == "duplex" and not link.get("rules"):
        topology = "back-to-back" if hosts == 2 else f"star:hosts={hosts}"
        keys = f"rate={rate}bit/s,delay={link['delay_ns']}ns,mtu={link['mtu_bytes']}B"
        found["network"] = f"{topology}{',' if ':' in topology else ':'}{keys}"
    return found


def _digest(samples: pl.DataFrame) -> str:
    """Digest of a data frame's samples, whatever their order."""
    hashes = np.sort(samples.select(sorted(samples.columns)).hash_rows(seed=0).to_numpy())
    return hashlib.sha256(hashes.tobytes()).hexdigest()
