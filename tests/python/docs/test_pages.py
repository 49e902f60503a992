"""What a page refers to is there: files, headings of the site's own pages, make targets."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import typer
from pages import ROOT, pages

LINK = re.compile(r"(?<!\!)\[[^\]\n]*\]\(([^)\s]+)\)|!\[[^\]\n]*\]\(([^)\s]+)\)")


def broken_links(page: Path, text: str) -> list[str]:
    """Local links of a page that lead nowhere."""
    broken = []
    for match in LINK.finditer(re.sub(r"```.*?```", "", text, flags=re.S)):
        target = (match[1] or match[2]).partition("#")[0]
        if target and "://" not in target and not (page.parent / target).exists():
            broken.append(target)
    return broken


def makefile_targets(makefile: str) -> set[str]:
    return set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))


def unknown_targets(text: str, makefile: str) -> set[str]:
    """Targets that a page tells the reader to make and the Makefile does not know."""
    said = re.findall(r"`make ([a-z-]+)`|^\s*(?:\$ )?make ([a-z-]+)\s", text, re.MULTILINE)
    return {first or second for first, second in said} - makefile_targets(makefile)


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_local_link_leads_somewhere(page: Path) -> None:
    assert broken_links(page, page.read_text()) == []


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_make_target_exists(page: Path) -> None:
    assert unknown_targets(page.read_text(), (ROOT / "Makefile").read_text()) == set()


def verbs() -> dict[str, set[str]]:
    """Every verb of the command line with its options; of one that has verbs of its own, ``verb word``."""
    from wiretwin.cli.app import _build

    def options(command: Any) -> set[str]:
        written = {option for one in command.params for option in (*one.opts, *one.secondary_opts)}
        return written | {"--help", "-h"}

    application: Any = typer.main.get_command(_build())
    known = {name: options(command) for name, command in application.commands.items()}
    for name, group in application.commands.items():
        for word, command in getattr(group, "commands", {}).items():
            known[f"{name} {word}"] = options(command)
    return known


def unknown_words(text: str, known: dict[str, set[str]]) -> set[str]:
    """Verbs and options of `wiretwin` that a page writes and the command line does not know."""
    unknown = set()
    for match in re.finditer(r"(?:^(?:\$ |    )|`)wiretwin ([a-z]+)((?:\\\n|[^`\n])*)", text, re.MULTILINE):
        verb, rest = match[1], match[2].partition(" -- ")[0]
        if any(name.startswith(f"{verb} ") for name in known):
            word, _, rest = rest.strip().partition(" ")
            verb = f"{verb} {word}".strip()
        if verb not in known:
            unknown.add(verb)
        else:
            used = set(re.findall(r"(?<!\S)(--?[a-z][a-z-]*)", rest))
            unknown |= {f"{verb} {option}" for option in used - known[verb]}
    return unknown


PROGRAMS = [*sorted((ROOT / "examples").rglob("README.md")), ROOT / "fuzz" / "README.md"]


@pytest.mark.parametrize("page", pages() + PROGRAMS, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_verb_and_option_exists(page: Path) -> None:
    assert unknown_words(page.read_text(), verbs()) == set()


def test_what_leads_nowhere_is_seen() -> None:
    text = "[a](nowhere.md) [b](README.md#x) ![c](no.png) [d](https://example.org) `make nothing`\n"
    text += "    make run\n"
    assert broken_links(ROOT / "x.md", text) == ["nowhere.md", "no.png"]
    assert unknown_targets(text, "run: x ## y\n") == {"nothing"}
    known = {"fit": {"-o", "--out"}, "bed": set(), "bed up": {"--hosts"}}
    said = "`wiretwin fit x --salt -o y` `wiretwin fly`\n$ wiretwin fit x \\\n  --pepper -- --own\n"
    said += "`wiretwin bed` `wiretwin bed up --hosts 2 --beds 3` `wiretwin bed make`\n"
    assert unknown_words(said, known) == {"fit --salt", "fly", "fit --pepper", "bed up --beds", "bed make"}
