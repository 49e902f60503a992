"""Cases that pass over the library's own path and not over an arm, with the cause.

One that passes fails, so that the list cannot outlive its reasons.
"""

from __future__ import annotations

from collections.abc import Mapping

EXCEPTIONS: Mapping[str, str] = {
    "simulated mpich mpich errhan/sessioncall 1": "a session that makes no communicator begins no network",
}
