"""Programs on four hosts: what is charged, what is printed, who is fastest."""

from __future__ import annotations

import functools
from dataclasses import replace

import pytest

from wiretwin.errors import InputError, SimulationError
from wiretwin.papers import lin1995
from wiretwin.papers.lin1995_programs import MM, NETWORKS, PDE, STACKS, costs_s, jobs, settings
from wiretwin.papers.lin1995_settings import paper
from wiretwin.papers.programs import orders, run_program
from wiretwin.papers.records import Record


@functools.cache
def quick(name: str) -> tuple[list[Record], list[str]]:
    """Run an experiment in its quick form, once."""
    return lin1995.experiment(name, quick=True)


def values(name: str) -> dict[tuple[str, str], float]:
    """Return values by case and metric."""
    return {(one.case, one.metric): one.predicted for one in quick(name)[0]}


def test_work_of_the_multiplication_costs_what_it_does_alone() -> None:
    for job in jobs("mm"):
        assert costs_s(job)[MM] * job.parameters["n"] ** 3 == pytest.approx(job.alone_s)
    assert [round(1e6 * costs_s(job)[MM], 2) for job in jobs("mm")] == [3.02, 3.16, 3.81]


def test_a_point_costs_more_in_the_parallel_program_than_alone() -> None:
    [cost] = {costs_s(job)[PDE] for job in jobs("pde")}
    alone = [job.alone_s / job.points for job in jobs("pde")]
    assert 1.4 < cost / max(alone) < 1.7
    # What it makes of the largest grid is nearly all that is published of it.
    largest = jobs("pde")[-1]
    published = paper()["program"][-1]["time_s"]["256"][1]
    assert 0.98 < cost * largest.share / published < 1


@pytest.mark.parametrize("name", ["table5", "table6"])
def test_every_stack_has_a_time_on_every_network_and_more_than_it_computes(name: str) -> None:
    found = values(name)
    made = jobs("mm" if name == "table5" else "pde")[:2]
    for job in made:
        [cost] = costs_s(job).values()
        for setting, load in settings():
            shown = f"{setting.case} program={job.program} size={job.keys['size']}"
            case = " ".join(
                part
                for part in (
                    shown,
                    f"accuracy={job.keys['accuracy']}" if "accuracy" in job.keys else "",
                    f"load={load}" if load else "",
                )
                if part
            )
            assert found[case, "time_s"] > cost * job.share
            shares = (case, "program_load_share") in found
            assert shares == ("network=ethernet" in case)
            assert not shares or 0 < found[case, "program_load_share"] < 0.3
    # The Fore interface is on ATM alone.
    assert len(list(settings())) == len(NETWORKS) * (len(STACKS) - 1) + 1


def test_the_sequential_program_is_what_the_work_is_calibrated_to() -> None:
    alone = [one for one in quick("table5")[0] + quick("table6")[0] if "stack=" not in one.case]
    assert {one.role for one in alone} == {"calibration"}
    assert all(one.predicted == pytest.approx(one.published, rel=0.02) for one in alone)
    others = [one for one in quick("table6")[0] if "stack=" in one.case and "fore/" not in one.case]
    assert {one.role for one in others} == {"prediction"}
    assert all(one.low < one.predicted < one.high for one in others if one.low is not None and one.high)


def test_beside_load_a_program_takes_longer() -> None:
    found = values("table6")
    loaded = [case for case, _ in found if " load=" in case]
    assert loaded
    for case in loaded:
        assert found[case, "time_s"] > found[case.replace(" load=0.3", ""), "time_s"]


def test_who_is_fastest_is_told_at_every_size() -> None:
    records = quick("table5")[0] + quick("table6")[0]
    found = orders(records)
    assert [one.of for one in found] == [
        "table5 mm 32",
        "table5 mm 128",
        "table6 pde 16 1e-6",
        "table6 pde 16 1e-12",
    ]
    for order in found:
        times = [time for _, time in order.fastest_first]
        assert times == sorted(times)
        assert len(times) == len(NETWORKS) * (len(STACKS) - 1) + 1
        assert str(order).startswith(f"{order.of}: {order.fastest_first[0][0]} {times[0]:.4g} s, ")
    assert any("socket on ethernet at load 0.3" in dict(order.fastest_first) for order in found)
    assert orders(lin1995.experiment("table3", quick=True)[0][:3]) == []


def test_a_run_repeats_with_its_seed_and_refuses_what_is_wrong() -> None:
    job, (setting, _) = jobs("pde")[0], next(settings())
    one, again = (run_program(setting.network, "pde", job.parameters, costs_s(job)) for _ in range(2))
    assert one == again
    assert one.share is None
    with pytest.raises(InputError, match="sort"):
        run_program(setting.network, "sort", {}, {})
    with pytest.raises(InputError, match=r"costs_ps\.sor-point"):
        run_program(setting.network, "pde", job.parameters, {})
    with pytest.raises(SimulationError, match="down is 3"):
        run_program(setting.network, "pde", {**job.parameters, "down": 3}, costs_s(job))
    lossy = replace(setting.network, stack="fore/aal5", hosts=4, cell_loss=0.5, switch="asx100")
    with pytest.raises(SimulationError, match="deadlock: rank"):
        run_program(lossy, "pde", job.parameters, costs_s(job))


def test_over_the_fore_interface_times_are_near_those_that_the_work_is_fitted_to() -> None:
    rows = [one for one in quick("table5")[0] + quick("table6")[0] if "stack=fore/" in one.case]
    assert [one.role for one in rows] == ["calibration"] * 4
    assert all(0.5 < one.predicted / (one.published or 0) < 1.2 for one in rows), rows


