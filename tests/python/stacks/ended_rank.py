"""Three ranks of which one is to be killed from outside; the others say what became of their waits.

Run under an MPI launcher with a folder to write into and the number of that rank as its arguments.
"""

import os
import sys
import time
from pathlib import Path

folder, victim = Path(sys.argv[1]), int(sys.argv[2])
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
others = [other for other in range(3) if other != victim]
# It has met each of the others.
if rank == victim:
    for other in others:
        world.Send(buffer[:8], other)
        world.Recv(buffer[:8], source=other)
else:
    world.Recv(buffer[:8], source=victim)
    world.Send(buffer[:8], victim)
partial = folder / f"partial.{rank}"
partial.write_text(str(os.getpid()))
partial.rename(folder / f"ready.{rank}")
while rank == victim or not (folder / "go").exists():
    time.sleep(0.01)
try:
    if rank == others[0]:
        world.Recv(buffer[:8], source=victim)
    else:
        world.Send(buffer, victim)
except MPI.Exception as error:
    os.write(words, str(error).encode())
os._exit(1)
