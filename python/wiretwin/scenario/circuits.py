"""The virtual network of a parallel run: which rank lives where, and the circuits between them.

Ranks are placed by load: each goes where most is free, cores less load, and those that follow each other in
the order of the topology stay together. Between neighbours on different hosts there are three circuits each
way, as `wiretwin.scenario`'s ``[task]`` uses them: ordinary (UBR), backup (ABR) and control (VBR).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from wiretwin.errors import InputError

__all__ = ["FIRST_VCI", "MOST_RANKS", "TOPOLOGIES", "Circuit", "Host", "Network", "lay_out", "parse_hosts"]

FIRST_VCI: Final = 32
"""The first circuit number of a link that is a user's (I.361)."""
LAST_VCI: Final = 65535
MOST_RANKS: Final = 4096
TOPOLOGIES: Final = ("line", "ring", "mesh", "torus", "star", "tree", "all")


@dataclass(frozen=True)
class Host:
    """A host: its cores, and how many processes want one already, on average."""

    name: str
    cores: int = 1
    load: float = 0.0


@dataclass(frozen=True)
class Circuit:
    """One direction of a circuit; its number on the link of the host that sends and of the one that receives.

    Rates in Mbit/s, of cells of 424 bits; none has no limit.
    """

    sender: int
    receiver: int
    from_host: str
    to_host: str
    role: str
    category: str
    peak_Mbit_s: float | None
    guaranteed_Mbit_s: float
    vci_out: int
    vci_in: int


@dataclass(frozen=True)
class Network:
    """A virtual network: by rank its host, and every circuit."""

    topology: str
    hosts: tuple[Host, ...]
    placement: tuple[str, ...]
    circuits: tuple[Circuit, ...]

    @property
    def document(self) -> dict[str, Any]:
        """What JSON can hold of it."""
        return {"format": "wiretwin-circuits", "version": 1, **asdict(self)}


def parse_hosts(text: str) -> tuple[Host, ...]:
    """Read ``NAME[:CORES][=LOAD]``, several with commas.

    Raises
    ------
    InputError
        One is not of that form, or is there twice.
    """
    found: list[Host] = []
    for word in text.split(","):
        head, _, load = word.strip().partition("=")
        name, _, cores = head.partition(":")
        try:
            host = Host(name, int(cores or "1"), float(load or "0"))
        except ValueError:
            host = Host("")
        if not host.name or not 1 <= host.cores <= 4096 or not 0 <= host.load <= 1e6:
            raise InputError(
                key="--hosts", value=word, allowed="NAME[:CORES][=LOAD], such as ws1, ws2:4 or ws3:4=1.5"
            )
        if any(host.name == other.name for other in found):
            raise InputError(key="--hosts", value=host.name, reason="is there twice", allowed="each once")
        found.append(host)
    return tuple(found)


def _neighbours(topology: str, ranks: int, across: int) -> list[tuple[int, int]]:
    """Return the pairs that talk, each once, the lower first."""
    down = ranks // across
    pairs: list[tuple[int, int]] = []
    if topology == "line":
        pairs = [(one, one + 1) for one in range(ranks - 1)]
    elif topology == "ring":
        pairs = [(one, (one + 1) % ranks) for one in range(ranks)]
    elif topology == "star":
        pairs = [(0, one) for one in range(1, ranks)]
    elif topology == "tree":
        pairs = [((one - 1) // 2, one) for one in range(1, ranks)]
    elif topology == "all":
        pairs = [(one, other) for one in range(ranks) for other in range(one + 1, ranks)]
    else:
        for row in range(down):
            for column in range(across):
                here = row * across + column
                if topology == "torus" or column + 1 < across:
                    pairs.append((here, row * across + (column + 1) % across))
                if topology == "torus" or row + 1 < down:
                    pairs.append((here, (row + 1) % down * across + column))
    return sorted({(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1]})


def _squarest(ranks: int) -> int:
    return next(across for across in range(int(ranks**0.5), 0, -1) if ranks % across == 0)


def _place(hosts: Sequence[Host], ranks: int) -> list[str]:
    """Give each rank in turn to the host where most is free; then keep ranks of a host together."""
    free = [host.cores - host.load for host in hosts]
    counts = [0] * len(hosts)
    for _ in range(ranks):
        chosen = max(range(len(hosts)), key=lambda at: (free[at] - counts[at], -at))
        counts[chosen] += 1
    return [host.name for host, count in zip(hosts, counts, strict=True) for _ in range(count)]


def lay_out(
    topology: str,
    ranks: int,
    hosts: Sequence[Host],
    *,
    across: int | None = None,
    line_Mbit_s: float = 149.76,
    backup_Mbit_s: float = 50.0,
    control_Mbit_s: float = 1.0,
) -> Network:
    """Place ranks on hosts and set up the circuits between them.

    Raises
    ------
    InputError
        There is no such topology or mesh; or what is guaranteed of the circuits of a host does not fit its
        line.
    """
    if topology not in TOPOLOGIES:
        raise InputError(key="TOPOLOGY", value=topology, allowed=", ".join(TOPOLOGIES))
    if not 1 <= ranks <= MOST_RANKS:
        raise InputError(key="--ranks", value=ranks, allowed=f"1 to {MOST_RANKS}")
    if across is not None and (topology not in ("mesh", "torus") or across < 1 or ranks % across):
        allowed = f"for a mesh or a torus, a divisor of {ranks}"
        raise InputError(key="--across", value=across, allowed=allowed)
    for key, value, most in (
        ("--line", line_Mbit_s, 1e6),
        ("--backup", backup_Mbit_s, line_Mbit_s),
        ("--control", control_Mbit_s, line_Mbit_s),
    ):
        if not 0 < value <= most:
            raise InputError(key=key, value=f"{value:g} Mbit/s", allowed=f"above 0, to {most:g} Mbit/s")
    placement = _place(hosts, ranks)
    numbers = {host.name: FIRST_VCI for host in hosts}
    guaranteed = {host.name: 0.0 for host in hosts}
    circuits: list[Circuit] = []
    roles: tuple[tuple[str, str, float | None, float], ...] = (
        ("ordinary", "ubr", None, 0.0),
        ("backup", "abr", backup_Mbit_s, 0.0),
        ("control", "vbr", control_Mbit_s, control_Mbit_s),
    )
    pairs = _neighbours(topology, ranks, across or _squarest(ranks))
    for one, other in pairs:
        if placement[one] == placement[other]:
            continue
        for sender, receiver in ((one, other), (other, one)):
            ends = placement[sender], placement[receiver]
            for role, category, peak, least in roles:
                guaranteed[ends[0]] += least
                if guaranteed[ends[0]] > line_Mbit_s:
                    raise InputError(
                        key="--control",
                        value=f"{control_Mbit_s:g} Mbit/s",
                        reason=f"makes {guaranteed[ends[0]]:g} Mbit/s guaranteed on the line of {ends[0]}",
                        allowed=f"what fits {line_Mbit_s:g} Mbit/s with all circuits of a host",
                    )
                out, into = (numbers[end] for end in ends)
                for end in ends:
                    numbers[end] += 1
                    if numbers[end] > LAST_VCI + 1:
                        allowed = f"circuits up to number {LAST_VCI}"
                        raise InputError(
                            key="--ranks", value=ranks, reason=f"are too many for {end}", allowed=allowed
                        )
                circuits.append(Circuit(sender, receiver, *ends, role, category, peak, least, out, into))
    return Network(topology, tuple(hosts), tuple(placement), tuple(circuits))
