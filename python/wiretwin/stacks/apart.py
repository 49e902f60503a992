"""Ranks started one by one, each on its own host: what PVM, RPC, UCX and libfabric have in common.

Their libraries have no launcher. The ranks find each other through the directory of the launch, or through
the library's own daemons.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wiretwin.place import HostPlace, Place, host_of
from wiretwin.stacks.base import Command, Session

__all__ = ["ApartSession"]


class ApartSession(Session):
    """Ranks started by a command each.

    Parameters
    ----------
    env
        Variables for a rank, given the host that it lives on.
    """

    together = False

    def __init__(
        self,
        place: Place,
        *,
        shim: Path,
        options: Mapping[str, Any],
        report: Mapping[str, Any] | None = None,
        env: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        super().__init__(place, shim=shim, options=options, report=report)
        self._env = dict(env or {})

    def commands(self, probe: Sequence[str], specs: Sequence[Path], ranks: int) -> list[Command]:
        """Return the command of each rank on its host."""
        return [
            Command(self._on(host_of(self.place, rank), [*probe, str(specs[rank])])) for rank in range(ranks)
        ]

    def _on(self, host: HostPlace, argv: Sequence[str]) -> list[str]:
        return host.command(argv, env=self._env.get(host.name))
