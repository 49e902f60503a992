"""What a file in the RPC language says, as a tree; every part knows where it stands."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "Constant",
    "Declaration",
    "Definition",
    "Enum",
    "Named",
    "Place",
    "Primitive",
    "Procedure",
    "Program",
    "Specification",
    "Struct",
    "Type",
    "Typedef",
    "Union",
    "UnionArm",
    "Value",
    "Version",
]


@dataclass(frozen=True)
class Place:
    """A line and a column, both from 1."""

    line: int
    column: int


@dataclass(frozen=True)
class Value:
    """A number as it is written: itself, or the name of a constant."""

    text: str
    place: Place


@dataclass(frozen=True)
class Primitive:
    """A type of XDR's own: ``int``, ``unsigned int``, ``hyper``, … ``string`` and ``opaque`` too."""

    name: str
    place: Place


@dataclass(frozen=True)
class Named:
    """A type by its name."""

    name: str
    place: Place


@dataclass(frozen=True)
class Declaration:
    """A type with a name, and how often.

    Attributes
    ----------
    shape
        ``one``, ``fixed`` (``[n]``), ``counted`` (``<n>``), ``optional`` (``*``) or ``void``.
    bound
        Of ``fixed``: how many; of ``counted``: at most how many, none being 2^32 - 1.
    """

    type: Type
    name: str
    shape: str
    bound: Value | None
    place: Place


@dataclass(frozen=True)
class Enum:
    """An enumeration: names and values."""

    name: str
    members: tuple[tuple[str, Value], ...]
    place: Place


@dataclass(frozen=True)
class Struct:
    """A structure: its members in order."""

    name: str
    members: tuple[Declaration, ...]
    place: Place


@dataclass(frozen=True)
class UnionArm:
    """What a union holds for some values of its discriminant; no values for the default arm."""

    values: tuple[Value, ...]
    declaration: Declaration


@dataclass(frozen=True)
class Union:
    """A discriminated union."""

    name: str
    discriminant: Declaration
    arms: tuple[UnionArm, ...]
    place: Place


Type = Primitive | Named | Enum | Struct | Union


@dataclass(frozen=True)
class Typedef:
    """Another name for a type."""

    declaration: Declaration

    @property
    def name(self) -> str:
        """The name that it gives."""
        return self.declaration.name

    @property
    def place(self) -> Place:
        """The place of the declaration in its file."""
        return self.declaration.place


@dataclass(frozen=True)
class Constant:
    """A named number, or text."""

    name: str
    value: Value
    place: Place


@dataclass(frozen=True)
class Procedure:
    """A procedure: what it takes and what it gives; none is ``void``."""

    name: str
    number: Value
    arguments: tuple[Type, ...]
    result: Type | None
    place: Place


@dataclass(frozen=True)
class Version:
    """A version of a program."""

    name: str
    number: Value
    procedures: tuple[Procedure, ...]
    place: Place


@dataclass(frozen=True)
class Program:
    """A program."""

    name: str
    number: Value
    versions: tuple[Version, ...]
    place: Place


Definition = Constant | Typedef | Enum | Struct | Union | Program


@dataclass(frozen=True)
class Specification:
    """A whole file: its definitions in order."""

    name: str
    definitions: tuple[Definition, ...]
