"""One rank of a script under the MPI library itself, whose network is simulated.

`mpiexec -n N python -P -m wiretwin.mpi.launched SCRIPT ARGS`, with the shim `sim.c` loaded before all else.

As in a real run (`wiretwin.mpi.live`), what the script will import from outside its folder is imported first,
and MPI is initialized after that: modules load outside the program's time. The script runs
as with ``python SCRIPT ARGS``; its own Init does nothing, and its Finalize is the library's.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import sys
import traceback
from pathlib import Path

from .failure import no_input
from .preimport import preimport, scan
from .script import as_main, defer_init


def main(argv: list[str]) -> int:
    """Run a script as one rank; returns the status that the process ends with."""
    import mpi4py

    script = Path(argv[0]).absolute()
    code = compile(script.read_bytes(), str(script), "exec", dont_inherit=True)
    preimport(scan(script)[0])
    mpi4py.rc(initialize=False, finalize=False)
    from mpi4py import MPI

    mpi4py.rc(initialize=True, finalize=True)
    names = as_main(script, argv[1:])
    before_program = ctypes.CDLL(
        None
    ).wiretwin_sim_before_program  # of the shim that is loaded before all else
    before_program(1)
    MPI.Init_thread()
    defer_init(MPI)
    # After what the script itself registers to run at exit, and before the interpreter unloads modules.
    atexit.register(_finalize)
    gc.collect()
    MPI.COMM_WORLD.Barrier()
    before_program(0)
    try:
        exec(code, names)
    except Exception as error:
        trace = error.__traceback__.tb_next if error.__traceback__ is not None else None
        traceback.print_exception(type(error), error, trace)
        if hint := no_input(error):
            print(hint, file=sys.stderr)
        return 1
    return 0


def _finalize() -> None:
    from mpi4py import MPI

    if not MPI.Is_finalized():
        MPI.Finalize()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
