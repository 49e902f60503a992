"""A prediction beside the run it was made for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from wiretwin import states
from wiretwin.errors import InputError
from wiretwin.model import Network
from wiretwin.predict import printed
from wiretwin.predict.records import (
    Beside,
    Comparison,
    Launch,
    Prediction,
    Run,
    Spread,
    median,
    median_spread,
    read,
    typical,
)

if TYPE_CHECKING:
    import polars as pl

#: Length of the echo beside each launch, as `wiretwin.mpi.live` makes it.
ECHO_BYTES = 1 << 16
#: Launches whose median has an interval of 95 %, with one to spare.
LAUNCHES = 7
#: Within this factor of the twin's echo, the host is taken to be in the state it was measured in.
SAME_HOST = 1.35
#: A share of the actual time that the ranks had no core for, which a reader is told.
LOST = 0.05


def compare(prediction: Prediction | str | Path, run: Run | str | Path) -> Comparison:
    """Join a prediction and a run of the same program, arguments, ranks and layer.

    Parameters
    ----------
    prediction, run
        Records, or the folders or files that hold them.

    Raises
    ------
    InputError
        When they are not of the same thing, naming what differs; or a file is not what it should be.
    """
    prediction = prediction if isinstance(prediction, Prediction) else read(Prediction, Path(prediction))
    run = run if isinstance(run, Run) else read(Run, Path(run))
    for key in ("program", "program_sha256", "args", "ranks", "layer"):
        predicted, actual = getattr(prediction, key), getattr(run, key)
        if predicted != actual:
            raise InputError(
                key=key, value=actual, allowed=f"{predicted!r}, what the prediction was made for, in the run"
            )
    if min(one.seconds for one in run.launches) == 0.0 or run.seconds.value == 0.0:
        raise InputError(key="seconds.value", value=0.0, allowed="a time above 0, in the run")
    notes = []
    if datetime.fromisoformat(prediction.frozen_utc) >= datetime.fromisoformat(run.started_utc):
        notes.append("the prediction was recorded after the run had started")
    notes += prediction.warnings
    by_state, elsewhere = _by_state(prediction, run)
    known = [one for one in by_state if one.launches]
    if known:
        # The state the prediction itself is of is the first among equals.
        chosen = max(known, key=lambda one: (one.launches, one.state == prediction.state))
        launches = chosen.launches
    else:
        launches = len(_counted(run))
        chosen = Beside(
            state=None,
            passes=prediction.compute.passes,
            launches=launches,
            predicted=prediction.seconds,
            actual=run.seconds,
            error=prediction.seconds.value / run.seconds.value - 1.0,
        )
    notes += _about_states(prediction, chosen, by_state, elsewhere, run)
    ratio = echo_ratio(prediction, run)
    if not by_state and ratio is not None and not 1 / SAME_HOST <= ratio <= SAME_HOST:
        notes.append(
            f"the host talked otherwise than the twin has it: an echo of 64 KiB beside the run took "
            f"{100 * ratio:.0f} % of the twin's"
        )
    lost = lost_share(run)
    if lost is not None and lost >= LOST:
        notes.append(
            f"a rank had no core for {100 * lost:.0f} % of the actual time: other processes had it, which "
            "the prediction knows nothing of"
        )
    agreement = None
    if prediction.printed is not None and (texts := run.printed) is not None:
        agreement = printed.agreement(prediction.printed, texts)
        if agreement == "different":
            notes.append(
                "the program did not print the same in both worlds: "
                + printed.first(prediction.printed, texts)
            )
    assert chosen.actual is not None
    assert chosen.error is not None
    return Comparison(
        prediction=prediction,
        run=run,
        state=chosen.state,
        launches=launches,
        predicted=chosen.predicted,
        actual=chosen.actual,
        error=chosen.error,
        by_state=by_state,
        elsewhere=elsewhere,
        notes=notes,
        printed=agreement,
    )


def where(prediction: Prediction) -> str:
    """Return what a prediction's ranks run on, in words."""
    model = prediction.network
    if "local" in model:
        hosts = model["local"]["hosts"]
        return f"{len(hosts)} {hosts[0]['name']}"
    if model.get("network"):
        return str(Network.of_table(model["network"]))
    return f"{len(model['nodes'])} host{'s' if len(model['nodes']) > 1 else ''}"


def _counted(run: Run) -> list[Launch]:
    """Return the launches that count: those without timers; all, in a record that has only such."""
    return [one for one in run.launches if one.split is None] or list(run.launches)


def _beside(state: str | None, passes: int, predicted: Spread, launches: Sequence[Launch]) -> Beside:
    if not launches:
        return Beside(state=state, passes=passes, launches=0, predicted=predicted)
    actual = median_spread([one.seconds for one in launches])
    return Beside(
        state=state,
        passes=passes,
        launches=len(launches),
        predicted=predicted,
        actual=actual,
        error=predicted.value / actual.value - 1.0,
    )


def _by_state(prediction: Prediction, run: Run) -> tuple[list[Beside], int]:
    """Compare like with like: each state's prediction with the launches in it; and how many are in none."""
    found = {
        state.name: [
            one for one in _counted(run) if states.state_of(one.crossing_ns, prediction.states) is state
        ]
        for state in prediction.states
    }
    if not found:
        return [], 0
    elsewhere = len(_counted(run)) - sum(map(len, found.values()))
    return [
        _beside(state.name, state.passes, state.seconds, found[state.name]) for state in prediction.states
    ], elsewhere


