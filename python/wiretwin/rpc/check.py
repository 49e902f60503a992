"""What a file in the RPC language means: names are found, numbers known, and what cannot be is rejected."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from wiretwin.rpc.lexer import LanguageError
from wiretwin.rpc.tree import (
    Constant,
    Declaration,
    Definition,
    Enum,
    Named,
    Place,
    Primitive,
    Procedure,
    Program,
    Specification,
    Struct,
    Type,
    Typedef,
    Union,
    Value,
)

__all__ = ["Meaning", "check", "number"]

LONGEST = 2**32 - 1
_GIVEN = {
    name: Primitive(kind, Place(0, 0))
    for kind, names in {
        "unsigned char": ("u_char",),
        "unsigned short": ("u_short",),
        "int": ("int32_t",),
        "unsigned int": ("u_int", "u_long", "uint32_t", "u_int32_t"),
        "hyper": ("int64_t", "quad_t", "longlong_t"),
        "unsigned hyper": ("uint64_t", "u_int64_t", "u_quad_t", "u_longlong_t"),
        "bool": ("bool_t",),
    }.items()
    for name in names
}
"""Names of C's and Sun's headers, which ``rpcgen`` passes on to the compiler."""

_NETOBJ = Declaration(
    Primitive("opaque", Place(0, 0)), "netobj", "counted", Value("1024", Place(0, 0)), Place(0, 0)
)
_KNOWN = {"TRUE": 1, "FALSE": 0, "MAXNETNAMELEN": 255, "MAX_NETOBJ_SZ": 1024}
"""Constants of these headers."""


@dataclass
class Meaning:
    """A file that may be.

    Attributes
    ----------
    types
        By name, in the order in which they are defined; types within types have names of their own.
    numbers
        Constants and members of enumerations, by name.
    texts
        Constants that are texts.
    programs
        In their order.
    """

    types: dict[str, Typedef | Enum | Struct | Union] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    programs: list[Program] = field(default_factory=list)
    owners: dict[str, str] = field(default_factory=dict)
    """Of members of enumerations: whose."""

    def value(self, value: Value) -> int:
        """Return the number that is meant.

        Raises
        ------
        LanguageError
            There is no such constant.
        """
        text, _, more = value.text.partition("+") if value.text[:1] not in "-+" else (value.text, "", "")
        if value.text.startswith("-1+"):
            text, more = "-1", value.text[3:]
        if text in self.numbers:
            found = self.numbers[text]
        elif text in _KNOWN:
            found = _KNOWN[text]
        elif text.lstrip("-")[:1].isdigit():
            found = number(text)
        else:
            raise LanguageError(value.place, f"there is no constant {text!r}")
        return found + sum(int(part) for part in more.split("+") if part)

    def resolved(self, kind: Type) -> Primitive | Enum | Struct | Union | Declaration:
        """Return what a type is behind its names: a declaration where it is an array or the like."""
        seen: set[str] = set()
        while isinstance(kind, Named):
            if kind.name in _GIVEN and kind.name not in self.types:
                return _GIVEN[kind.name]
            if kind.name == "netobj" and kind.name not in self.types:
                return _NETOBJ
            found = self.types.get(kind.name)
            if found is None:
                raise LanguageError(kind.place, f"there is no type {kind.name!r}")
            if not isinstance(found, Typedef):
                return found
            if kind.name in seen:
                raise LanguageError(kind.place, f"type {kind.name!r} is itself")
            seen.add(kind.name)
            if found.declaration.shape != "one":
                return found.declaration
            kind = found.declaration.type
        return kind


def number(text: str) -> int:
    """Return a number as it is written: decimal, hexadecimal behind 0x, octal behind 0."""
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text)
    if digits[:2] in ("0x", "0X"):
        return sign * int(digits, 16)
    return sign * int(digits, 8 if digits.startswith("0") and len(digits) > 1 else 10)


def check(specification: Specification) -> Meaning:
    """Find every name and number.

    Raises
    ------
    LanguageError
        A name that is not there or is there twice, a number out of its range, a type that has no end.
    """
    meaning = Meaning()
    for definition in specification.definitions:
        _define(meaning, definition)
    for name, kind in meaning.types.items():
        for declaration in _declarations(kind):
            _declaration(meaning, declaration)
        if isinstance(kind, Union):
            _union(meaning, kind)
        _ends(meaning, name, kind)
    for program in meaning.programs:
        _program(meaning, program)
    return meaning


def _define(meaning: Meaning, definition: Definition) -> None:
    name, place = definition.name, definition.place
    taken = name in meaning.types or name in meaning.numbers or name in meaning.texts
    if taken or any(program.name == name for program in meaning.programs):
        raise LanguageError(place, f"{name!r} is defined twice")
    match definition:
        case Constant() if definition.value.text.startswith('"'):
            meaning.texts[name] = definition.value.text[1:-1]
        case Constant():
            meaning.numbers[name] = meaning.value(definition.value)
        case Program():
            meaning.programs.append(definition)
        case _:
            _type(meaning, name, definition)


def _type(meaning: Meaning, name: str, kind: Typedef | Enum | Struct | Union) -> None:
    for declaration in _declarations(kind):
        # A type within a type is one of its own.
        if isinstance(declaration.type, Enum | Struct | Union):
            _type(meaning, declaration.type.name, declaration.type)
    if isinstance(kind, Enum):
        for member, value in kind.members:
            if member in meaning.numbers:
                raise LanguageError(value.place, f"{member!r} is defined twice")
            found = meaning.value(value)
            if not -(2**31) <= found < 2**31:
                raise LanguageError(value.place, f"{member} is {found}; allowed: what an int holds")
            meaning.numbers[member] = found
            meaning.owners[member] = name
    meaning.types[name] = kind


def _declarations(kind: Typedef | Enum | Struct | Union) -> Iterator[Declaration]:
    match kind:
        case Typedef():
            yield kind.declaration
        case Struct():
            yield from kind.members
        case Union():
            yield kind.discriminant
            for arm in kind.arms:
                yield arm.declaration


def _declaration(meaning: Meaning, declaration: Declaration) -> None:
    if declaration.shape == "void":
        return
    meaning.resolved(declaration.type)
    if declaration.bound is not None:
        bound = meaning.value(declaration.bound)
        if not 0 <= bound <= LONGEST:
            reason = f"a length of {bound}; allowed: 0 to {LONGEST}"
            raise LanguageError(declaration.bound.place, reason)


def _union(meaning: Meaning, union: Union) -> None:
    kind = meaning.resolved(union.discriminant.type)
    if isinstance(kind, Enum):
        allowed = {meaning.numbers[name] for name, _ in kind.members}
    elif isinstance(kind, Primitive) and kind.name == "bool":
        allowed = {0, 1}
    elif isinstance(kind, Primitive) and kind.name in ("int", "unsigned int", "long", "unsigned long"):
        allowed = set()
    else:
        reason = "a discriminant is an int, an unsigned int, a bool or an enum"
        raise LanguageError(union.discriminant.place, reason)
    seen: set[int] = set()
    for arm in union.arms:
        for value in arm.values:
            found = meaning.value(value)
            if allowed and found not in allowed:
                raise LanguageError(value.place, f"{value.text} is no value of {union.discriminant.name}")
            if found in seen:
                raise LanguageError(value.place, f"{value.text} has an arm already")
            seen.add(found)


def _ends(meaning: Meaning, name: str, kind: Typedef | Enum | Struct | Union) -> None:
    """Reject a type that contains itself whole."""
    todo, seen = [kind], set()
    while todo:
        for declaration in _declarations(todo.pop()):
            if declaration.shape not in ("one", "fixed") or isinstance(declaration.type, Primitive):
                continue
            inner = declaration.type.name
            if inner == name:
                raise LanguageError(kind.place, f"{name!r} contains itself, and has no end")
            found = meaning.types.get(inner)
            if found is not None and inner not in seen:
                seen.add(inner)
                todo.append(found)


def _program(meaning: Meaning, program: Program) -> None:
    _unsigned(meaning, program.number)
    versions: set[int] = set()
    for version in program.versions:
        _once(version.name, version.number, _unsigned(meaning, version.number), versions)
        procedures: set[int] = set()
        for procedure in version.procedures:
            _once(procedure.name, procedure.number, _unsigned(meaning, procedure.number), procedures)
            _procedure(meaning, procedure)


def _procedure(meaning: Meaning, procedure: Procedure) -> None:
    for kind in (*procedure.arguments, *([procedure.result] if procedure.result else [])):
        meaning.resolved(kind)


def _unsigned(meaning: Meaning, value: Value) -> int:
    found = meaning.value(value)
    if not 0 <= found <= LONGEST:
        raise LanguageError(value.place, f"{found}; allowed: 0 to {LONGEST}")
    return found


def _once(name: str, value: Value, found: int, seen: set[int]) -> None:
    if found in seen:
        raise LanguageError(value.place, f"{name} is {found}, and so is another one")
    seen.add(found)
