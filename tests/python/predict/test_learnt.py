"""What is learnt from predictions on record holds for a program that is not among them."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
from scipy import special, stats

from wiretwin.predict import learnt
from wiretwin.predict.learnt import Launches, Past
from wiretwin.predict.records import compute_share
from wiretwin.predict.spread import interval


def record(
    programs: int, *, scale: float, fixed_s: float = 0.0, seed: int = 1, each: int = 2, tail: int = 4
) -> list[Past]:
    """Predictions of programs that are wrong by a scale, with a heavy tail, and by a time that is fixed."""
    draw = random.Random(seed)

    def student() -> float:
        return draw.gauss(0, 1) / math.sqrt(draw.gammavariate(tail / 2, 2 / tail))

    rows = []
    for number in range(programs):
        predicted, share = 10 ** draw.uniform(-3, 0), draw.random()
        drawn = student()
        off = math.copysign(math.hypot(scale * drawn, math.log1p(fixed_s / predicted * abs(drawn))), drawn)
        for _ in range(each):
            actual = predicted * math.exp(off + draw.gauss(0, 0.01))
            rows.append(
                Past(2, "host", f"program {number}", 2, "2026-11-25", predicted, share, 0.02, 0.02, (actual,))
            )
    return rows


@pytest.mark.parametrize(("scale", "fixed_s"), [(0.1, 0.0), (0.05, 1e-3)])
def test_an_interval_holds_for_programs_that_were_left_out(scale: float, fixed_s: float) -> None:
    found = [
        (row, half)
        for seed in range(3)
        for row, half in learnt.left_out(record(20, scale=scale, fixed_s=fixed_s, seed=seed, each=1), "host")
    ]
    inside = [abs(row.error) <= half for row, half in found]
    assert 0.92 <= fmean(inside) < 1.0


def test_an_interval_is_as_wide_as_what_was_wrong() -> None:
    """2.8 scales hold 95 % of Student's distribution with the four degrees of freedom of `record`."""
    many = learnt.errors("host", record(200, scale=0.05))
    assert many.programs == 200
    assert many.half_width(1.0, 0.5) == pytest.approx(2.78 * math.hypot(0.05, 0.05) / math.sqrt(2), rel=0.3)
    few = learnt.errors("host", record(3, scale=0.05))
    assert few.half_width(1.0, 0.5) > 1.3 * many.half_width(1.0, 0.5)


def test_what_is_there_once_a_run_counts_in_short_ones() -> None:
    found = learnt.errors("host", record(60, scale=0.05, fixed_s=1e-3))
    assert found.half_width(2e-3, 0.5) > 3 * found.half_width(1.0, 0.5)
    # Of a program of 10 us it says that it takes some milliseconds at most, by the heavy tail of the errors.
    assert 2e-3 < 1e-5 * math.exp(found.half_width(1e-5, 0.5)) < 10e-3


def test_an_interval_goes_half_of_the_way_to_those_of_others_but_not_within_its_noise() -> None:
    rows = record(60, scale=0.05, fixed_s=1e-3)
    found = learnt.errors("host", rows)
    own = [found.half_width(row.predicted_s, row.compute_share) for row in rows]
    assert min(own) < found.typical < max(own)
    for row, width in zip(rows, own, strict=True):
        moved = math.sqrt(math.hypot(width, 0.02) * found.typical)
        assert found.with_noise(0.02, row.predicted_s, row.compute_share) == pytest.approx(max(0.02, moved))
    assert found.with_noise(5 * found.typical, 1.0, 0.5) == 5 * found.typical
    none = learnt.errors("host", [])
    assert none.with_noise(0.3, 1.0, 0.5) == math.hypot(0.3, none.half_width(1.0, 0.5))
    low, high = interval(1.0, [], [[0.8, 1.1]], errors=found, compute_share=0.5)
    assert high == pytest.approx(math.exp(found.with_noise(math.log(1.1), 1.0, 0.5)))
    assert low == pytest.approx(math.exp(-found.with_noise(-math.log(0.8), 1.0, 0.5)))


def test_a_program_counts_once_however_often_it_was_run() -> None:
    once = record(20, scale=0.05, each=1)
    wrong = Past(2, "host", "run often", 2, "2026-11-25", 1.0, 0.5, 0.02, 0.02, (1.5,))
    assert learnt.errors("host", [*once, wrong]).half_width(1.0, 0.5) == pytest.approx(
        learnt.errors("host", [*once, *[wrong] * 50]).half_width(1.0, 0.5), rel=1e-6
    )


def test_what_an_older_edition_was_wrong_by_is_no_error_of_the_newest() -> None:
    now = record(20, scale=0.05, each=1)
    before = [replace(row, edition=1, predicted_s=row.predicted_s / 3) for row in now]
    width = learnt.errors("host", now).half_width(1.0, 0.5)
    assert learnt.errors("host", [*before, *now]).half_width(1.0, 0.5) == width
    # A program that the newest has not predicted keeps its place.
    assert learnt.errors("host", [*before, *now[1:]]).half_width(1.0, 0.5) > width


