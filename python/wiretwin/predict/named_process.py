"""The process of simulated runs of a compiled program: `python -m wiretwin.predict.named_process`.

It reads the runs as JSON from the file that it is given and prints the results as JSON. If they are asked
for, it leaves the timeline beside that file, and the trace for viewers where it is told. It imports little:
it is started for every run.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wiretwin import _core
from wiretwin.errors import InputError, StorageError
from wiretwin.predict import timeline


def main(argv: Sequence[str]) -> int:
    """Simulate what the file says that `argv` names; returns the status that the process ends with."""
    spec = json.loads(Path(argv[0]).read_text("utf-8"))
    found: list[dict[str, Any]] = []
    for case in spec["cases"]:
        first = not found
        try:
            done = _core.run_program(
                spec["name"],
                case["parameters"],
                case["network"],
                case["ranks"],
                spec["seed"],
                timeline=first and spec["timeline"],
                chrome_trace=spec["chrome_trace"] if first else None,
            )
        except ValueError as error:
            print(error, file=sys.stderr)
            return InputError.exit_code
        except OSError as error:
            print(error.strerror or error, file=sys.stderr)
            return StorageError.exit_code
        if "timeline" in done:
            intervals = timeline.frame(done["timeline"], done["names"])
            intervals.write_parquet(Path(argv[0]).with_name(timeline.FILE))
        found.append(
            {
                "ranks": _ranks(done),
                "messages": done["messages"],
                "digest": done["digest"],
                "coarse_ps": done.get("timeline_coarse_ps", 0),
                "congestion": done["congestion"],
            }
        )
    print(json.dumps(found))
    return 0


def _ranks(done: Mapping[str, Any]) -> list[dict[str, Any]]:
    totals: Mapping[str, Any] = done["totals"]
    return [
        {
            "rank": rank,
            "total_s": int(done["end_ps"][rank]) / 1e12,
            "elapsed_s": outcome["elapsed_ps"] / 1e12,
            "parts_s": {kind: int(totals[f"{kind}_ps"][rank]) / 1e12 for kind in timeline.KINDS},
            "digest": outcome["digest"],
            "verified": outcome["verified"],
            "points": outcome["points"],
        }
        for rank, outcome in enumerate(done["outcomes"])
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
