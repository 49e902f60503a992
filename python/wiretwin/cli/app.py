"""The application: its verbs, its global options, and the one place where errors become exit codes."""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import sys
from typing import Annotated

import typer

import wiretwin
from wiretwin.cli import memory
from wiretwin.errors import InputError, StorageError, report_error

__all__ = ["VERBS", "main"]

VERBS = (
    "doctor", "tour", "measure", "import", "understand", "fit", "predict", "run", "compare", "baseline",
    "trace", "replay", "twin", "report", "papers", "explain", "advise", "simulate", "sweep", "circuits",
    "testbed", "direct", "rpc",
)  # fmt: skip
"""The verbs, in the order of ``--help``; each is a module `wiretwin.cli.VERB` with ``register(app)``.

`SUMMARIES` is what the list of verbs shows; else it is the first line of a verb's help. In a help, a line of
its own that holds ``\\b`` keeps the lines of the paragraph after it as they are.
"""

SUMMARIES = {
    "tour": "Go once round the loop on this machine, in about a minute.",
    "measure": "Measure messaging layers; every sample is kept.",
    "understand": "Name what is odd in a result, with evidence.",
    "predict": "Predict how long a program runs, before it does.",
    "run": "Run a program in a world, live or simulated.",
    "compare": "Compare two results, two predictions, or one with a run.",
    "trace": "Record what a program's ranks ask of MPI.",
    "replay": "Predict a recorded run on another network.",
    "papers": "Rebuild a paper's tables and figures.",
    "explain": "Show where the time of one message goes.",
    "advise": "Find the best settings of a stack by simulation.",
    "sweep": "Run a scenario at every combination of values and seeds.",
    "circuits": "Set up the virtual network of a parallel run.",
    "testbed": "Hosts without hosts: namespaces of this machine.",
}
"""In a line of 80 columns, where the first line of the help is longer."""

EPILOG = (
    "Exit codes: 0 done; 1 done, the answer is no; 2 input rejected; 3 measurement failed; 4 simulation "
    "failed; 5 the program failed; 6 file not written or read; 7 too little memory; 70 a defect of wiretwin; "
    "130 interrupted (129 by SIGHUP, 143 by SIGTERM)."
)


def _version(asked: bool) -> None:
    if asked:
        print(f"wiretwin {wiretwin.__version__}")
        raise typer.Exit


def _build() -> typer.Typer:
    app = typer.Typer(
        help="Measure how fast the processes of a parallel program really talk, build a calibrated twin of "
        "the wire, and run the same program on both.",
        epilog=EPILOG,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # plain help: the rich one costs 200 ms of imports
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def wiretwin_options(
        debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
        version: Annotated[
            bool,
            typer.Option("--version", callback=_version, is_eager=True, help="Print the version and end."),
        ] = False,
    ) -> None:
        pass

    for verb in VERBS:
        importlib.import_module(f"wiretwin.cli.{verb}").register(app)
    for command in app.registered_commands:
        name = str(command.name or getattr(command.callback, "__name__", ""))
        if name in SUMMARIES:
            command.short_help = SUMMARIES[name]
    for group in app.registered_groups:
        if str(group.name) in SUMMARIES:
            group.short_help = SUMMARIES[str(group.name)]
    return app


def main(argv: list[str] | None = None) -> None:
    """Run the command line and end the process with its exit code.

    Parameters
    ----------
    argv
        Arguments without the program's name; by default those of the process.
    """
    arguments = sys.argv[1:] if argv is None else argv
    memory.watch_imports()
    try:
        try:
            _build()(arguments, prog_name="wiretwin")
        finally:
            if sys.stdout is not None:  # it is not there if the caller has closed it
                sys.stdout.flush()
    except BrokenPipeError:
        # The reader of our output has gone, as with `| head`: nothing is wrong, and nobody listens.
        sys.stderr.close()
        sys.exit(0)
    except KeyboardInterrupt as early:
        sys.exit(report_error(early))
    except SystemExit as ended:
        # What a verb does not catch itself, Typer turns into a status and nothing else.
        exited = ended.__context__
        if isinstance(exited, typer.Exit) and isinstance(exited.__cause__, KeyboardInterrupt):
            sys.exit(report_error(exited.__cause__))
        raise
    except Exception as error:
        before_verb = next((place for place, word in enumerate(arguments) if not word.startswith("-")), None)
        shown: Exception = error
        if isinstance(error, InputError):
            shown = _as_option(error, arguments)
        elif short := memory.shortage(error):
            shown = short
        elif isinstance(error, OSError):
            shown = _as_output(error)
        sys.exit(report_error(shown, debug="--debug" in arguments[:before_verb]))


def _as_output(error: OSError) -> Exception:
    """Say in words that standard output, or another file on a full disk, cannot be written, if that is it."""
    try:
        print(flush=True)
    except OSError as again:
        # What is left of it would be tried once more at the end of the process, and end that in a defect.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return StorageError("standard output", f"not written: {again.strerror or again}")
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageError(error.filename or "a file", f"not written: {error.strerror}")
    return error


def _as_option(error: InputError, arguments: list[str]) -> InputError:
    """Name an argument of the Python API as the option that the user gave for it."""
    if error.file is not None or not error.key:
        return error
    option = f"--{error.key.replace('_', '-')}"
    if not any(word.split("=")[0] == option for word in arguments):
        return error
    renamed = InputError(key=option, value=error.value, allowed=error.allowed, reason=error.reason)
    return renamed.with_traceback(error.__traceback__)