def test_pvm_over_circuits_is_faster_than_over_sockets() -> None:
    found = values("pvm-fore")
    over, beside = (
        {
            " ".join(part for part in case.split() if part.split("=")[0] in ("size", "program")): value
            for (case, _), value in found.items()
            if case.startswith(f"stack={stack}")
        }
        for stack in ("pvm-fore", "pvm-advise")
    )
    assert over.keys() == beside.keys()
    assert over["size=4"] < beside["size=4"]
    assert over["program=pde size=16"] < beside["program=pde size=16"]


def test_more_hosts_take_less_time_and_are_used_less_well() -> None:
    found = values("scaling")
    for (case, metric), value in found.items():
        if "ports=16" not in case:
            continue
        few = found[case.replace("ports=16", "ports=4"), metric]
        if metric == "efficiency":
            assert 0 < value < few < 1
    shared = {case: value for (case, metric), value in found.items() if metric == "time_s" and "16" in case}
    assert max(shared, key=lambda case: shared[case]).startswith("stack=socket/tcp/ethernet")


def test_a_topology_has_its_circuits_and_the_time_that_one_processor_takes_for_them() -> None:
    found = values("circuits")
    over = "stack=pvm-fore/aal5 network=atm host=sparc2 adapter=series-200"
    for hosts in (4, 16):
        made = {
            name: found[f"{over} mechanism={name} ports={hosts}", "circuits"]
            for name in ("demand", "mesh", "hypercube", "tree", "all")
        }
        time = {name: found[f"{over} mechanism={name} ports={hosts}", "set_up_us"] for name in made}
        # A message to all and its answers need a tree, and a circuit each way to each host, whatever is held.
        least = 3 * (hosts - 1)
        assert made["demand"] == least
        assert made["all"] == hosts * (hosts - 1) + hosts - 1
        assert made["demand"] <= made["tree"] <= made["hypercube"] <= made["all"]
        # Two messages of a circuit are for the processor, 2 ms each.
        assert all(time[name] > 4000 * made[name] - 4000 for name in made), time
        assert time["tree"] < time["all"]


def test_one_message_on_a_tree_takes_less_than_one_to_each_and_more_so_to_more_hosts() -> None:
    found = values("circuits")
    rounds = {case: value for (case, metric), value in found.items() if metric == "round_us"}
    assert rounds
    for case, value in rounds.items():
        if "mechanism=multicast" in case and "size=65536" in case:
            assert value < 0.7 * rounds[case.replace("mechanism=multicast", "mechanism=each")]


def test_a_first_message_on_switched_circuits_waits_for_two_calls() -> None:
    found = values("circuits")
    [penalty] = [value for (_, metric), value in found.items() if metric == "first_penalty_us"]
    # Two messages of either call are for the switch's processor, and drivers and lines come on top.
    assert 8_000 < penalty < 16_000


def test_adaptation_layers_and_trees_are_counted_by_trying_them() -> None:
    of = {
        (case.split()[0].removeprefix("stack=").split("/")[0], metric): value
        for (case, metric), value in values("properties").items()
    }
    known = ("fore", "pvm-fore", "socket", "rpc", "pvm-advise")
    assert [of[layer, "protocols"] for layer in known] == [2, 2, 2, 2, 1]
    several = {layer for (layer, metric), value in of.items() if metric == "multicast" and value}
    assert several == {"fore+reliable", "pvm-fore"}


def _layer(case: str) -> str:
    layer, lower = case.split()[0].removeprefix("stack=").split("/", 1)
    return f"{layer}/udp" if lower.startswith("udp") and not layer.startswith("pvm") else layer


def test_what_the_interfaces_can_do_is_what_they_do_when_they_are_tried() -> None:
    found = values("table7")
    of = {(_layer(case), metric): value for (case, metric), value in found.items()}
    assert of["fore", "max_transfer_bytes"] == 4096
    assert of["fore", "reliability"] == 0
    assert of["fore", "carries_empty_messages"] == 0
    assert (of["rpc/udp", "max_transfer_bytes"], of["socket/udp", "reliability"]) == (8756, 0)
    for layer in ("fore+reliable", "rpc", "pvm-advise", "pvm-normal", "pvm-fore"):
        assert (of[layer, "max_transfer_bytes"], of[layer, "reliability"]) == (1 << 20, 1), layer
    assert of["fore", "latency_us"] == min(
        value for (_, metric), value in of.items() if metric == "latency_us"
    )
    able = {
        metric: {layer for (layer, of_metric), value in of.items() if of_metric == metric and value}
        for metric in ("spawn", "dynamic_groups", "authentication", "data_encapsulation", "through_sockets")
    }
    pvm, rpc, sockets = {"pvm-advise", "pvm-normal"}, {"rpc", "rpc/udp"}, {"socket", "socket/udp"}
    assert able["spawn"] == able["dynamic_groups"] == pvm
    assert able["authentication"] == rpc
    assert able["data_encapsulation"] == pvm | rpc | {"pvm-fore"}
    assert able["through_sockets"] == pvm | rpc | sockets


def test_a_trial_says_what_came_of_it_and_refuses_what_it_does_not_know() -> None:
    from wiretwin.errors import InputError
    from wiretwin.papers.lin1995_interfaces import interfaces, tried

    network = interfaces()[0].network
    trial = tried(network, "dynamic-groups")
    assert not trial.able
    assert trial.evidence == "rank 0: this layer cannot do that: groups of ranks"
    with pytest.raises(InputError, match='no ability "telepathy"; allowed: spawn, dynamic-groups'):
        tried(network, "telepathy")
