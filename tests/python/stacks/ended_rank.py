"""Three ranks of which the last is to be killed from outside; the others say what became of their waits.

Run under an MPI launcher with a folder to write into as its argument.
"""

import os
import sys
import time
from pathlib import Path

folder = Path(sys.argv[1])
import numpy as np  # noqa: E402
from mpi4py import MPI  # noqa: E402

world = MPI.COMM_WORLD
rank = world.Get_rank()
# What a library says before it ends its process goes into a file: a launcher that is stopped reads nothing.
words = os.open(folder / f"words.{rank}", os.O_CREAT | os.O_WRONLY, 0o600)
os.dup2(words, 1)
os.dup2(words, 2)
buffer = np.zeros(1_000_000, np.uint8)
world.Barrier()
# The last has met each of the others.
if rank == 2:
    for other in (0, 1):
        world.Send(buffer[:8], other)
        world.Recv(buffer[:8], source=other)
else:
    world.Recv(buffer[:8], source=2)
    world.Send(buffer[:8], 2)
partial = folder / f"partial.{rank}"
partial.write_text(str(os.getpid()))
partial.rename(folder / f"ready.{rank}")
while rank == 2 or not (folder / "go").exists():
    time.sleep(0.01)
try:
    if rank == 0:
        world.Recv(buffer[:8], source=2)
    else:
        world.Send(buffer, 2)
except MPI.Exception as error:
    os.write(words, str(error).encode())
os._exit(1)
