"""`mpi4py.MPI.Group`: an ordered set of ranks of the world."""

from __future__ import annotations

import operator
from collections.abc import Sequence

from .constants import INTEGERS, PROC_NULL, UNDEFINED
from .failure import fail
from .names import refusing
from .numbers import c_int
from .rank import here


@refusing
class Group:
    """An ordered set of processes."""

    __slots__ = ("_members", "_null")

    _members: tuple[int, ...]
    _null: bool

    def __init__(self, group: Group | None = None) -> None:
        self._members = group._members if group is not None else ()
        self._null = group._null if group is not None else True

    @classmethod
    def _of(cls, members: Sequence[int]) -> Group:
        made = cls()
        made._members, made._null = tuple(members), False
        return made

    def __bool__(self) -> bool:
        return not self._null

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Group):
            return NotImplemented
        return (self._members, self._null) == (other._members, other._null)

    def __hash__(self) -> int:
        return hash(self._members)

    def Get_size(self) -> int:
        """Return the number of processes."""
        return len(self._members)

    def Get_rank(self) -> int:
        """Return the place of the caller, or UNDEFINED."""
        me = here().index
        return self._members.index(me) if me in self._members else UNDEFINED

    size = property(Get_size)
    rank = property(Get_rank)

    def _check(self, ranks: Sequence[int]) -> list[int]:
        for rank in ranks:
            if not 0 <= rank < len(self._members):
                fail("ERR_RANK", f"rank {rank} is not in the group of {len(self._members)}")
        return [int(rank) for rank in ranks]

    def Incl(self, ranks: Sequence[int]) -> Group:
        """Return the group of these ranks, in this order."""
        return Group._of([self._members[rank] for rank in self._check(list(map(operator.index, ranks)))])

    def Excl(self, ranks: Sequence[int]) -> Group:
        """Return the group without these ranks."""
        out = set(self._check(list(map(operator.index, ranks))))
        return Group._of([member for i, member in enumerate(self._members) if i not in out])

    def _ranges(self, ranks: Sequence[tuple[int, int, int]]) -> list[int]:
        found: list[int] = []
        for one in ranks:
            first, last, stride = map(c_int, one)
            if stride == 0:
                fail("ERR_ARG", "the stride of a range is 0")
            found += range(first, last + (1 if stride > 0 else -1), stride)
        return found

    def Range_incl(self, ranks: Sequence[tuple[int, int, int]]) -> Group:
        """Return the group of ranges (first, last, stride)."""
        return self.Incl(self._ranges(ranks))

    def Range_excl(self, ranks: Sequence[tuple[int, int, int]]) -> Group:
        """Return the group without ranges (first, last, stride)."""
        return self.Excl(self._ranges(ranks))

    @classmethod
    def Union(cls, group1: Group, group2: Group) -> Group:
        """Return the members of both, those of the first in front."""
        extra = [member for member in group2._members if member not in group1._members]
        return Group._of([*group1._members, *extra])

    @classmethod
    def Intersection(cls, group1: Group, group2: Group) -> Group:
        """Return the members of the first that are in the second."""
        return Group._of([member for member in group1._members if member in group2._members])

    Intersect = Intersection

    @classmethod
    def Difference(cls, group1: Group, group2: Group) -> Group:
        """Return the members of the first that are not in the second."""
        return Group._of([member for member in group1._members if member not in group2._members])

    def Translate_ranks(self, ranks: Sequence[int] | None = None, group: Group | None = None) -> list[int]:
        """Return the ranks in `group` of these ranks here."""
        target = group._members if group is not None else GROUP_WORLD()._members
        wanted = range(len(self._members)) if ranks is None else ranks
        found = []
        for rank in wanted:
            if rank == PROC_NULL:
                found.append(PROC_NULL)
                continue
            member = self._members[self._check([rank])[0]]
            found.append(target.index(member) if member in target else UNDEFINED)
        return found

    def Compare(self, group: Group) -> int:
        """Return IDENT, SIMILAR or UNEQUAL."""
        if self._members == group._members:
            return INTEGERS["IDENT"]
        same = sorted(self._members) == sorted(group._members)
        return INTEGERS["SIMILAR" if same else "UNEQUAL"]

    def Dup(self) -> Group:
        """Return a copy."""
        return Group(self)

    def Free(self) -> None:
        """Free the group: it becomes GROUP_NULL."""
        if self._null:
            fail("ERR_GROUP", "null group")
        self._members, self._null = (), True

    def free(self) -> None:
        """Free the group, as `Free`, unless it is null."""
        if not self._null:
            self.Free()


def GROUP_WORLD() -> Group:
    """Return the group of all ranks."""
    return Group._of(range(here().runtime.size))


GROUP_NULL = Group()
GROUP_EMPTY = Group._of(())
