"""``wiretwin.measure(…)``: the verb, as a function."""

from __future__ import annotations

import datetime
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from wiretwin.errors import InputError, MeasureError, require
from wiretwin.measure import host, together
from wiretwin.measure.adaptive import LEAST_LAUNCHES
from wiretwin.measure.budget import Budget
from wiretwin.measure.launch import Interruption
from wiretwin.measure.orchestrate import Event, Plan, run
from wiretwin.measure.rounds import chosen as chosen_pairs
from wiretwin.measure.schedule import DEFAULT_SIZES, Purpose, parse_sizes
from wiretwin.place import HERE, Apart, Place, cores_of
from wiretwin.quantity import parse_share, parse_time
from wiretwin.results import Layer, Result
from wiretwin.stacks.layers import Configuration, parse_layers, refusal

__all__ = ["DEFAULT_BUDGET", "DEFAULT_LAUNCHES", "DEFAULT_PRECISION", "DEFAULT_SEED", "measure", "pins_of"]

DEFAULT_BUDGET = "60s"
DEFAULT_PRECISION = "5%"
DEFAULT_LAUNCHES = 7
DEFAULT_SEED = 1
MOST_RANKS = 1024
MOST_USUAL_RANKS = 16
"""So many ranks at most where none are asked for."""
PAIR_SIZES = "4,1KiB,16KiB,64KiB,256KiB"
"""Sizes between pairs of hosts where none are asked for: there are many pairs."""
PAIR_LAYERS = "socket/tcp"
"""And what is measured between them."""


