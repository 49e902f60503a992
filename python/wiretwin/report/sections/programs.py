"""Programs: predicted against actual, and where the time went."""

from __future__ import annotations

from typing import Any

from wiretwin.plot import programs as draw
from wiretwin.plot import words
from wiretwin.plot.data import as_mapping
from wiretwin.plot.theme import KINDS
from wiretwin.report.findings import errors, frozen_before
from wiretwin.report.inputs import Inputs
from wiretwin.report.page import Column, FigureBlock, Group, Key, Missing, Section, Table

PREDICT = "wiretwin predict PROGRAM.py --twin twin.toml --ranks 2"
COMPARE = "wiretwin run PROGRAM.py --world live --ranks 2, then wiretwin compare"


def build(inputs: Inputs) -> list[Section | Missing]:
    """Build the sections on programs, from comparisons and predictions."""
    out: list[Section | Missing] = []
    if inputs.comparisons:
        out.append(_compared(inputs))
    else:
        out.append(Missing("Predicted against actual time", COMPARE))
    shown = [item for item in inputs.predictions if item.get("per_rank")]
    if shown:
        out.append(_where(inputs, shown))
    else:
        out.append(Missing("Where the time went", PREDICT))
    return out


def _compared(inputs: Inputs) -> Section:
    count = len(inputs.comparisons)
    found = errors(inputs)
    assert found is not None
    within = [sum(abs(item["error"]) <= limit for item in inputs.comparisons) for limit in (0.10, 0.25)]
    if count == 1:
        summary = f"The error is {words.percent_text(inputs.comparisons[0]['error'], signed=True)}."
    else:
        summary = (
            f"{within[0]} of {count} programs are within 10 %, {within[1]} within 25 %; median error "
            f"{words.percent_text(found[0])}, worst {words.percent_text(found[1])}."
        )
    rows = []
    for item in inputs.comparisons:
        predicted, actual = draw.compared(item)
        rows.append(
            [
                draw.program_name(item["prediction"]),
                words.time_interval_text(predicted["value"], predicted["low"], predicted["high"]),
                words.time_interval_text(actual["value"], actual["low"], actual["high"]),
                words.percent_text(item["error"], signed=True),
                words.count_text(_counted(item), "launch", "launches"),
                item.get("state") or "not known",
                "yes" if frozen_before(item) else "not shown",
            ]
        )
    columns = [
        Column("Program"),
        Column("Predicted", True),
        Column("Actual", True),
        Column("Error", True),
        Column("Median of", True),
        Column("State of the host"),
        Column("Recorded before the run"),
    ]
    notes = [
        f"{draw.program_name(item['prediction'])}: {note}."
        for item in inputs.comparisons
        for note in item.get("notes", [])
    ]
    block = FigureBlock(
        "predicted",
        "Predicted against actual time",
        summary,
        draw.predicted_vs_actual(inputs.comparisons),
        Table("Predicted and actual times", columns, rows),
        keys=[
            Key("dot", "prediction"),
            Key("line", "its interval"),
            Key("bar", "interval of the actual median"),
            Key("zone-in", "within 10 %"),
            Key("zone-out", "within 25 %"),
        ],
        note=" ".join(dict.fromkeys(notes)),
    )
    lead = (
        "The same unchanged program in both worlds: in virtual time on the twin, and for real. Actual time "
        "runs from after Init to before Finalize on the slowest rank. No constant belongs to one program."
    )
    return Section("predicted-section", "Was the prediction right?", "Prediction", lead, [Group([block])])


def _counted(item: dict[str, Any]) -> int:
    """Return how many launches the actual time is the median of."""
    return int(item.get("launches") or len(item["run"].get("launches", [])))


def _where(inputs: Inputs, shown: list[dict[str, Any]]) -> Section:
    groups = []
    for at, prediction in enumerate(shown):
        name = draw.program_name(prediction)
        block = _breakdown(at, name, prediction, inputs.run_of(prediction))
        groups.append(Group([block], title=name, folded=at > 0))
    lead = (
        "A real run can tell the time in a program's own code from the time inside MPI calls. The model "
        "tells more: what the endpoints cost, what the wire takes, and who waits for whom."
    )
    return Section("where", "Where the time went", "Time", lead, groups)


def _breakdown(at: int, name: str, prediction: dict[str, Any], run: dict[str, Any] | None) -> FigureBlock:
    rows = []
    real = {int(row["rank"]): as_mapping(row) for row in (run or {}).get("split", [])}
    for row in map(as_mapping, prediction["per_rank"]):
        rank = int(row["rank"])
        measured = real.get(rank)
        rows.append(
            [
                f"rank {rank}",
                words.time_text(measured["compute_s"]) if measured else "",
                words.time_text(measured["mpi_s"]) if measured else "",
                *(words.time_text(row[f"{kind}_s"]) for kind in KINDS),
            ]
        )
    columns = [
        Column("Rank"),
        Column("Run: compute", True),
        Column("Run: in MPI", True),
        *(Column(f"Model: {kind}", True) for kind in KINDS),
    ]
    drawn = draw.shown_ranks(prediction)
    if not real:
        rows = [[row[0], *row[3:]] for row in rows]
        columns = [columns[0], *columns[3:]]
    return FigureBlock(
        f"breakdown-{at + 1}",
        f"Time by rank: {name}",
        _share_text(prediction, run),
        draw.breakdown(prediction, run),
        Table(f"Time by rank and kind: {name}", columns, rows),
        keys=_keys(("compute", "mpi", *KINDS[1:]) if real else KINDS),
        note=(
            f"Bars for {len(drawn)} of {len(rows)} ranks, spread evenly, with those that compute longest and "
            "shortest; the table has them all."
            if len(drawn) < len(rows)
            else ""
        ),
    )


def _share_text(prediction: dict[str, Any], run: dict[str, Any] | None) -> str:
    model = draw.shares(prediction["per_rank"], KINDS)
    text = "The model spends " + words.list_text(
        [f"{words.percent_text(share)} on {draw.KIND_WORDS[kind]}" for kind, share in model.items()]
    )
    if run is not None and run.get("split"):
        real = draw.shares(run["split"], ("compute", "mpi"))
        text += (
            f"; the real run {words.percent_text(real['compute'])} on compute and "
            f"{words.percent_text(real['mpi'])} in MPI"
        )
    return text + "."


def _keys(kinds: tuple[str, ...]) -> list[Key]:
    return [Key(f"kind-{kind}", draw.KIND_WORDS[kind]) for kind in kinds]
