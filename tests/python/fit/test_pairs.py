"""Classes of pairs, and what is slow, in made-up times whose truth is known."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import combinations

import polars as pl
import pytest

from wiretwin.fit.pairs import SCHEMA, Classes, classify, reference

HOSTS = [f"n{number}" for number in range(8)]
SIZES = (4, 65536)


def found(
    time_us: Callable[[str, str, int], float], *, seed: int = 1, noise: float = 0.1, share: float = 1.0
) -> tuple[pl.DataFrame, Classes]:
    random_ = random.Random(seed)
    rows = []
    for a, b in combinations(HOSTS, 2):
        if random_.random() <= share:
            for size in SIZES:
                value = time_us(a, b, size) * random_.uniform(1, 1 + noise)
                rows.append(("tcp", a, b, size, 1, value, 0.0, float("inf")))
    table = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    return table, classify(table, "tcp", HOSTS)


def plain(_a: str, _b: str, size: int) -> float:
    return 10.0 + size / 1000.0


def across(a: str, b: str) -> bool:
    return (a < "n4") != (b < "n4")


@pytest.mark.parametrize("seed", range(20))
def test_noise_alone_makes_no_classes_and_nothing_slow(seed: int) -> None:
    _, one = found(plain, seed=seed, noise=0.3)
    assert [(each.name, len(each.pairs)) for each in one.classes] == [("between hosts", 28)]
    assert one.slow == ()


def test_a_host_is_not_slow_by_as_much_as_hosts_are_uneven_by_themselves() -> None:
    within = {host: 20.0 if host in ("n3", "n5") else 10.0 for host in HOSTS}
    for slower, named in ((2.5, []), (4.0, [("host", ("n2",))])):
        table, _ = found(lambda a, b, size, by=slower: plain(a, b, size) * (by if "n2" in (a, b) else 1))
        assert [one.hosts for one in classify(table, "tcp", HOSTS).slow] == [("n2",)]
        alone = [("tcp", host, host, size, 1, within[host], 0.0, 0.0) for host in HOSTS for size in SIZES]
        both = pl.concat([table, pl.DataFrame(alone, schema=SCHEMA, orient="row")])
        assert [(one.kind, one.hosts) for one in classify(both, "tcp", HOSTS).slow] == named


def test_a_host_is_slow_by_more_where_a_single_launch_says_so() -> None:
    """Of n2 one pair alone is near: the others are across, and say nothing of it."""
    for slower, launches, named in ((2.5, 1, []), (2.5, 2, ["n2"]), (4.0, 1, ["n2"])):

        def time_us(a: str, b: str, size: int, by: float = slower) -> float:
            return plain(a, b, size) * (by if (a, b) == ("n0", "n2") else 1) * (50 if across(a, b) else 1)

        table, _ = found(time_us)
        lacks = ((pl.col("a") == "n2") & (pl.col("b") == "n3")) | (
            (pl.col("a") == "n1") & (pl.col("b") == "n2")
        )
        table = table.filter(~lacks).with_columns(launches=pl.lit(launches))
        slow = [one for one in classify(table, "tcp", HOSTS).slow if one.kind == "host"]
        assert [host for one in slow for host in one.hosts] == named


def test_two_switches_are_found_by_the_latency_between_them() -> None:
    table, one = found(lambda a, b, size: plain(a, b, size) + 8.0 * across(a, b))
    assert one.groups == (tuple(HOSTS[:4]), tuple(HOSTS[4:]))
    assert [(each.name, len(each.pairs)) for each in one.classes] == [("same switch", 12), ("further", 16)]
    assert one.slow == ()  # further away is not slow: long messages have the same rate
    a, b = reference(table, "tcp") or ("", "")
    assert (a, b) in one.classes[0].pairs


def test_a_slow_host_an_adapter_a_link_and_a_pair_are_told_apart() -> None:
    def time_us(a: str, b: str, size: int) -> float:
        time = plain(a, b, size) + 3.0 * (size - 4) / 1000.0 * across(a, b)
        if "n2" in (a, b):
            time *= 5
        if "n6" in (a, b):
            time += (size - 4) / 100.0
        return time * (2.5 if (a, b) == ("n0", "n1") else 1)

    _, one = found(time_us, share=1.0)
    assert one.groups == (tuple(HOSTS[:4]), tuple(HOSTS[4:]))
    assert [(each.kind, each.hosts) for each in one.slow] == [
        ("host", ("n2",)),
        ("adapter", ("n6",)),
        ("link", ("n0, n1, n2, n3", "n4, n5, n6, n7")),
        ("pair", ("n0", "n1")),
    ]
    assert one.unplaced == ("n6",)  # 655 us of its own against 197 us of the way across
    words = str(one.slow[1])
    assert words.startswith("the adapter or cable of n6: even its fastest of 7 pairs")
    assert "for 64 KiB" in words


@pytest.mark.parametrize("seed", range(20))
def test_a_host_so_slow_that_its_switch_cannot_be_told_is_put_beside_its_neighbour(seed: int) -> None:
    def time_us(a: str, b: str, size: int) -> float:
        if "n5" in (a, b):
            return plain(a, b, size) + (size - 4) / 12.5
        return plain(a, b, size) + (size - 4) / 200.0 * across(a, b)

    _, one = found(time_us, seed=seed, noise=0.3)
    assert one.groups == (tuple(HOSTS[:4]), tuple(HOSTS[4:]))
    assert one.unplaced == ("n5",)
    assert one.near == "n0, n1, n2, n3; n4, n5, n6, n7 (the times do not tell the group of n5)"
    assert [(each.kind, each.hosts[0]) for each in one.slow if each.kind != "link"] == [("adapter", "n5")]
