"""From a twin, and a network if there is one, to the model that simulated ranks run on.

Times become integer picoseconds and rates integer femtoseconds per byte, so that the simulated world
never meets a float; the reference of the keys is `docs/reference/model.md`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Literal, NamedTuple

from wiretwin.errors import InputError
from wiretwin.model import LocalNetwork, Network, read_network
from wiretwin.predict.calls import beyond_messages
from wiretwin.predict.hosts import free_model, less_network
from wiretwin.quantity import format_size
from wiretwin.twin import Costs, Host, Interrupt, Layer, Quantity, Segment, Sharing, Twin

#: The layer that real mpi4py programs run on here.
LAYER = "mpi4py/mpich"
#: What joins hosts: as an object, as ``--network`` takes it, or a file.
AnyNetwork = str | Path | Mapping[str, Any] | Network | LocalNetwork
#: Which end of the twin's intervals a model is built from.
Side = Literal["value", "low", "high"]
#: What a twin has measured in loops of its own: messages and cores, first calls, calls behind computation.
Part = Literal["messages", "first", "cold"]


#: Calls that receive an object: what receives alone have in common, their first one pays behind its message.
_RECEIVES = frozenset(("recv", "irecv", "sendrecv"))

#: A rank that computes has all of a core beside one that waits, or half of it: which one this is nearer to.
_FAIR = 0.75
_DRAWS = 20
"""For each of the deals that are looked for."""
#: Layers whose ranks give way while they wait where more of them are on a host than it has cores, and spin
#: otherwise: Open MPI 4.1's launcher says which (ompi_mpi_params.c, mpi_yield_when_idle). What they
#: were measured to do on one core is what they do where they are more.
_YIELD_IF_CROWDED = frozenset(("mpi/openmpi", "mpi4py/openmpi"))

#: In place of a twin: hosts that cost nothing, so that the network alone is seen.
NOTHING = "nothing"


def layer_model(layer: Costs, side: Side = "value") -> dict[str, Any]:
    """Return the model of a layer: what a message costs at both ends and between them.

    Parameters
    ----------
    layer
        A fitted layer, or one state of it; overheads and latency must have been fitted.
    side
        ``low`` and ``high`` move the layer's times to the ends of the intervals of its one-way latency at
        their size, what a message costs and what a byte does each by its own, all parts in proportion.

    Raises
    ------
    InputError
        When a quantity was not fitted.
    """
    scale = _Scale(layer, side)
    call = layer.call_ns
    model: dict[str, Any] = {
        "call_ps": round(1e3 * getattr(call, side)) if call is not None else 0,
        "rendezvous_from_bytes": layer.rendezvous_from_bytes,
    }
    if layer.busy_send and layer.busy_recv:
        model |= _both_at_once(layer, scale)
    else:
        quantities: tuple[Quantity, ...] = ("overhead_send", "overhead_recv", "latency")
        for quantity in quantities:
            model[quantity] = _lines(layer.segments(quantity), scale)
    model["gap"] = _lines(layer.gap, scale)
    if layer.fetch:
        model["fetch"] = _lines(layer.fetch, scale)
        model["fetch_unchanged"] = _fetched_by_an_echo(layer, model, scale)
    return model


def _fetched_by_an_echo(layer: Costs, model: Mapping[str, Any], scale: _Scale) -> list[dict[str, int]]:
    """Return what a receive takes of memory that has not been written since it was last sent.

    An echo sends such memory: it is what its one-way latency has beyond the flight of an envelope, which is a
    message of no bytes that nobody takes in.
    """
    # The latency is negative where both ends work at once, but no envelope arrives before it leaves.
    send_ps, flight_ps = (model[part][0]["base_ps"] for part in ("overhead_send", "latency"))
    before_ps = send_ps + max(0, flight_ps) - model["call_ps"]
    first = layer.rendezvous_from_bytes or 0
    found = [] if first == 0 else [{"from_bytes": 0, "base_ps": 0, "per_byte_fs": 0}]
    for size in sorted({first} | {size for size in scale.breaks if size > first}):
        line = _line(layer.half_round_trip, scale, size)
        least_ps = -(line["per_byte_fs"] * size // 1000)
        line["base_ps"] = max(line["base_ps"] - before_ps, least_ps)
        found.append({"from_bytes": size} | line)
    return found


def _both_at_once(layer: Costs, scale: _Scale) -> dict[str, Any]:
    """Return overheads and latency of a layer whose ends copy a message at the same time where they can.

    An end works as long as it is busy with a message alone; the latency is what a one-way latency leaves, and
    negative by as much as the two work at once.
    """
    parts = layer.segments("half_round_trip"), layer.busy_send, layer.busy_recv
    latency = []
    for size in sorted({segment.from_bytes for segments in parts for segment in segments}):
        half, send, recv = (_line(segments, scale, size) for segments in parts)
        latency.append(
            {"from_bytes": size}
            | {key: half[key] - send[key] - recv[key] for key in ("base_ps", "per_byte_fs")}
        )
    return {
        "overhead_send": _lines(layer.busy_send, scale),
        "overhead_recv": _lines(layer.busy_recv, scale),
        "latency": latency,
    }


def single_host(
    twin: Twin, layer: str, ranks: int, side: Side = "value", state: str | None = None
) -> dict[str, Any]:
    """Return the model in which all `ranks` live on the twin's one host, in one of its states if named.

    Raises
    ------
    InputError
        When the twin has no such layer or state, or one that was not fitted far enough.
    """
    if ranks < 1:
        raise InputError(key="--ranks", value=ranks, allowed="1 and above")
    found = twin.layer(layer)
    node = _node(twin.host, found.sharing, side)
    library, *words = layer.split("+")
    if library in _YIELD_IF_CROWDED:
        if ranks <= twin.host.cores and found.sharing is not None and "yield" not in words:
            node["idle"] = "spin"
        elif ranks > twin.host.cores and found.sharing is None:
            node["idle"] = "yield"
    costs = layer_model(found.in_state(state), side)
    return {
        "nodes": [node],
        "placement": [0] * ranks,
        "own": _own(costs["call_ps"]),
        "intra": costs,
        "inter": None,
        "link": None,
    } | ({"keeping": list(found.sharing.keeping)} if found.sharing and found.sharing.keeping else {})


def _own(call_ps: int) -> dict[str, Any]:
    """Return the layer of a rank's messages to itself, which only its two calls take.

    Libraries match them and copy them once. The copy is not charged: it takes 0.01 to 0.1 ns a byte.
    """
    call, nothing = ([{"from_bytes": 0, "base_ps": ps, "per_byte_fs": 0}] for ps in (call_ps, 0))
    return {
        "call_ps": call_ps,
        "overhead_send": call,
        "overhead_recv": call,
        "latency": nothing,
        "gap": nothing,
        "rendezvous_from_bytes": None,
        "unexpected_copy": None,
    }


def first_calls(layer: Layer, side: Side = "value") -> dict[str, Any]:
    """Return what a model has of first calls: nothing where they were not measured.

    What only calls that receive an object need is charged when the message has come: before, they wait.
    """
    found = [
        {"calls": list(one.calls), "ps": round(1e6 * getattr(one.takes_us, side))}
        | ({"early_from_bytes": one.early_from_bytes} if one.early_from_bytes else {})
        | ({"at_end": True} if _RECEIVES.issuperset(one.calls) else {})
        for one in layer.first
    ]
    return {"first": found} if found else {}


def cold_calls(layer: Layer, side: Side = "value") -> dict[str, Any]:
    """Return what a model has of calls after computation: nothing where that was not measured."""
    found = [
        {"after_ps": round(1e6 * one.after_us), "ps": round(1e6 * getattr(one.takes_us, side))}
        for one in layer.cold
    ]
    return {"cold": found} if found else {}


def _node(host: Host, sharing: Sharing | None, side: Side) -> dict[str, Any]:
    """Return a node as its ranks were measured on one core, or as the host's table says."""
    known = {"name": host.name, "cores": host.cores}
    if sharing is None:
        return {**known, "idle": host.idle, "quantum_ps": round(host.quantum_ms * 1e9)}
    share = sharing.kept_share
    return {
        **known,
        "idle": sharing.idle,
        # The kernel's, whichever side the layer's costs are taken from.
        "quantum_ps": max(1, round(1e9 * sharing.slice_ms.value)),
        "turn_ps": round(1e6 * getattr(sharing.turn_us, side)),
        # A kernel lets a rank that computes have the core, or half of it.
        "fair": share is not None and share.value < _FAIR,
    } | ({"offers": True} if sharing.offers else {})


