"""The command line: ``wiretwin VERB``, a thin shell over the Python API.

Each verb is a module here with ``register(app)``; nothing heavy is imported before a verb runs, so
that ``wiretwin --help`` is immediate. Exit codes are those of `wiretwin.errors`.
"""

import atexit
import contextlib
import gc
import sys

__all__ = ["main"]


def main(argv: list[str] | None = None) -> None:
    """Run the command line and end the process with its exit code; see `wiretwin.cli.app.main`.

    The memory goes with the process. To look for cycles in it first takes 0.2 s, and on a busy host 1.5 s
    that no budget has a place for.
    """
    atexit.register(gc.freeze)
    try:
        from wiretwin.errors import report_error
        from wiretwin.interruption import hear, hear_no_more

        hear(report_error)
        from wiretwin.cli import app
    except KeyboardInterrupt as early:
        from wiretwin.errors import report_error

        sys.exit(report_error(early))
    try:
        app.main(argv)
    finally:
        with contextlib.suppress(KeyboardInterrupt):
            hear_no_more()
