"""The code blocks of a page, and what they tell the machine to do.

A page is run from top to bottom in one empty folder:

- in a ``console`` block, each line that begins with ``$ `` is a command for the shell (a line that
  ends in a backslash goes on); the other lines show what it printed and are not compared;
- a ``python`` block is run by one interpreter that the page keeps;
- a ``code-block`` with a caption is a file: it is written under that name.

Anything else (``text``, ``toml``, ``json``) is shown only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).resolve().parents[2]
FROM_THE_WHEEL = (ROOT / "README.md", ROOT / "docs" / "tutorial.md")
"""Pages that are run where nothing but the wheel is installed."""

_FENCE = re.compile(r"^(?P<fence>`{3,}|:{3,})(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=fence)[ ]*$", re.M | re.S)


@dataclass(frozen=True)
class Step:
    """One thing a page does."""

    kind: Literal["command", "python", "file"]
    text: str
    line: int
    name: str = ""


def pages() -> list[Path]:
    """Every page that a person reads."""
    top = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    return top + sorted(path for path in (ROOT / "docs").rglob("*.md") if "_build" not in path.parts)


def steps(text: str) -> list[Step]:
    """What a page does, in order."""
    found: list[Step] = []
    for match in _FENCE.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        info, body = match["info"].strip(), match["body"]
        directive = re.fullmatch(r"\{code-block\}\s*(\w+)", info)
        if directive:
            options, body = _options(body)
            info = directive[1]
            if "caption" in options:
                found.append(Step("file", body, line, options["caption"]))
                continue
        if info == "console":
            found += [Step("command", command, line + offset) for offset, command in _commands(body)]
        elif info == "python":
            found.append(Step("python", body, line))
    return found


def _options(body: str) -> tuple[dict[str, str], str]:
    options = {}
    lines = body.splitlines(keepends=True)
    while lines and (match := re.fullmatch(r":(\w+):\s*(.*?)\s*", lines[0])):
        options[match[1]] = match[2]
        lines.pop(0)
    while lines and not lines[0].strip():
        lines.pop(0)
    return options, "".join(lines)


def _commands(body: str) -> list[tuple[int, str]]:
    commands: list[tuple[int, str]] = []
    going_on = False
    for offset, line in enumerate(body.splitlines(), 1):
        if going_on:
            start, command = commands.pop()
            commands.append((start, f"{command}\n{line.strip()}"))
        elif line.startswith("$ "):
            commands.append((offset, line[2:]))
        else:
            continue
        going_on = line.endswith("\\")
    return commands
