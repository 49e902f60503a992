"""Exchanges of as many ranks as the host has cores, and of more: predicted, and run for real.

    python benches/accuracy_crowded.py --out results/crowded [--seconds 150] [--docs docs/accuracy.md]

One twin, measured first and kept in the folder, serves all. Each prediction is frozen before its script runs.
What the folder has is not done again, and after --seconds no further case is begun: called again and again,
with other things in between, the bench comes to its end. With --docs the table in that page is replaced by
what there is.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import accuracy_past

from wiretwin.fit.api import fit
from wiretwin.measure.api import measure
from wiretwin.place import HERE, Place
from wiretwin.predict.compare import compare
from wiretwin.predict.live import Job, run_interleaved
from wiretwin.predict.model import LAYER
from wiretwin.predict.predict import predict
from wiretwin.predict.records import Comparison
from wiretwin.twin import Twin

BEGIN, END = "<!-- crowded: begin -->", "<!-- crowded: end -->"
SCRIPT = Path(__file__).with_name("exchanges.py")
KINDS = {"echo": 2000, "ring": 300, "barrier": 500, "halo": 500, "collectives": 150}
RANKS = (2, 3, 4, 8)
PASSES, LAUNCHES = 2, 5


def twin_in(folder: Path, layer: str = LAYER) -> Twin:
    """Return the twin of a layer that is kept in a folder, measured now, as by default, if there is none."""
    return measured(folder / f"twin{suffix(layer)}.toml", layer)


def suffix(layer: str) -> str:
    """Return what tells the files of a layer from those of scripts."""
    return "" if layer == LAYER else f"-{layer.replace('/', '-')}"


def measured(kept: Path, layer: str, sizes: list[int] | None = None, place: Place = HERE) -> Twin:
    """Return the twin in a file, measured now at a place if there is none."""
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="wiretwin-crowded-") as scratch:
            found = measure([layer], sizes=sizes, place=place, out=Path(scratch, "result"))
            fit(found, endpoints="require").write(kept)
    return Twin.read(kept)


def covers(row: dict[str, Any]) -> bool:
    """Return whether the actual time lies inside the recorded interval, and that is narrow enough."""
    return accuracy_past.covers(row["actual"]["value"], row["predicted"]["low"], row["predicted"]["high"])


def error(row: dict[str, Any]) -> float:
    """Return the relative error of the predicted time."""
    return float(row["predicted"]["value"] / row["actual"]["value"] - 1)


def one_case(twin: Twin, kind: str, ranks: int) -> dict[str, Any]:
    """Predict a case, freeze it, and run it."""
    words = (kind, str(KINDS[kind]))
    with tempfile.TemporaryDirectory(prefix="wiretwin-crowded-") as scratch:
        frozen = predict(SCRIPT, words, twin=twin, ranks=ranks, passes=PASSES, out=Path(scratch, "predicted"))
        job = Job(SCRIPT, words, ranks, Path(scratch, "actual"), states=frozen.states)
        (run,) = run_interleaved([job], launches=LAUNCHES, splits=0)
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "kind": kind, "count": KINDS[kind], "ranks": ranks,
        "cores": len(os.sched_getaffinity(0)),
        "frozen_utc": frozen.frozen_utc, "digest": frozen.digest,
        **beside(compare(frozen, run)),
    }  # fmt: skip


def beside(agreed: Comparison, name: str | None = None) -> dict[str, Any]:
    """Return what a row has of a prediction and its run, in the state of the host that is compared."""
    return {
        "state": agreed.state,
        "predicted": agreed.predicted.model_dump(mode="json"),
        "actual": agreed.actual.model_dump(mode="json"),
        "launches": [one.seconds for one in accuracy_past.compared(agreed)],
        "past": accuracy_past.past(agreed, name),
    }


def markdown(rows: list[dict[str, Any]]) -> str:
    """Return the table with its summary."""
    record = accuracy_past.with_rows(row["past"] for row in rows)
    lines = [
        "| exchange | ranks | predicted [ms] | by other programs | actual [ms] | error |",
        "|---|---|---|---|---|---|",
    ]
    held = []
    for row in rows:
        low, high = accuracy_past.interval(row["past"], record)
        actual = row["actual"]["value"]
        held.append(accuracy_past.covers(actual, low, high))
        lines.append(
            f"| {row['kind']}, {row['count']} times | {row['ranks']} | {ms(row['predicted'])} "
            f"| {1e3 * low:.1f} to {1e3 * high:.1f} | {ms(row['actual'])} | {100 * error(row):+.0f} %"
            f"{'' if held[-1] else ' (outside)'} |"
        )
    said = []
    for what, crowded in (("with a core for each rank", False), ("with more ranks than cores", True)):
        some = [
            (row, one)
            for row, one in zip(rows, held, strict=True)
            if (row["ranks"] > row["cores"]) == crowded
        ]
        if some:
            errors = sorted(abs(error(row)) for row, _ in some)
            inside, frozen = sum(one for _, one in some), sum(covers(row) for row, _ in some)
            middle, worst = (f"{100 * one:.0f} %" for one in (statistics.median(errors), errors[-1]))
            said.append(
                f"{what} {inside} of {len(some)} actual times lie inside the interval by other programs, "
                f"{frozen} inside the recorded one; the median error is {middle}, the worst {worst}"
            )
    return "\n".join([*lines, "", f"On {rows[-1]['when'][:10]}, {'; '.join(said)}."])


def ms(spread: dict[str, float], digits: int = 1) -> str:
    """Return a time with its interval in milliseconds."""
    value, low, high = (f"{1e3 * spread[key]:.{digits}f}" for key in ("value", "low", "high"))
    return f"{value} ({low} to {high})"


def main() -> int:
    """Make the cases that are lacking; returns 0 whatever they come to, for timing decides no test."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--docs", type=Path)
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    twin, file = twin_in(options.out), options.out / "cases.jsonl"
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []
    have = {(row["kind"], row["ranks"]) for row in rows}
    for ranks, kind in ((ranks, kind) for ranks in RANKS for kind in KINDS):
        if (kind, ranks) in have or time.monotonic() > end:
            continue
        rows.append(one_case(twin, kind, ranks))
        with file.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(rows[-1]) + "\n")
        print(f"{kind} {ranks}: {100 * error(rows[-1]):+.0f} %", file=sys.stderr)
    if rows:
        print(markdown(rows))
    if options.docs is not None and rows:
        accuracy_past.add(row["past"] for row in rows)
        head, rest = options.docs.read_text("utf-8").split(BEGIN)
        text = f"{head}{BEGIN}\n\n{markdown(rows)}\n\n{END}{rest.split(END)[1]}"
        options.docs.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
