"""The grammar of the RPC language: RFC 4506 §6.3 and RFC 5531 §12.

What ``rpcgen`` takes besides is taken: ``unsigned`` alone, ``char``, ``short``, ``long``, ``struct NAME`` as
a type, an enumeration whose members count on, ``string`` as a type of a procedure, texts as constants.
"""

from __future__ import annotations

from wiretwin.rpc.lexer import LanguageError, Word, words
from wiretwin.rpc.tree import (
    Constant,
    Declaration,
    Definition,
    Enum,
    Named,
    Primitive,
    Procedure,
    Program,
    Specification,
    Struct,
    Type,
    Typedef,
    Union,
    UnionArm,
    Value,
    Version,
)

__all__ = ["parse"]

_WHOLE = ("int", "hyper", "char", "short", "long")
_OTHER = ("float", "double", "quadruple", "bool")


def parse(source: str, name: str = "interface") -> Specification:
    """Read a file.

    Raises
    ------
    LanguageError
        Where the file is not in the language.
    """
    return _Parser(source).specification(name)


class _Parser:
    def __init__(self, source: str) -> None:
        self.words = list(words(source))
        self.at = 0
        self.unnamed = 0

    @property
    def here(self) -> Word:
        return self.words[self.at]

    def next(self) -> Word:
        word = self.here
        if word.kind != "end":
            self.at += 1
        return word

    def is_(self, text: str) -> bool:
        return self.here.kind in ("keyword", "sign") and self.here.text == text

    def takes(self, text: str) -> bool:
        if not self.is_(text):
            return False
        self.at += 1
        return True

    def expect(self, text: str, what: str = "") -> Word:
        if not self.is_(text):
            raise self.wrong(f"{text!r}{what}")
        return self.next()

    def wrong(self, allowed: str) -> LanguageError:
        return LanguageError(self.here.place, f"{self.here}, where {allowed} is expected")

    def name(self, what: str) -> Word:
        if self.here.kind != "name":
            raise self.wrong(f"the name of {what}")
        return self.next()

    def value(self, what: str) -> Value:
        if self.here.kind not in ("name", "number"):
            raise self.wrong(f"{what}, a number or the name of a constant,")
        word = self.next()
        return Value(word.text, word.place)

    # Definitions

    def specification(self, name: str) -> Specification:
        found: list[Definition] = []
        while self.here.kind != "end":
            found.append(self.definition())
        return Specification(name, tuple(found))

    def definition(self) -> Definition:
        word = self.here
        made: Definition
        match word.text if word.kind == "keyword" else "":
            case "const":
                made = self.constant()
            case "typedef":
                self.next()
                declaration = self.declaration()
                if declaration.shape == "void":
                    raise LanguageError(word.place, "void has no other name")
                made = Typedef(declaration)
            case "enum" | "struct" | "union":
                made = self.compound()
            case "program":
                made = self.program()
            case _:
                raise self.wrong("const, typedef, enum, struct, union or program")
        self.expect(";", f" after this {word.text}")
        return made

    def constant(self) -> Constant:
        self.next()
        name = self.name("a constant")
        self.expect("=")
        if self.here.kind == "text":
            word = self.next()
            return Constant(name.text, Value(word.text, word.place), name.place)
        return Constant(name.text, self.value("a value"), name.place)

    def compound(self, name: str | None = None) -> Enum | Struct | Union:
        kind = self.next()
        named = self.name(f"this {kind.text}") if name is None else None
        text, place = (named.text, named.place) if named else (name or "", kind.place)
        match kind.text:
            case "enum":
                return Enum(text, self.enum_body(), place)
            case "struct":
                return Struct(text, self.struct_body(), place)
            case _:
                discriminant, arms = self.union_body()
                return Union(text, discriminant, arms, place)

    def enum_body(self) -> tuple[tuple[str, Value], ...]:
        self.expect("{")
        members: list[tuple[str, Value]] = []
        while True:
            name = self.name("a member of this enum")
            if self.takes("="):
                value = self.value("its value")
            else:
                last = members[-1][1].text if members else "-1"
                value = Value(f"{last}+1", name.place)
            members.append((name.text, value))
            if not self.takes(","):
                break
        self.expect("}", " or ','")
        return tuple(members)

    def struct_body(self) -> tuple[Declaration, ...]:
        self.expect("{")
        members = []
        while not self.is_("}"):
            members.append(self.member())
        if not members:
            raise self.wrong("at least one member")
        self.next()
        return tuple(members)

    def member(self) -> Declaration:
        declaration = self.declaration()
        if declaration.shape == "void":
            raise LanguageError(declaration.place, "void is no member of a structure")
        self.expect(";", f" after {declaration.name}")
        return declaration

    def union_body(self) -> tuple[Declaration, tuple[UnionArm, ...]]:
        self.expect("switch")
        self.expect("(")
        discriminant = self.declaration()
        if discriminant.shape != "one":
            raise LanguageError(
                discriminant.place, "a discriminant is an int, an unsigned int, a bool or an enum"
            )
        self.expect(")")
        self.expect("{")
        arms: list[UnionArm] = []
        while not self.is_("}"):
            values: list[Value] = []
            if self.takes("default"):
                self.expect(":")
            else:
                while self.is_("case"):
                    self.next()
                    values.append(self.case_value())
                    self.expect(":")
                if not values:
                    raise self.wrong("case, default or '}'")
            declaration = self.declaration()
            self.expect(";", " after this arm")
            arms.append(UnionArm(tuple(values), declaration))
            if not values and not self.is_("}"):
                raise self.wrong("'}', the default arm being the last one,")
        if not arms:
            raise self.wrong("at least one arm")
        self.next()
        return discriminant, tuple(arms)

    def case_value(self) -> Value:
        # TRUE and FALSE are names that every file knows (RFC 4506 §4.4).
        return self.value("a value of the discriminant")

    # Types

    def declaration(self) -> Declaration:
        place = self.here.place
        if self.takes("void"):
            return Declaration(Primitive("void", place), "", "void", None, place)
        if self.is_("string") or self.is_("opaque"):
            return self.octets()
        kind = self.type_()
        if self.takes("*"):
            name = self.name("what is declared")
            return Declaration(kind, name.text, "optional", None, name.place)
        name = self.name("what is declared")
        shape, bound = self.shape()
        return Declaration(kind, name.text, shape, bound, name.place)

    def octets(self) -> Declaration:
        word = self.next()
        name = self.name("what is declared")
        shape, bound = self.shape()
        kind = Primitive(word.text, word.place)
        if shape == "one":
            allowed = "'<'" if word.text == "string" else "'[' or '<'"
            raise self.wrong(f"{allowed} after {word.text} {name.text}")
        if word.text == "string" and shape == "fixed":
            raise LanguageError(
                name.place, f"string {name.text} has a bound in '<' and '>', not a fixed length"
            )
        return Declaration(kind, name.text, shape, bound, name.place)

    def shape(self) -> tuple[str, Value | None]:
        if self.takes("["):
            bound = self.value("a length")
            self.expect("]")
            return "fixed", bound
        if self.takes("<"):
            bounded = None if self.is_(">") else self.value("the greatest length")
            self.expect(">")
            return "counted", bounded
        return "one", None

    def type_(self) -> Type:
        word = self.here
        if word.kind == "name":
            self.next()
            return Named(word.text, word.place)
        if word.kind != "keyword":
            raise self.wrong("a type")
        if self.takes("unsigned"):
            found = next((name for name in _WHOLE if self.takes(name)), "int")
            if found == "long":
                self.takes("int")
            return Primitive(f"unsigned {found}", word.place)
        if word.text in _WHOLE + _OTHER:
            self.next()
            return Primitive(word.text, word.place)
        if word.text in ("enum", "struct", "union"):
            if self.words[self.at + 1].kind == "name":
                self.next()
                name = self.next()
                return Named(name.text, name.place)
            self.unnamed += 1
            return self.compound(f"{word.text}_{self.unnamed}")
        raise self.wrong("a type")

    def procedure_type(self) -> Type | None:
        word = self.here
        if self.takes("void"):
            return None
        if self.takes("string"):
            if self.takes("<"):
                self.expect(">")
            return Primitive("string", word.place)
        return self.type_()

    # Programs

    def program(self) -> Program:
        self.next()
        name = self.name("a program")
        self.expect("{")
        versions = []
        while not self.is_("}"):
            versions.append(self.version())
        if not versions:
            raise self.wrong("at least one version")
        self.next()
        self.expect("=")
        return Program(name.text, self.value("its number"), tuple(versions), name.place)

    def version(self) -> Version:
        self.expect("version")
        name = self.name("a version")
        self.expect("{")
        procedures = []
        while not self.is_("}"):
            procedures.append(self.procedure())
        self.next()
        self.expect("=")
        version = Version(name.text, self.value("its number"), tuple(procedures), name.place)
        self.expect(";", f" after version {name.text}")
        return version

    def procedure(self) -> Procedure:
        result = self.procedure_type()
        name = self.name("a procedure")
        self.expect("(")
        arguments: list[Type] = []
        if not self.is_(")"):
            first = self.procedure_type()
            if first is not None:
                arguments.append(first)
            while self.takes(","):
                place = self.here.place
                more = self.procedure_type()
                if more is None or not arguments:
                    raise LanguageError(place, "void is the only argument where it is one")
                arguments.append(more)
        self.expect(")")
        self.expect("=")
        procedure = Procedure(name.text, self.value("its number"), tuple(arguments), result, name.place)
        self.expect(";", f" after procedure {name.text}")
        return procedure
