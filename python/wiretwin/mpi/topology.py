"""Cartesian communicators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .comm import COMM_NULL, Intracomm
from .constants import INTEGERS, PROC_NULL
from .failure import fail
from .names import refusing
from .rank import here


@refusing
class Topocomm(Intracomm):
    """`mpi4py.MPI.Topocomm`."""


class Cartcomm(Topocomm):
    """`mpi4py.MPI.Cartcomm`: ranks are points of a grid, in row-major order."""

    _dims: tuple[int, ...] = ()
    _periods: tuple[bool, ...] = ()

    def __init__(self, comm: Any = None) -> None:
        super().__init__(comm)
        if isinstance(comm, Cartcomm):
            self._dims, self._periods = comm._dims, comm._periods

    def _copy_topology(self, made: Any) -> None:
        made._dims, made._periods = self._dims, self._periods

    def Get_topology(self) -> int:
        """Return CART."""
        self._valid()
        return INTEGERS["CART"]

    def Get_dim(self) -> int:
        """Return the number of dimensions."""
        self._valid()
        return len(self._dims)

    dim = ndim = property(Get_dim)

    def Get_topo(self) -> tuple[list[int], list[int], list[int]]:
        """Return dimensions, periods and the coordinates of the caller."""
        return list(self._dims), [int(period) for period in self._periods], self.Get_coords(self.rank)

    topo = property(Get_topo)
    dims = property(lambda self: list(self._dims))
    periods = property(lambda self: [int(period) for period in self._periods])
    coords = property(lambda self: self.Get_coords(self.rank))

    def Get_coords(self, rank: int) -> list[int]:
        """Return the coordinates of a rank."""
        self._valid()
        if not 0 <= rank < len(self._ranks):
            fail("ERR_RANK", f"rank has value {rank}, must be from 0 to {len(self._ranks) - 1}")
        coords = []
        for dim in reversed(self._dims):
            rank, at = divmod(rank, dim)
            coords.append(at)
        return coords[::-1]

    def Get_cart_rank(self, coords: Sequence[int]) -> int:
        """Return the rank at coordinates; periodic ones may lie outside."""
        self._valid()
        if len(coords) != len(self._dims):
            raise ValueError(f"expecting {len(self._dims)} items, got {len(coords)}")
        rank = 0
        for axis, (at, dim, period) in enumerate(zip(coords, self._dims, self._periods, strict=True)):
            if period:
                at %= dim
            elif not 0 <= at < dim:
                fail("ERR_ARG", f"coordinate {axis} is {at}, must be from 0 to {dim - 1}")
            rank = rank * dim + at
        return rank

    def Shift(self, direction: int, disp: int) -> tuple[int, int]:
        """Return source and destination of a shift along a dimension, PROC_NULL beyond the edge."""
        self._valid()
        if not 0 <= direction < len(self._dims):
            fail("ERR_ARG", f"direction is {direction}, must be from 0 to {len(self._dims) - 1}")
        coords = self.Get_coords(self.rank)

        def neighbour(step: int) -> int:
            at = coords[direction] + step
            if not self._periods[direction] and not 0 <= at < self._dims[direction]:
                return PROC_NULL
            return self.Get_cart_rank([*coords[:direction], at, *coords[direction + 1 :]])

        return neighbour(-disp), neighbour(disp)

    def Sub(self, remain_dims: Sequence[bool]) -> Any:
        """Return the grid of the dimensions that remain, around the caller."""
        self._valid()
        if len(remain_dims) != len(self._dims):
            raise ValueError(f"expecting {len(self._dims)} items, got {len(remain_dims)}")
        coords = self.Get_coords(self.rank)
        color = key = 0
        for at, dim, remain in zip(coords, self._dims, remain_dims, strict=True):
            if remain:
                key = key * dim + at
            else:
                color = color * dim + at
        part = self.Split(color, key)
        made = Cartcomm._make(part._context, part._ranks)
        made._dims = tuple(dim for dim, remain in zip(self._dims, remain_dims, strict=True) if remain)
        made._periods = tuple(
            period for period, remain in zip(self._periods, remain_dims, strict=True) if remain
        )
        return made


def create_cart(comm: Intracomm, dims: Sequence[int], periods: Sequence[bool] | bool | None) -> Any:
    """Return a Cartesian communicator of the first ranks of `comm`; the rest get COMM_NULL."""
    comm._valid()
    shape = tuple(int(dim) for dim in ([dims] if isinstance(dims, int) else dims))
    if periods is None:
        wrap: tuple[bool, ...] = (False,) * len(shape)
    elif isinstance(periods, (bool, int)):
        wrap = (bool(periods),) * len(shape)
    else:
        wrap = tuple(bool(period) for period in periods)
    if len(wrap) != len(shape):
        raise ValueError(f"expecting {len(shape)} items, got {len(wrap)}")
    total = 1
    for axis, dim in enumerate(shape):
        if dim < 1:
            fail("ERR_DIMS", f"dimension {axis} is {dim}, must be at least 1")
        total *= dim
    if total > len(comm._ranks):
        fail("ERR_ARG", f"a grid of {total} points is larger than the communicator of {len(comm._ranks)}")
    _, sequence = comm._agree("Create_cart", (shape, wrap))
    members = comm._ranks[:total]
    if here().index not in members:
        return COMM_NULL
    made = Cartcomm._make(comm._new_context(sequence, 0), members)
    made._dims, made._periods = shape, wrap
    return made


def compute_dims(nnodes: int, dims: int | Sequence[int]) -> list[int]:
    """Return a balanced grid of `nnodes` points; given dimensions other than 0 are kept."""
    shape = [0] * dims if isinstance(dims, int) else [int(dim) for dim in dims]
    rest = nnodes
    for axis, dim in enumerate(shape):
        if dim < 0:
            fail("ERR_DIMS", f"dimension {axis} is {dim}, must be at least 0")
        if dim:
            if rest % dim:
                fail("ERR_DIMS", f"{nnodes} ranks cannot be divided by the dimensions given")
            rest //= dim
    free = [axis for axis, dim in enumerate(shape) if dim == 0]
    if not free:
        if rest != 1:
            fail("ERR_DIMS", f"the dimensions given do not make {nnodes}")
        return shape
    for axis, factor in zip(free, _balanced(rest, len(free)), strict=True):
        shape[axis] = factor
    return shape


def _balanced(total: int, parts: int) -> list[int]:
    """Return `parts` factors of `total`, descending, the largest as small as can be."""
    if parts == 1:
        return [total]
    best: list[int] | None = None
    first = 1
    while first**parts < total:
        first += 1
    while best is None:
        if total % first == 0:
            rest = _balanced(total // first, parts - 1)
            if rest[0] <= first:
                best = [first, *rest]
        first += 1
    return best
