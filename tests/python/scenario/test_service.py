"""A port that categories of service share, as a scenario: what may be written, and what comes of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wiretwin._core import service_run
from wiretwin.errors import InputError
from wiretwin.scenario import Scenario, simulate
from wiretwin.scenario.model import TariffTable
from wiretwin.scenario.service import document, metrics
from wiretwin.scenario.trace import Trace, record

SHORT = {"program": "pde2", "pace": 36.1, "time": "500 ms", "warm_up": "50 ms"}


def scenario(**tables: dict[str, Any]) -> Scenario:
    found: dict[str, Any] = {"port": {}, "background": {"rho": 0.9}, "task": SHORT}
    return Scenario.of(found | {name: found.get(name, {}) | values for name, values in tables.items()})


def test_the_same_seed_is_the_same_run_and_the_seed_is_what_differs() -> None:
    one, again, other = (simulate(scenario(), seed=seed) for seed in (1, 1, 2))
    assert one.digest == again.digest != other.digest
    assert one.metrics == again.metrics
    assert one.metrics["messages"] > 40
    assert one.metrics["undelivered_messages"] <= 5


def test_bits_go_by_the_category_that_the_mechanism_has_and_are_paid_for() -> None:
    ubr, abr = (simulate(scenario(task={"mechanism": name})).metrics for name in ("ubr", "abr"))
    assert ubr["abr_kbit_s"] == 0 == abr["ubr_kbit_s"]
    assert (ubr["abr_share"], abr["abr_share"]) == (0.0, 1.0)
    assert abr["cell_loss_ratio"] == 0 < ubr["cell_loss_ratio"]
    dear = simulate(scenario(task={"mechanism": "abr"}, tariff={"abr": 20.0, "vbr": 0.0})).metrics
    assert dear["cost_per_s"] == pytest.approx(20 * abr["abr_kbit_s"] / 1e3)


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"task": {"low": "0.1 ms"}}, "has low = 0.1 ms; allowed is below high, 0.1 ms"),
        ({"background": {"rho": -0.1}}, "rho"),
        ({"task": {"minimum": "60 Mbit/s"}}, "has peak = 50.0 Mbit/s; allowed is at least minimum, 60.0"),
        ({"task": {"program": None}}, "both program and trace, or neither"),
        ({"task": {"program": "sort"}}, "task.program"),
        ({"task": {"trace": "x.json"}}, "both program and trace"),
        ({"port": {"buffer": 0}}, "buffer"),
        ({"task": {"mechanism": "cbr"}}, "mechanism"),
        ({"task": {"control": "150 Mbit/s"}}, "task control.category is 150000000 bit/s; allowed: at most"),
        ({"network": {}}, "network"),
    ],
)
def test_what_cannot_be_is_refused_by_name(tables: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        simulate(scenario(**tables))


def test_a_compiled_network_names_the_key_of_what_it_refuses() -> None:
    found = scenario()
    assert found.port is not None
    assert found.background is not None
    assert found.task is not None
    wanted = document(found.port, found.background, found.task, 1)
    for change, message in (
        (lambda it: it["tasks"][0]["trace"].update(values=[]), "trace.values"),
        (lambda it: it["tasks"][0]["trace"].update(at_ns=it["tasks"][0]["trace"]["at_ns"][::-1]), "at_ns"),
        (lambda it: it["tasks"][0]["layer"].update(low_ns=100_000), "T_m is 100000000, allowed is below T_M"),
        (lambda it: it["tasks"][0]["backup"].update(mcr_bit_s=60_000_000), "MCR is"),
        (lambda it: it["circuits"][0].update(path=[1]), "path is 1; allowed: ports 0 to 0"),
        (lambda it: it["ports"][0]["erica"].update(utilization=1.5), "utilization is 1.5"),
    ):
        broken = json.loads(json.dumps(wanted))
        change(broken)
        with pytest.raises(ValueError, match=message):
            service_run(json.dumps(broken))


def test_a_task_of_which_nothing_arrived_says_so() -> None:
    task = {"latency_ps": [], "messages": 3, "data_ordinary": 0, "data_backup": 0, "lost_data": 0}
    task |= {"retransmitted": 0, "switches": 0, "back": 0}
    cells: dict[str, Any] = {name: {"sent": 0} for name in ("ordinary", "backup", "control")}
    found = metrics(
        {"tasks": [task | cells], "circuits": [], "ports": [{"mean_waiting": 0, "sent": 0, "marked": 0}]},
        TariffTable(),
        1,
    )
    assert found["latency_us"] != found["latency_us"]
    assert found["undelivered_messages"] == 3


def test_programs_are_recorded_with_the_messages_that_they_are_known_for(tmp_path: Path) -> None:
    cube, square = record("pde1"), record("pde2")
    # Half a face of 45 x 45 points.
    assert sorted(set(cube.values)) == [1, 1012, 1013]
    assert 24 <= 8 * sum(square.values) / len(square.values) <= 100
    assert max(square.values) == 33
    for trace in (cube, square):
        trace.write(tmp_path / "trace.json")
        assert Trace.read(tmp_path / "trace.json") == trace
    short = Trace("two", (0, 5_000_000), (10, 20), 8, 10_000_000)
    short.write(tmp_path / "trace.json")
    (tmp_path / "s.toml").write_text(
        'format = "wiretwin-scenario"\nversion = 2\n[port]\n[background]\nrho = 0.1\n'
        '[task]\ntrace = "trace.json"\ntime = "200 ms"\n'
    )
    assert 15 <= simulate(Scenario.read(tmp_path / "s.toml")).metrics["messages"] <= 41


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 2}, "is another"),
        ({"at_ns": [3, 1]}, "does not rise"),
        ({"values": [0, 1]}, "values"),
        ({"values": [1]}, "2 of them"),
        ({"octets": 3}, "1, 2, 4, 8 or 16"),
        ({"period_ns": 1}, "2 or more"),
    ],
)
def test_a_trace_that_is_none_is_refused_by_name(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    path = tmp_path / "trace.json"
    Trace("t", (1, 2), (1, 1), 8, 9).write(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(InputError, match=message):
        Trace.read(path)
