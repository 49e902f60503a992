"""What the tests of the house share: where the tree is and which of its files are ours."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]

# Octets, not text: the inputs that fuzz targets start from.
OCTETS = {"corpus"}

# Made by tools, never part of the tree.
MADE = {".git", ".venv", "target", "build", "dist", "results", "_build", "artifacts", "__pycache__"}
MADE |= {".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".ipynb_checkpoints"}

TEXT = {".rs", ".py", ".pyi", ".md", ".toml", ".txt", ".c", ".h", ".js", ".css", ".html", ".j2", ".json"}
TEXT |= {".cff", ".yml", ".yaml", ".ipynb", ".svg", ".sh", ".cfg", ""}


def files(*suffixes: str) -> Iterator[Path]:
    """Every file of the tree with one of these suffixes, or every text file, in a fixed order."""
    wanted = set(suffixes) or TEXT
    for folder, names, found in os.walk(ROOT):
        names[:] = sorted(
            name
            for name in names
            if name not in MADE | OCTETS and not name.endswith((".egg-info", ".dist-info"))
        )
        for name in sorted(found):
            path = Path(folder, name)
            if name not in MADE and path.suffix in wanted and path.is_file():
                yield path


def crates() -> list[str]:
    """The rooms under ``crates/``, without the project's prefix."""
    return sorted(path.parent.name for path in (ROOT / "crates").glob("*/Cargo.toml"))
