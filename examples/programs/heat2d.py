"""Heat in a square plate: an explicit 2-D stencil on a Cartesian grid of ranks, with halo exchange.

Each rank owns a block of the plate, with one layer of its neighbours' points around it. Every step
it swaps its edges with the four neighbours (columns through a vector datatype), then applies the
five-point stencil. The edges of the plate are held at zero, so the first sine mode decays by a known
factor per step: the program checks its result against that.
"""

import argparse
import sys

import numpy as np
from mpi4py import MPI


def share(total, parts, index):
    """Return first point and number of points of one of `parts` nearly equal blocks."""
    base, rest = divmod(total, parts)
    return index * base + min(index, rest), base + (index < rest)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=768, help="points along a side, inside the edges")
    parser.add_argument("--steps", type=int, default=300, help="time steps")
    args = parser.parse_args()

    world = MPI.COMM_WORLD
    dims = MPI.Compute_dims(world.size, 2)
    cart = world.Create_cart(dims, periods=[False, False])
    up, down = cart.Shift(0, 1)
    left, right = cart.Shift(1, 1)
    row, column = cart.Get_coords(cart.rank)
    first_row, rows = share(args.points, dims[0], row)
    first_column, columns = share(args.points, dims[1], column)

    h = 1.0 / (args.points + 1)
    y = np.sin(np.pi * h * np.arange(first_row, first_row + rows + 2))
    x = np.sin(np.pi * h * np.arange(first_column, first_column + columns + 2))
    old = np.outer(y, x)
    # The edges of the plate are exactly zero.
    if up == MPI.PROC_NULL:
        old[0, :] = 0.0
    if down == MPI.PROC_NULL:
        old[-1, :] = 0.0
    if left == MPI.PROC_NULL:
        old[:, 0] = 0.0
    if right == MPI.PROC_NULL:
        old[:, -1] = 0.0
    new = old.copy()

    edge = MPI.DOUBLE.Create_vector(rows, 1, columns + 2).Commit()
    width = columns + 2
    ratio = 0.2

    for _ in range(args.steps):
        flat = old.reshape(-1)
        requests = [
            cart.Irecv([flat[1:], columns, MPI.DOUBLE], source=up, tag=1),
            cart.Irecv([flat[(rows + 1) * width + 1 :], columns, MPI.DOUBLE], source=down, tag=2),
            cart.Irecv([flat[width:], 1, edge], source=left, tag=3),
            cart.Irecv([flat[width + columns + 1 :], 1, edge], source=right, tag=4),
            cart.Isend([flat[rows * width + 1 :], columns, MPI.DOUBLE], dest=down, tag=1),
            cart.Isend([flat[width + 1 :], columns, MPI.DOUBLE], dest=up, tag=2),
            cart.Isend([flat[width + columns :], 1, edge], dest=right, tag=3),
            cart.Isend([flat[width + 1 :], 1, edge], dest=left, tag=4),
        ]
        MPI.Request.Waitall(requests)
        inner = old[1:-1, 1:-1]
        around = old[:-2, 1:-1] + old[2:, 1:-1]
        around += old[1:-1, :-2]
        around += old[1:-1, 2:]
        around -= 4.0 * inner
        around *= ratio
        np.add(inner, around, out=new[1:-1, 1:-1])
        old, new = new, old
    edge.Free()

    mine = np.array([old[1:-1, 1:-1].sum(), np.abs(old[1:-1, 1:-1]).max()])
    heat = cart.reduce(mine[0], op=MPI.SUM, root=0)
    peak = np.empty(1)
    cart.Reduce(mine[1:], peak, op=MPI.MAX, root=0)
    if cart.rank != 0:
        return 0
    # Per step the mode is multiplied by 1 - 8 ratio sin^2(pi h / 2).
    decay = (1.0 - 8.0 * ratio * np.sin(np.pi * h / 2.0) ** 2) ** args.steps
    sines = np.sin(np.pi * h * np.arange(1, args.points + 1))
    expected = decay * sines.sum() ** 2
    error = abs(heat - expected) / expected
    good = error < 1e-9 and abs(peak[0] - decay * sines.max() ** 2) < 1e-9
    print(
        f"heat2d: {args.points} x {args.points} points on {dims[0]} x {dims[1]} ranks, {args.steps} steps: "
        f"peak {peak[0]:.9f}, {'ok' if good else f'WRONG by {error:.2e}'}"
    )
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
