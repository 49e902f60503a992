"""Hold what the papers' models say against the values on file: nothing may change without being seen.

Runs `wiretwin papers PAPER --format csv` for each paper named (all four if none is) and compares every value
with `data/papers/now/PAPER.csv`, to its last digit. Prints one line a paper: how many values, how many
differ, and the largest relative change; with `--list` every value that differs. Exits with 1 where one
differs or is missing.
"""

from __future__ import annotations

import argparse
import csv
import io
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAPERS = ("lin1995", "chen1996", "ong2000", "vila1998")

Key = tuple[str, str, str]


def read(text: str) -> dict[Key, str]:
    """Predicted values by experiment, case and metric."""
    rows = csv.DictReader(io.StringIO(text))
    return {(row["experiment"], row["case"], row["metric"]): row["predicted"] for row in rows}


def shown(value: str) -> str:
    """A value to the last digit that the file has."""
    try:
        return f"{float(value):.5g}"
    except ValueError:
        return value


def change(before: str, after: str) -> float:
    """The relative change between two values; infinite where one is no number."""
    try:
        old, new = float(before), float(after)
    except ValueError:
        return float("inf")
    return abs(new - old) / abs(old) if old else float("inf")


def compare(paper: str, show: bool) -> bool:
    """Compare one paper; whether every value is the same."""
    command = [str(Path(sys.executable).parent / "wiretwin"), "papers", paper, "--format", "csv"]
    now = read(subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout)
    file = read((ROOT / "data" / "papers" / "now" / f"{paper}.csv").read_text())
    differ = [key for key in file if shown(now.get(key, "")) != shown(file[key])]
    most = max((change(file[key], now.get(key, "")) for key in differ), default=0.0)
    fresh = len(now.keys() - file.keys())
    print(
        f"{paper}: {len(file)} values, {len(differ)} differ, by {most:.2%} at most; {fresh} are not on file"
    )
    for key in differ if show else ():
        print(f"  {' | '.join(key)}: {file[key]} is now {now.get(key, 'missing')}")
    return not differ


def main() -> None:
    """Compare the papers that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("papers", nargs="*", metavar="PAPER", help=", ".join(PAPERS))
    parser.add_argument("--list", action="store_true", help="show every value that differs")
    arguments = parser.parse_args()
    unknown = [paper for paper in arguments.papers if paper not in PAPERS]
    if unknown:
        parser.error(f"no paper {unknown[0]!r}; allowed: {', '.join(PAPERS)}")
    same = [compare(paper, arguments.list) for paper in arguments.papers or PAPERS]
    sys.exit(0 if all(same) else 1)


if __name__ == "__main__":
    main()
