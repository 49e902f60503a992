"""The reliable adaptation layer over a wire that loses, repeats, reorders, and holds one class of packets."""

from __future__ import annotations

from beds import LIMIT_S, need_testbed

from wiretwin.measure.launch import launch
from wiretwin.measure.schedule import Step
from wiretwin.predict.named import NAMED, run_live
from wiretwin.stacks.layers import parse_layers
from wiretwin.testbed import Link, Testbed

RULES = {"loss": 0.2, "duplicate": 0.05, "reorder": 0.05}


def test_a_program_is_right_over_a_wire_that_loses_a_fifth() -> None:
    need_testbed()
    words = ["elements=1001", "rounds=2"]
    with Testbed.up(2, Link("wire", offload=False, rate_bit_s=100_000_000, rules=RULES, only="udp")) as bed:
        found = run_live(NAMED["ring"], words, ranks=2, layer="pcaal/udp", limit_s=LIMIT_S, place=bed)
        wire = bed.counters()
    here = run_live(NAMED["ring"], words, ranks=2, layer="shm", limit_s=LIMIT_S)
    assert [one.digest for one in found.ranks] == [one.digest for one in here.ranks]
    assert all(one.verified and one.counted["retransmitted"] > 0 for one in found.ranks)
    assert wire


def test_a_class_that_the_wire_holds_is_left_for_the_other() -> None:
    need_testbed()
    held = Link("wire", offload=False, rate_bit_s=100_000_000, held={"8": 60_000_000})
    with Testbed.up(2, held) as bed:
        steps = [Step("echo", 64, warmup=2, min_samples=20, max_samples=20)]
        (cells,) = parse_layers("pcaal/udp")
        outcome = launch(cells, steps, limit_s=LIMIT_S, pins=None, place=bed)
    assert outcome.status == "ok", outcome.error
    assert outcome.counted["switches"] >= 1
    assert outcome.counted["data_backup"] >= 20
    # By the ordinary circuit a round trip takes 120 ms.
    assert sorted(outcome.steps[0]["values_ns"])[10] < 60e6 * outcome.steps[0]["batch"]
