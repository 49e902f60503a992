"""A host that is flooded: what its program gets of datagrams that come faster than it takes them."""

from __future__ import annotations

from dataclasses import dataclass

from wiretwin._core import lan_flood
from wiretwin.errors import InputError
from wiretwin.model.echo import SEED

__all__ = ["Flood", "flood"]


@dataclass(frozen=True)
class Flood:
    """What came of a flood, a second.

    Attributes
    ----------
    offered
        Datagrams sent.
    got
        Those that the program read.
    unread
        Those that its host took in, and dropped for want of a reader.
    lost
        Packets lost before the host: on its adapter, in a switch.
    busy_share
        The part of the time that the host's processor was busy.
    """

    offered: float
    got: float
    unread: float
    lost: float
    busy_share: float


def flood(config: str, size: int, gap_us: float, length_ms: float = 200.0, seed: int = SEED) -> Flood:
    """Have all hosts but the first send it datagrams of `size` bytes, each working for `gap_us` between two.

    The second half of `length_ms` is looked at.

    Raises
    ------
    InputError
        The network, or a datagram of this size, is rejected.
    """
    try:
        found = lan_flood(config, size, round(gap_us * 1e6), round(length_ms * 1e9), seed)
    except ValueError as error:
        raise InputError(str(error)) from None
    seconds = found["length_ps"] / 1e12
    return Flood(
        offered=found["sent"] / seconds,
        got=found["got"] / seconds,
        unread=found["unread"] / seconds,
        lost=found["lost"] / seconds,
        busy_share=found["busy_ps"] / found["length_ps"],
    )
