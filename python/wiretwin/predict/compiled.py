"""Predict a compiled program: what `wiretwin.predict.predict` is for scripts.

The simulated world must be told what a unit of the program's work costs. Unless it is given, that is
measured: the program runs on shared memory, as many ranks side by side as there are cores, and what they say
they computed is divided, kind by kind, by the units of work that the simulated program counts. Of those runs
nothing but the prices is kept.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from wiretwin import _core
from wiretwin.errors import InputError
from wiretwin.predict import timeline
from wiretwin.predict.model import AnyNetwork, Side, Site, single_host
from wiretwin.predict.named import DEFAULT_LAYER, Case, Named, parse_parameters, run_live, simulate
from wiretwin.predict.records import (
    DEFAULT_PASSES,
    DEFAULT_SEED,
    ComputeNote,
    ModelledRank,
    Prediction,
    Spread,
    Statistic,
    keep,
    sha256_of,
    utc_now,
)
from wiretwin.twin import Twin

__all__ = ["predict_compiled"]

#: Where its work is measured.
_WORKBENCH = "shm"


def predict_compiled(
    program: Named,
    words: Sequence[str] = (),
    *,
    twin: str | Path | Twin | None = None,
    layer: str | None = None,
    ranks: int = 2,
    network: AnyNetwork | None = None,
    ranks_per_host: int | None = None,
    passes: int | None = None,
    statistic: Statistic = "median",
    seed: int = DEFAULT_SEED,
    out: str | Path | None = None,
    limit_s: float = 120.0,
    on_stage: Callable[[str], None] | None = None,
) -> Prediction:
    """Predict the run of a compiled program on the host of a twin, and record the prediction.

    What is predicted is the program's own time on the slowest rank, without collecting and checking its
    result, as `wiretwin.predict.repeats.run_repeatedly` keeps it. Where the twin knows several states of the
    host the prediction is for all launches together, and its interval spans the states.

    Parameters
    ----------
    program, words
        The program, its parameters, and what its work costs if that is given.
    twin, layer, ranks
        Whose costs how many ranks have.
    network, ranks_per_host
        What joins hosts like the twin's, and how many ranks each takes, as for `wiretwin.predict`.
    passes, statistic
        How often the work is measured, and what is made of it.
    seed
        Of the simulated world.
    out
        A folder for `prediction.json` and `timeline.parquet`.
    limit_s
        The longest one run may take, in seconds.
    on_stage
        Called with a few words as each stage begins.

    Raises
    ------
    InputError, ProgramError
        When an input is wrong; when a run fails or does not end in time.
    """
    passes = DEFAULT_PASSES if passes is None else passes
    if not 1 <= passes <= 1000:
        raise InputError(key="--passes", value=passes, allowed="1 to 1000")
    say = on_stage or (lambda _: None)
    site = Site.of(ranks, network, ranks_per_host, layer)
    parameters, given = parse_parameters(program, words)
    fitted = site.twin_for(twin)
    if site.local is not None:
        layer = site.local.stack
    layer = layer or DEFAULT_LAYER
    missing = [kind for kind in program.kinds if kind not in given]
    if given and missing:
        raise InputError(
            key=missing[0], reason="is needed where other work is given", allowed="all of it, or none"
        )
    if fitted is None and any(kind in missing for kind in program.work):
        allowed = f"what one {missing[0]} costs there, such as {missing[0]}=0.8ns"
        raise InputError(
            key=missing[0], reason="is needed on a network that has hosts of its own", allowed=allowed
        )

    def case(prices: Mapping[str, int], side: Side = "value", state: str | None = None) -> Case:
        return Case(parameters, prices, site.model(fitted, layer, side, state), ranks)

    tried, together, units = [given], 1, dict.fromkeys(program.kinds, 1)
    if missing and fitted is not None:
        together = min(ranks, len(os.sched_getaffinity(0)))
        # What is wrong with the parameters shows here, before anything is run.
        workbench = _Workbench(
            program, case(dict.fromkeys(program.kinds, 1)), fitted, layer, together, limit_s
        )
        units = workbench.units
        tried = []
        for number in range(passes):
            say(f"measuring the work, pass {number + 1} of {passes}")
            tried.append(workbench.prices_ps())
    say("simulating")
    by_price = sorted(tried, key=lambda prices: sum(units[kind] * price for kind, price in prices.items()))
    chosen = by_price[0] if statistic == "minimum" else by_price[(len(by_price) - 1) // 2]
    seen = () if fitted is None else fitted.layer(layer).states
    states = [None, *(state.name for state in seen)]
    sides: tuple[Side, ...] = () if fitted is None else ("low", "high")
    cases = [case(chosen), *(case(prices) for prices in (by_price[0], by_price[-1]) if missing)]
    cases += [case(chosen, side, state) for side in sides for state in states]
    found, *ends = simulate(program, cases, seed=seed, limit_s=limit_s, keep_timeline=out is not None)
    seconds = [found.seconds, *(one.seconds for one in ends)]
    parts = ["the measuring passes"] if missing and fitted is not None else []
    if fitted is not None:
        parts += ["the ends of the twin's intervals", *(["the states of the host"] if seen else [])]
    prediction = Prediction(
        program=program.name,
        program_sha256=sha256_of(Path(_core.__file__)),
        args=[f"{key}={value}" for key, value in parameters.items()],
        ranks=ranks,
        layer=layer,
        twin_sha256=None if fitted is None else hashlib.sha256(fitted.to_toml().encode()).hexdigest(),
        network=found.network,
        seed=seed,
        compute=ComputeNote(
            source="measured" if missing else "given",
            statistic=statistic,
            passes=len(tried),
            concurrent=together,
        ),
        seconds=Spread(
            value=found.seconds,
            low=min(seconds),
            high=max(seconds),
            meaning="range over " + " and ".join(parts),
        ),
        per_rank=[
            ModelledRank(
                rank=one.rank,
                total_s=one.total_s,
                **{f"{kind}_s": value for kind, value in one.parts_s.items()},
            )
            for one in found.ranks
        ],
        messages=found.messages,
        trace_digest=found.digest,
        warnings=[*site.notes(fitted), *timeline.coarse_note(found.coarse_ps)],
        wiretwin=importlib.metadata.version("wiretwin"),
        frozen_utc=utc_now(),
    ).sealed()
    if out is not None:
        assert found.timeline is not None
        keep(Path(out), prediction, {timeline.FILE: found.timeline})
    return prediction


class _Workbench:
    """Measures what work costs, `together` ranks side by side; `units` says how much of each kind they do."""

    def __init__(
        self, program: Named, case: Case, twin: Twin, layer: str, together: int, limit_s: float
    ) -> None:
        self.program, self.together, self.limit_s = program, together, limit_s
        # A mesh that was asked for is one of as many ranks as were asked for.
        mesh = () if together == case.ranks else ("down", "across")
        mine = {**case.parameters, **{key: 0 for key in mesh if key in case.parameters}}
        self.words = [f"{key}={value}" for key, value in mine.items()]
        network = single_host(twin, layer, together)
        # A kind is counted where its unit takes a picosecond and all others nothing.
        counting = [
            Case(mine, {other: int(other == kind) for other in program.kinds}, network, together)
            for kind in program.kinds
        ]
        _, *counted = simulate(program, [case, *counting], limit_s=limit_s)
        self.units = {
            kind: round(sum(rank.parts_s["compute"] for rank in one.ranks) * 1e12)
            for kind, one in zip(program.kinds, counted, strict=True)
        }
        if not any(self.units.values()):
            kind = program.kinds[0]
            ranks_there = f"{together} rank{'' if together == 1 else 's'}"
            raise InputError(
                key=kind,
                reason=f"cannot be measured: {ranks_there}, as many as there are cores, do none of it",
                allowed=f"a price of {' and '.join(program.kinds)}, such as {kind}=0.8ns",
            )

    def prices_ps(self) -> dict[str, int]:
        """Return the price of a unit of each kind in one launch, picoseconds; 1 at least if any is done."""
        done = run_live(self.program, self.words, layer=_WORKBENCH, ranks=self.together, limit_s=self.limit_s)
        return {
            kind: max(
                1, round(1e12 * sum(rank.compute_by_kind_s.get(kind, 0.0) for rank in done.ranks) / units)
            )
            if units
            else 0
            for kind, units in self.units.items()
        }
