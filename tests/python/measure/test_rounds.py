"""Rounds of pairs of hosts: every pair once, no host twice in a round."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest

from wiretwin.errors import InputError
from wiretwin.measure.rounds import chosen, rounds


@pytest.mark.parametrize("hosts", [2, 3, 7, 8, 33])
def test_every_pair_is_in_one_round_and_no_host_twice(hosts: int) -> None:
    made = rounds(hosts, seed=1)
    assert sorted(pair for one in made for pair in one) == list(combinations(range(hosts), 2))
    assert len(made) == hosts - 1 + hosts % 2
    for one in made:
        assert max(Counter(host for pair in one for host in pair).values()) == 1


def test_a_sample_has_so_many_pairs_spread_over_the_hosts() -> None:
    made = [pair for one in chosen("sample:12", 8, seed=3) for pair in one]
    assert len(set(made)) == 12
    assert set(Counter(host for pair in made for host in pair).values()) == {3}
    assert chosen("sample:12", 8, seed=3) != chosen("sample:12", 8, seed=4)


@pytest.mark.parametrize("text", ["some", "sample:0", "sample:29", "sample:-1", "sample:"])
def test_what_is_no_choice_of_pairs_is_rejected(text: str) -> None:
    with pytest.raises(InputError, match="sample:N with 1 to 28 pairs"):
        chosen(text, 8, seed=1)