class Deal(NamedTuple):
    """How ranks that yield are dealt to cores: the core of each, and in which order they have it first."""

    cores: list[int]
    order: list[int]


def deals(model: Mapping[str, Any], count: int, seed: int) -> list[Deal]:
    """Return up to `count` ways to deal ranks that yield to cores; none where each has one.

    A rank that yields is always ready to run, and stays on the core where the kernel has put it while it
    started: as many on each, any of them. Which rank of a core has it when the program begins is anybody's
    luck, too. The first deal is in turn and in order, the others are drawn.
    """
    nodes = model.get("nodes", ())
    owners = [nodes[node].get("cores_of", node) for node in model.get("placement", ())]
    on_node = {node: [rank for rank, owner in enumerate(owners) if owner == node] for node in set(owners)}
    crowded = {
        node: ranks
        for node, ranks in on_node.items()
        if nodes[node]["idle"] == "yield" and len(ranks) > nodes[node]["cores"]
    }
    if not crowded:
        return []
    random = Random(seed)
    found: dict[tuple[tuple[int, int], ...], Deal] = {}
    for number in range(_DRAWS * count):  # few ranks have few deals, which come again
        dealt, order = [0] * len(owners), list(range(len(owners)))
        if number:
            random.shuffle(order)
        for node, ranks in sorted(crowded.items()):
            cores = [turn % nodes[node]["cores"] for turn in range(len(ranks))]
            if number:
                random.shuffle(cores)
            # Which core is which makes no difference: the first rank has the first.
            names: dict[int, int] = {}
            for rank, core in zip(ranks, cores, strict=True):
                dealt[rank] = names.setdefault(core, len(names))
        # Nor does the order of ranks of different cores, or of those that have one each.
        by_core = sorted(
            (owners[rank], dealt[rank], at) for at, rank in enumerate(order) if owners[rank] in crowded
        )
        found.setdefault(tuple((core, order[at]) for _, core, at in by_core), Deal(dealt, order))
        if len(found) == count:
            break
    return list(found.values())


