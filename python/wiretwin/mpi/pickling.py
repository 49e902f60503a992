"""`mpi4py.MPI.Pickle`: how objects become messages. Its time is the program's own computation."""

from __future__ import annotations

import pickle as _pickle
from collections.abc import Callable
from typing import Any

from .names import refusing


@refusing
class Pickle:
    """Serialiser of objects."""

    def __init__(
        self,
        dumps: Callable[..., bytes] | None = None,
        loads: Callable[..., Any] | None = None,
        protocol: int | None = None,
    ) -> None:
        self._dumps = dumps or _pickle.dumps
        self._loads = loads or _pickle.loads
        self.PROTOCOL = _pickle.HIGHEST_PROTOCOL if protocol is None and dumps is None else protocol

    def dumps(self, obj: Any) -> bytes:
        """Serialise an object."""
        return self._dumps(obj) if self.PROTOCOL is None else self._dumps(obj, self.PROTOCOL)

    def loads(self, data: Any) -> Any:
        """Restore an object."""
        return self._loads(data)

    def load(self, data: bytes) -> Any:
        """Restore an object; an empty message is None."""
        return self._loads(data) if data else None


pickle = Pickle()
"""The serialiser of all lower-case calls."""
