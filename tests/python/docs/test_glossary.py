"""The glossary has every term of the help; the rest of its words is plain English."""

from __future__ import annotations

import re
from typing import Any

import typer
from pages import ROOT

PLAIN = ROOT / "tests" / "python" / "docs" / "plain-words.txt"
"""Words of the help that need no explanation, one a line."""


def help_texts(name: str, command: Any) -> list[str]:
    context = typer.Context(command, info_name=name)
    texts = [command.help or "", command.short_help or "", command.epilog or ""]
    texts += [record[1] for one in command.params if (record := one.get_help_record(context))]
    for word, inner in getattr(command, "commands", {}).items():
        texts += help_texts(f"{name} {word}", inner)
    return texts


def words(text: str) -> set[str]:
    """The words of a text; what is code, an option, a path or a name in capitals is none."""
    text = re.sub(r"`[^`]*`|^  wiretwin .*$|\S*[/_=.]\w\S*|--?[a-z-]+|\b[A-Z_]{2,}\b", " ", text, flags=re.M)
    return {word.lower() for word in re.findall(r"[A-Za-z][a-z]+(?:-[a-z]+)*", text)}


def of_the_help() -> set[str]:
    from wiretwin.cli.app import _build

    return {word for text in help_texts("wiretwin", typer.main.get_command(_build())) for word in words(text)}


def explained() -> set[str]:
    """The words of the glossary's terms, and their plurals."""
    text = (ROOT / "docs" / "reference" / "glossary.md").read_text()
    terms = {
        word.lower() for line in re.findall(r"^(.+)\n: ", text, re.M) for word in re.findall(r"[\w-]+", line)
    }
    return terms | {f"{term}s" for term in terms} | {f"{term}es" for term in terms}


def test_every_term_of_the_help_is_explained() -> None:
    plain = set(PLAIN.read_text().split())
    unexplained = of_the_help() - explained() - plain
    assert not unexplained, f"explain in docs/reference/glossary.md, or list as plain: {sorted(unexplained)}"


def test_no_term_is_called_plain() -> None:
    assert set(PLAIN.read_text().split()) & explained() == set()


def test_the_list_of_plain_words_has_no_others() -> None:
    listed = PLAIN.read_text().split()
    assert listed == sorted(set(listed))
    assert set(listed) <= of_the_help()
