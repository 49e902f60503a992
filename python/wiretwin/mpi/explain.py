"""Words for a simulation that cannot go on: who waits for whom, in which call, on which line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .rank import Rank

if TYPE_CHECKING:
    from .runtime import Runtime

_SHOWN = 12


def _plural(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _ranks(ranks: set[int], size: int) -> str:
    if not ranks:
        return "nobody"
    if len(ranks) == size - 1 and size > 2:
        return "any other rank"
    listed = [str(rank) for rank in sorted(ranks)[:_SHOWN]]
    more = f" and {len(ranks) - _SHOWN} more" if len(ranks) > _SHOWN else ""
    return f"rank {', '.join(listed)}{more}"


def waits_for(runtime: Runtime, rank: Rank) -> tuple[str, set[int]]:
    """Return what a rank waits for, in words, and whom."""
    others = {other.index for other in runtime.ranks if other is not rank}
    parts: list[str] = []
    whom: set[int] = set()
    if rank.probing is not None:
        source, tag, context = rank.probing
        whom |= others if source < 0 else {source}
        parts.append(_receive(source, tag, context, runtime))
    if rank.asked is not None:
        whom |= others if rank.asked[0] < 0 else {rank.asked[0]}
        parts.append(_receive(*rank.asked, runtime))
    for request in rank.waiting if rank.probing is None else ():
        if not request or (rank.asked is not None and request == rank.waiting[0]):
            continue
        posted = runtime.receives.get(request)
        if posted is not None:
            _, source, tag, context, site, inside = posted
            whom |= others if source < 0 else {source}
            if context % 2:
                parts.append(f"a message of rank {source} in collective call {tag}")
            else:
                where = "" if site == rank.site else f" ({inside} at {runtime.sites.text(site)})"
                parts.append(_receive(source, tag, context, runtime) + where)
            continue
        sent = runtime.mail.get(request)
        if sent is not None:
            data, _, dest, tag, context, site, inside = sent
            whom.add(dest)
            where = "" if site == rank.site else f" ({inside} at {runtime.sites.text(site)})"
            parts.append(f"rank {dest} to receive {_plural(len(data), 'byte')} with tag {tag}{where}")
        else:
            parts.append("a partner in the collective call")
    text = "; ".join(dict.fromkeys(parts[:_SHOWN]))
    if len(parts) > _SHOWN:
        text += f"; and {len(parts) - _SHOWN} more requests"
    return text or "nothing that can be named", whom


def _receive(source: int, tag: int, context: int, runtime: Runtime) -> str:
    who = "any rank" if source < 0 else f"rank {source}"
    what = "any tag" if tag < 0 else f"tag {tag}"
    where = {0: "", 2: " on COMM_SELF"}.get(context, " on a communicator of its own")
    return f"a message from {who} with {what}{where}"


def circle(edges: dict[int, set[int]]) -> list[int]:
    """Return ranks that wait for each other in a circle, if there are such."""
    for start in sorted(edges):
        path, seen = [start], {start}
        while True:
            onward = [peer for peer in sorted(edges.get(path[-1], ())) if peer in edges]
            if not onward:
                break
            step = onward[0]
            if step in seen:
                return [*path[path.index(step) :], step]
            path.append(step)
            seen.add(step)
    return []


def lost_mail(runtime: Runtime) -> list[str]:
    """Say which messages nobody has received, one line for each place they were sent from."""
    groups: dict[tuple[Any, ...], list[int]] = {}
    for data, source, dest, tag, context, site, inside in runtime.mail.values():
        groups.setdefault((source, dest, tag, context, site, inside), []).append(len(data))
    lines = []
    for (source, dest, tag, _, site, inside), sizes in groups.items():
        many = f"{len(sizes)} messages" if len(sizes) > 1 else "a message"
        lines.append(
            f"{many} of {sizes[0]} bytes with tag {tag}, sent by rank {source} to rank {dest} "
            f"({inside} at {runtime.sites.text(site)})"
        )
    return lines


def deadlock(runtime: Runtime) -> str:
    """Describe a deadlock."""
    stuck = [rank for rank in runtime.ranks if not rank.finished]
    edges: dict[int, set[int]] = {}
    lines = []
    for rank in stuck:
        text, whom = waits_for(runtime, rank)
        edges[rank.index] = whom
        line = f"  rank {rank.index} waits in {rank.inside} at {runtime.sites.text(rank.site)} for {text}"
        gone = [peer for peer in sorted(whom) if runtime.ranks[peer].finished]
        if whom and len(gone) == len(whom):
            line += f"; {_ranks(set(gone), len(runtime.ranks))} has ended"
        lines.append(line)
    shown = lines[: 2 * _SHOWN]
    if len(lines) > len(shown):
        shown.append(f"  and {len(lines) - len(shown)} more ranks")
    head = f"deadlock: {_plural(len(stuck), 'rank')} of {len(runtime.ranks)} can never go on"
    round_trip = circle(edges)
    if round_trip:
        shown.append("  in a circle: " + " waits for ".join(f"rank {rank}" for rank in round_trip))
    lost = lost_mail(runtime)
    if lost:
        shown.append("  never received: " + "; ".join(lost[:_SHOWN]))
    return "\n".join([head, *shown])