def dealt(model: Mapping[str, Any], deal: Deal, number: int, count: int) -> dict[str, Any]:
    """Return a model with its ranks dealt to cores, and the kernel's ticks at one of `count` phases.

    When a program begins between two ticks is another in each launch. A kernel looks at a tick whether the
    one that runs has had its slice: in Linux ``base_slice``, 0.7 ms for one core, 1.4 from two on, 2.1 from
    four, 2.8 from eight (kernel/sched/fair.c, 6.16).
    """
    nodes = [
        node
        | {
            "tick_ps": (2 * number + 1) * node["quantum_ps"] // (2 * count),
            "least_ps": round(0.7e9) * min(node["cores"], 8).bit_length(),
        }
        if node["idle"] == "yield"
        else node
        for node in model["nodes"]
    ]
    return {**model, "dealt": deal.cores, "order": deal.order, "nodes": nodes}


@dataclass(frozen=True, slots=True)
class Site:
    """Where simulated ranks live: on the twin's one host, or on hosts like it that a network joins.

    Attributes
    ----------
    ranks
        How many.
    network
        What joins the hosts; none where all ranks live on one.
    ranks_per_host
        How many ranks a host takes before the next one is filled.
    """

    ranks: int
    network: Network | LocalNetwork | None = None
    ranks_per_host: int = 1

    @classmethod
    def of(
        cls,
        ranks: int,
        network: AnyNetwork | None = None,
        ranks_per_host: int | None = None,
        stack: str | None = None,
    ) -> Site:
        """Return the site of `ranks` ranks; a network that takes a number of hosts gets as many as they need.

        The `stack` is that of a network whose hosts are in every detail; others have the layer of a twin.

        Raises
        ------
        InputError
            There are no ranks, the network cannot be, or it has too few hosts for the ranks.
        """
        if ranks < 1:
            raise InputError(key="--ranks", value=ranks, allowed="1 and above")
        if ranks_per_host is not None and ranks_per_host < 1:
            raise InputError(key="--ranks-per-host", value=ranks_per_host, allowed="1 and above")
        if network is None:
            if ranks_per_host is not None:
                raise InputError(key="--ranks-per-host", value=ranks_per_host, allowed="with --network")
            return cls(ranks)
        each = ranks_per_host or 1
        found = read_network(network, stack=stack, hosts=max(2, -(-ranks // each)))
        if isinstance(found, LocalNetwork):
            if each != 1:
                raise InputError(key="--ranks-per-host", value=each, allowed=f"1 on {found.preset}")
            if found.hosts != ranks:
                raise InputError(
                    key="--ranks",
                    value=ranks,
                    allowed=f"{found.hosts}: {found.preset} has that many hosts here, and a rank on each",
                )
        elif found.hosts * each < ranks:
            raise InputError(
                key="--ranks",
                value=ranks,
                allowed=f"{found.hosts * each} at most: {found.hosts} hosts with {each} each; more with "
                "--ranks-per-host",
            )
        return cls(ranks, found, each)

    def twin_for(self, twin: str | Path | Twin | None) -> Twin | None:
        """Return the twin whose hosts these are, read if it is a file.

        There is none where the network has hosts of its own, or where they cost nothing (`NOTHING`).

        Raises
        ------
        InputError
            There is none, or one that nothing would be taken from; or the file is no twin.
        """
        if self.local is None:
            if twin is None:
                allowed = (
                    "a file written by `wiretwin fit`; none with a --network that has hosts of its own, or "
                    "`nothing` for hosts that cost nothing"
                )
                raise InputError(key="--twin", reason="is needed", allowed=allowed)
            if str(twin) == NOTHING and not isinstance(twin, Twin):
                if self.network is None:
                    raise InputError(key="--twin", value=NOTHING, allowed="with --network, or a twin's file")
                return None
            return twin if isinstance(twin, Twin) else Twin.read(twin)
        if twin is not None:
            value = "a twin" if isinstance(twin, Twin) else str(twin)
            allowed = f"no twin: {self.local.preset} has hosts of its own"
            raise InputError(key="--twin", value=value, allowed=allowed)
        return None

    @property
    def local(self) -> LocalNetwork | None:
        """The network, where its hosts are its own and not a twin's."""
        return self.network if isinstance(self.network, LocalNetwork) else None

    @property
    def on_one_machine(self) -> bool:
        """Whether all ranks run on the cores of one machine: one host, or the hosts of a testbed."""
        return self.network is None or self._shares_cores

    @property
    def _shares_cores(self) -> bool:
        return isinstance(self.network, Network) and self.network.shares_cores

    def model(
        self,
        twin: Twin | None,
        layer: str,
        side: Side = "value",
        state: str | None = None,
        *,
        fresh: bool = False,
        part: Part | None = None,
    ) -> dict[str, Any]:
        """Return the model of these ranks, on hosts as the twin has them, in one of its states if named.

        Between hosts a message pays at both ends what it does in the twin's layer, and crosses the network.
        Ranks that are `fresh` are those of a script: they have made no call yet, and pay for the first of
        each kind, and for what every call takes beyond its messages. With a `part` that part alone is at its
        `side`.

        Raises
        ------
        InputError
            The twin has no such layer or state, or one that was not fitted far enough.
        """
        if isinstance(self.network, LocalNetwork):
            return {"local": self.network.plan}
        if twin is None:
            model = free_model(self.ranks_per_host)
        else:
            # As many as share a host: with a network, placement and nodes are told below.
            together = self.ranks if self.network is None else min(self.ranks, self.ranks_per_host)
            first, cold = (side if part in (None, one) else "value" for one in ("first", "cold"))
            side = side if part in (None, "messages") else "value"
            model = single_host(twin, layer, together, side, state)
            if fresh:
                of = twin.layer(layer)
                crowded = together if self.network is None and together > twin.host.cores else 0
                alike = single_host(twin, layer, crowded or 2)
                model |= first_calls(of, first) | cold_calls(of, cold)
                model |= beyond_messages(of, alike, crowded=crowded, between=twin.host.between is not None)
        if self.network is None:
            return model
        hosts = -(-self.ranks // self.ranks_per_host)
        (node,) = model["nodes"]
        nodes = (
            _on_one_machine(node, hosts, self.network.hosts) if self.network.shares_cores else [node] * hosts
        )
        inter = model["intra"]
        if twin is not None and twin.host.network is not None:
            inter = less_network(inter, _between(twin.host.network))
        if twin is not None and (interrupt := twin.layer(layer).interrupt) is not None:
            inter = {**inter, **_interrupt(interrupt, side)}
        return model | {
            "nodes": nodes,
            "placement": [rank // self.ranks_per_host for rank in range(self.ranks)],
            "inter": inter,
            "network": self.network.under(layer),
        }

    def ends(
        self, twin: Twin | None, layer: str, state: str | None = None, *, apart: bool = True
    ) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Return for each part of a twin the models at both ends of its intervals, of ranks that are fresh.

        Parts are measured apart, and so a real run that is at the end of one is at no end of another. Unless
        they are to be `apart`, all are at one end at once: fewer models to run, and wider intervals.
        """
        if twin is None:
            return []
        of = twin.layer(layer)
        measured: dict[Part, bool] = {"messages": True, "first": bool(of.first), "cold": bool(of.cold)}
        parts: list[Part | None] = [part for part, has in measured.items() if has] if apart else [None]
        sides: tuple[Side, Side] = ("low", "high")
        low, high = (
            [self.model(twin, layer, side, state, fresh=True, part=part) for part in parts] for side in sides
        )
        return list(zip(low, high, strict=True))

    def setup(self, twin: Twin, *, library: bool = False) -> str:
        """Return what kind of set-up this is, by the names of `wiretwin.predict.learnt.SETUPS`.

        With `library` the MPI library itself runs, and not this project's own in its place.
        """
        crowded = self.ranks > twin.host.cores
        if self.network is None:
            kind = "crowded" if crowded else "host"
        elif self._shares_cores:
            kind = "packed" if crowded else "testbed"
        else:
            kind = "hosts"
        return f"library-{kind}" if library else kind

    def shares_cores(self, twin: Twin | None) -> bool:
        """Return whether ranks share cores, as far as a twin tells how many there are."""
        return twin is not None and self.setup(twin) in ("crowded", "packed")

    def notes(self, twin: Twin | None) -> list[str]:
        """Return what a reader of a prediction has to know about the site, with this twin or none."""
        if self.network is None:
            return []
        if isinstance(self.network, LocalNetwork):
            return [
                f"hosts and what joins them are those of {self.network}; what ranks compute takes as long as "
                "it does on this machine"
            ]
        if twin is None:
            return [f"hosts are joined by {self.network}, and messages cost them nothing"]
        joined = (
            f"hosts are joined by {self.network}; what a message costs its two ends is as the twin has it, "
        )
        if twin.host.between is None:
            return [f"{joined}measured within one host"]
        if twin.host.network is not None:
            return [
                f"{joined}measured between two hosts, less what joined them then takes ({twin.host.network})"
            ]
        return [
            f"{joined}measured between two hosts ({twin.host.between}): what was between them then is in its "
            "latency, and the network comes on top"
        ]


_FAR = 2
"""A note names messages that are more than this many times as long as the longest that was measured."""


def unmeasured(twin: Twin | None, layer: str, longest: int) -> list[str]:
    """Return what a reader has to know of messages far longer than those that the twin was fitted to.

    Parameters
    ----------
    twin
        The twin; none if messages cost their hosts nothing.
    layer
        Its layer.
    longest
        How long the program's longest message is, bytes.
    """
    largest = None if twin is None else twin.layer(layer).largest_bytes
    if largest is None or longest <= _FAR * largest:
        return []
    return [
        f"messages of up to {format_size(longest)}: the twin was measured with at most "
        f"{format_size(largest)}, and caches that hold these may not hold longer ones; "
        "wiretwin measure --sizes netpipe-base,4MiB,16MiB,64MiB measures longer ones, too"
    ]


def _on_one_machine(node: dict[str, Any], hosts: int, all_hosts: int) -> list[dict[str, Any]]:
    """Return the nodes of the first hosts of a testbed.

    Where its hosts fill the cores of the machine each has one, in turn, as
    `wiretwin.testbed.plan.Plan.cores` says; else ranks run on whichever is free. The
    threads of its wire are processes to the kernel.
    """
    node = {**node, "picks_anew": True}
    cores = node["cores"]
    if not 1 < cores <= all_hosts:
        return [node, *[{**node, "cores_of": 0}] * (hosts - 1)]
    own = {**node, "cores": 1}
    return [own if host < cores else {**own, "cores_of": host % cores} for host in range(hosts)]


def _interrupt(found: Interrupt, side: Side) -> dict[str, Any]:
    """Return what a message that comes takes of a receiver that computes, as the model has it."""
    base, rate = (getattr(figure, side) for figure in (found.takes_us, found.per_byte_ns))
    line = {"from_bytes": 0, "base_ps": round(1e6 * base), "per_byte_fs": round(1e6 * rate)}
    saved = 0.0 if found.saved_us is None else found.saved_us.value
    return {"interrupt": [line], "interrupt_saved_ps": round(1e6 * saved)}


def _between(network: str) -> Network:
    """Return the network that a twin was measured over."""
    try:
        return Network.parse(network)
    except InputError as error:
        raise InputError(
            key="host.network", value=network, reason=f"{error.key}: {error.reason}", allowed=error.allowed
        ) from None


class _Scale:
    """How far the end of the twin's intervals lies from the value, as ratios, by the size of a message."""

    def __init__(self, layer: Costs, side: Side) -> None:
        self._side = side
        self._lines = layer.half_round_trip
        t_0 = layer.t_0_us
        self._t_0 = _ratio(t_0.value, getattr(t_0, side))

    @property
    def breaks(self) -> set[int]:
        """The sizes from which the ratios are others."""
        return {line.from_bytes for line in self._lines}

    def at(self, size: int) -> tuple[float, float]:
        """Return the ratios of what a message and what a byte costs, for messages from `size` on."""
        for line in reversed(self._lines):
            if line.from_bytes <= size:
                base, rate = (
                    _ratio(one.value, getattr(one, self._side)) for one in (line.base_ns, line.per_byte_ns)
                )
                return base, rate
        return self._t_0, self._t_0


def _ratio(value: float, end: float) -> float:
    """Return an end of an interval over its value; 1 where the value is none that could be scaled."""
    return max(0.0, end) / value if value > 0 else 1.0


def _lines(segments: Sequence[Segment], scale: _Scale) -> list[dict[str, int]]:
    """Return segments as the model has them, broken where the ratios change."""
    found: list[dict[str, int]] = []
    sizes = {segment.from_bytes for segment in segments}
    for size in sorted(sizes | {size for size in scale.breaks if sizes and size > min(sizes)}):
        line = _line(segments, scale, size)
        # What a message costs and what a byte does are moved apart: together they leave no negative time
        # where there was none.
        segment = _from(segments, size)
        if segment.base_ns.value + segment.per_byte_ns.value * size >= 0:
            line["base_ps"] = max(line["base_ps"], -(line["per_byte_fs"] * size // 1000))
        if not found or any(line[key] != found[-1][key] for key in ("base_ps", "per_byte_fs")):
            found.append({"from_bytes": size} | line)
    return found


def _from(segments: Sequence[Segment], size: int) -> Segment:
    """Return the segment of messages from `size` on."""
    return next(one for one in reversed(segments) if one.from_bytes <= size)


def _line(segments: Sequence[Segment], scale: _Scale, size: int) -> dict[str, int]:
    """Return the line of messages from `size` on."""
    segment = _from(segments, size)
    base, rate = scale.at(size)
    return {
        "base_ps": round(1e3 * segment.base_ns.value * base),
        "per_byte_fs": round(1e6 * segment.per_byte_ns.value * rate),
    }
