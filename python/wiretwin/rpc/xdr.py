"""XDR (RFC 4506) for stubs: values into octets and back, every bound looked at.

A value that does not fit is an `XdrError` that names the type, the value and what is allowed, whichever
way it goes. Octets that are left over, pads that are not zero and lengths over their bound are errors
too.
"""

from __future__ import annotations

import enum
import struct
from collections.abc import Callable, Sequence
from typing import Any

__all__ = ["MOST", "Packer", "Unpacker", "XdrError"]

MOST = 2**32 - 1
"""The greatest length of what is declared without a bound."""


class XdrError(ValueError):
    """A value that its type does not have, or octets that are none of its."""


def _range(kind: str, value: int, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise XdrError(f"{kind}: {value!r}; allowed: an integer from {least} to {most}")
    return value


def _length(kind: str, found: int, most: int, fixed: bool = False) -> None:
    if found != most if fixed else found > most:
        raise XdrError(f"{kind}: a length of {found}; allowed: {'' if fixed else 'at most '}{most}")


class Packer:
    """Values go in one after the other; `octets` is what they are."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    @property
    def octets(self) -> bytes:
        """What was packed so far."""
        return b"".join(self._parts)

    def int32(self, value: int) -> None:
        """Pack a signed integer of 32 bits."""
        self._parts.append(struct.pack(">i", _range("int", value, -(2**31), 2**31 - 1)))

    def uint32(self, value: int) -> None:
        """Pack an unsigned integer of 32 bits."""
        self._parts.append(struct.pack(">I", _range("unsigned int", value, 0, MOST)))

    def int64(self, value: int) -> None:
        """Pack a signed integer of 64 bits."""
        self._parts.append(struct.pack(">q", _range("hyper", value, -(2**63), 2**63 - 1)))

    def uint64(self, value: int) -> None:
        """Pack an unsigned integer of 64 bits."""
        self._parts.append(struct.pack(">Q", _range("unsigned hyper", value, 0, 2**64 - 1)))

    def small(self, value: int, kind: str, least: int, most: int) -> None:
        """Pack a char or a short, which takes 32 bits."""
        self._parts.append(struct.pack(">i" if least else ">I", _range(kind, value, least, most)))

    def float32(self, value: float) -> None:
        """Pack a floating-point number of 32 bits."""
        try:
            self._parts.append(struct.pack(">f", value))
        except (OverflowError, struct.error):
            raise XdrError(f"float: {value!r}; allowed: what 32 bits hold") from None

    def float64(self, value: float) -> None:
        """Pack a floating-point number of 64 bits."""
        self._parts.append(struct.pack(">d", value))

    def boolean(self, value: bool) -> None:
        """Pack true or false."""
        self._parts.append(struct.pack(">I", bool(value)))

    def member(self, value: int, kind: type[enum.IntEnum]) -> None:
        """Pack a member of an enumeration."""
        self.int32(_member(kind, value))

    def fixed(self, value: bytes, length: int, kind: str = "opaque") -> None:
        """Pack as many octets as are declared."""
        _length(kind, len(value), length, fixed=True)
        self._parts.append(bytes(value) + bytes(-len(value) % 4))

    def opaque(self, value: bytes, most: int = MOST, kind: str = "opaque") -> None:
        """Pack octets behind their count."""
        _length(kind, len(value), most)
        self.uint32(len(value))
        self._parts.append(bytes(value) + bytes(-len(value) % 4))

    def string(self, value: str, most: int = MOST) -> None:
        """Pack text: UTF-8, octets that are none being kept as surrogates."""
        if not isinstance(value, str):
            raise XdrError(f"string: {value!r}; allowed: a text")
        self.opaque(value.encode("utf-8", "surrogateescape"), most, "string")

    def vector(self, values: Sequence[Any], length: int, pack: Callable[[Packer, Any], None]) -> None:
        """Pack as many elements as are declared."""
        _length("an array", len(values), length, fixed=True)
        for value in values:
            pack(self, value)

    def array(self, values: Sequence[Any], most: int, pack: Callable[[Packer, Any], None]) -> None:
        """Pack elements behind their count."""
        _length("an array", len(values), most)
        self.uint32(len(values))
        for value in values:
            pack(self, value)

    def optional(self, value: Any, pack: Callable[[Packer, Any], None]) -> None:
        """Pack something, or nothing: ``None``."""
        self.boolean(value is not None)
        if value is not None:
            pack(self, value)


def _member(kind: type[enum.IntEnum], value: int) -> int:
    try:
        return kind(value)
    except ValueError:
        allowed = ", ".join(f"{one.name} ({one.value})" for one in kind)
        raise XdrError(f"{kind.__name__}: {value!r}; allowed: {allowed}") from None


class Unpacker:
    """Values come out one after the other."""

    def __init__(self, octets: bytes) -> None:
        self._octets = octets
        self._at = 0

    def done(self) -> None:
        """Reject octets that are left.

        Raises
        ------
        XdrError
            There are some.
        """
        left = len(self._octets) - self._at
        if left:
            raise XdrError(f"{left} octets are left after the last value")

    def _take(self, count: int, kind: str) -> bytes:
        found = self._octets[self._at : self._at + count]
        if len(found) < count:
            raise XdrError(f"{kind}: {count} octets at {self._at}; there are {len(found)}")
        self._at += count
        return found

    def _number(self, form: str, octets: int, kind: str) -> Any:
        return struct.unpack(form, self._take(octets, kind))[0]

    def int32(self) -> int:
        """Unpack a signed integer of 32 bits."""
        return int(self._number(">i", 4, "int"))

    def uint32(self) -> int:
        """Unpack an unsigned integer of 32 bits."""
        return int(self._number(">I", 4, "unsigned int"))

    def int64(self) -> int:
        """Unpack a signed integer of 64 bits."""
        return int(self._number(">q", 8, "hyper"))

    def uint64(self) -> int:
        """Unpack an unsigned integer of 64 bits."""
        return int(self._number(">Q", 8, "unsigned hyper"))

    def small(self, kind: str, least: int, most: int) -> int:
        """Unpack a char or a short, which takes 32 bits."""
        return _range(kind, self.int32() if least else self.uint32(), least, most)

    def float32(self) -> float:
        """Unpack a floating-point number of 32 bits."""
        return float(self._number(">f", 4, "float"))

    def float64(self) -> float:
        """Unpack a floating-point number of 64 bits."""
        return float(self._number(">d", 8, "double"))

    def boolean(self) -> bool:
        """Unpack true or false."""
        return bool(_range("bool", self.uint32(), 0, 1))

    def member(self, kind: type[enum.IntEnum]) -> Any:
        """Unpack a member of an enumeration."""
        return kind(_member(kind, self.int32()))

    def fixed(self, length: int, kind: str = "opaque") -> bytes:
        """Unpack as many octets as are declared."""
        found = self._take(length, kind)
        if any(self._take(-length % 4, f"the pad of {kind}")):
            raise XdrError(f"{kind}: a pad that is not zero before octet {self._at}")
        return found

    def opaque(self, most: int = MOST, kind: str = "opaque") -> bytes:
        """Unpack octets behind their count."""
        length = self.uint32()
        _length(kind, length, most)
        return self.fixed(length, kind)

    def string(self, most: int = MOST) -> str:
        """Unpack text."""
        return self.opaque(most, "string").decode("utf-8", "surrogateescape")

    def vector(self, length: int, unpack: Callable[[Unpacker], Any]) -> list[Any]:
        """Unpack as many elements as are declared."""
        return [unpack(self) for _ in range(length)]

    def array(self, most: int, unpack: Callable[[Unpacker], Any]) -> list[Any]:
        """Unpack elements behind their count."""
        length = self.uint32()
        _length("an array", length, most)
        # An element may take no octets only if it is an empty one: what is announced is not believed.
        found: list[Any] = []
        for _ in range(length):
            before = self._at
            found.append(unpack(self))
            if self._at == before and length > len(self._octets):
                raise XdrError(f"an array: {length} elements of no octets")
        return found

    def optional(self, unpack: Callable[[Unpacker], Any]) -> Any:
        """Unpack something, or nothing: ``None``."""
        return unpack(self) if self.boolean() else None
