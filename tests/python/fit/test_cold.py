"""What a call takes more behind computation, as fitted and as the model of a script has it."""

from __future__ import annotations

import polars as pl
import pytest
from fit_help import HOST

from wiretwin.errors import InputError
from wiretwin.fit.api import fit
from wiretwin.predict.model import Site
from wiretwin.twin import Twin


def behind_work(taken_ns: dict[int, list[int]], *, launches: int = 3) -> pl.DataFrame:
    """Return samples of a layer, and with `launches` what its calls took more, by the length of work."""
    samples = HOST.samples(launches=3)
    first = samples.row(0, named=True)
    rows = [
        first | {"launch": launch, "loop": "cold", "bytes": 8, "messages": 1, "batch": 1}
        | {"delay_ns": work_ns, "index": index, "value_ns": value + 1000 * launch}
        for launch in range(1, launches + 1)
        for work_ns, values in taken_ns.items()
        for index, value in enumerate(values)
    ]  # fmt: skip
    return pl.concat([samples, pl.DataFrame(rows, schema=samples.schema)])


def test_the_typical_sample_of_the_typical_launch_counts_at_each_length() -> None:
    # The first sample of a launch is none of them; one in which something else had the core decides nothing.
    twin = fit(behind_work({400_000: [0, 40_000, 40_000, 9_000_000], 50_000: [500_000, 18_000, 18_000, 0]}))
    short, long = twin.layer("synthetic").cold
    assert (short.after_us, long.after_us) == (50.0, 400.0)
    assert short.takes_us.value == pytest.approx(20.0)
    assert long.takes_us.value == pytest.approx(42.0)
    assert long.takes_us.low <= 41.0
    assert long.takes_us.high >= 43.0
    assert (long.takes_us.launches, long.takes_us.samples) == (3, 9)
    assert Twin.parse(twin.to_toml()).to_toml() == twin.to_toml()


def test_lengths_of_work_that_do_not_rise_are_refused_by_their_place() -> None:
    text = fit(behind_work({50_000: [0, 9000, 9000], 400_000: [0, 9000, 9000]})).to_toml()
    with pytest.raises(
        InputError, match=r"cold.*after_us 400 comes before 50; allowed is the shortest first"
    ):
        Twin.parse(text.replace("= 400.0", "= X").replace("= 50.0", "= 400.0").replace("= X", "= 50.0"))


def test_one_launch_tells_nothing() -> None:
    assert fit(behind_work({50_000: [0, 9000, 9000]}, launches=1)).layer("synthetic").cold == ()


def test_a_script_pays_for_it_and_a_schedule_does_not() -> None:
    twin = fit(behind_work({50_000: [0, 18_000, 18_000], 400_000: [0, 40_000, 40_000]}))
    model = Site.of(2).model(twin, "synthetic", fresh=True)
    assert model["cold"] == [
        {"after_ps": 50_000_000, "ps": 20_000_000},
        {"after_ps": 400_000_000, "ps": 42_000_000},
    ]
    assert "cold" not in Site.of(2).model(twin, "synthetic")


def test_each_part_of_a_twin_is_moved_to_its_ends_alone() -> None:
    twin = fit(behind_work({50_000: [0, 16_000, 17_000, 19_000, 22_000]}))
    value = Site.of(2).model(twin, "synthetic", fresh=True)
    messages, cold = Site.of(2).ends(twin, "synthetic")
    assert [end | {"cold": value["cold"]} for end in cold] == [value, value]
    assert [end["cold"] for end in messages] == [value["cold"], value["cold"]]
    (takes,) = (one.takes_us for one in twin.layer("synthetic").cold)
    assert [end["cold"][0]["ps"] for end in cold] == [round(1e6 * takes.low), round(1e6 * takes.high)]
    assert Site.of(2).ends(None, "synthetic") == []
