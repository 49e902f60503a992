"""The command line: ``wiretwin VERB``, a thin shell over the Python API.

Each verb is a module here with ``register(app)``; nothing heavy is imported before a verb runs, so
that ``wiretwin --help`` is immediate. Exit codes are those of `wiretwin.errors`.
"""

from wiretwin.cli.app import main

__all__ = ["main"]