def test_a_set_up_without_a_record_takes_the_nearest() -> None:
    rows = record(10, scale=0.1)
    assert learnt.errors("crowded", rows).setup == "host"
    assert learnt.errors("host", []).programs == 0


def test_the_scatter_of_launches_is_found_again() -> None:
    """Programs whose variances are drawn from an inverse gamma distribution, 7 launches of each."""
    draw = random.Random(3)
    rows = []
    for number in range(400):
        deviation = math.sqrt(0.03**2 / draw.gammavariate(6 / 2, 2 / 6))
        times = tuple(math.exp(draw.gauss(0, deviation)) for _ in range(7))
        rows.append(Past(2, "host", f"program {number}", 2, "2026-11-25", 1.0, 0.5, 0.0, 0.0, times))
    found = learnt.launches("host", 1.0, rows)
    assert found is not None
    assert math.sqrt(found.variance) == pytest.approx(0.03, rel=0.1)
    assert found.worth == pytest.approx(6, rel=0.4)


def test_launches_of_a_second_tell_nothing_of_those_of_a_millisecond() -> None:
    draw = random.Random(5)
    rows = [
        Past(2, "host", f"{number}", 2, "2026-11-25", seconds, 0.5, 0.0, 0.0, times)
        for number in range(40)
        for seconds, deviation in ((1.0, 0.02), (1e-3, 0.2))
        for times in [tuple(seconds * math.exp(draw.gauss(0, deviation)) for _ in range(7))]
    ]
    for seconds, deviation in ((0.1, 0.02), (3e-4, 0.2)):
        found = learnt.launches("host", seconds, rows)
        assert found is not None
        assert math.sqrt(found.variance) == pytest.approx(deviation, rel=0.2)
    # Where none takes about so long, all count.
    assert learnt.launches("host", 1e6, rows) is not None


def test_launches_on_record_add_to_what_few_passes_say() -> None:
    typical = Launches(0.02**2, 5.0)
    low, high = interval(1.0, [1.0], [], known=typical)
    assert low < 0.97 < 1.03 < high
    # Two passes that happen to agree are not believed, and two that differ do not make 12.7 times of it.
    _, agree = interval(1.0, [1.0, 1.0001], [], known=typical)
    assert agree > 1.02
    _, alone = interval(1.0, [0.98, 1.02], [])
    _, helped = interval(1.0, [0.98, 1.02], [], known=typical)
    assert helped < 1.10 < alone


def test_the_record_is_read_and_has_what_was_run(tmp_path: Path) -> None:
    rows = learnt.read()
    assert {row.setup for row in rows} <= set(learnt.SETUPS)
    assert all(0.0 < row.compute_share <= 1.0 or row.setup != "host" for row in rows)
    file = tmp_path / "past.csv"
    text = learnt.FILE.read_text("utf-8").splitlines()
    file.write_text("\n".join([text[0], text[-1]]) + "\n")
    assert learnt.read(file) == rows[-1:]


def test_cores_that_ranks_share_compute_while_ranks_wait_for_them() -> None:
    node = {"cores": 2}
    crowded = {"nodes": [node], "placement": [0] * 4}
    assert compute_share(crowded, [0.5] * 4, 1.0) == 1.0
    assert compute_share(crowded, [0.2, 0.1, 0.1, 0.0], 1.0) == pytest.approx(0.2)
    hosts = {"nodes": [node, node | {"cores_of": 0}], "placement": [0, 0, 1, 1]}
    assert compute_share(hosts, [0.4] * 4, 1.0) == pytest.approx(0.8)
    apart = {"nodes": [node, node], "placement": [0, 0, 1, 1]}
    assert compute_share(apart, [0.4] * 4, 1.0) == pytest.approx(0.4)
    assert compute_share({"local": {}}, [0.25, 0.5], 1.0) == 0.5
    row = {"edition": "6", "setup": "library-crowded", "program": "a", "ranks": "4", "when": "2026-11-27"}
    row |= {"predicted_s": "1", "compute_share": "0.45", "below": "0.1", "above": "0.1", "launches_s": "1"}
    assert learnt.parsed(row).compute_share == pytest.approx(0.9)
    assert learnt.parsed(row | {"edition": "7"}).compute_share == 0.45
    assert learnt.parsed(row | {"setup": "library-host"}).compute_share == 0.45


def test_functions_are_those_of_scipy() -> None:
    for x in (0.003, 0.5, 1.0, 3.7, 9.99, 50.0):
        assert learnt._digamma(x) == pytest.approx(special.digamma(x), rel=1e-9)
        assert learnt._trigamma(x) == pytest.approx(special.polygamma(1, x), rel=1e-9)
        assert learnt._inverse_trigamma(learnt._trigamma(x)) == pytest.approx(x, rel=1e-6)
    widths = np.geomspace(1e-3, 30.0, 20)
    for tail in learnt.TAILS:
        assert learnt._outside(widths, tail) == pytest.approx(2 * special.stdtr(tail, -widths), abs=1e-10)
        assert learnt._log_density(widths, tail) == pytest.approx(stats.t.logpdf(widths, tail), rel=1e-9)
