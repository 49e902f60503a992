"""How many lines there are without tests, by crate and by Python package.

Every line counts, comments and blank ones too. Of Rust, what lies below `tests/` or in files named for tests,
what is declared for tests alone (`#[cfg(test)]` before `mod tests;` or `use`), and all after a `#[cfg(test)]`
that opens a module is left out. Prints one row a place; with `--json` one object.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


DECLARED = r"^\s*#\[cfg\((any\()?test[^\n]*\n(\s*#\[[^\n]*\n)*\s*(pub[^\n]*)?(mod|use)[^\n{]*;\n"
"""A module in a file of its own, or names, for tests alone."""

MODULE = r"^#\[cfg\((?:any\()?test[^\n]*\n(?:#\[[^\n]*\n)*(?:pub[^\n]*)?mod \w+ \{"
"""The module of a file's own tests, which ends it."""


def without_tests(path: Path) -> int:
    """Lines of a file, without what a Rust file has for tests alone."""
    text = path.read_text()
    if path.suffix == ".rs":
        text = re.sub(DECLARED, "", text, flags=re.MULTILINE)
        text = re.split(MODULE, text, maxsplit=1, flags=re.MULTILINE)[0]
    return len(text.splitlines())


def sources() -> Iterator[tuple[str, Path]]:
    """Every source file and the place it belongs to."""
    for path in sorted((ROOT / "crates").glob("*/src/**/*.rs")):
        inside = path.relative_to(ROOT / "crates")
        if "tests" not in inside.parts and not re.fullmatch(r"(.*_)?tests\.rs", path.name):
            yield f"crates/{inside.parts[0]}", path
    for path in sorted((ROOT / "python" / "wiretwin").rglob("*.py")):
        inside = path.relative_to(ROOT / "python" / "wiretwin")
        yield f"python/wiretwin/{inside.parts[0] if len(inside.parts) > 1 else ''}", path


def count() -> Counter[str]:
    """Lines by place."""
    counted: Counter[str] = Counter()
    for place, path in sources():
        counted[place] += without_tests(path)
    return counted


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    counted = count()
    if parser.parse_args().json:
        print(json.dumps(dict(sorted(counted.items()))))
        return
    for place, lines in sorted(counted.items(), key=lambda item: -item[1]):
        print(f"{lines:7,} {place}")
    print(f"{counted.total():7,} together")


if __name__ == "__main__":
    main()
