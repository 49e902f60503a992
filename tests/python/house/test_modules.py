"""Which module of the crate `net` may use which: the order of the map, held against every path in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from house import ROOT

NET = ROOT / "crates" / "net" / "src"
MAP = ROOT / "docs" / "explanation" / "map.md"


def order_in(text: str) -> list[str]:
    """The modules of the map's table of the crate, the lowest first."""
    table = text.partition("\n## Inside `net`\n")[2].partition("\n## ")[0]
    rows = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    return re.findall(r"`(\w+)`", "".join(rows))


def code_of(text: str) -> str:
    """A file's text without comments, and without what follows its first test module."""
    return re.split(r"#\[cfg\((?:any\()?test", re.sub(r"//[^\n]*", "", text), maxsplit=1)[0]


def uses(text: str, depth: int, exported: dict[str, str]) -> set[str]:
    """The modules of the crate that code names, from a file so deep in its module."""
    code = code_of(text)
    up = "".join(["super::"] * depth)
    # A block in braces names several at once.
    names = set(re.findall(rf"\bcrate::(\w+)|(?<![\w:]){up}(\w+)", code))
    blocks = re.findall(r"\bcrate::\{([^}]*)", code)
    found = {one for pair in names for one in pair if one}
    found |= {word for block in blocks for word in re.findall(r"(?:^|,)\s*(\w+)", block)}
    return {exported.get(name, name) for name in found}


def exported_in(root: str) -> dict[str, str]:
    """What the root of the crate gives a shorter path: its name, and the module that it is of."""
    found: dict[str, str] = {}
    for module, names in re.findall(r"^pub use (\w+)::(\{[^}]*\}|\w+);", root, re.MULTILINE):
        found |= dict.fromkeys(re.findall(r"\w+", names), module)
    return found


def files() -> list[tuple[str, Path, int]]:
    """Every file but those of tests: its module, where it is, and how deep in it."""
    found = []
    for file in sorted(NET.rglob("*.rs")):
        parts = file.relative_to(NET).with_suffix("").parts
        if parts == ("lib",) or any("test" in part for part in parts):
            continue
        depth = len(parts) - (parts[-1] == "mod")
        found.append((parts[0], file, depth))
    return found


def against(order: list[str], used: dict[str, set[str]]) -> list[str]:
    """What leads upwards."""
    level = {name: number for number, name in enumerate(order)}
    return [
        f"{user} uses {other}"
        for user, others in sorted(used.items())
        for other in sorted(others)
        if other in level and other != user and level[other] > level[user]
    ]


ORDER = order_in(MAP.read_text())
EXPORTED = exported_in((NET / "lib.rs").read_text())
USED: dict[str, set[str]] = {}
for module, path, deep in files():
    USED.setdefault(module, set()).update(uses(path.read_text(), deep, EXPORTED))


def test_the_table_has_every_module_once_and_no_other() -> None:
    assert sorted(ORDER) == sorted(USED)


def test_no_module_uses_one_that_stands_below_it_in_the_table() -> None:
    assert against(ORDER, USED) == []


@pytest.mark.parametrize(
    ("text", "depth", "named"),
    [
        ("use crate::world::World;", 1, {"world"}),
        ("use crate::{Model, json::At};", 1, {"model", "json"}),
        ("let x = super::lan::Lan::new();", 1, {"lan"}),
        ("use super::super::lan::Lan;", 2, {"lan"}),
        ("use super::lan::Lan;", 2, set()),
        ("// crate::world\nuse crate::World;", 1, {"world"}),
        ("#[cfg(test)]\nmod tests { use crate::world::World; }", 1, set()),
    ],
)
def test_what_a_file_names_is_found(text: str, depth: int, named: set[str]) -> None:
    assert uses(text, depth, {"World": "world", "Model": "model"}) == named


def test_what_leads_upwards_is_found() -> None:
    assert against(["low", "high"], {"low": {"high"}, "high": {"low"}}) == ["low uses high"]
    assert {"lan", "world"} <= USED["ranks"]
    assert EXPORTED["World"] == "world"
