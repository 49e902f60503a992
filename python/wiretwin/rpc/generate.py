"""Stubs in Python for what a file in the RPC language describes."""

from __future__ import annotations

import keyword
from collections.abc import Iterator
from typing import Literal

from wiretwin.rpc.check import Meaning
from wiretwin.rpc.tree import (
    Declaration,
    Enum,
    Named,
    Primitive,
    Procedure,
    Program,
    Struct,
    Type,
    Typedef,
    Union,
    Version,
)

__all__ = ["generate"]

_PLAIN = {
    "int": ("int32", "int"),
    "long": ("int32", "int"),
    "unsigned int": ("uint32", "int"),
    "unsigned long": ("uint32", "int"),
    "hyper": ("int64", "int"),
    "unsigned hyper": ("uint64", "int"),
    "float": ("float32", "float"),
    "double": ("float64", "float"),
    "bool": ("boolean", "bool"),
}
"""The methods of XDR's plain types, and what they are in Python."""
_SMALL = {
    "char": (-128, 127),
    "unsigned char": (0, 255),
    "short": (-32768, 32767),
    "unsigned short": (0, 65535),
}
_TAKEN = frozenset(
    {"Any", "Client", "IntEnum", "Packer", "Service", "Unpacker", "XdrError", "annotations", "dataclass"}
    | {"int", "float", "bool", "bytes", "str", "list", "None"}
)
INDENT = "    "
Way = Literal["pack", "unpack"]
"""Into the bytes, and out of them."""


def generate(meaning: Meaning, source: str) -> str:
    """Return a module: types as data classes, their XDR, a client and a server for each version."""
    return _Generator(meaning).module(source)


def _safe(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) or keyword.issoftkeyword(name) or name in _TAKEN else name


