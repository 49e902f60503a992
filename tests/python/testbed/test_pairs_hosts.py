"""Each pair of eight hosts at two switches: a slowed link and a slowed host are named."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest
from beds import need_testbed

from wiretwin.errors import InputError
from wiretwin.fit.cluster import network_of
from wiretwin.fit.pairs import classes_of
from wiretwin.measure import each_pair, measure
from wiretwin.model.network import Network
from wiretwin.report import render
from wiretwin.testbed import Testbed, parse_link

pytestmark = pytest.mark.needs_hosts
FEW = {"layers": "socket/tcp", "sizes": "4,256KiB", "purpose": "curves", "budget": None}


def test_a_slowed_link_and_a_slowed_host_are_named_with_their_evidence(tmp_path: Path) -> None:
    need_testbed()
    link = parse_link(switches=2, slow="h3=100Mbit,trunk=400Mbit")
    with Testbed.up(8, link) as bed:
        result = measure(**FEW, pairs="sample:20", launches=1, place=bed, out=tmp_path / "all")
    (found,) = classes_of(result)
    assert found.groups == (("h1", "h2", "h3", "h4"), ("h5", "h6", "h7", "h8"))
    named = {one.kind: one for one in found.slow if one.kind != "pair"}
    assert named["adapter"].hosts == ("h3",)
    assert named["link"].hosts == ("h1, h2, h3, h4", "h5, h6, h7, h8")
    assert "MB/s across" in named["link"].evidence
    times = {one.name: one.times_us[262144] for one in found.classes}
    # 256 KiB at 400 Mbit/s take 5.2 ms, less the bucket.
    assert 4000 < times["further"] < 10000
    assert times["same switch"] < 1000
    network, _ = network_of(result)
    own = {line["to"]: int(line["rate"].split()[0]) for line in network["lines"] if "rate" in line}
    assert sorted(own) == ["h3", "switch2"]
    # What is busy besides makes them slower, and nothing faster but the bucket.
    assert 50e6 < own["h3"] < 115e6
    assert 200e6 < own["switch2"] < 460e6
    assert Network.of_table(network).switches == 2
    page = render(result=result, out=tmp_path / "report.html").read_text()
    assert "the adapter or cable of h3" in page
    assert "Every pair: 256" in page


def test_a_measurement_of_pairs_goes_on_where_it_was(tmp_path: Path) -> None:
    need_testbed()
    with Testbed.up(3) as bed:
        asked = dict(**FEW, pairs="sample:2", place=bed, out=tmp_path / "pairs")
        begun = measure(**asked, launches=1)
        assert [launch.hosts for launch in begun.manifest.launches if launch.hosts[0] == launch.hosts[1]] == [
            ("h1", "h1"),
            ("h2", "h2"),
            ("h3", "h3"),
        ]
        once = [launch.sha256 for launch in begun.manifest.launches]
        assert len(once) == 5
        twice = measure(**asked, launches=2, resume=True)
        assert [launch.sha256 for launch in twice.manifest.launches][:5] == once
        assert len(twice.manifest.launches) == 10
        with pytest.raises(InputError, match="pairs"):
            measure(**asked | {"pairs": "all"}, launches=2, resume=True)


def test_pairs_without_a_host_in_common_run_at_once_over_sockets_and_an_mpi(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_testbed()
    monkeypatch.setattr(each_pair, "cores", lambda: 4)  # as many as two pairs need
    layers = ("socket/tcp", "mpi/openmpi+yield")
    asked = FEW | {"layers": ",".join(layers), "sizes": "4"}
    with Testbed.up(4) as bed:
        result = measure(**asked, pairs="all", launches=1, place=bed, out=tmp_path / "pairs")
    launches = result.manifest.launches
    assert [one.error for one in launches] == [None] * len(launches)
    hosts = [host.name for host in bed.hosts]
    every = {(host, host) for host in hosts} | set(combinations(hosts, 2))
    for layer in layers:
        own = [one for one in launches if one.name == layer]
        assert {one.hosts for one in own} == every
        assert len(own) == len(every)
        # What is launched at the same time begins at the same time.
        begun = [[one for one in own if one.started_utc == at] for at in {one.started_utc for one in own}]
        assert sorted(map(len, begun)) == [2] * 5
        for both in begun:
            assert not set(both[0].hosts or ()) & set(both[1].hosts or ())
