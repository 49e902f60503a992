"""Words of the RPC language, with their places; and the few lines for the preprocessor that files have.

Of the preprocessor there are ``#define NAME NUMBER``, ``#undef``, ``#ifdef``, ``#ifndef``, ``#if NAME``,
``#else`` and ``#endif``: as for ``rpcgen``, which runs one first. No name is defined but by the file, so what
is meant for C headers (``#ifdef RPC_HDR``) is left out. Lines that begin with ``%`` are for the output of
``rpcgen`` and are passed over, as are line markers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from wiretwin.rpc.tree import Place

__all__ = ["KEYWORDS", "LanguageError", "Word", "words"]

KEYWORDS = frozenset(
    {"bool", "case", "const", "default", "double", "quadruple", "enum", "float", "hyper", "int", "opaque"}
    | {"string", "struct", "switch", "typedef", "union", "unsigned", "void", "program", "version"}
    | {"char", "short", "long"}
)
"""RFC 4506 §6.1 and RFC 5531 §12.2, and what ``rpcgen`` knows besides."""

_PARTS = re.compile(
    r"""(?P<space>[ \t\f\r]+)
    |(?P<comment>/\*)
    |(?P<slashes>//[^\n]*)
    |(?P<text>"[^"\n]*")
    |(?P<number>-?(?:0[xX][0-9a-fA-F]+|[0-9]+)(?![0-9A-Za-z_]))
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<sign>[{}()\[\]<>;:,=*])""",
    re.VERBOSE,
)


class LanguageError(Exception):
    """A file that is not in the language: where, what was found, what is allowed there."""

    def __init__(self, place: Place, reason: str) -> None:
        self.place = place
        self.reason = reason
        super().__init__(f"line {place.line}, column {place.column}: {reason}")


@dataclass(frozen=True)
class Word:
    """A word: ``kind`` is ``name``, ``keyword``, ``number``, ``text``, ``sign`` or ``end``."""

    kind: str
    text: str
    place: Place

    def __str__(self) -> str:
        return "the end of the file" if self.kind == "end" else repr(self.text)


class _Conditions:
    """Which lines count."""

    def __init__(self) -> None:
        self.defined: dict[str, str] = {}
        self.open: list[tuple[bool, bool, Place]] = []

    @property
    def active(self) -> bool:
        return all(holds for holds, _, _ in self.open)

    def line(self, line: str, place: Place) -> None:
        found = re.match(r"#\s*([a-z]*)\s*(.*)", line)
        word, rest = (found[1], found[2].strip()) if found else ("", "")
        if word in ("ifdef", "ifndef", "if"):
            name = rest.split()[0] if rest.split() else ""
            if word == "if" and not re.fullmatch(r"[A-Za-z_]\w*|[01]", rest):
                raise LanguageError(place, f"#if {rest}: allowed are #if NAME, #if 0 and #if 1")
            known = name in self.defined or name == "1"
            self.open.append((known != (word == "ifndef"), False, place))
        elif word in ("else", "endif"):
            if not self.open:
                raise LanguageError(place, f"#{word} without #ifdef, #ifndef or #if")
            holds, turned, where = self.open.pop()
            if word == "else":
                if turned:
                    raise LanguageError(place, "a second #else")
                self.open.append((not holds, True, where))
        elif not self.active or word in ("include", "pragma", "ident", "") or line[1:2].isdigit():
            # An #include would be of C headers: rpcgen hands types of other .x files to its preprocessor.
            if word == "include" and self.active:
                raise LanguageError(
                    place, f"#{word}: files are read one by one, definitions stand in one file"
                )
        elif word == "define":
            parts = rest.split(None, 1)
            if not parts or "(" in parts[0]:
                raise LanguageError(place, f"#define {rest}: allowed is #define NAME NUMBER")
            self.defined[parts[0]] = parts[1].strip() if len(parts) > 1 else ""
        elif word == "undef":
            self.defined.pop(rest, None)
        else:
            raise LanguageError(place, f"#{word} is not known here")


def words(source: str) -> Iterator[Word]:
    """Yield the words of a file, and one of kind ``end``.

    Raises
    ------
    LanguageError
        A character that begins no word, a comment without an end, a condition that is left open.
    """
    conditions = _Conditions()
    comment: Place | None = None
    lines = source.split("\n")
    for number, line in enumerate(lines, 1):
        at = 0
        if comment is None and line.startswith("%"):
            continue
        if comment is None and line.startswith("#"):
            conditions.line(line, Place(number, 1))
            continue
        while at < len(line):
            place = Place(number, at + 1)
            if comment is not None:
                end = line.find("*/", at)
                if end < 0:
                    break
                at, comment = end + 2, None
                continue
            found = _PARTS.match(line, at)
            if found is None or found.lastgroup is None:
                if not conditions.active:
                    break
                raise LanguageError(place, f"{line[at]!r} begins no word")
            kind, text = found.lastgroup, found[0]
            at = found.end()
            if kind == "comment":
                comment = place
            elif kind in ("space", "slashes") or not conditions.active:
                continue
            else:
                yield from _replaced(Word(kind, text, place), conditions.defined)
    if comment is not None:
        raise LanguageError(comment, "this comment has no end")
    if conditions.open:
        raise LanguageError(conditions.open[-1][2], "this condition has no #endif")
    yield Word("end", "", Place(len(lines), len(lines[-1]) + 1))


def _replaced(word: Word, defined: dict[str, str]) -> Iterator[Word]:
    if word.kind != "name":
        yield word
    elif word.text not in defined:
        yield Word("keyword" if word.text in KEYWORDS else "name", word.text, word.place)
    elif defined[word.text]:
        seen = {word.text}
        text = defined[word.text]
        while text in defined and text not in seen:
            seen.add(text)
            text = defined[text]
        for found in words(text):
            if found.kind != "end":
                yield Word(found.kind, found.text, word.place)
