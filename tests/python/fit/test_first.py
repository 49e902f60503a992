"""What first calls take, fitted from launches that make the kinds in different orders."""

from __future__ import annotations

import random

import polars as pl
import pytest
from fit_help import HOST

from wiretwin.fit.api import fit
from wiretwin.fit.first import early_messages, first_calls
from wiretwin.loops import FAMILIES
from wiretwin.predict import model
from wiretwin.predict.model import Site
from wiretwin.twin import FirstCall, Twin

LOOPS = ("echo", "call", "send_busy", "recv_busy", "stream", "prtt")
OBJECTS_NS, LATER_NS = 50_000, 2_000
OWN_NS = {"bcast": 20_000, "gather": 30_000, "send": 4_000, "Send": 3_000, "Bcast": 8_000, "Gather": 9_000}


def measured(launches: int, *, spoilt: int = 0) -> pl.DataFrame:
    """Return samples of a layer with those of first calls, some of which lost their core."""
    samples = HOST.samples(launches=launches, loops=LOOPS)
    one, rows = samples.row(0, named=True), []
    for launch in range(1, launches + 1):
        for peer in ("", "_peer"):
            kinds = list(OWN_NS)
            random.Random(launch).shuffle(kinds)
            objects_ns = OBJECTS_NS
            for kind in kinds:
                first_ns = LATER_NS + OWN_NS[kind]
                if kind.islower():
                    first_ns += objects_ns
                    objects_ns = 0
                if launch <= spoilt and kind == kinds[3]:
                    first_ns += 4_000_000
                for index, value in enumerate([first_ns, LATER_NS, LATER_NS + 100, LATER_NS - 100]):
                    call = {"launch": launch, "loop": f"first_{kind}{peer}", "bytes": 0, "messages": 1}
                    call |= {"delay_ns": 0, "batch": 1, "index": index, "value_ns": value}
                    rows.append(one | call)
    return pl.concat([samples, pl.DataFrame(rows, schema=samples.schema)])


def by_name(found: tuple[FirstCall, ...], call: str) -> float:
    """Return what a rank's very first call takes, in us."""
    return sum(one.takes_us.value for one in found if call in one.calls)


@pytest.mark.parametrize("spoilt", [0, 3])
def test_what_kinds_share_is_told_from_their_own(spoilt: int) -> None:
    found = first_calls(measured(9, spoilt=spoilt), 0.95)
    for kind, own_ns in OWN_NS.items():
        wanted = own_ns + (OBJECTS_NS if kind.islower() else 0)
        assert by_name(found, kind) == pytest.approx(wanted / 1e3, abs=0.5), kind
    shared = max(found, key=lambda one: one.takes_us.value)
    assert {"bcast", "gather", "send"} <= set(shared.calls)
    assert "Bcast" not in shared.calls


def test_variants_are_of_the_kind_that_they_resemble() -> None:
    found = first_calls(measured(5), 0.95)
    assert by_name(found, "Gatherv") == by_name(found, "Gather")
    assert by_name(found, "Alltoall") == 0.0
    names = [name for family in FAMILIES.values() for name in family]
    assert len(set(names)) == len(names)


def test_too_few_launches_say_nothing() -> None:
    assert first_calls(measured(3), 0.95) == ()
    assert first_calls(HOST.samples(launches=9, loops=LOOPS), 0.95) == ()


def test_the_twin_keeps_them_and_the_model_has_them() -> None:
    twin = fit(measured(5))
    assert Twin.parse(twin.to_toml()).to_toml() == twin.to_toml()
    layer = twin.layer("synthetic")
    site = Site.of(2)
    firsts = site.model(twin, "synthetic", fresh=True)["first"]
    assert sum(one["ps"] for one in firsts if "bcast" in one["calls"]) == round(
        1e6 * by_name(layer.first, "bcast")
    )
    assert not any("at_end" in one for one in firsts)
    assert "first" not in site.model(twin, "synthetic")
    low, high = (site.model(twin, "synthetic", side, fresh=True)["first"] for side in ("low", "high"))
    assert all(one["ps"] <= other["ps"] for one, other in zip(low, high, strict=True))


def test_what_only_receives_of_objects_need_comes_at_their_end() -> None:
    layer = fit(measured(5)).layer("synthetic")
    one = layer.first[0]
    calls = [("recv", "irecv", "sendrecv"), ("recv",), ("send", "recv"), ("Recv",)]
    firsts = tuple(one.model_copy(update={"calls": names}) for names in calls)
    found = model.first_calls(layer.model_copy(update={"first": firsts}))["first"]
    assert [one.get("at_end", False) for one in found] == [True, True, False, False]


def came_early(takes_ns: dict[int, list[int]]) -> pl.DataFrame:
    """Return samples of a layer with early messages: what the first of a length takes more, by launch."""
    samples = HOST.samples(launches=3, loops=LOOPS)
    one, rows = samples.row(0, named=True), []
    for size, by_launch in takes_ns.items():
        for launch, ns in enumerate(by_launch, 1):
            for index, value in enumerate([300_000 + ns, 300_000, 301_000, 299_000]):
                call = {"launch": launch, "loop": f"early_{size}", "bytes": 0, "messages": 1}
                call |= {"delay_ns": 0, "batch": 1, "index": index, "value_ns": value}
                rows.append(one | call)
    return pl.concat([samples, pl.DataFrame(rows, schema=samples.schema)])


def test_the_first_message_of_a_length_that_comes_early_takes_what_later_ones_do_not() -> None:
    noise = [500, -400, 300, -600, 200, -100]
    takes_ns = {4096: noise[::-1], 256: noise, 1024: [600_000 + ns for ns in noise]}
    (found,) = early_messages(came_early(takes_ns), 0.95)
    assert found.early_from_bytes == 1024
    assert found.takes_us.value == pytest.approx(600.0, abs=0.5)
    few = {size: ns[:3] for size, ns in takes_ns.items()}
    assert early_messages(came_early(few), 0.95) == ()

    twin = fit(came_early(takes_ns))
    assert Twin.parse(twin.to_toml()).to_toml() == twin.to_toml()
    (one,) = Site.of(2).model(twin, "synthetic", fresh=True)["first"]
    assert one == {
        "calls": list(found.calls),
        "ps": round(1e6 * found.takes_us.value),
        "early_from_bytes": 1024,
    }
