"""Ranks that talk are placed at one switch, and away from a slow host where there is another."""

from __future__ import annotations

from pathlib import Path

import pytest

from wiretwin.errors import InputError
from wiretwin.predict.placement import hostfile, place, rankfile

PROGRAM = """\
from mpi4py import MPI

comm = MPI.COMM_WORLD
other = (comm.rank + comm.size // 2) % comm.size
block, found = bytearray(100_000), bytearray(100_000)
for _ in range(3):
    comm.Sendrecv(block, dest=other, recvbuf=found, source=other)
"""
HOSTS = ("a0", "a1", "a2", "b0", "b1", "b2")


def network(slow: str) -> dict[str, object]:
    """Two switches with three hosts each, a slow line between them and to one host."""
    nodes = [{"name": name, "kind": "switch"} for name in ("a", "b")]
    nodes += [{"name": name, "kind": "host"} for name in HOSTS]
    lines = [{"from": host[0], "to": host} | ({"rate": "50Mbit/s"} if host == slow else {}) for host in HOSTS]
    lines.append({"from": "a", "to": "b", "rate": "100Mbit/s"})
    return {"topology": "listed", "rate": "1Gbit/s", "nodes": nodes, "lines": lines}


def test_ranks_that_talk_are_at_one_switch_and_none_on_the_slow_host(tmp_path: Path) -> None:
    program = tmp_path / "pairs.py"
    program.write_text(PROGRAM)
    found = place(program, twin="nothing", network=network("a1"), ranks=4)
    hosts = found.hosts
    assert "a1" not in hosts
    assert hosts[0][0] == hosts[2][0]
    assert hosts[1][0] == hosts[3][0]
    assert hosts[0][0] != hosts[1][0]
    # Before, both pairs crossed the trunk or had the slow host.
    assert found.after_s < found.before_s / 5
    assert hosts == place(program, twin="nothing", network=network("a1"), ranks=4).hosts
    assert hostfile(found).split() == list(hosts)
    assert rankfile(found).splitlines()[3] == f"rank 3={hosts[3]} slot=0"


def test_a_slow_host_that_is_needed_does_not_spoil_the_others(tmp_path: Path) -> None:
    program = tmp_path / "pairs.py"
    program.write_text(PROGRAM)
    found = place(program, twin="nothing", network=network("a1"), ranks=6)
    at = [host[0] for host in found.hosts]
    assert sorted(found.hosts) == sorted(HOSTS)
    assert sum(at[rank] != at[rank + 3] for rank in range(3)) == 1  # three at a switch: one pair has to cross


def test_hosts_in_order_are_kept_where_all_are_alike(tmp_path: Path) -> None:
    program = tmp_path / "pairs.py"
    program.write_text(PROGRAM)
    found = place(program, twin="nothing", network="star:hosts=4,rate=1Gbit/s", ranks=4)
    assert found.hosts == ("host0", "host1", "host2", "host3")
    assert found.before_s == found.after_s
    with pytest.raises(InputError, match="--network"):
        place(program, twin="nothing", network="testbed:rate=1Gbit/s", ranks=2)