def _about_states(
    prediction: Prediction, chosen: Beside, by_state: Sequence[Beside], elsewhere: int, run: Run
) -> list[str]:
    """Say what a reader must know about the states of the host."""
    if not by_state:
        return []
    notes = []
    total = len(_counted(run))
    if chosen.state is None:
        far = sorted(time for one in _counted(run) for time in one.crossing_ns or ())
        seen = f"from {far[0]:.0f} to {far[-1]:.0f} ns apart" if far else "at distances not known"
        have = ", ".join(
            f"{state.name}: {state.crossing_ns.low:.0f} to {state.crossing_ns.high:.0f} ns"
            for state in prediction.states
        )
        return [
            f"no launch was in a state that the twin was measured in: the ranks were {seen} ({have}); the "
            f"prediction is compared with all {total} launches"
        ]
    if len(by_state) == 1 and elsewhere:
        were = "launch was" if elsewhere == 1 else "launches were"
        notes.append(
            f"{elsewhere} {were} in no state that the twin was measured in, or in more than one, and left "
            f"out; compared are the other {chosen.launches}"
        )
    elif len(by_state) > 1:
        parts = [f"{one.launches} {one.state}" for one in by_state]
        parts += [f"{elsewhere} in none of them or in more than one"] if elsewhere else []
        notes.append(
            f"states of the host in {total} launches: {', '.join(parts)}; compared is {chosen.state}"
        )
    if chosen.launches < LAUNCHES:
        notes.append(
            f"the actual time is the median of {chosen.launches} "
            f"{'launch' if chosen.launches == 1 else 'launches'}; {LAUNCHES} would be sure enough"
        )
    if len(by_state) > 1 and not chosen.passes and prediction.compute.source == "measured":
        notes.append(f"the computation was never measured in state {chosen.state}, only in others")
    return notes


def echo_ratio(prediction: Prediction, run: Run) -> float | None:
    """Return the echo of 64 KiB beside the run over the prediction's network's; none if not known.

    The median over the launches that count. Far from 1, the host was in another state when the
    program ran than when the twin was measured, and the prediction is of the other state.
    """
    beside = [one.echo_us for one in run.launches if one.echo_us is not None and one.split is None]
    if not beside:
        return None
    layer = prediction.network.get("intra", {})
    modelled_us = 0.0
    for quantity in ("overhead_send", "latency", "overhead_recv"):
        for segment in reversed(layer.get(quantity, [])):
            if segment["from_bytes"] <= ECHO_BYTES:
                modelled_us += (segment["base_ps"] + segment["per_byte_fs"] * ECHO_BYTES / 1000) / 1e6
                break
    return median(beside) / modelled_us if modelled_us > 0 else None


def lost_share(run: Run) -> float | None:
    """Return the share of the actual time for which a rank had no core, though it was ready to run.

    The median over the launches that count, of the rank that fared worst; none if not known.
    """
    shares = [one.queued_s / one.seconds for one in _counted(run) if one.queued_s is not None and one.seconds]
    return median(shares) if shares else None


def table(comparisons: Sequence[Comparison]) -> pl.DataFrame:
    """Return one row a program: predicted, interval, actual, interval, error; times in seconds."""
    import polars as pl

    return pl.DataFrame(
        [
            {
                "program": " ".join([c.prediction.program, *c.prediction.args]),
                "ranks": c.prediction.ranks,
                "state": c.state,
                "launches": c.launches,
                "predicted_s": c.predicted.value,
                "predicted_low_s": c.predicted.low,
                "predicted_high_s": c.predicted.high,
                "actual_s": c.actual.value,
                "actual_low_s": c.actual.low,
                "actual_high_s": c.actual.high,
                "error_percent": 100.0 * c.error,
            }
            for c in comparisons
        ]
    )


def split_table(comparison: Comparison) -> pl.DataFrame:
    """Return one row a rank: the parts of model and real run with their sums, in seconds.

    The real parts are those of one launch, `real_launch`, counted from 1: the typical one with timers in the
    state compared. Its time is longer than those of the others by what the timers take.
    """
    import polars as pl

    run, prediction = comparison.run, comparison.prediction
    own = next((one for one in prediction.states if one.name == comparison.state), None)
    timed = [
        (number, one)
        for number, one in enumerate(run.launches, 1)
        if one.split and own is not None and states.state_of(one.crossing_ns, prediction.states) is own
    ]
    split, launch = run.split, run.split_launch
    if timed:
        launch, chosen = timed[typical([one for _, one in timed])]
        split = chosen.split or []
    real = {part.rank: part for part in split}
    rows = []
    for model in prediction.per_rank if own is None else own.per_rank:
        measured = real.get(model.rank)
        parts = (model.compute_s, model.endpoint_s, model.wire_s, model.waiting_s)
        rows.append(
            {
                "rank": model.rank,
                "model_compute_s": model.compute_s,
                "model_endpoint_s": model.endpoint_s,
                "model_wire_s": model.wire_s,
                "model_waiting_s": model.waiting_s,
                "model_total_s": sum(parts),
                "real_launch": None if measured is None else launch,
                "real_compute_s": None if measured is None else measured.compute_s,
                "real_mpi_s": None if measured is None else measured.mpi_s,
                "real_total_s": None if measured is None else measured.compute_s + measured.mpi_s,
            }
        )
    return pl.DataFrame(rows)


def worst_and_median(comparisons: Sequence[Comparison]) -> tuple[float, float]:
    """Return the largest and the median absolute error, as fractions of the actual times."""
    errors = [abs(c.error) for c in comparisons]
    return max(errors), median(errors)
