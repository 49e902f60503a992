"""Installed modules a program uses, found by reading it, and imported before its time begins.

The simulated and the live run both import what comes from outside the program's folder first, so
that neither counts the time that numpy takes to load. That goes for what is loaded on first use, too:
`numpy.random` is a module that numpy imports when a program first says `np.random`, and argparse needs
shutil for the first option of a parser. The simulator has long loaded both when the program begins, a
real launch has not, and a program of 60 ms was predicted 5 to 10 % too short for it.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import sys
import sysconfig
import warnings
from pathlib import Path
from types import ModuleType

_APART = {"mpi4py", "wiretwin", "__main__", "__future__"}
#: What modules of the standard library import when they are used, not when they are imported.
_ON_USE = {"argparse": ("locale", "shutil")}


def _outside() -> tuple[str, ...]:
    """Folders whose modules do not belong to a program, even if it lies above them."""
    paths = sysconfig.get_paths()
    found = {paths[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")}
    package = Path(__file__).resolve().parent.parent
    return tuple(sorted(str(Path(path).resolve()) + "/" for path in [*found, str(package)]))


OUTSIDE = _outside()


def belongs(file: str | None, folder: Path) -> bool:
    """Tell whether a file is one of the program's own."""
    if not file:
        return False
    path = str(Path(file).resolve())
    return path.startswith(str(folder) + "/") and not path.startswith(OUTSIDE) and "site-packages" not in path


def local_file(name: str, folder: Path) -> Path | None:
    """Return the source of a module of the program, or None if it is none."""
    base = folder.joinpath(*name.split("."))
    for candidate in (base / "__init__.py", base.with_suffix(".py")):
        if candidate.is_file() and belongs(str(candidate), folder):
            return candidate
    return None


_SHARED = _APART | {"numpy", "greenlet"}
"""Modules that the simulation and the program use as one, whatever the program's folder has."""


def step_aside(folder: Path) -> dict[str, ModuleType]:
    """Take out of `sys.modules` what the program has files of its own for; returns it by name.

    This process has imported more than a fresh interpreter has, which takes a `statistics.py` beside the
    script for `import statistics`. Only what every interpreter imports at its start comes before that.
    """
    aside: dict[str, ModuleType] = {}
    for entry in sorted(folder.iterdir()) if folder.is_dir() else ():
        name = entry.name.partition(".")[0]
        module = sys.modules.get(name)
        if module is None or name in _SHARED or local_file(name, folder) is None:
            continue
        if _is_of_the_start(module) or belongs(getattr(module, "__file__", None), folder):
            continue
        for full in [one for one in sys.modules if one == name or one.startswith(name + ".")]:
            aside[full] = sys.modules.pop(full)
    return aside


def _is_of_the_start(module: ModuleType) -> bool:
    """Tell whether every interpreter has imported a module before its script begins."""
    origin = getattr(getattr(module, "__spec__", None), "origin", None)
    return origin in ("frozen", "built-in") or module.__name__ == "encodings"


def scan(script: Path) -> tuple[list[str], list[Path]]:
    """Return the installed modules that a program imports or may use anywhere, and its own files.

    Among them are attributes of imported modules, for they may be modules too. A file that does not parse is
    left to Python to complain about.
    """
    folder = script.resolve().parent
    wanted: dict[str, None] = {}
    files: list[Path] = []
    todo = [script.resolve()]
    while todo:
        file = todo.pop(0)
        if file in files:
            continue
        files.append(file)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(file.read_bytes(), str(file))
        except (OSError, SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names = [name for alias in node.names for name in (alias.name, *_ON_USE.get(alias.name, ()))]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                # `from package import module` may name modules as well as attributes.
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
                names += _ON_USE.get(node.module, ())
            elif isinstance(node, ast.ImportFrom) and node.level:
                base = file.parents[node.level - 1]
                parts = [node.module] if node.module else [alias.name for alias in node.names]
                todo += [path for part in parts if (path := local_file(part, base)) is not None]
                continue
            else:
                continue
            for name in names:
                own = local_file(name, folder)
                if own is not None:
                    todo.append(own)
                elif local_file(name.partition(".")[0], folder) is None:
                    wanted[name] = None
        wanted |= dict.fromkeys(name for name in _attributes(tree) if name.rpartition(".")[0] in wanted)
    return [name for name in wanted if name.partition(".")[0] not in _APART], files


def _attributes(tree: ast.Module) -> list[str]:
    """Return what the file takes from modules by a dot: "numpy.random" where it says `np.random`."""
    bound = {
        alias.asname or alias.name: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    return [
        f"{bound[node.value.id]}.{node.attr}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in bound
    ]


def _may_hold(parent: ModuleType, name: str) -> bool:
    """Tell whether `name` may be a module in `parent`: no attribute of a plain module, nor one that is there.

    A module that is imported takes the place of an attribute of its name: what is there stays.
    """
    return hasattr(parent, "__path__") and name.rpartition(".")[2] not in vars(parent)


def preimport(names: list[str]) -> list[str]:
    """Import what can be imported; returns the names of what was. What cannot fails in the program.

    `from package import *` takes every name of the package, and some packages load modules only then.
    """
    done = []
    for name in names:
        if name.endswith(".*"):
            package = sys.modules.get(name.removesuffix(".*"))
            for attribute in getattr(package, "__all__", ()):
                with contextlib.suppress(Exception):
                    getattr(package, attribute)
            continue
        if name in sys.modules:
            done.append(name)
            continue
        parent, _, _ = name.rpartition(".")
        with contextlib.suppress(Exception):
            if parent and parent in sys.modules and not _may_hold(sys.modules[parent], name):
                continue
            if importlib.util.find_spec(name) is None:
                continue
            importlib.import_module(name)
            done.append(name)
    return done
