"""The figures: what they are drawn from and what is in them."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pictures
import polars as pl
import pytest
import report_data
from test_together_report import result as together

from wiretwin import plot
from wiretwin.errors import InputError
from wiretwin.plot import base, data, programs, timelines, words
from wiretwin.plot.theme import DARK, KINDS, LIGHT, OPACITIES, fade, translation
from wiretwin.report.inputs import gather
from wiretwin.report.writer import compose


@pytest.fixture(scope="module")
def result() -> report_data.FakeResult:
    return report_data.result()


@pytest.fixture(scope="module")
def twin() -> dict[str, Any]:
    return report_data.twin()


def _curves(figure: Any) -> dict[str, Any]:
    return {trace.meta["layer"]: trace for trace in figure.data if trace.meta["part"] == "curve"}


def test_a_batch_counts_once_and_the_first_iteration_not_at_all() -> None:
    frame = pl.DataFrame(
        {
            "launch": [1, 1, 1, 2, 2, 2],
            "layer": ["a"] * 6,
            "loop": ["echo"] * 6,
            "bytes": [100] * 6,
            "messages": [1] * 6,
            "delay_ns": [0] * 6,
            "batch": [10] * 6,
            "index": [0, 1, 2, 0, 1, 2],
            "value_ns": [10**9, 40_000, 40_000, 10**9, 60_000, 60_000],
        }
    )
    row = data.echo_curves(frame).row(0, named=True)
    # 40 000 and 60 000 ns per batch of ten round trips: 2 and 3 us one way, their geometric mean between.
    assert row["time_us"] == pytest.approx(6**0.5)
    assert row["low_us"] < 2.0 < 3.0 < row["high_us"]
    assert row["rate_MB_s"] == pytest.approx(100 / 6**0.5)
    assert (row["launches"], row["samples"]) == (2, 4)


def test_one_launch_has_no_interval() -> None:
    curves = data.echo_curves(report_data.samples(launches=1))
    assert curves["low_us"].is_nan().all()
    figure = plot.throughput(curves)
    assert not [trace for trace in figure.data if trace.meta["part"] == "band"]


def test_more_launches_make_a_narrower_interval() -> None:
    widths = []
    for launches in (3, 12):
        curves = data.echo_curves(report_data.samples(launches=launches))
        assert (curves["low_us"] < curves["time_us"]).all()
        assert (curves["time_us"] < curves["high_us"]).all()
        widths.append(((curves["high_us"] - curves["low_us"]) / curves["time_us"]).median())
    assert widths[1] < widths[0] / 2


def test_a_frame_without_a_column_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="column 'batch' is missing"):
        data.samples_of(report_data.samples(launches=1).drop("batch"))


@pytest.mark.parametrize(
    ("source", "said"),
    [("nowhere", "nowhere"), (42, "source: 'int' has no samples; allowed: a result, its folder")],
)
def test_what_has_no_samples_is_rejected_by_name(source: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        plot.throughput(source)


def test_throughput_has_a_curve_and_a_band_for_each_layer(result: Any) -> None:
    figure = plot.throughput(result)
    assert set(_curves(figure)) == set(report_data.LAYERS)
    assert sum(trace.meta["part"] == "band" for trace in figure.data) == len(report_data.LAYERS)
    curve = _curves(figure)["shm"]
    expected = [size / report_data.half_round_trip_us("shm", size) for size in sorted(report_data.SIZES)]
    assert np.allclose(curve.y, expected, rtol=0.1)


def test_the_twins_steps_are_marked_on_the_curve(result: Any, twin: Any) -> None:
    figure = plot.throughput(result, twin)
    marks = {trace.meta["layer"]: trace for trace in figure.data if trace.meta["part"] == "mark"}
    assert list(marks["mpi4py/mpich"].x) == [65536]
    assert "rendezvous" in marks["mpi4py/mpich"].text[0]
    assert "rendezvous" not in marks["shm"].text[0]


def test_signature_and_saturation_swap_the_axes_of_the_same_points(result: Any) -> None:
    signature, saturation = _curves(plot.signature(result)), _curves(plot.saturation(result))
    for layer in report_data.LAYERS:
        assert np.array_equal(signature[layer].x, saturation[layer].x)
        assert np.allclose(saturation[layer].y / saturation[layer].x, signature[layer].y)


def test_signature_and_saturation_have_the_intervals_and_steps_of_the_curves(result: Any, twin: Any) -> None:
    frame = plot.echo_curves(result).filter(pl.col("layer") == "shm", pl.col("bytes") > 0).sort("bytes")
    low, high = frame["low_us"].to_numpy(), frame["high_us"].to_numpy()
    for draw, edge in ((plot.signature, "rate_low_MB_s"), (plot.saturation, "bytes")):
        parts = {part: {} for part in ("band", "mark")}
        for trace in draw(result, twin).data:
            if trace.meta["part"] in parts and trace.marker.symbol != "circle-open":
                parts[trace.meta["part"]][trace.meta["layer"]] = trace
        assert parts["band"].keys() == set(report_data.LAYERS)
        band, sizes = parts["band"]["shm"], len(low)
        assert list(band.x) == [*high, *low[::-1]]
        assert list(band.y[:sizes]) == frame[edge].to_list()
        assert "from 64" in parts["mark"]["mpi4py/mpich"].text[0]


def test_only_the_layers_asked_for_in_that_order(result: Any) -> None:
    figure = plot.latency(result, layers=["socket/tcp", "shm"])
    assert list(_curves(figure)) == ["socket/tcp", "shm"]
    with pytest.raises(InputError, match="layers: 'pigeon' was not measured; allowed: shm"):
        plot.latency(result, layers=["pigeon"])


def test_a_variant_has_its_bases_colour_and_another_dash() -> None:
    looks = base.looks(["socket/tcp", "socket/tcp+spin", "shm"])
    assert looks["socket/tcp"].colour == looks["socket/tcp+spin"].colour != looks["shm"].colour
    assert looks["socket/tcp"].dash != looks["socket/tcp+spin"].dash
    assert looks["socket/tcp"].symbol != looks["socket/tcp+spin"].symbol


def test_no_two_layers_share_colour_and_dash() -> None:
    names = [
        f"layer{base}{variant}" for base in range(20) for variant in ("", "+a", "+b", "+c", "+d", "+e", "+f")
    ]
    looks = base.looks(names)
    assert len({(look.colour, look.dash) for look in looks.values()}) == len(names)


@pytest.mark.parametrize("span", [1.0001, 1.02, 1.3, 2.0, 5.0, 9.0, 20.0, 150.0, 1e4, 1e9])
@pytest.mark.parametrize("low", [1e-9, 0.7, 1.0, 3.3, 95.0, 12345.0])
def test_an_axis_has_at_least_three_ticks(low: float, span: float) -> None:
    ticks = base.log_ticks(low, low * span)
    assert len(ticks) >= 3
    assert len(set(ticks)) == len(ticks)
    assert low * 0.999 <= min(ticks) <= max(ticks) <= low * span * 1.001
    if low >= 95:
        assert len(base.size_ticks(low, max(low * span, low + 3))[0]) >= 3


def test_a_band_that_leaves_the_picture_is_marked_where_it_does(result: Any) -> None:
    curves = plot.echo_curves(result)
    wide = (pl.col("layer") == "shm") & (pl.col("bytes") == 64)
    low = pl.when(wide).then(pl.col("low_us") / 1e4).otherwise(pl.col("low_us"))
    figure = plot.latency(curves.with_columns(low.alias("low_us")))
    (mark,) = (trace for trace in figure.data if trace.meta["part"] == "beyond")
    assert (mark.meta["layer"], list(mark.x), mark.marker.symbol) == ("shm", [64], "triangle-down-open")
    assert mark.y[0] == pytest.approx(10 ** figure.layout.yaxis.range[0])
    assert "the interval goes on beyond the picture: 64" in mark.text[0]
    assert not [trace for trace in plot.latency(curves).data if trace.meta["part"] == "beyond"]


def test_no_picture_has_two_layers_alike_or_a_band_that_leaves_unsaid(tmp_path: Path) -> None:
    page = compose(gather(**report_data.everything()))
    figures = {block.id: block.figure for block in page.figures()}
    figures |= pictures.pictures(tmp_path, together(tmp_path / "together"))
    assert len(figures) > 20
    assert {name: found for name, one in figures.items() if (found := pictures.alike(one))} == {}
    assert {name: found for name, one in figures.items() if (found := pictures.unmarked(one))} == {}


def test_two_layers_alike_and_a_band_that_leaves_unsaid_are_seen() -> None:
    figure = base.empty(300)
    look = base.Look("#1764ab", "dash", "circle")
    x = np.array([1.0, 2.0])
    for name in ("one", "two"):
        base.line(figure, name, look, x, x, ["", ""])
    base.band(figure, "one", look, (x, x - 5), (x, x + 5))
    figure.update_yaxes(range=[0, 4])
    assert pictures.alike(figure) == ["one and two"]
    assert pictures.unmarked(figure) == ["one"]


def test_a_break_that_noise_may_have_made_is_no_change_of_behaviour(twin: Any) -> None:
    changed = [step for step in plot.data.steps(twin) if step["layer"] == "shm"]
    assert len(changed) == 1
    twin = copy.deepcopy(twin)
    twin["layers"]["shm"]["half_round_trip"][1]["break_p"] = 0.01
    assert [step for step in plot.data.steps(twin) if step["layer"] == "shm"] == []


def test_residuals_are_relative_to_the_fit(result: Any, twin: Any) -> None:
    table = plot.residual_table(result, twin)
    assert len(table) == len(report_data.LAYERS) * len(report_data.SIZES)
    row = table.filter(pl.col("layer") == "shm", pl.col("bytes") == 1 << 20).row(0, named=True)
    fitted = report_data.half_round_trip_us("shm", 1 << 20)
    assert row["fitted_us"] == pytest.approx(fitted)
    assert row["residual"] == pytest.approx(row["measured_us"] / fitted - 1)


def test_the_fitted_line_is_broken_where_a_segment_ends(result: Any, twin: Any) -> None:
    figure = plot.fit(result, twin)
    line = next(trace for trace in figure.data if trace.meta == {"layer": "socket/tcp", "part": "fit"})
    assert np.isnan(line.y).sum() == 2
    before, after = line.y[23], line.y[25]
    assert after - before == pytest.approx(14.0, abs=0.01)


def test_predicted_against_actual_is_in_percent_of_actual() -> None:
    item = report_data.comparison("a.py", [], 2.0, 0.1)
    figure = plot.predicted_vs_actual([item])
    dots = next(trace for trace in figure.data if trace.meta["part"] == "points")
    assert list(dots.x) == [pytest.approx(10.0)]
    predicted = next(trace for trace in figure.data if trace.meta["part"] == "predicted")
    assert predicted.x[:2] == (pytest.approx(5.6), pytest.approx(14.4))


def test_breakdown_sums_to_each_ranks_time() -> None:
    item = report_data.comparison("a.py", [], 2.0, 0.0)
    figure = plot.breakdown(item["prediction"], item["run"])
    assert [trace.meta["kind"] for trace in figure.data] == ["compute", "mpi", "endpoint", "wire", "waiting"]
    assert np.allclose(np.sum([trace.x for trace in figure.data], axis=0), 2.0)
    assert figure.data[0].y == ("rank 0, run", "rank 0, model", "rank 1, run", "rank 1, model")


def test_few_intervals_are_drawn_one_by_one() -> None:
    frame = report_data.timeline(iterations=5)
    figure = plot.timeline(frame)
    compute = next(trace for trace in figure.data if trace.meta["kind"] == "compute")
    assert np.isnan(compute.x).sum() == len(frame.filter(pl.col("kind") == "compute")) == 10


def test_many_intervals_are_summed_and_no_picosecond_is_lost() -> None:
    frame = timelines.read_timeline(report_data.timeline(ranks=3, iterations=900))
    assert len(frame) > timelines.MOST_INTERVALS
    low, high = timelines.bounds(frame)
    edges = np.linspace(low, high, timelines.column_count(3) + 1)
    sums = timelines.summed(frame, edges)
    lengths = frame.with_columns((pl.col("end_ps") - pl.col("start_ps")).alias("length"))
    for (rank, kind), part in lengths.group_by("rank", "kind"):
        assert sums[rank][kind].sum() == pytest.approx(part["length"].sum(), rel=1e-12)
    for rank in range(3):
        filled = sum(sums[rank].values())
        assert (filled <= np.diff(edges) * (1 + 1e-9)).all()
    figure = plot.timeline(frame)
    assert {trace.meta.get("kind") for trace in figure.data} == {*KINDS, None}
    assert sum(len(trace.x) for trace in figure.data) < 40_000


def test_a_closer_window_lies_inside_the_run() -> None:
    frame = timelines.read_timeline(report_data.timeline(iterations=600))
    window = timelines.closer_window(frame)
    assert window is not None
    low, high = timelines.bounds(frame)
    assert low < window[0] < window[1] < high
    assert timelines.closer_window(frame.head(20)) is None


def test_of_many_ranks_the_last_to_end_is_shown() -> None:
    frame = pl.DataFrame(
        {
            "rank": list(range(1000)),
            "start_ps": [0] * 1000,
            "end_ps": [10**9 + (10**6 if rank == 777 else 0) for rank in range(1000)],
            "kind": ["compute"] * 1000,
        }
    )
    ranks = timelines.shown_ranks(timelines.read_timeline(frame))
    assert len(ranks) <= timelines.MOST_RANKS
    assert {0, 777, 999} <= set(ranks)


def test_an_unknown_kind_is_refused() -> None:
    frame = report_data.timeline(iterations=2).with_columns(pl.lit("sleeping").alias("kind"))
    with pytest.raises(ValueError, match="kind 'sleeping'; allowed are compute, endpoint, wire, waiting"):
        plot.timeline(frame)


def test_every_light_colour_has_one_dark_counterpart() -> None:
    assert len(set(LIGHT.colours())) == len(LIGHT.colours())
    table = translation()
    assert table[LIGHT.ink] == DARK.ink
    for opacity in OPACITIES:
        assert table[fade(LIGHT.series[3], opacity)] == fade(DARK.series[3], opacity)
    with pytest.raises(ValueError, match=r"opacity 0\.5: allowed are"):
        fade(LIGHT.ink, 0.5)


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for item in value.values() for text in _strings(item)]
    return [text for item in value for text in _strings(item)] if isinstance(value, list) else []


def test_no_figure_uses_a_colour_that_could_not_turn_dark(result: Any, twin: Any) -> None:
    items = report_data.comparisons()
    figures = [
        plot.throughput(result, twin),
        plot.latency(result, twin),
        plot.signature(result),
        plot.saturation(result),
        plot.fit(result, twin),
        plot.residuals(result, twin),
        plot.predicted_vs_actual(items),
        plot.breakdown(items[0]["prediction"], items[0]["run"]),
        plot.timeline(report_data.timeline()),
        plot.timeline(report_data.timeline(iterations=5)),
    ]
    table = translation()
    for figure in figures:
        colours = [text for text in _strings(figure.to_plotly_json()) if text.startswith(("#", "rgb"))]
        assert colours
        assert {text for text in colours if text not in table} <= {"rgba(0,0,0,0)"}


def test_what_is_compared_is_of_the_state_that_was_compared() -> None:
    record = report_data.comparisons()[0]
    whole = programs.compared(record)
    assert whole == (record["prediction"]["seconds"], record["run"]["seconds"])
    predicted, actual = ({"value": value, "low": value, "high": value} for value in (2.0, 1.6))
    in_state = record | {"predicted": predicted, "actual": actual, "error": 0.25, "state": "far"}
    assert programs.compared(in_state) == (predicted, actual)
    text = programs._relative(in_state)["text"]
    for value in (predicted, actual):
        assert words.time_interval_text(value["value"], value["low"], value["high"]) in text