def measure(
    layers: str | Sequence[str] | None = None,
    *,
    budget: str | None = DEFAULT_BUDGET,
    out: str | Path | None = None,
    sizes: str | Sequence[int] | None = None,
    purpose: Purpose = "fit",
    precision: str = DEFAULT_PRECISION,
    launches: int = DEFAULT_LAUNCHES,
    seed: int = DEFAULT_SEED,
    pin: str | tuple[int, ...] | None = "auto",
    ranks: int | None = None,
    loops: str | Sequence[str] | None = None,
    at_least: Mapping[str, int] | None = None,
    progress: Callable[[Event], None] | None = None,
    place: Place = HERE,
    begun: float | None = None,
    after_s: float = 0.0,
    pairs: str | None = None,
    resume: bool = False,
) -> Result:
    """Measure messaging layers of this host; every sample is kept in a result folder.

    Parameters
    ----------
    layers
        Configurations, ``["socket/tcp", "socket/tcp+spin", "shm"]`` or the same in one string;
        by default every layer that can run here.
    budget
        Wall time for everything, with its unit: at most 1.2 times it and a second are taken. What is not
        measured for it is named in the manifest. ``None``: no limit, each layer is launched `launches` times.
    out
        The result folder, new or empty; by default ``results/measure-DATE-TIME``.
    sizes
        Message sizes in bytes, or a list as the command line has it: ``lin``, ``1,4,1KiB..1MiB``; by default
        those of the purpose.
    purpose
        ``fit`` takes what a twin needs; ``curves`` takes round trips only; ``collectives``, ``nonblocking``,
        ``one-sided``, ``pairs`` and ``load`` take what any number of ranks do together.
    precision
        A layer is done when the 95 % interval between its launches is at most this much to either
        side at every size.
    launches
        Launches of each layer before it may be done, at least 3, of each pair 1; the budget is
        divided among so many.
    seed
        Of the order of launches.
    pin
        CPUs of the ranks, which begin anew at the end: ``auto`` chooses different cores, ``none`` leaves them
        to the scheduler.
    ranks
        How many ranks do something together, 2 to 1024; by default as many as there are cores or hosts, at
        least 2. The other purposes have two.
    loops
        What they do together, of the loops of the purpose: ``["bcast", "allreduce"]`` or the same in one
        string.
    at_least
        Launches of a configuration that are made even beyond the budget, where something rests on them.
    progress
        Called after each launch.
    place
        Where the two ranks live; by default both on this host.
    begun
        When the budget begins, on `time.monotonic`; by default now.
    after_s
        What the caller is still to do within the budget, seconds.
    pairs
        ``all`` or ``sample:N``: each pair of the place's hosts is measured by itself, for ``curves``, or for
        ``fit`` with one typical pair that is measured with every loop.
    resume
        Go on with what `out` holds, which was measured with the same arguments.

    Returns
    -------
    Result
        The folder, opened. Its manifest says why each layer was measured no longer.

    Raises
    ------
    InputError
        An argument is wrong.
    MeasureError
        No layer could be measured, or none in the budget; the folder keeps what there is.
    StorageError
        The folder could not be written.
    """
    require("report")
    # What was asked for comes first: whether a layer can run here takes compilers.
    if purpose not in ("curves", "fit", *together.PURPOSES):
        raise InputError(
            key="purpose", value=purpose, allowed=", ".join(("curves", "fit", *together.PURPOSES))
        )
    if pairs is not None and purpose in together.PURPOSES:
        raise InputError(key="--for", value=purpose, allowed="fit or curves, with --pairs")
    if resume and (pairs is None or out is None):
        raise InputError(key="--resume", allowed="with --pairs and --out")
    if pairs is not None:
        sizes, layers = sizes or PAIR_SIZES, layers or PAIR_LAYERS
    if sizes is None:
        sizes = together.PURPOSES[purpose].sizes if purpose in together.PURPOSES else DEFAULT_SIZES
    chosen_sizes = parse_sizes(sizes, "sizes") if isinstance(sizes, str) else _checked(sizes)
    budget_s = None if budget is None else parse_time(budget, "budget", least_s=1.0)
    narrow = parse_share(precision, "precision")
    least = LEAST_LAUNCHES if pairs is None else 1
    if not least <= launches <= 1000:
        raise InputError(key="launches", value=launches, allowed=f"{least} to 1000")
    wanted_loops = _loops(purpose, loops)
    rank_count = _ranks(purpose, ranks, place)
    configurations, skipped = _choose(layers, place, purpose, wanted_loops)
    for one in configurations:
        if min(chosen_sizes) > one.max_bytes:
            allowed = f"at least one size up to {one.max_bytes} bytes, the most that {one.name} carries"
            raise InputError(key="sizes", value=sizes, allowed=allowed)
    plan = Plan(
        configurations=configurations,
        sizes=chosen_sizes,
        purpose=purpose,
        budget=Budget(
            budget_s,
            begun=time.monotonic() if begun is None else begun,
            now=time.monotonic,
            after_s=after_s,
        ),
        precision=narrow,
        launches=launches,
        seed=seed,
        pins=pins_of(pin, place, rank_count if pairs is None else max(2, host.cores() // 2 * 2)),
        place=place,
        at_least=_counts("at_least", at_least or {}, configurations),
        ranks=rank_count,
        loops=wanted_loops,
    )
    more = {"ranks": rank_count, "loops": list(wanted_loops)} if plan.together else {}
    if pairs is not None:
        more = {"pairs": pairs, "between": [one["name"] for one in place.describe()["hosts"]]}
    rounds = [] if pairs is None else chosen_pairs(pairs, len(place.hosts), seed)
    now = datetime.datetime.now(datetime.UTC)
    options = {
        "sizes_bytes": list(chosen_sizes),
        "purpose": purpose,
        "budget_s": plan.budget.asked_s,
        "precision": plan.precision,
        "launches": launches,
        "pin_cpu": list(plan.pins) if plan.pins else None,
        "skipped": skipped,
        "largest_bytes": {
            one.name: one.max_bytes for one in configurations if one.max_bytes < max(chosen_sizes)
        },
        "place": place.describe(),
        **more,
    }
    if resume and out is not None and Path(out, "manifest.json").exists():
        result = _resumed(out, seed, options, [one.name for one in configurations])
    else:
        result = Result.create(
            out if out is not None else Path("results", now.strftime("measure-%Y%m%d-%H%M%S")),
            seed=seed,
            created_utc=now.strftime("%Y-%m-%dT%H:%M:%SZ"),
            host=host.describe(),
            options=options,
            layers=[
                Layer(layer=one.kind.name, name=one.name, options=dict(one.options)) for one in configurations
            ],
        )
    with Interruption() as interruption:
        if pairs is None:
            run(plan, result, interruption, progress or (lambda _: None))
        else:
            # Only here, for it loads what reads results, which takes as long as all else.
            from wiretwin.measure.each_pair import measure_pairs

            measure_pairs(plan, rounds, result, interruption, progress or (lambda _: None))
    if interruption.requested and result.manifest.state == "complete":
        result.finish("interrupted")  # it came while the last launch was stored
    kept = sum(launch.rows for launch in result.manifest.launches)
    failed = set(result.manifest.stopped.values()) == {"failed"}
    if result.manifest.state == "complete" and (failed or not kept):
        reasons = "; ".join(f"{name}: {why}" for name, why in result.manifest.stopped_because.items())
        end, rest = (" to the end", f"; {kept} samples are kept in {result.path}") if kept else ("", "")
        raise MeasureError(f"no layer could be measured{end}: {reasons}{rest}")
    return result


SAME_WHEN_RESUMED = ("sizes_bytes", "purpose", "pairs", "between")


def _resumed(out: str | Path, seed: int, options: Mapping[str, Any], names: Sequence[str]) -> Result:
    """Open the folder of a measurement of pairs that is to go on.

    Raises
    ------
    InputError
        It was measured with other arguments.
    """
    result = Result.open(out)
    then = dict(result.manifest.options) | {"seed": result.manifest.seed}
    then["layers"] = [one.name for one in result.manifest.layers]
    now = dict(options) | {"seed": seed, "layers": list(names)}
    for key in (*SAME_WHEN_RESUMED, "seed", "layers"):
        if then.get(key) != now[key]:
            raise InputError(
                out, key, now[key], f"{then.get(key)}, as it was begun with", "cannot be resumed"
            )
    result.manifest.options.update(budget_s=options["budget_s"], launches=options["launches"])
    result.manifest.state = "running"
    result.manifest.stopped.clear()
    result.manifest.stopped_because.clear()
    return result


def _loops(purpose: Purpose, loops: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return what ranks are to do together; nothing for two ranks."""
    if purpose in together.PURPOSES:
        return together.chosen(purpose, loops)
    if loops is not None:
        allowed = f"with --for {' or '.join(together.PURPOSES)}"
        raise InputError(key="--loops", value=loops, reason=f"{purpose} has its own", allowed=allowed)
    return ()


def _ranks(purpose: Purpose, ranks: int | None, place: Place) -> int:
    """Return how many ranks a launch has."""
    if purpose not in together.PURPOSES:
        if ranks not in (None, 2):
            allowed = f"2, or --for {' or '.join(together.PURPOSES)}"
            raise InputError(key="--ranks", value=ranks, reason=f"{purpose} is of two ranks", allowed=allowed)
        return 2
    if ranks is None:
        return max(2, min(MOST_USUAL_RANKS, len(place.hosts) if len(place.hosts) > 1 else host.cores()))
    if not 2 <= ranks <= MOST_RANKS:
        raise InputError(key="--ranks", value=ranks, allowed=f"2 to {MOST_RANKS}")
    return ranks


def _choose(
    layers: str | Sequence[str] | None, place: Place, purpose: Purpose, loops: Sequence[str]
) -> tuple[list[Configuration], dict[str, str]]:
    """Parse what was asked for; what was not asked for by name may be absent, and is noted."""
    named = "all" if layers is None else layers
    text = named if isinstance(named, str) else ",".join(named)
    found, skipped = [], {}
    for configuration in parse_layers(text, "layers"):
        refused: object = refusal(configuration, place)
        if refused is None and loops and not configuration.loops & set(loops):
            refused = f"it has none of the loops of --for {purpose}: {', '.join(loops)}"
        if refused is None:
            found.append(configuration)
        elif named != "all":
            raise MeasureError(f"{configuration.name} cannot run here: {refused}")
        else:
            skipped[configuration.name] = str(refused)
    if not found:
        raise MeasureError("no layer can run here: `wiretwin doctor` says what is missing")
    return found, skipped


def _checked(sizes: Sequence[int]) -> list[int]:
    return parse_sizes(",".join(str(size) for size in sizes), "sizes")


def _counts(key: str, counts: Mapping[str, int], configurations: Sequence[Configuration]) -> dict[str, int]:
    names = [one.name for one in configurations]
    for name, count in counts.items():
        if name not in names:
            raise InputError(key=key, value=name, allowed=", ".join(names))
        if not 1 <= count <= 1000:
            raise InputError(key=f"{key} of {name}", value=count, allowed="1 to 1000")
    return dict(counts)


def pins_of(pin: str | tuple[int, ...] | None, place: Place, ranks: int) -> tuple[int, ...] | None:
    """Return the CPUs of ranks at a place, as `measure` takes them; nothing leaves them to the scheduler.

    Raises
    ------
    InputError
        No such CPUs.
    """
    usable = sorted(os.sched_getaffinity(0))
    if pin is None or pin == "none":
        return None
    if pin == "auto" and isinstance(place, Apart):
        # Two ranks of a machine would share the core that is chosen there for one.
        return place.pins if ranks <= len(place.hosts) else None
    own = cores_of(place, ranks)
    if pin == "auto":
        return own or host.measuring_cpus(ranks)
    parts: Sequence[Any] = pin.split(",") if isinstance(pin, str) else pin
    try:
        cpus = tuple(int(part) for part in parts)
    except ValueError:
        cpus = ()
    if not 2 <= len(cpus) <= ranks:
        count = "two CPU numbers" if ranks == 2 else f"2 to {ranks} CPU numbers"
        raise InputError(key="pin", value=pin, allowed=f"auto, none, or {count} such as 0,1")
    if own is not None and cpus != own[: len(cpus)]:
        allowed = f"auto, none, or {','.join(map(str, own))}, the cores that the hosts have"
        raise InputError(key="pin", value=pin, allowed=allowed)
    for cpu in () if isinstance(place, Apart) else cpus:
        if cpu not in usable:
            allowed = f"CPUs this process may use: {', '.join(map(str, usable))}"
            raise InputError(key="pin", value=cpu, allowed=allowed)
    return cpus
