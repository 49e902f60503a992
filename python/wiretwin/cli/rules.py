"""``wiretwin advise --export``: algorithms of collectives chosen, written for an MPI library, and tried."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from wiretwin.cli.format import Column, Format, Table, emit

if TYPE_CHECKING:
    from pathlib import Path

    from wiretwin.cli.where import Where
    from wiretwin.predict.collectives import Choice
    from wiretwin.understand.tried import Tried

__all__ = ["Library", "Trial", "export", "trial"]


class Library(StrEnum):
    """Whose files are written."""

    openmpi = "openmpi"
    mpich = "mpich"


@dataclass(frozen=True)
class Trial:
    """The launches of ``--try``: of each kind, and what their steps may take, seconds."""

    where: Where
    launches: int
    budget_s: float


def trial(where: Where, launches: int, budget: str) -> Trial:
    """Return what ``--try`` asks for.

    Raises
    ------
    InputError
        The budget is no time of a second or more.
    """
    from wiretwin.quantity import parse_time

    return Trial(where, launches, parse_time(budget, "--budget", least_s=1.0))


def export(
    library: Library,
    tried: Trial | None,
    *,
    twin: Path,
    network: str | None,
    ranks: int,
    ranks_per_host: int,
    layer: str | None,
    sizes: Sequence[str] | None,
    out: Path,
    form: Format,
) -> None:
    """Choose algorithms, print them, write the file, and try it if that was asked for."""
    from wiretwin.predict.collectives import SIZES, choose
    from wiretwin.quantity import parse_size
    from wiretwin.results import write_atomically
    from wiretwin.stacks.simulated import mpich_of

    named = layer or f"mpi/{library}"
    if library is Library.mpich:
        mpich_of(named)  # before what takes longer
    found = choose(
        ranks=ranks,
        twin=twin,
        network=network,
        ranks_per_host=ranks_per_host,
        layer=named,
        sizes=[parse_size(text, "--size") for text in sizes] if sizes else SIZES,
        library=library.value,
    )
    text = _text(library, found, ranks, named)
    if tried is None:
        emit(_chosen(found, ranks), form)
    write_atomically(out, text.encode())
    print(f"written: {out}; {_how(library, found, out)}", file=sys.stderr)
    if tried is not None:
        done = _tried(library, found, text, ranks, named, tried)
        emit(_table(found, done, ranks), form)
        print(done.sentence(), file=sys.stderr)


def _text(library: Library, found: Sequence[Choice], ranks: int, layer: str) -> str:
    from wiretwin.predict.collectives import openmpi_rules
    from wiretwin.predict.mpich_rules import mpich_rules, own_rules
    from wiretwin.stacks.simulated import mpich_of

    if library is Library.openmpi:
        return openmpi_rules(found, ranks)
    return mpich_rules(found, ranks, own_rules(mpich_of(layer)))


def _variables(library: Library, found: Sequence[Choice], file: Path) -> dict[str, str]:
    """Return the variables of the environment by which a library takes a file."""
    from wiretwin.predict.mpich_rules import environment

    if library is Library.mpich:
        return environment(found, file)
    tuned = "OMPI_MCA_coll_tuned"
    return {f"{tuned}_use_dynamic_rules": "1", f"{tuned}_dynamic_rules_filename": str(file)}


def _how(library: Library, found: Sequence[Choice], file: Path) -> str:
    """Return how a program is started with a file."""
    if library is Library.openmpi:
        return (
            "mpirun --mca coll_tuned_use_dynamic_rules 1 "
            f"--mca coll_tuned_dynamic_rules_filename {file.resolve()}"
        )
    given = _variables(library, found, file.resolve())
    return "mpiexec " + " ".join(f"-genv {name} {value}" for name, value in given.items())


def _chosen(found: Sequence[Choice], ranks: int) -> Table:
    columns = (
        Column("collective", "collective"),
        Column("bytes", "bytes"),
        Column("algorithm", "algorithm"),
        Column("us", "predicted [us]", digits=4),
        Column("second", "second"),
        Column("second_us", "predicted [us]", digits=4),
    )
    rows: list[list[object]] = []
    for one in found:
        (best, best_s), *others = one.seconds.items()
        name, second_s = others[0] if others else ("", None)
        second_us = None if second_s is None else 1e6 * second_s
        rows.append([one.collective, one.nbytes, best, 1e6 * best_s, name, second_us])
    return Table(f"algorithms of collectives, {ranks} ranks", columns, rows)


def _tried(
    library: Library, found: Sequence[Choice], text: str, ranks: int, layer: str, asked: Trial
) -> Tried:
    from wiretwin.cli.progress import Bar
    from wiretwin.errors import InterruptedRun
    from wiretwin.understand.tried import try_rules

    def write(folder: Path) -> Mapping[str, str]:
        file = folder / "coll.rules"
        file.write_text(text)
        return _variables(library, found, file)

    wanted: dict[str, list[int]] = {}
    for one in found:
        wanted.setdefault(one.collective, []).append(one.nbytes)
    try:
        with asked.where.place(round_trips=True) as place, Bar("trying the file") as bar:
            return try_rules(
                layer,
                write,
                wanted,
                ranks=ranks,
                place=place,
                launches=asked.launches,
                budget_s=asked.budget_s,
                expected_s=sum(one.seconds[one.algorithm] for one in found),
                on_launch=lambda done, of: bar.stage(done, of, "launches, with the file and without in turn"),
            )
    except KeyboardInterrupt:
        raise InterruptedRun("interrupted; the file is written") from None


def _table(found: Sequence[Choice], done: Tried, ranks: int) -> Table:
    columns = (
        Column("collective", "collective"),
        Column("bytes", "bytes"),
        Column("algorithm", "algorithm"),
        Column("predicted_us", "predicted [us]", digits=4),
        Column("without_us", "without the file [us]", digits=4),
        Column("with_us", "with it [us]", digits=4),
        Column("ratio", "with / without", digits=3),
        Column("low", "low", digits=3),
        Column("high", "high", digits=3),
        Column("verdict", "verdict"),
    )
    measured = {(row.layer, row.bytes): row for row in done.rows}
    rows: list[list[object]] = []
    for one in found:
        row = measured.get((one.collective, one.nbytes))
        if row is not None:
            predicted_us = 1e6 * one.seconds[one.algorithm]
            told = [row.before_us, row.after_us, row.ratio, row.low, row.high, row.verdict]
            rows.append([one.collective, one.nbytes, one.algorithm, predicted_us, *told])
    return Table(f"collectives of {ranks} ranks with the file and without", columns, rows)
