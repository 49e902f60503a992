"""Public scripts that nobody here wrote: predicted, and run for real, at several numbers of ranks.

    python benches/accuracy_strangers.py --scripts FOLDER --out results/strangers [--seconds 150]
                                         [--docs docs/accuracy.md]

`data/accuracy/scripts.csv` lists them, each with its repository, commit, licence, digest and the arguments
with which its own page or head line calls it; none is copied.
FOLDER has the files as `OWNER+NAME/PATH`, and what they read or import beside them. One that is not there,
or is another, is said to be so. One twin, kept in --out as `twin.toml`, serves all: see
`benches/accuracy_crowded.py`, which makes it, and what is the same here.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import re
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import accuracy_past
from accuracy_crowded import covers, error, ms, twin_in

from wiretwin.errors import WiretwinError
from wiretwin.predict.compare import compare
from wiretwin.predict.live import Job, run_interleaved
from wiretwin.predict.predict import predict
from wiretwin.predict.records import DEFAULT_PASSES
from wiretwin.twin import Twin

BEGIN, END = "<!-- strangers: begin -->", "<!-- strangers: end -->"
LIST = Path(__file__).parents[1] / "data" / "accuracy" / "scripts.csv"
RANKS = (2, 4)
PASSES, LAUNCHES = DEFAULT_PASSES, 7
#: Of programs that take longer than this, a few launches say enough, and more would take too long.
LONG_S, LAUNCHES_OF_LONG = 4.0, 3
LIMIT_S = 40.0


def said(failure: WiretwinError) -> str:
    """Return what was said of a failure, in a line, without the places of files on this machine."""
    return re.sub(r" at /\S+", "", str(failure).splitlines()[0])


def one_case(twin: Twin, listed: dict[str, str], script: Path, ranks: int) -> dict[str, Any]:
    """Predict a script, freeze that, and run it; or say why that cannot be."""
    row: dict[str, Any] = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "script": f"{listed['repository']}/{listed['path']}", "ranks": ranks,
        "cores": len(os.sched_getaffinity(0)),
    }  # fmt: skip
    if not script.exists() or hashlib.sha256(script.read_bytes()).hexdigest() != listed["sha256"]:
        return row | {"failed": "not there"}
    with tempfile.TemporaryDirectory(prefix="wiretwin-strangers-") as scratch:
        before = Path.cwd()
        os.chdir(script.parent)  # some read files beside them
        try:
            words = tuple(listed["arguments"].split())
            frozen = predict(
                script,
                words,
                twin=twin,
                ranks=ranks,
                passes=PASSES,
                limit_s=LIMIT_S,
                out=Path(scratch, "predicted"),
            )
        except WiretwinError as failure:
            return row | {"failed": f"prediction: {said(failure)}"}
        else:
            job = Job(script, words, ranks, Path(scratch, "actual"))
            try:
                count = LAUNCHES if frozen.seconds.value < LONG_S else LAUNCHES_OF_LONG
                (run,) = run_interleaved([job], launches=count, splits=0, limit_s=LIMIT_S)
            except WiretwinError as failure:
                return row | {"failed": f"run: {said(failure)}"}
        finally:
            os.chdir(before)
    agreement = compare(frozen, run).printed
    return row | {
        "frozen_utc": frozen.frozen_utc, "digest": frozen.digest, "notes": frozen.warnings,
        "predicted": frozen.seconds.model_dump(mode="json"),
        "actual": run.seconds.model_dump(mode="json"),
        "launches": [one.seconds for one in run.launches],
        "printed": agreement or "not known",
        "past": accuracy_past.past(frozen, run, row["script"]),
    }  # fmt: skip


def markdown(rows: list[dict[str, Any]]) -> str:
    """Return the table by script, after what each number of ranks comes to."""
    record = accuracy_past.with_rows(row["past"] for row in rows if "failed" not in row)
    lines = [
        "| ranks | scripts | inside, by other programs | inside the recorded one | median error "
        "| ninth decile | printed the same | not predicted |",
        "|---|---|---|---|---|---|---|---|",
    ]
    table = [
        "| script | ranks | predicted [ms] | by other programs | actual [ms] | error | printed |",
        "|---|---|---|---|---|---|---|",
    ]
    for ranks in RANKS:
        some = sorted((row for row in rows if row["ranks"] == ranks), key=lambda row: row["script"])
        good = [row for row in some if "failed" not in row]
        if not good:
            continue
        inside = 0
        for row in some:
            if "failed" in row:
                table.append(f"| `{row['script']}` | {ranks} | {row['failed'][:80]} | | | | |")
                continue
            low, high = accuracy_past.interval(row["past"], record)
            held = accuracy_past.covers(row["actual"]["value"], low, high)
            inside += held
            table.append(
                f"| `{row['script']}` | {ranks} | {ms(row['predicted'], 2)} "
                f"| {1e3 * low:.2f} to {1e3 * high:.2f} "
                f"| {ms(row['actual'], 2)} | {100 * error(row):+.0f} %{'' if held else ' (outside)'} "
                f"| {row['printed']} |"
            )
        errors = sorted(abs(error(row)) for row in good)
        ninth = errors[min(len(errors) - 1, int(0.9 * len(errors)))]
        same = sum(row["printed"] in ("same", "but for numbers") for row in good)
        middle, most = 100 * statistics.median(errors), 100 * ninth
        lines.append(
            f"| {ranks} | {len(some)} | {inside} | {sum(map(covers, good))} "
            f"| {middle:.0f} % | {most:.0f} % | {same} | {len(some) - len(good)} |"
        )
    return "\n".join([*lines, "", *table])


def main() -> int:
    """Make the cases that are lacking; returns 0 whatever they come to, for timing decides no test."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scripts", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--docs", type=Path)
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    twin, file = twin_in(options.out), options.out / "strangers.jsonl"
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []
    have = {(row["script"], row["ranks"]) for row in rows}
    listed = list(csv.DictReader(LIST.read_text("utf-8").splitlines()))
    for ranks, one in ((ranks, one) for ranks in RANKS for one in listed):
        if (f"{one['repository']}/{one['path']}", ranks) in have or time.monotonic() > end:
            continue
        script = (options.scripts / one["repository"].replace("/", "+") / one["path"]).absolute()
        rows.append(one_case(twin, one, script, ranks))
        with file.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(rows[-1]) + "\n")
        came = rows[-1].get("failed") or f"{100 * error(rows[-1]):+.0f} %"
        print(f"{rows[-1]['script']} on {ranks}: {came}", file=sys.stderr)
    if rows:
        print(markdown(rows))
    if options.docs is not None and rows:
        accuracy_past.add(row["past"] for row in rows if "failed" not in row)
        head, rest = options.docs.read_text("utf-8").split(BEGIN)
        text = f"{head}{BEGIN}\n\n{markdown(rows)}\n\n{END}{rest.split(END)[1]}"
        options.docs.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
