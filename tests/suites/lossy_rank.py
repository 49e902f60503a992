"""Two ranks that send each other messages of many lengths, as many bytes as told, and compare digests.

Run under an MPI launcher; the arguments are the bytes that each sends, and the seed of what they are. Rank 0
prints one line of JSON.
"""

import hashlib
import json
import sys
import time

import numpy as np
from mpi4py import MPI

TOGETHER = 32
"""Messages of each rank that are under way at once."""
LENGTHS = (64, 1500, 9000, 100_000)
"""A message is shorter than one of these, each taken equally often."""
CHUNK = 1 << 20

world = MPI.COMM_WORLD
rank, other = world.Get_rank(), 1 - world.Get_rank()
wanted, seed = int(float(sys.argv[1])), int(sys.argv[2])
dice = np.random.default_rng((seed, rank))
block = dice.integers(0, 256, 2 * CHUNK, np.uint8)
places = np.empty((TOGETHER, max(LENGTHS)), np.uint8)
digests = {"sent": hashlib.blake2b(), "received": hashlib.blake2b()}
count = done = 0
begin = time.monotonic()
status = MPI.Status()
while done < wanted:
    receives = [world.Irecv(place, other, MPI.ANY_TAG) for place in places]
    sends = []
    for number in range(TOGETHER):
        length = int(dice.integers(0, LENGTHS[dice.integers(len(LENGTHS))]))
        start = int(dice.integers(CHUNK))
        message = block[start : start + length]
        tag = (count + number) % 4
        sends.append(world.Isend(message, other, tag))
        digests["sent"].update(bytes([tag]) + message.tobytes())
        done += length
    for place, receive in zip(places, receives, strict=True):
        receive.Wait(status)
        digests["received"].update(bytes([status.tag]) + place[: status.Get_count()].tobytes())
    MPI.Request.Waitall(sends)
    count += TOGETHER
    # Both go on until both have sent what was wanted.
    done = int(world.allreduce(done, MPI.MIN))
took_s = time.monotonic() - begin
found = world.gather({name: digest.hexdigest() for name, digest in digests.items()})
if found is not None:
    equal = [found[at]["sent"] == found[1 - at]["received"] for at in (0, 1)]
    print(json.dumps({"bytes": done, "messages": count, "took_s": round(took_s, 1), "equal": equal}))