class _Generator:
    def __init__(self, meaning: Meaning) -> None:
        self.meaning = meaning

    def module(self, source: str) -> str:
        blocks = [list(self.head(source))]
        constants = [name for name in self.meaning.numbers if name not in self.meaning.owners]
        lines = [f"{_safe(name)} = {self.meaning.numbers[name]}" for name in constants]
        lines += [f"{_safe(name)} = {text!r}" for name, text in self.meaning.texts.items()]
        if lines:
            blocks.append(lines)
        for kind in self.meaning.types.values():
            blocks += self.type_(kind)
        for program in self.meaning.programs:
            for version in program.versions:
                blocks.append(list(self.client(program, version)))
                blocks.append(list(self.service(program, version)))
        return "\n\n\n".join("\n".join(block) for block in blocks) + "\n"

    def head(self, source: str) -> Iterator[str]:
        yield f'"""Made from {source} by `wiretwin rpc generate`: change that, not this."""'
        yield ""
        yield "from __future__ import annotations"
        yield ""
        yield "from dataclasses import dataclass"
        yield "from enum import IntEnum"
        yield "from typing import Any"
        yield ""
        yield "from wiretwin.rpc.runtime import Client, Service"
        yield "from wiretwin.rpc.xdr import Packer, Unpacker, XdrError"

    # Types

    def type_(self, kind: Typedef | Enum | Struct | Union) -> list[list[str]]:
        name = _safe(kind.name)
        match kind:
            case Enum():
                return [list(self.enum(kind)), *self.functions(name, *self.of_enum(name))]
            case Struct():
                return [list(self.struct(kind)), *self.functions(name, *self.of_struct(kind))]
            case Union():
                return [list(self.union(kind)), *self.functions(name, *self.of_union(kind))]
            case Typedef():
                pack = [self.packs(kind.declaration, "value")]
                unpack = [f"return {self.unpacks(kind.declaration)}"]
                alias = [f"{name} = {self.annotation(kind.declaration, quoted=True)}"]
                return [alias, *self.functions(name, pack, unpack)]

    def functions(self, name: str, pack: list[str], unpack: list[str]) -> list[list[str]]:
        return [
            [f"def pack_{name}(packer: Packer, value: Any) -> None:", *(INDENT + line for line in pack)],
            [f"def unpack_{name}(unpacker: Unpacker) -> Any:", *(INDENT + line for line in unpack)],
        ]

    def enum(self, kind: Enum) -> Iterator[str]:
        yield f"class {_safe(kind.name)}(IntEnum):"
        for member, _ in kind.members:
            yield f"{INDENT}{_safe(member)} = {self.meaning.numbers[member]}"
        yield ""
        yield ""
        for member, _ in kind.members:
            yield f"{_safe(member)} = {_safe(kind.name)}.{_safe(member)}"

    def of_enum(self, name: str) -> tuple[list[str], list[str]]:
        return [f"packer.member(value, {name})"], [f"return unpacker.member({name})"]

    def struct(self, kind: Struct) -> Iterator[str]:
        yield "@dataclass(slots=True)"
        yield f"class {_safe(kind.name)}:"
        for member in kind.members:
            yield f"{INDENT}{_safe(member.name)}: {self.annotation(member)}"

    def of_struct(self, kind: Struct) -> tuple[list[str], list[str]]:
        name = _safe(kind.name)
        rest = kind.members[:-1] if self.is_list(kind) else kind.members
        if self.is_list(kind):
            last = _safe(kind.members[-1].name)
            packs = [self.packs(member, f"value.{_safe(member.name)}") for member in rest]
            pack = [
                "while True:",
                *(INDENT + line for line in packs),
                f"{INDENT}packer.boolean(value.{last} is not None)",
                f"{INDENT}if value.{last} is None:",
                f"{INDENT * 2}return",
                f"{INDENT}value = value.{last}",
            ]
            values = ", ".join([self.unpacks(member) for member in rest] + ["None"])
            unpack = [
                "# A list, however long: not one call in another.",
                "first: Any = None",
                "last: Any = None",
                "while True:",
                f"{INDENT}item = {name}({values})",
                f"{INDENT}if last is None:",
                f"{INDENT * 2}first = item",
                f"{INDENT}else:",
                f"{INDENT * 2}last.{last} = item",
                f"{INDENT}last = item",
                f"{INDENT}if not unpacker.boolean():",
                f"{INDENT * 2}return first",
            ]
            return pack, unpack
        pack = [self.packs(member, f"value.{_safe(member.name)}") for member in rest]
        members = [f"{INDENT}{self.unpacks(member)}," for member in rest]
        return pack, [f"return {name}(", *members, ")"]

    def is_list(self, kind: Struct) -> bool:
        """Whether its last member is perhaps another one: the lists of RFC 4506 §4.19."""
        last = kind.members[-1]
        if last.shape == "optional":
            inner = last.type
        elif last.shape == "one" and isinstance(last.type, Named):
            found = self.meaning.resolved(last.type)
            if not isinstance(found, Declaration) or found.shape != "optional":
                return False
            inner = found.type
        else:
            return False
        return isinstance(inner, Named) and self.meaning.resolved(inner) is kind

    def union(self, kind: Union) -> Iterator[str]:
        yield "@dataclass(slots=True)"
        yield f"class {_safe(kind.name)}:"
        yield f"{INDENT}{_safe(kind.discriminant.name)}: {self.annotation(kind.discriminant)}"
        kinds = dict.fromkeys(self.annotation(arm.declaration) for arm in kind.arms)
        kinds.setdefault("None")
        yield f"{INDENT}value: {' | '.join(name for name in kinds if name != 'None') or 'None'}" + (
            " | None = None" if set(kinds) != {"None"} else " = None"
        )

    def of_union(self, kind: Union) -> tuple[list[str], list[str]]:
        name, which = _safe(kind.name), _safe(kind.discriminant.name)
        pack = [self.packs(kind.discriminant, f"value.{which}")]
        unpack = [f"{which} = {self.unpacks(kind.discriminant)}"]
        has_default = False
        for at, arm in enumerate(kind.arms):
            numbers = [self.meaning.value(value) for value in arm.values]
            test = f"== {numbers[0]}" if len(numbers) == 1 else f"in ({', '.join(map(str, numbers))})"
            word = "elif" if at else "if"
            if not numbers:
                has_default = True
                pack.append("else:" if at else "if True:")
                unpack.append("else:" if at else "if True:")
            else:
                pack.append(f"{word} value.{which} {test}:")
                unpack.append(f"{word} {which} {test}:")
            if arm.declaration.shape == "void":
                pack += [
                    f"{INDENT}if value.value is not None:",
                    f'{INDENT * 2}raise XdrError(f"{kind.name}: {{value.value!r}}; allowed: nothing, for '
                    f'{kind.discriminant.name} {{value.{which}!r}}")',
                ]
                unpack.append(f"{INDENT}return {name}({which}, None)")
            else:
                pack.append(INDENT + self.packs(arm.declaration, "value.value"))
                unpack.append(f"{INDENT}return {name}({which}, {self.unpacks(arm.declaration)})")
        if not has_default:
            allowed = ", ".join(value.text for arm in kind.arms for value in arm.values)
            for lines, found in ((pack, f"value.{which}"), (unpack, which)):
                lines += [
                    "else:",
                    f'{INDENT}raise XdrError(f"{kind.name}: {kind.discriminant.name} is {{{found}!r}}; '
                    f'allowed: {allowed}")',
                ]
        return pack, unpack

    # Expressions

    def annotation(self, declaration: Declaration, quoted: bool = False) -> str:
        kind = declaration.type
        match declaration.shape:
            case "void":
                return "None"
            case "fixed" | "counted" if isinstance(kind, Primitive) and kind.name in ("opaque", "string"):
                return "bytes" if kind.name == "opaque" else "str"
            case "fixed" | "counted":
                inner = self.of_type(kind)
                return '"list[Any]"' if quoted else f"list[{inner}]"
            case "optional":
                return "Any" if quoted else f"{self.of_type(kind)} | None"
            case _:
                return "Any" if quoted and isinstance(kind, Named) else self.of_type(kind)

    def of_type(self, kind: Type) -> str:
        if not isinstance(kind, Primitive):
            if isinstance(kind, Named) and kind.name not in self.meaning.types:
                found = self.meaning.resolved(kind)
                return "bytes" if isinstance(found, Declaration) else self.of_type(found)
            return _safe(kind.name)
        if kind.name in _PLAIN:
            return _PLAIN[kind.name][1]
        return {"string": "str", "quadruple": "bytes", "void": "None"}.get(kind.name, "int")

    def packs(self, declaration: Declaration, value: str) -> str:
        """Return a statement that packs."""
        return self._declared("pack", declaration, [value])

    def unpacks(self, declaration: Declaration) -> str:
        """Return an expression that unpacks."""
        return self._declared("unpack", declaration, [])

    def _declared(self, way: Way, declaration: Declaration, given: list[str]) -> str:
        """Return the call for a declaration: packer and unpacker have the same methods."""
        kind, bound = declaration.type, self.bound(declaration)
        if declaration.shape == "one":
            return self._one(way, kind, given)
        if declaration.shape == "optional":
            method, given = "optional", [*given, self._function(way, kind)]
        elif isinstance(kind, Primitive) and kind.name in ("opaque", "string"):
            method = "fixed" if declaration.shape == "fixed" else kind.name
            given = [*given, bound] if bound else given
        else:
            method = "vector" if declaration.shape == "fixed" else "array"
            given = [*given, bound or "0xFFFFFFFF", self._function(way, kind)]
        return f"{way}er.{method}({', '.join(given)})"

    def bound(self, declaration: Declaration) -> str:
        return "" if declaration.bound is None else str(self.meaning.value(declaration.bound))

    def given(self, kind: Type) -> Type | Declaration:
        """Return what a name of the headers stands for."""
        if isinstance(kind, Named) and kind.name not in self.meaning.types:
            return self.meaning.resolved(kind)
        return kind

    def pack_one(self, kind: Type, value: str) -> str:
        return self._one("pack", kind, [value])

    def _one(self, way: Way, kind: Type, given: list[str]) -> str:
        found = self.given(kind)
        if isinstance(found, Declaration):
            return self._declared(way, found, given)
        if not isinstance(found, Primitive):
            return f"{way}_{_safe(found.name)}({', '.join([f'{way}er', *given])})"
        method = _PLAIN[found.name][0] if found.name in _PLAIN else found.name
        if found.name in _SMALL:
            method, given = "small", [*given, repr(found.name), *map(str, _SMALL[found.name])]
        elif found.name == "quadruple":
            method, given = "fixed", [*given, "16", "'quadruple'"]
        return f"{way}er.{method}({', '.join(given)})"

    def packer_of(self, kind: Type) -> str:
        return self._function("pack", kind)

    def unpacker_of(self, kind: Type) -> str:
        return self._function("unpack", kind)

    def _function(self, way: Way, kind: Type) -> str:
        found = self.given(kind)
        if isinstance(found, Primitive) and found.name in (*_PLAIN, "string"):
            return f"{way.title()}er.{_PLAIN[found.name][0] if found.name in _PLAIN else found.name}"
        if isinstance(found, Primitive | Declaration):
            given = ["value"] if way == "pack" else []
            return f"lambda {', '.join([f'{way}er', *given])}: {self._one(way, kind, given)}"
        return f"{way}_{_safe(found.name)}"

    # Programs

    def signature(self, procedure: Procedure) -> tuple[list[str], str]:
        names = [f"argument{at or ''}" for at in range(len(procedure.arguments))]
        kinds = [self.of_type(kind) for kind in procedure.arguments]
        result = "None" if procedure.result is None else self.of_type(procedure.result)
        return [f"{name}: {kind}" for name, kind in zip(names, kinds, strict=True)], result

    def client(self, program: Program, version: Version) -> Iterator[str]:
        number = self.meaning.value(version.number)
        yield f"class {_safe(program.name)}_{number}(Client):"
        yield f'{INDENT}"""A client of {program.name} in {version.name}."""'
        yield ""
        yield f"{INDENT}PROGRAM = 0x{self.meaning.value(program.number):08X}"
        yield f"{INDENT}VERSION = {number}"
        for procedure in version.procedures:
            arguments, result = self.signature(procedure)
            yield ""
            name, given = _safe(procedure.name.lower()), ", ".join(["self", *arguments])
            yield f"{INDENT}def {name}({given}) -> {result}:"
            yield f"{INDENT * 2}packer = Packer()"
            for at, kind in enumerate(procedure.arguments):
                given = f"argument{at or ''}"
                yield f"{INDENT * 2}{self.pack_one(kind, given)}"
            unpack = "None" if procedure.result is None else self.unpacker_of(procedure.result)
            call = f"self.call({self.meaning.value(procedure.number)}, packer, {unpack})"
            yield f"{INDENT * 2}{call}" if procedure.result is None else f"{INDENT * 2}return {call}"

    def service(self, program: Program, version: Version) -> Iterator[str]:
        number = self.meaning.value(version.number)
        yield f"class {_safe(program.name)}_{number}_Service(Service):"
        yield f'{INDENT}"""A server of {program.name} in {version.name}: give the procedures what they do."""'
        yield ""
        yield f"{INDENT}PROGRAM = 0x{self.meaning.value(program.number):08X}"
        yield f"{INDENT}VERSION = {number}"
        served = [one for one in version.procedures if self.meaning.value(one.number) > 0]
        yield f"{INDENT}PROCEDURES = {{"
        for procedure in served:
            unpack = ", ".join(self.unpacker_of(kind) for kind in procedure.arguments)
            pack = "None" if procedure.result is None else self.packer_of(procedure.result)
            unpack = f"({unpack},)" if procedure.arguments else "()"
            name = _safe(procedure.name.lower())
            yield f"{INDENT * 2}{self.meaning.value(procedure.number)}: ({name!r}, {unpack}, {pack}),"
        yield f"{INDENT}}}"
        for procedure in served:
            arguments, result = self.signature(procedure)
            yield ""
            name, given = _safe(procedure.name.lower()), ", ".join(["self", *arguments])
            yield f"{INDENT}def {name}({given}) -> {result}:"
            yield f"{INDENT * 2}raise NotImplementedError"
