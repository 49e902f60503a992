"""How far the choices of a paper move what the model says: intervals for every opened result.

``python -m wiretwin.papers.intervals lin1995 --folder build/intervals`` runs the model once as it is and
once for each draw of a Latin hypercube over the choices of the paper, at the lengths of ``--quick`` and with
the same seeds (common random numbers). Each run is a file of the folder, so that the same command goes on
where it was ended. What comes of them is `data/papers/intervals/`: by value, the 5th and the 95th percentile
of the draws over the run as it is, and the choice that it hangs on most, with the share of the variance
of ranks which that choice alone explains (the square of Spearman's correlation). `digests.toml` there has the
digest of each file, without which it is not read.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import json
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from wiretwin.papers import run
from wiretwin.papers.choices import Choice, Draw, choices, hypercube
from wiretwin.papers.published import FOLDER, opened
from wiretwin.papers.records import Key
from wiretwin.results import write_atomically

__all__ = ["COLUMNS", "DRAWS", "main", "sampled", "summary"]

DRAWS = 64
"""Runs of each paper, besides the one as it is."""
COLUMNS = ("experiment", "case", "metric", "low_ratio", "high_ratio", "choice", "share")

Values = Mapping[Key, float]


def _of_draw(paper: str, draw: Draw, path: Path) -> None:
    """Run a paper's opened experiments under a draw, and keep what comes of it."""
    if path.exists():
        return
    wanted = {(one.experiment, one.case, one.metric) for one in opened(paper)}
    under: Callable[[Draw], Values] = run.PAPERS[paper].under
    values = {key: value for key, value in under(draw).items() if key in wanted}
    rows = [[*key, value] for key, value in sorted(values.items())]
    write_atomically(path, json.dumps({"draw": dict(draw), "values": rows}).encode())


def sampled(paper: str, folder: Path, *, draws: int = DRAWS, workers: int = 2) -> list[tuple[Draw, Values]]:
    """Return all draws with their values, the one as it is first; those in `folder` are not run again."""
    # Another set of choices, or other values on file, is another folder.
    text = (FOLDER / "choices" / f"{paper}.toml").read_bytes() + (
        FOLDER / "now" / f"{paper}.csv"
    ).read_bytes()
    place = folder / paper / hashlib.sha256(text).hexdigest()[:12]
    place.mkdir(parents=True, exist_ok=True)
    every: list[Draw] = [{}, *hypercube(paper, draws)]
    paths = [place / f"{number:03}.json" for number in range(len(every))]
    with ProcessPoolExecutor(workers) as pool:
        list(pool.map(_of_draw, [paper] * len(every), every, paths))
    found = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    return [(one["draw"], {(row[0], row[1], row[2]): row[3] for row in one["values"]}) for one in found]


def _ranks(values: Sequence[float]) -> np.ndarray:
    """Return the ranks of values; equal ones share the mean of theirs."""
    from scipy.stats import rankdata

    return np.asarray(rankdata(values), dtype=float)


def _share(choice: Choice, draws: Sequence[Draw], values: Sequence[float]) -> float:
    """Return the share of the variance of the values' ranks that a choice explains alone."""
    drawn = [draw[choice.key] for draw in draws]
    if choice.values:
        drawn = [choice.values.index(one) for one in drawn]
    here, there = _ranks([float(one) for one in drawn]), _ranks(values)
    if np.ptp(here) == 0 or np.ptp(there) == 0:
        return 0.0
    return float(np.corrcoef(here, there)[0, 1] ** 2)


def summary(paper: str, runs: Sequence[tuple[Draw, Values]]) -> str:
    """Return the CSV file of what the draws do to each value that is not 0 as it is."""
    as_it_is, rest = runs[0][1], runs[1:]
    draws = [draw for draw, _ in rest]
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(COLUMNS)
    for key in sorted(as_it_is):
        if as_it_is[key] <= 0:
            continue
        ratios = [values[key] / as_it_is[key] for _, values in rest]
        low, high = np.quantile(ratios, [0.05, 0.95])
        share, choice = max((_share(one, draws, ratios), one.key) for one in choices(paper))
        writer.writerow([*key, f"{low:.4g}", f"{high:.4g}", choice, f"{share:.2f}"])
    return lines.getvalue()


def _note_digest(paper: str, digest: str) -> None:
    """Write the digest of a paper's intervals beside those of the others."""
    path = FOLDER / "intervals" / "digests.toml"
    known = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    lines = [f'{name} = "{value}"\n' for name, value in sorted((known | {paper: digest}).items())]
    write_atomically(path, "".join(lines).encode())


def main(arguments: list[str]) -> None:
    """Make the intervals of papers and write their files."""
    parser = argparse.ArgumentParser(prog="python -m wiretwin.papers.intervals", description=__doc__)
    parser.add_argument("papers", nargs="*", default=list(run.PAPERS))
    parser.add_argument("--folder", type=Path, default=Path("build/intervals"))
    parser.add_argument("--draws", type=int, default=DRAWS)
    given = parser.parse_args(arguments)
    for paper in given.papers:
        text = summary(paper, sampled(paper, given.folder, draws=given.draws))
        write_atomically(FOLDER / "intervals" / f"{paper}.csv", text.encode())
        _note_digest(paper, hashlib.sha256(text.encode()).hexdigest())


if __name__ == "__main__":
    main(sys.argv[1:])
