"""Cases that pass over the library's own path and not over an arm, with the cause.

One that passes fails, so that the list cannot outlive its reasons.
"""

from __future__ import annotations

from collections.abc import Mapping

SLOW = "takes longer than the limit: thousands of looks at what has ended, each a turn of the simulator"
EXCEPTIONS: Mapping[str, str] = {
    "simulated mpich mpi4py test_dynproc 2": "not known: in MPI_Comm_join both ranks wait for a message",
    "simulated mpich mpi4py test_spawn 2": "each of many spawns makes the run anew",
    "simulated mpich mpi4py test_util_sync 2": SLOW,
}
