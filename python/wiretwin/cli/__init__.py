"""The command line: ``wiretwin VERB``, a thin shell over the Python API.

Each verb is a module here with ``register(app)``; nothing heavy is imported before a verb runs, so
that ``wiretwin --help`` is immediate. Exit codes are those of `wiretwin.errors`.
"""

import contextlib
import sys

__all__ = ["main"]


def main(argv: list[str] | None = None) -> None:
    """Run the command line and end the process with its exit code; see `wiretwin.cli.app.main`."""
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
