"""Installed modules a program uses, found by reading it, and imported before its time begins.

The simulated and the live run both import what comes from outside the program's folder first, so
that neither counts the time that numpy takes to load.
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

_APART = {"mpi4py", "wiretwin", "__main__", "__future__"}


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


def scan(script: Path) -> tuple[list[str], list[Path]]:
    """Return the installed modules that a program imports anywhere, and its own files.

    A file that does not parse is left to Python to complain about.
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
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                # `from package import module` may name modules as well as attributes.
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
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
    return [name for name in wanted if name.partition(".")[0] not in _APART], files


def preimport(names: list[str]) -> list[str]:
    """Import what can be imported; returns the names of what was. What cannot fails in the program."""
    done = []
    for name in names:
        if name in sys.modules:
            done.append(name)
            continue
        parent, _, _ = name.rpartition(".")
        with contextlib.suppress(Exception):
            if parent and parent in sys.modules and not hasattr(sys.modules[parent], "__path__"):
                continue  # an attribute of a plain module
            if importlib.util.find_spec(name) is None:
                continue
            importlib.import_module(name)
            done.append(name)
    return done
