"""Several programs at once, on the same hosts and lines, each with its own ranks and stack.

Besides the shipped programs there are two that go on until the others have ended: in `calls` every rank
but the first calls it, waits for the reply and pauses; in `ttcp` every rank but the first sends to it
without end.

`python -m wiretwin.predict.together` reads such a run as JSON from the file it is given and prints what came
of it: a process of its own, so that a limit and an interrupt end it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wiretwin import _core
from wiretwin.errors import InputError, ProgramError
from wiretwin.predict.model import LAYER, AnyNetwork, Site
from wiretwin.predict.named import NAMED, NamedRank, in_child, named_ranks, parse_parameters, refuse_unpriced
from wiretwin.quantity import parse_size, parse_time
from wiretwin.twin import Twin

__all__ = ["ENDLESS", "Job", "Part", "Together", "run_together"]

ENDLESS: Mapping[str, Mapping[str, str]] = {
    "calls": {"bytes": "128B", "reply": "1KiB", "pause": "10ms"},
    "ttcp": {"bytes": "64KiB"},
}
"""The programs that go on until the others have ended, and their parameters: the lengths of requests, replies
and messages, and the mean of the pause after a call, which is exponential."""


@dataclass(frozen=True)
class Job:
    """A program among others.

    Attributes
    ----------
    name, words
        A shipped program or one of `ENDLESS`, and its parameters as ``key=value``.
    ranks
        How many.
    hosts
        By rank, the number of its host; none: each on the next host that is free.
    stack
        Its stack on a network that has hosts of its own; on hosts of a twin the layer, the same for all.
    """

    name: str
    words: tuple[str, ...] = ()
    ranks: int = 2
    hosts: tuple[int, ...] | None = None
    stack: str | None = None


@dataclass(frozen=True)
class Part:
    """What a program has come to.

    Attributes
    ----------
    job
        The program.
    ranks
        Its ranks, of a shipped one.
    response_us, received_bytes
        Of one that goes on, by rank but the first: how long its calls took, the first left out, in
        microseconds; what the first rank got of it, in bytes.
    """

    job: Job
    ranks: tuple[NamedRank, ...]
    response_us: tuple[tuple[float, ...], ...]
    received_bytes: tuple[int, ...]


@dataclass(frozen=True)
class Together:
    """Programs that have run at once, until `end_s`; what the network has lost and marked, by name."""

    parts: tuple[Part, ...]
    end_s: float
    congestion: Mapping[str, int]
    digest: str


def run_together(
    jobs: Sequence[Job],
    *,
    twin: str | Path | Twin | None = None,
    network: AnyNetwork | None = None,
    ranks_per_host: int | None = None,
    seed: int = 1,
    limit_s: float = 120.0,
) -> Together:
    """Run programs at once until those that end have ended.

    Parameters
    ----------
    jobs
        The programs.
    twin, network, ranks_per_host
        Where they run, as for `wiretwin.predict`.

    Raises
    ------
    InputError, ProgramError
        A program, its place or its stack cannot be; one fails, or does not end within `limit_s` seconds.
    """
    hosts = _hosts(jobs, ranks_per_host or 1)
    stacks = {job.stack for job in jobs}
    total = sum(job.ranks for job in jobs)
    if network is not None:
        # As many hosts as are named, and ranks enough to have them all.
        wanted = max(max(one) for one in hosts) + 1
        site = Site.of(max(2, wanted), network, None, jobs[0].stack)
    else:
        site = Site.of(total)
    fitted = site.twin_for(twin)
    layer = jobs[0].stack or LAYER
    model = site.model(fitted, layer)
    places: Sequence[Sequence[int]] = hosts
    if site.local is None:
        if len(stacks) > 1:
            found = ", ".join(sorted(map(str, stacks)))
            raise InputError(key="program.stack", value=found, allowed="one layer for all on hosts of a twin")
        numbers = iter(range(total))
        places = [[next(numbers) for _ in job.hosts or range(job.ranks)] for job in jobs]
        model["placement"] = [host for one in hosts for host in one] if network is not None else [0] * total
    programs = [_spec(job, at) for job, at in zip(jobs, places, strict=True)]
    for job, program in zip(jobs, programs, strict=True):
        if site.local is not None and network is not None and job.stack not in (None, site.local.stack):
            # Its library costs what it does on hosts of its own stack.
            theirs = Site.of(site.ranks, network, None, job.stack).local
            program["hosts"] = theirs.plan["hosts"] if theirs is not None else []
    spec = {
        "model": json.dumps(model),
        "programs": json.dumps(programs),
        "seed": seed,
    }
    found = in_child("wiretwin.predict.together", " and ".join(job.name for job in jobs), spec, limit_s)
    parts = tuple(
        Part(
            job,
            named_ranks(one["ranks"]),
            tuple(tuple(ps / 1e6 for ps in times) for times in one["response_ps"]),
            tuple(one["received_bytes"]),
        )
        for job, one in zip(jobs, found["programs"], strict=True)
    )
    return Together(parts, found["end_ps"] / 1e12, found["congestion"], found["digest"])


def _hosts(jobs: Sequence[Job], each: int) -> list[list[int]]:
    """Return the host of each rank of each program; what has none goes on where the last one ended."""
    found, free = [], 0
    for number, job in enumerate(jobs):
        given = job.hosts
        if given is None:
            given = tuple((free + rank) // each for rank in range(job.ranks))
            free += job.ranks
        if len(given) != job.ranks or min(given) < 0:
            key = f"program[{number}].hosts"
            raise InputError(
                key=key, value=list(given), allowed=f"the host of each of {job.ranks} ranks, from 0"
            )
        found.append(list(given))
    return found


def _spec(job: Job, places: Sequence[int]) -> dict[str, Any]:
    """Return a program as the core reads it."""
    found: dict[str, Any] = {"name": job.name, "places": list(places)}
    if job.stack is not None:
        found["stack"] = job.stack
    if job.name in NAMED:
        parameters, costs = parse_parameters(NAMED[job.name], job.words)
        refuse_unpriced(NAMED[job.name], costs)
        return {**found, "parameters": {**parameters, "costs_ps": costs}}
    if job.name not in ENDLESS:
        raise InputError(key="program.name", value=job.name, allowed=", ".join([*NAMED, *ENDLESS]))
    given = dict(ENDLESS[job.name])
    for word in job.words:
        key, equals, value = word.partition("=")
        if not equals or key not in given:
            raise InputError(key=job.name, value=word, allowed=f"key=value with a key of {', '.join(given)}")
        given[key] = value
    read: dict[str, int] = {
        key: parse_size(value, key, least=1) for key, value in given.items() if key != "pause"
    }
    if "pause" in given:
        read["pause_ps"] = round(1e12 * parse_time(given["pause"], "pause", most_s=60.0))
    return {**found, "parameters": read}


def _main(argv: Sequence[str]) -> int:
    spec = json.loads(Path(argv[0]).read_text("utf-8"))
    try:
        done = _core.run_together(spec["model"], spec["programs"], spec["seed"])
    except (ValueError, RuntimeError) as error:
        print(error, file=sys.stderr)
        return InputError.exit_code if isinstance(error, ValueError) else ProgramError.exit_code
    programs = [
        {
            "ranks": [
                _rank(rank, *row)
                for rank, row in enumerate(zip(one["outcomes"], one["end_ps"], one["parts_ps"], strict=False))
            ],
            "response_ps": [times.tolist() for times in one["response_ps"]],
            "received_bytes": one["received_bytes"],
        }
        for one in done["programs"]
    ]
    print(json.dumps({**done, "programs": programs}))
    return 0


def _rank(rank: int, outcome: Mapping[str, Any], end_ps: int, parts_ps: Sequence[int]) -> dict[str, Any]:
    return {
        "rank": rank,
        "total_s": end_ps / 1e12,
        "elapsed_s": outcome["elapsed_ps"] / 1e12,
        "parts_s": {
            kind: ps / 1e12
            for kind, ps in zip(("compute", "endpoint", "wire", "waiting"), parts_ps, strict=True)
        },
        "digest": outcome["digest"],
        "verified": outcome["verified"],
        "points": outcome["points"],
    }


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
