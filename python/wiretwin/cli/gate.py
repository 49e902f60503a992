"""``wiretwin compare --fail-above``: measure again, say the outcome, write it for those who run tests."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wiretwin.cli.folders import refuse_unwritable

if TYPE_CHECKING:
    from wiretwin.understand.changes import Changes

__all__ = ["Gating"]


@dataclass(frozen=True)
class Gating:
    """What `--fail-above` and the options beside it ask for.

    Attributes
    ----------
    above
        The slowdown that is allowed, as a share; none for no gate.
    again
        How often layers are measured again before it fails.
    junit, markdown
        Files for the outcome.
    """

    above: float | None
    again: int
    junit: Path | None
    markdown: Path | None

    @classmethod
    def of(cls, above: str | None, again: int, junit: Path | None, markdown: Path | None) -> Gating:
        """Check what was typed, before anything is measured."""
        from wiretwin.errors import InputError
        from wiretwin.quantity import parse_share

        if above is None:
            for key, value in (("--junit", junit), ("--markdown", markdown)):
                if value is not None:
                    raise InputError(key=key, value=str(value), allowed="with --fail-above")
        refuse_unwritable(junit, markdown)
        share = None if above is None else parse_share(above, "--fail-above")
        return cls(share, again, junit, markdown)

    def passes(self, found: Changes, before: Path, after: Path) -> bool:
        """Say and write the outcome; whether the gate has not failed."""
        if self.above is None:
            return True
        from wiretwin.cli.fit import open_result
        from wiretwin.results import write_atomically
        from wiretwin.understand.changes import EVERY, changes, layer_of
        from wiretwin.understand.gate import gate, repetition

        def measured_again(layers: Sequence[str], number: int) -> Changes | None:
            folder = repetition(after, number)
            several = found.loop == EVERY
            names = list(dict.fromkeys(map(layer_of, layers))) if several else layers
            if (refused := measure_again(after, names, folder)) is not None:
                print(f"gate: not measured again: {refused}", file=sys.stderr)
                return None
            print(f"gate: measured again: {folder}", file=sys.stderr)
            base, once_more = (open_result(one, salvage=False) for one in (before, folder))
            return changes(base, once_more, loop=found.loop, change=found.change)

        done = gate(found, self.above, measured_again, self.again)
        for layer in done.layers():
            print(f"gate: {layer}: {done.outcome(layer)}: {done.words(layer)}", file=sys.stderr)
        print(f"gate: {done.outcome()}", file=sys.stderr)
        if self.junit is not None:
            write_atomically(self.junit, done.junit())
        if self.markdown is not None:
            write_atomically(self.markdown, done.markdown().encode())
        return done.outcome() != "failed"


def measure_again(after: Path, layers: Sequence[str], folder: Path) -> str | None:
    """Measure layers of a result of this host as they were measured there; why not, where that cannot be."""
    from wiretwin.cli.fit import open_result
    from wiretwin.cli.progress import Bar
    from wiretwin.measure import api
    from wiretwin.measure.orchestrate import Event
    from wiretwin.place import HERE

    manifest = open_result(after, salvage=False).manifest
    options = manifest.options
    if options.get("place") != HERE.describe() or "sizes_bytes" not in options:
        return f"{after} was not measured on one host by `wiretwin measure`"
    if manifest.host.get("name") != (here := platform.node()):
        return f"{after} was measured on {manifest.host.get('name')}, and this is {here}"
    if folder.exists():
        return f"{folder} is there already"
    budget = options.get("budget_s")
    with Bar("measuring again") as bar:

        def tell(event: Event) -> None:
            bar.show(event.elapsed_s, event.remaining_s, f"{event.name}: {event.words}")

        api.measure(
            layers,
            budget=None if budget is None else f"{budget:g}s",
            out=folder,
            sizes=options["sizes_bytes"],
            purpose=options["purpose"],
            precision=f"{100 * options['precision']:g}%",
            launches=options["launches"],
            ranks=options.get("ranks"),
            loops=options.get("loops"),
            progress=tell,
        )
    return None
