"""Which module of the Python package may use which: the order of the map, held against every import."""

from __future__ import annotations

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from house import ROOT

from wiretwin.stacks.layers import LAYERS

PACKAGE = ROOT / "python" / "wiretwin"
MAP = ROOT / "docs" / "explanation" / "map.md"
FREE = {"", "_core", "_verbs"}
"""The package itself, its compiled core, and how its verbs load: they stand below the table."""


def order_in(text: str) -> list[str]:
    """The modules of the map's table of the Python package, the lowest first."""
    table = text.partition("\n## Python\n")[2].partition("\n## ")[0]
    rows = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    return [name.removesuffix(".py") for name in re.findall(r"`wiretwin/([\w.]+)`", "".join(rows))]


def name_of(file: Path) -> str:
    """The dotted name of a file below the package: ``measure.launch``, nothing for the package itself."""
    parts = file.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {
    name_of(file): file
    for folder in [PACKAGE, *(path for path in PACKAGE.iterdir() if not path.is_symlink() and path.is_dir())]
    for file in sorted(folder.glob("*.py") if folder == PACKAGE else folder.rglob("*.py"))
}


def imports(text: str, known: set[str]) -> set[str]:
    """The files of the package that a file imports anywhere, but for what only a type checker sees."""
    tree = ast.parse(text)
    hidden = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for statement in node.body
        for inner in ast.walk(statement)
    }
    found = set()
    for node in ast.walk(tree):
        if id(node) in hidden:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found.add(whole if whole.removeprefix("wiretwin.") in known else node.module)
    inside = {
        name.removeprefix("wiretwin").removeprefix(".") for name in found if name.split(".")[0] == "wiretwin"
    }
    return inside & known


USED = {name: imports(file.read_text(), set(FILES)) - {name} for name, file in FILES.items()}
ORDER = order_in(MAP.read_text())


def against(order: list[str], used: dict[str, set[str]]) -> list[str]:
    """The imports that lead upwards."""
    level = {name: number for number, name in enumerate(order)}
    return [
        f"{user} uses {other}"
        for user, others in sorted(used.items())
        for other in sorted(others)
        if (high := user.split(".")[0]) not in FREE
        and (low := other.split(".")[0]) not in FREE
        and high != low
        and level[low] > level[high]
    ]


def test_every_module_is_in_the_table_once() -> None:
    assert sorted(ORDER) == sorted({name.split(".")[0] for name in FILES} - FREE)


def test_a_module_uses_only_what_stands_above_it() -> None:
    assert against(ORDER, USED) == []


def test_no_circle_of_files() -> None:
    TopologicalSorter(USED).prepare()


def layers_compared(text: str, layers: set[str]) -> set[str]:
    """The names of layers that code compares something with, or looks something up by."""
    found: set[str] = set()
    tree = ast.parse(text)
    constants = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        parts: list[ast.expr] = []
        if isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in ("startswith", "endswith"):
                parts = list(node.args)
            elif node.func.attr == "get":
                parts = [node.func.value]
        elif isinstance(node, ast.Subscript):
            parts = [node.value]
        parts = [constants.get(one.id, one) if isinstance(one, ast.Name) else one for one in parts]
        keys = [key for part in parts if isinstance(part, ast.Dict) for key in part.keys if key is not None]
        lists = [
            one for part in parts if isinstance(part, (ast.Tuple, ast.List, ast.Set)) for one in part.elts
        ]
        named = {
            part.value
            for part in [*parts, *keys, *lists]
            if isinstance(part, ast.Constant) and isinstance(part.value, str) and part.value
        }
        found |= {
            name
            for name in named
            if name in layers or any(one.startswith(name) for one in layers if "/" in name)
        }
    return found


def test_what_a_layer_is_like_is_asked_for_and_never_its_name() -> None:
    layers = set(LAYERS)
    found = {
        name: sorted(compared)
        for name, file in FILES.items()
        if name.split(".")[0] != "stacks" and (compared := layers_compared(file.read_text(), layers))
    }
    assert found == {}


@pytest.mark.parametrize(
    "text",
    [
        "name == 'shm'",
        "name in ('a', 'shm')",
        "name.startswith('socket/')",
        "{'shm': 1}.get(name)",
        "A = ('socket/', 'shm')\nname.startswith(A)",
    ],
)
def test_a_comparison_with_a_layers_name_is_seen(text: str) -> None:
    assert layers_compared(text, {"shm", "socket/tcp"})
    assert not layers_compared(text, {"pvm/pvm3"})


def test_an_import_that_leads_upwards_and_a_circle_are_seen_wherever_they_hide() -> None:
    known = {"errors", "cli.app", "cli"}
    text = "def late() -> None:\n    from wiretwin.cli import app\n    import wiretwin.errors\n"
    assert imports(text, known) == {"cli.app", "errors"}
    assert against(["errors", "cli"], {"errors": {"cli.app"}, "cli.app": {"errors"}}) == [
        "errors uses cli.app"
    ]
    with pytest.raises(CycleError):
        TopologicalSorter({"errors": {"cli.app"}, "cli.app": {"errors"}}).prepare()
    assert order_in("\n## Python\n\n| `wiretwin/a.py`, `wiretwin/b` | `wiretwin/c` |\n\n## Rest") == [
        "a",
        "b",
    ]
