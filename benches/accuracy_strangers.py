"""Public programs that nobody here wrote: predicted, and run for real, in several set-ups.

    python benches/accuracy_strangers.py --scripts FOLDER --out results/strangers [--seconds 150]
                                         [--on host,100Mbit,1Gbit] [--docs docs/accuracy.md]
    python benches/accuracy_strangers.py --programs FOLDER --out results/strangers [--ranks 2]
                                         [--docs docs/accuracy-compiled.md]

`data/accuracy/scripts.csv` lists scripts, each with its repository, commit, licence, digest and the arguments
with which its own page or head line calls it, modest ones where these name none; none is copied. FOLDER has
the files as `OWNER+NAME/PATH`, and what they read or import beside them. `programs.csv` beside it lists
programs in C, C++ and Fortran: FOLDER has their repositories, cloned as `OWNER+NAME`, and each is built in
--out, from its commit, for Open MPI, by a script `OWNER+NAME.build` beside the repository.
One that is not there, is another, or does not build is said to be so. One twin serves all that run on one
host (`twin.toml` in --out, of compiled programs `twin-mpi-openmpi.toml`: `benches/accuracy_crowded.py` makes
it, and has what is the same here), and one each rate all that run on the hosts of a testbed, a rank on each:
it is measured between two of these.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import accuracy_past
from accuracy_crowded import beside, covers, error, measured, ms, suffix, twin_in
from others import Others
from strangers import LISTS, Listed, NotThereError

from wiretwin.errors import WiretwinError
from wiretwin.place import HERE, Place
from wiretwin.predict import learnt
from wiretwin.predict.compare import LOST, compare
from wiretwin.predict.executable import predict_executable
from wiretwin.predict.live import Job, run_interleaved
from wiretwin.predict.predict import predict
from wiretwin.stacks.simulated import is_executable
from wiretwin.testbed import Testbed, parse_link
from wiretwin.twin import Twin

BEGIN, END = "<!-- strangers: begin -->", "<!-- strangers: end -->"
RANKS = (2, 4)
LAUNCHES = 7
#: Of programs that take longer than this, a few launches say enough, and more would take too long.
LONG_S, LAUNCHES_OF_LONG = 4.0, 3
LIMIT_S = 40.0
#: What a program is taken to last that is not on record.
UNKNOWN_S = 1.0
HOST = "host"
HOSTS, DELAY = max(RANKS), "5us"
#: Of the twin between two hosts, in bytes.
SIZES = [4, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576]


class BusyError(Exception):
    """The machine did other work while a program ran: what that took says nothing of a prediction."""


@dataclass(frozen=True)
class Setup:
    """Where scripts run: this host, or hosts joined by a wire of some rate, and the twin that is of them."""

    on: str
    """``host``, or the rate of the wire."""
    twin: Twin
    place: Place = HERE

    ours: tuple[int, ...] = ()
    """Processes other than this one whose work is that of the set-up."""

    @property
    def network(self) -> str | None:
        """What the prediction is told of the wire."""
        return None if self.on == HOST else f"testbed:hosts={HOSTS},rate={self.on}/s,delay={DELAY}"


@contextlib.contextmanager
def set_up(on: str, out: Path, folder: Path, layer: str) -> Iterator[Setup]:
    """Make a set-up, and its twin of a layer if --out has none of it."""
    if on == HOST:
        yield Setup(on, twin_in(out, layer))
        return
    out.mkdir(parents=True, exist_ok=True)
    shared = [str(folder), str(out)]
    with Testbed.up(HOSTS, parse_link("wire", rate=on, delay=DELAY), share=shared) as bed:
        keeper = bed.folder.keeper
        ours = () if keeper is None else (keeper.pid,)
        yield Setup(on, measured(out / f"twin-{on}{suffix(layer)}.toml", layer, SIZES, bed), bed, ours)


def named(row: dict[str, Any]) -> str:
    """Return the set-up of a row, as the table has it."""
    on = row.get("on", HOST)
    return f"{row['ranks']}" if on == HOST else f"{row['ranks']}, one a host at {on}/s"


def said(failure: WiretwinError) -> str:
    """Return what was said of a failure, in a line, without the places of files on this machine."""
    return re.sub(r" at /\S+", "", str(failure).splitlines()[0])


def one_case(setup: Setup, listed: Listed, folder: Path, out: Path, ranks: int) -> dict[str, Any]:
    """Predict a program, record that, and run it; or say why that cannot be.

    Raises
    ------
    BusyError
        Other work had the cores for a while.
    """
    row: dict[str, Any] = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "script": listed.name, "ranks": ranks,
        "on": setup.on, "cores": len(os.sched_getaffinity(0)),
    }  # fmt: skip
    try:
        program, there = listed.program(folder, out, ranks)
    except NotThereError as reason:
        return row | {"failed": str(reason)}
    foretell = predict_executable if is_executable(program) else predict
    with tempfile.TemporaryDirectory(prefix="wiretwin-strangers-") as scratch, contextlib.chdir(there):
        # some read files beside them
        words, others = listed.words(ranks), Others(setup.ours)
        try:
            frozen = foretell(
                program,
                words,
                twin=setup.twin,
                ranks=ranks,
                network=setup.network,
                limit_s=LIMIT_S,
                out=Path(scratch, "predicted"),
            )
        except WiretwinError as failure:
            return row | {"failed": f"prediction: {said(failure)}"}
        job = Job(program, words, ranks, Path(scratch, "actual"), states=frozen.states)
        try:
            count = LAUNCHES if frozen.seconds.value < LONG_S else LAUNCHES_OF_LONG
            (run,) = run_interleaved([job], launches=count, splits=0, limit_s=LIMIT_S, place=setup.place)
        except WiretwinError as failure:
            return row | {"failed": f"run: {said(failure)}"}
    if others.share() >= LOST:
        raise BusyError(f"other work had {100 * others.share():.0f} % of the cores beside {listed.name}")
    agreed = compare(frozen, run)
    return row | {
        "frozen_utc": frozen.frozen_utc, "digest": frozen.digest, "notes": frozen.warnings,
        **beside(agreed, row["script"]),
        "printed": agreed.printed or "not known",
    }  # fmt: skip


def other_setups(page: str, setups: set[str]) -> tuple[list[str], list[str]]:
    """Return the lines of both tables of a page that are of set-ups which these are not."""
    lines = [line for line in page.splitlines() if line.startswith("| ")]
    cells = [(line, [one.strip() for one in line.strip("|").split("|")]) for line in lines]
    scripts = [line for line, found in cells if found[0].startswith("`") and found[1] not in setups]
    sums = [line for line, found in cells if found[0][:1].isdigit() and found[0] not in setups]
    return sums, scripts


def markdown(rows: list[dict[str, Any]], page: str = "") -> str:
    """Return the table by script, after what each number of ranks comes to.

    What a `page` has of other set-ups stays as it is there, and comes first.
    """
    record = accuracy_past.with_rows(row["past"] for row in rows if "failed" not in row)
    lines = [
        "| ranks | programs | inside, by other programs | inside the recorded one | median error "
        "| ninth decile | printed the same | not predicted |",
        "|---|---|---|---|---|---|---|---|",
    ]
    table = [
        "| program | ranks | predicted [ms] | by other programs | actual [ms] | error | printed |",
        "|---|---|---|---|---|---|---|",
    ]
    setups = dict.fromkeys(map(named, rows))
    for part, kept in zip((lines, table), other_setups(page, set(setups)), strict=True):
        part += kept
    for setup in setups:
        some = sorted((row for row in rows if named(row) == setup), key=lambda row: row["script"])
        good = [row for row in some if "failed" not in row]
        if not good:
            continue
        inside = 0
        for row in some:
            if "failed" in row:
                table.append(f"| `{row['script']}` | {setup} | {row['failed'][:80]} | | | | |")
                continue
            low, high = accuracy_past.interval(row["past"], record)
            held = accuracy_past.covers(row["actual"]["value"], low, high)
            inside += held
            table.append(
                f"| `{row['script']}` | {setup} | {ms(row['predicted'], 2)} "
                f"| {1e3 * low:.2f} to {1e3 * high:.2f} "
                f"| {ms(row['actual'], 2)} | {100 * error(row):+.0f} %{'' if held else ' (outside)'} "
                f"| {row['printed']} |"
            )
        errors = sorted(abs(error(row)) for row in good)
        ninth = errors[min(len(errors) - 1, int(0.9 * len(errors)))]
        same = sum(row["printed"] in ("same", "but for numbers") for row in good)
        middle, most = 100 * statistics.median(errors), 100 * ninth
        lines.append(
            f"| {setup} | {len(some)} | {inside} | {sum(map(covers, good))} "
            f"| {middle:.0f} % | {most:.0f} % | {same} | {len(some) - len(good)} |"
        )
    return "\n".join([*lines, "", *table])


def main() -> int:
    """Make the cases that are lacking; returns 0 whatever they come to, for timing decides no test."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    which = parser.add_mutually_exclusive_group(required=True)
    for kind in LISTS:
        which.add_argument(f"--{kind}", type=Path, metavar="FOLDER")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--docs", type=Path)
    parser.add_argument("--on", default=HOST, help=f"{HOST}, or rates of the wire between hosts, with commas")
    parser.add_argument("--ranks", type=int, choices=RANKS, help="only so many", action="append")
    options = parser.parse_args()
    end = time.monotonic() + options.seconds
    kind = next(one for one in LISTS if getattr(options, one) is not None)
    folder, out = getattr(options, kind).absolute(), options.out.absolute()
    file = out / LISTS[kind].results
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []
    have = {(row["script"], row["ranks"], row.get("on", HOST)) for row in rows}
    # The shortest on record come first: what --seconds leaves out are few programs.
    took_s = {row.program: row.actual_s for row in learnt.read()}
    listed = sorted(LISTS[kind].read(), key=lambda one: took_s.get(one.name, UNKNOWN_S))
    for on in options.on.split(","):
        lacking = [
            (ranks, one)
            for ranks in options.ranks or RANKS
            for one in listed
            if (one.name, ranks, on) not in have
        ]
        if not lacking or time.monotonic() > end:
            continue
        with set_up(on, out, folder, LISTS[kind].layer) as setup:
            for ranks, one in lacking:
                if time.monotonic() > end:
                    break
                try:
                    rows.append(one_case(setup, one, folder, out, ranks))
                except BusyError as reason:
                    print(f"not kept, to be made anew: {reason}", file=sys.stderr)
                    continue
                with file.open("a", encoding="utf-8") as stream:
                    stream.write(json.dumps(rows[-1]) + "\n")
                came = rows[-1].get("failed") or f"{100 * error(rows[-1]):+.0f} %"
                print(f"{rows[-1]['script']} on {named(rows[-1])}: {came}", file=sys.stderr)
    if rows:
        print(markdown(rows))
    if options.docs is not None and rows:
        accuracy_past.add(row["past"] for row in rows if "failed" not in row)
        head, rest = options.docs.read_text("utf-8").split(BEGIN)
        page, foot = rest.split(END)
        text = f"{head}{BEGIN}\n\n{markdown(rows, page)}\n\n{END}{foot}"
        options.docs.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
