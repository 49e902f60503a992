"""Record a run: a library before the program's MPI writes down what its ranks ask of it."""

from __future__ import annotations

import importlib.metadata
import os
import re
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Literal

from wiretwin import process, scratch
from wiretwin.errors import InputError, ProgramError
from wiretwin.predict.executable import Recorder, predict_executable
from wiretwin.predict.model import AnyNetwork
from wiretwin.predict.records import utc_now
from wiretwin.stacks import simulated
from wiretwin.stacks.base import StackError
from wiretwin.stacks.build import SOURCES, build_listed
from wiretwin.trace.format import Manifest, Trace
from wiretwin.twin import Twin

__all__ = ["MOST", "record"]

MOST = 20_000_000
"""Records of a rank that are kept, unless another number is asked for: most calls are one."""
_RECORD_BYTES = 48
_PARTS = ("trace.c", "trace_calls.h", "trace_collectives.h")
_PRINTED = 100_000
"""Of what a run printed, so many characters are kept."""
_RENEWS = re.compile(r"(Comm_(dup|dup_with_info|split|split_type|create)|Cart_(create|sub)|Graph_create|"
                     r"Dist_graph_create(_adjacent)?)$")  # fmt: skip
"""Functions that make a communicator: all ranks of their first argument meet in them."""
_RELEASES = re.compile(r"(Comm_(free|disconnect|call_errhandler)|Init|Init_thread|Finalize)$")


def record(
    program: str | Path,
    args: Sequence[str] = (),
    *,
    ranks: int = 2,
    out: str | Path,
    world: Literal["live", "simulated"] = "live",
    twin: str | Path | Twin | None = None,
    layer: str | None = None,
    network: AnyNetwork | None = None,
    ranks_per_host: int | None = None,
    most: int = MOST,
    limit_s: float = 60.0,
) -> Trace:
    """Run a program for MPICH or Open MPI, here or in the simulated world, and record what its ranks ask.

    Parameters
    ----------
    program, args
        An executable file, or a script of mpi4py, and its arguments.
    ranks
        How many ranks are started, from 1 to 1024.
    out
        A folder for the recording, new or empty.
    world
        In which world it runs.
    twin, layer, network, ranks_per_host
        What is simulated, as for `wiretwin.predict`.
    most
        How many records of a rank are kept at most, 1 or more; a run that makes more is not replayed.
    limit_s
        The longest that the run may take, in seconds.

    Raises
    ------
    InputError, StackError
        The program is for no MPI that is known here; the recorder cannot be compiled.
    ProgramError
        The program fails, does not end in time, or calls no MPI.
    SimulationError
        Its simulated run comes to no end.
    """
    path, folder = Path(program).absolute(), Path(out).absolute()
    if not 1 <= ranks <= 1024:
        raise InputError(key="--ranks", value=ranks, allowed="1 to 1024")
    if most < 1:
        raise InputError(key="--most", value=most, allowed="1 or more")
    if not path.is_file():
        raise InputError(key="program", value=str(path), reason="no such file")
    library = simulated.needed(path, layer)
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise InputError(key="--out", value=str(folder), reason="holds something", allowed="an empty folder")
    variables = {"WIRETWIN_TRACE": str(folder), "WIRETWIN_TRACE_BYTES": str(most * _RECORD_BYTES)}
    recorder = Recorder(_shim(library.name), variables)
    if world == "simulated":
        found = predict_executable(
            path,
            args,
            twin=twin,
            ranks=ranks,
            layer=layer,
            network=network,
            ranks_per_host=ranks_per_host,
            passes=1,
            ends=False,
            limit_s=limit_s,
            recorder=recorder,
        )
        printed = "".join(found.printed or [])
    else:
        printed = _run(library, path, args, ranks, recorder, limit_s)
    if not (folder / "0").exists():
        raise ProgramError(f"{path.name}: called no function of MPI that could be recorded")
    manifest = Manifest(
        program=path.name,
        args=list(args),
        ranks=ranks,
        library=library.name,
        world=world,
        printed=printed[:_PRINTED],
        recorded_utc=utc_now(),
        wiretwin=importlib.metadata.version("wiretwin"),
    )
    (folder / Trace.MANIFEST).write_text(manifest.model_dump_json(indent=1) + "\n", "utf-8")
    return Trace(folder)


def _run(
    library: simulated.Library,
    path: Path,
    args: Sequence[str],
    ranks: int,
    recorder: Recorder,
    limit_s: float,
) -> str:
    """Run a program on this host; return what its launcher handed on."""
    command = [str(path), *args] if simulated.is_executable(path) else [sys.executable, str(path), *args]
    with scratch.folder(what="names") as names:
        threads = process.threaded_as_asked if simulated.is_executable(path) else process.single_threaded
        env = threads() | library.paths(names) | dict(recorder.env)
        argv = [*library.started(ranks, recorder.shim), *command]
        try:
            done = process.run(argv, limit_s=limit_s, env=os.environ | env)
        except process.TimeLimit:
            raise ProgramError(
                f"{path.name}: the run did not end within {limit_s:g} s and was ended"
            ) from None
    sys.stderr.write(done.stderr)
    if done.returncode:
        raise ProgramError(f"{path.name}: ended with {process.ending(done.returncode)}: {done.last_words()}")
    return done.stdout


@cache
def _shim(name: str) -> Path:
    """Return the recorder for a library, which passes on those of its functions that it does not know."""
    library = simulated.LIBRARIES[name]
    text = "".join((SOURCES / one).read_text() for one in _PARTS)
    known = set(re.findall(r"\b(?:NAMED\(|MPI_)(\w+?)\)?\(", text))
    known |= set(re.findall(r"^(?:SENDS|STARTS)\((\w+),", text, re.MULTILINE))
    pairs = re.findall(r"\b(?:NAME_OF|COMBINES|ALL_TO_ALL)\((\w+), (\w+)", text)
    known |= {one for both in pairs for one in both}
    lines = []
    for function in simulated.functions(library.file):
        if function.startswith("P"):
            continue
        short = function.removeprefix("MPI_")
        if short.removesuffix("_c") in known or simulated.is_local(short) or _RELEASES.match(short):
            continue
        lines.append(f"{'SYNCHRONIZES' if _RENEWS.match(short) else 'UNKNOWN'}({function})\n")
    if not lines:
        raise StackError(f"{library.file} has no functions of MPI")
    return build_listed("trace.c", library.compiler, "".join(lines))
