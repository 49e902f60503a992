"""End every verb by signals at points spread over its run, and look for what is left.

The signals take turns, so that each falls on points over the whole of the run; two verbs are under way at a
time, each in namespaces of its own.

Every outcome is kept as it comes in ``build/torture/COMMIT.jsonl``, so that the same command goes on where it
was ended. At the end ``tests/torture/results.json`` says what was found, with date and commit. Ends with 1 if
anything was left, or a verb ended otherwise than by its signal.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "python"))

from leaving import SIGNALS, leave, possible  # noqa: E402
from verbs import CASES, MORE  # noqa: E402

from wiretwin.stacks.layers import parse_layers, refusal  # noqa: E402

VERBS = CASES | MORE
AT_ONCE = 2
LONGEST_S = 600.0
"""The longest that a verb may take to its own end, in seconds."""
RESULTS = Path(__file__).with_name("results.json")


def commit() -> str:
    """Return the commit of the tree, with a plus sign if files differ from it."""
    words = ["git", "-C", str(ROOT), "describe", "--always", "--abbrev=12", "--dirty=+"]
    return subprocess.check_output(words, text=True).strip()


def once(verb: str, number: signal.Signals, at_s: float) -> dict[str, Any]:
    """End a verb once; return what came of it."""
    with tempfile.TemporaryDirectory(prefix="torture-") as folder:
        return leave(VERBS[verb], number, Path(folder), at_s=at_s, limit_s=LONGEST_S)


def fault(number: signal.Signals, found: dict[str, Any]) -> str | None:
    """Say what is wrong with how a verb has ended, if something is."""
    if found["left"]:
        return f"left {found['left']}"
    # Before the command line is loaded the interpreter itself ends, by the signal.
    # What ends before its signal may say, as on a busy host, that it cannot do its work.
    ends = {128 + number, -number} if found["sent"] else set(range(7))
    if found["status"] not in ends or "a defect of wiretwin" in found["said"]:
        return f"ended with status {found['status']}: {found['said'][-1000:]}"
    return None


def turn(point: int) -> signal.Signals:
    """Return the signal of a point of a verb's run, counted from 0."""
    return SIGNALS[point % len(SIGNALS)]


def main() -> int:
    """Run what has not been run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=20, help="points of each verb's run")
    parser.add_argument("--first", type=int, default=0, help="begin with this point, counted from 0")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no run after so long")
    options = parser.parse_args()
    times, last = options.times, time.monotonic() + 60 * options.minutes
    if not possible():
        raise SystemExit("make torture needs namespaces: run it as root")
    # Under nohup it would be ignored by all verbs.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    here = commit()
    kept = ROOT / "build" / "torture" / f"{here}.jsonl"
    kept.parent.mkdir(parents=True, exist_ok=True)
    done: dict[tuple[str, float], dict[str, Any]] = {}
    known: dict[str, float] = {}
    for line in kept.read_text().splitlines() if kept.exists() else []:
        one = json.loads(line)
        if "length_s" in one:
            known[one["verb"]] = one["length_s"]
        else:
            done[one["verb"], one["share"]] = one
    verbs = [
        verb
        for verb, case in VERBS.items()
        if case.layer is None or refusal(parse_layers(case.layer)[0]) is None
    ]
    writing = threading.Lock()
    with kept.open("a") as log, ThreadPoolExecutor(AT_ONCE) as pool:

        def keep(one: dict[str, Any]) -> None:
            with writing:
                log.write(json.dumps(one) + "\n")
                log.flush()

        def whole(verb: str) -> None:
            """Learn how long a verb takes to its own end."""
            if time.monotonic() > last:
                return
            known[verb] = once(verb, signal.SIGKILL, LONGEST_S)["took_s"]
            keep({"verb": verb, "length_s": known[verb]})

        def end(verb: str, point: int) -> None:
            share, number = round((point + 0.5) / times, 6), turn(point)
            if (verb, share) in done or verb not in known or time.monotonic() > last:
                return
            found = once(verb, number, share * known[verb])
            wrong = fault(number, found)
            del found["said"]
            done[verb, share] = {"verb": verb, "signal": number.name, "share": share, **found, "fault": wrong}
            keep(done[verb, share])
            words = wrong or f"status {found['status']}, gone in {found['gone_s']:.1f} s"
            print(f"{verb}, {number.name} at {share:.0%} of {known[verb]:.1f} s: {words}", flush=True)

        list(pool.map(whole, [verb for verb in verbs if verb not in known]))
        points = range(options.first, times)
        waiting = [pool.submit(end, verb, point) for point in points for verb in verbs]
        for one in waiting:
            one.result()
    faults = [one for one in done.values() if one["fault"]]
    shares = [share for _, share in done]
    results = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": here,
        "shares": [min(shares, default=0.0), max(shares, default=0.0)],
        "runs": len(done),
        "hit": sum(one["sent"] for one in done.values()),
        "longest_gone_s": max((one["gone_s"] for one in done.values()), default=0.0),
        "verbs": dict(sorted(Counter(verb for verb, _ in done).items())),
        "signals": dict(sorted(Counter(one["signal"] for one in done.values()).items())),
        "faults": faults,
    }
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(f"{len(done)} runs, {len(faults)} faults: {RESULTS.relative_to(ROOT)}")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
