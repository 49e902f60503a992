"""Which pairs of hosts are measured at the same time: rounds of pairs that have no host in common.

All pairs of n hosts fall into n - 1 rounds (n if odd) in each of which every host has one partner at most, a
1-factorisation of the complete graph. The circle method makes it: one host stays, the others move by one
place from round to round.
"""

from __future__ import annotations

import random
import re

from wiretwin.errors import InputError

__all__ = ["Pair", "chosen", "rounds"]

Pair = tuple[int, int]
"""Two hosts by their places in the list, the lower first; or one host twice, which is the host itself."""


def rounds(hosts: int, seed: int) -> list[list[Pair]]:
    """Return every pair of hosts once, in rounds of pairs without a host in common.

    Parameters
    ----------
    hosts
        How many, at least 2.
    seed
        Of the order of the rounds and of who meets whom in which.
    """
    order = random.Random(seed)
    names: list[int | None] = list(range(hosts))
    order.shuffle(names)
    if hosts % 2:
        names.append(None)  # whoever meets nobody rests
    made = []
    for _ in range(len(names) - 1):
        half = len(names) // 2
        facing = zip(names[:half], reversed(names[half:]), strict=True)
        made.append([(min(a, b), max(a, b)) for a, b in facing if a is not None and b is not None])
        names = [names[0], names[-1], *names[1:-1]]
    order.shuffle(made)
    return made


def chosen(text: str, hosts: int, seed: int) -> list[list[Pair]]:
    """Return the rounds of the pairs that were asked for.

    A sample is made of whole rounds as far as it goes, so that every host is in about as many pairs.

    Parameters
    ----------
    text
        ``all``, or ``sample:N`` for N pairs.
    hosts
        How many hosts there are.
    seed
        Of the sample and of the order.

    Raises
    ------
    InputError
        It is neither, or there are not so many pairs.
    """
    if hosts < 2:
        raise InputError(key="--pairs", value=text, allowed="with two hosts or more")
    made = rounds(hosts, seed)
    if text == "all":
        return made
    most = hosts * (hosts - 1) // 2
    match = re.fullmatch(r"sample:(\d+)", text)
    left = int(match[1]) if match else 0
    if not 1 <= left <= most:
        raise InputError(key="--pairs", value=text, allowed=f"all, or sample:N with 1 to {most} pairs")
    some = []
    for one in made:
        if left > 0:
            some.append(one[:left])
            left -= len(some[-1])
    return some
