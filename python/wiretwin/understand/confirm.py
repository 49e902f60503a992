"""Counter-runs: a name is confirmed by a measurement in which nothing but the supposed cause is changed.

Each is a small measurement of its own, kept in the folder ``confirm`` of the result, and what came of it in
``confirmations.json`` beside the manifest, from where `wiretwin.understand.understand` takes it.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wiretwin.errors import InputError, StorageError, WiretwinError
from wiretwin.results import write_atomically
from wiretwin.understand.api import understand
from wiretwin.understand.confirmations import FILE, Confirmation, Confirmations, merged, read_confirmations
from wiretwin.understand.detect import DETECTORS
from wiretwin.understand.finding import Confidence, CounterRun, Finding
from wiretwin.understand.view import View, views

if TYPE_CHECKING:
    from wiretwin.place import Place
    from wiretwin.results import Result

__all__ = ["confirm"]

MOST_SIZES = 12
LAUNCHES = 3


def confirm(
    result: Result, *, budget: str = "3s", tell: Callable[[Finding, int, int], None] = lambda *_: None
) -> list[Finding]:
    """Make the counter-run of every finding that has one and none yet; keep what it shows.

    Parameters
    ----------
    result
        A result measured here, on this host or on a testbed.
    budget
        Time of one counter-run, with its unit.
    tell
        Called before each with the finding, its number from 1 and how many there are.

    Returns
    -------
    list of Finding
        All findings, as the counter-runs left them.

    Raises
    ------
    InputError
        The result is of another program or another host.
    StorageError
        What was found cannot be kept.
    """
    from wiretwin.measure import host

    found = understand(result).findings
    known = read_confirmations(result.path)
    wanted = [one for one in found if one.counter is not None and not one.outcome]
    if not wanted:
        return found
    measured_on, here = result.manifest.host.get("name"), host.describe().get("name")
    if measured_on != here:
        raise InputError(
            key="--confirm",
            value=measured_on,
            reason="is where this was measured",
            allowed=f"results of this host, {here}: a counter-run changes nothing but the cause",
        )
    before = {view.name: view for view in views(result)}
    for number, finding in enumerate(wanted, 1):
        tell(finding, number, len(wanted))
        folder = _folder(result.path)
        known.append(_counter_run(result, finding, before[finding.layer], folder, budget))
        data = Confirmations(confirmations=known).model_dump_json(indent=1) + "\n"
        write_atomically(result.path / FILE, data.encode())
    return merged(found, known)


def _folder(path: Path) -> Path:
    home = path / "confirm"
    try:
        home.mkdir(exist_ok=True)
        taken = [int(child.name) for child in home.iterdir() if child.name.isdigit()]
    except OSError as error:
        raise StorageError(home, error.strerror or str(error)) from error
    return home / str(max(taken, default=0) + 1)


def _counter_run(result: Result, finding: Finding, before: View, folder: Path, budget: str) -> Confirmation:
    from wiretwin.measure.api import measure

    counter = finding.counter
    assert counter is not None
    options = result.manifest.options
    pins = options.get("pin_cpu")
    pin: Any = counter.pin or (tuple(pins) if pins else "none")

    def said(confidence: Confidence, outcome: str, kept: bool = True) -> Confirmation:
        run = str(folder.relative_to(result.path)) if kept else None
        return Confirmation(
            name=finding.name,
            layer=finding.layer,
            sizes=list(finding.sizes),
            confidence=confidence,
            outcome=outcome,
            run=run,
        )

    try:
        with _place(before, counter) as place:
            done = measure(
                counter.layer,
                budget=budget,
                at_least={counter.layer: LAUNCHES},
                out=folder,
                sizes=_sizes(options.get("sizes_bytes") or [], finding),
                purpose="curves",
                launches=LAUNCHES,
                seed=result.manifest.seed,
                pin=pin,
                place=place,
            )
    except StorageError:
        raise
    except WiretwinError as error:
        return said(finding.confidence, f"the counter-run failed: {error}", kept=folder.exists())
    if done.manifest.state == "interrupted":
        raise KeyboardInterrupt
    seen = views(done)
    gone = DETECTORS[finding.name].gone(finding, before, seen[0]) if seen else None
    if gone is None:
        return said(finding.confidence, f"the counter-run ({counter.words}) lacks the sizes that tell")
    if gone:
        return said("confirmed", f"gone with {counter.words}")
    return said("refuted", f"still there with {counter.words}, or not certainly gone")


def _sizes(measured: list[int], finding: Finding) -> list[int]:
    """Return the sizes of the finding and the nearest of those measured besides."""
    needed = set(finding.sizes) if len(finding.sizes) <= MOST_SIZES else set(finding.sizes[:MOST_SIZES])
    others = sorted(
        (size for size in measured if size > 0 and size not in needed),
        key=lambda size: min(abs(math.log(size / near)) for near in needed),
    )
    return sorted([*needed, *others[: MOST_SIZES - len(needed)]])


@contextlib.contextmanager
def _place(view: View, counter: CounterRun) -> Iterator[Place]:
    """Make a place like that of the view, but for what the counter-run changes of its link."""
    from wiretwin.place import HERE
    from wiretwin.testbed import Link, Testbed

    kind = view.place.get("kind", "here")
    if kind == "here":
        yield HERE
        return
    if kind != "testbed":
        raise InputError(key="place", value=kind, allowed="here or testbed, for a counter-run")
    with Testbed.up(view.hosts, Link(**_link({**view.link, **counter.link}))) as bed:
        yield bed


def _link(words: Mapping[str, Any]) -> dict[str, Any]:
    """Turn a link as a manifest has it into what makes one."""
    names = {"mtu_bytes": "mtu"}
    allowed = {"kind", "mtu", "offload", "rate_bit_s", "delay_ns", "medium", "rules", "seed"}
    taken = {names.get(key, key): value for key, value in words.items()}
    unknown = sorted(set(taken) - allowed)
    if unknown:
        raise InputError(key=f"place.link.{unknown[0]}", allowed=", ".join(sorted(allowed)))
    return taken
