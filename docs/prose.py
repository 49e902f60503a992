"""Reads everything that a person reads, and names the words that this project does not use.

`python docs/prose.py` prints the place of each such word and ends with status 1 if there is one. The
words, what to say in their place and where they are allowed stand in `docs/words.toml`.

Read are the pages of the documentation without their code, the docstrings and texts of the Python package,
and the doc comments and texts of the Rust crates without their tests. A text is a string of two words or
more, or of one with a full stop: keys, names and values are none, nor are the names that a docstring lists
with an indented description under each.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORDS = ROOT / "docs" / "words.toml"
_CODE = re.compile(r"^(`{3,}|:{3,}).*?^\1[ ]*$|`[^`\n]*`", re.M | re.S)
_LISTED = re.compile(r"^([ ]*)\w+(?:, \w+)*$(?=\n\1[ ]+\S)", re.M)
"""Names of parameters, attributes and exceptions in a docstring."""
_RUST_TEXT = re.compile(r'^\s*(///|//!)(?P<doc>[^\n]*)|"(?P<text>(?:[^"\\\n]|\\.)*)"', re.M)


@dataclass(frozen=True)
class Word:
    """A word that is not used.

    Attributes
    ----------
    name
        The word as the list of what is left has it.
    pattern
        What finds it.
    say
        What to say in its place.
    allowed
        Files in which it is the right word, as patterns of their paths.
    """

    name: str
    pattern: re.Pattern[str]
    say: str
    allowed: tuple[str, ...]


@dataclass(frozen=True)
class Found:
    """A word where it must not be."""

    file: str
    line: int
    word: Word

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.word.name!r}: say {self.word.say}"


def words(text: str) -> list[Word]:
    """Return the words of a list in TOML."""
    listed = tomllib.loads(text)["word"]
    return [
        Word(
            name,
            re.compile(one.get("pattern") or rf"\b{re.escape(name)}\b", re.I),
            one["say"],
            tuple(one.get("allowed", ())),
        )
        for name, one in listed.items()
    ]


def read(file: Path) -> Iterator[tuple[int, str]]:
    """Yield what a person reads of a file: the line on which a piece begins, and its text."""
    text = file.read_text()
    if file.suffix == ".md":
        yield 1, _CODE.sub(lambda code: "\n" * code[0].count("\n"), text)
    elif file.suffix == ".rs":
        yield from _of_rust(text)
    else:
        yield from _of_python(text)


def _of_rust(text: str) -> Iterator[tuple[int, str]]:
    text = text.partition("\n#[cfg(test)]\nmod tests {")[0]
    for match in _RUST_TEXT.finditer(text):
        said = match["doc"] if match["doc"] is not None else match["text"]
        if match["doc"] is not None or " " in said:
            line = text.count("\n", 0, match.start() + len(match[0]) - len(match[0].lstrip())) + 1
            yield line, re.sub(r"`[^`]*`", "", said)


def _of_python(text: str) -> Iterator[tuple[int, str]]:
    pieces: set[ast.AST] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.JoinedStr):
            pieces.update(node.values)
            constants = [one.value if isinstance(one, ast.Constant) else "{}" for one in node.values]
            said = "".join(map(str, constants))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in pieces:
            said = node.value
        else:
            continue
        if " " in said.strip() or said.endswith("."):
            yield node.lineno, re.sub(r"`[^`\n]*`", "", _LISTED.sub("", said))


def files() -> list[Path]:
    """Return every file that is read."""
    pages = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
    pages += [page for page in (ROOT / "docs").rglob("*.md") if "_build" not in page.parts]
    python = (ROOT / "python" / "wiretwin").rglob("*.py")
    rust = (
        file
        for file in (ROOT / "crates").rglob("*.rs")
        if "src" in file.parts and not {"tests", "tests.rs"} & set(file.parts)
    )
    return sorted([*pages, *python, *rust])


def search(pieces: Iterator[tuple[int, str]], file: str, listed: list[Word]) -> Iterator[Found]:
    """Yield the words that a file should not have."""
    here = [word for word in listed if not any(fnmatch(file, pattern) for pattern in word.allowed)]
    for line, text in pieces:
        for word in here:
            for match in word.pattern.finditer(text):
                yield Found(file, line + text.count("\n", 0, match.start()), word)


def found() -> list[Found]:
    """Return the words that no file should have."""
    listed = words(WORDS.read_text())
    return [one for file in files() for one in search(read(file), str(file.relative_to(ROOT)), listed)]


def main() -> int:
    """Print what is found."""
    unwanted = found()
    for one in unwanted:
        print(one)
    return 1 if unwanted else 0


if __name__ == "__main__":
    sys.exit(main())
