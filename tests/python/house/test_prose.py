"""The words of the project: none where a person reads that has to be decoded."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("prose", ROOT / "docs" / "prose.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["prose"] = module
    spec.loader.exec_module(module)
    return module


prose = load()
WORDS = prose.words(prose.WORDS.read_text())


def names(text: str, suffix: str, folder: Path) -> list[str]:
    file = folder / f"page{suffix}"
    file.write_text(text)
    return [one.word.name for one in prose.search(prose.read(file), file.name, WORDS)]


def test_no_word_of_the_list_is_added() -> None:
    assert [str(one) for one in prose.found()] == []


@pytest.mark.parametrize(
    ("suffix", "text", "found"),
    [
        (".md", "It is refused.\n", ["refused"]),
        (".md", "```text\nrefused\n```\nand `refused`\n", []),
        (".md", "Connection refused\n", []),
        (".md", "One thing. Which.\n", ["fragment"]),
        (".md", "Nobody knows why.\n", []),
        (".md", "there is no room for it in this room\n", ["room"]),
        (".py", '"""A frozen thing."""\nkey = "frozen"\n', ["frozen"]),
        (".py", '"""Do.\n\n    frozen, refused\n        Times.\n    """\n', []),
        (".py", '"""Do.\n\n    layer\n        Which.\n    """\n', ["fragment"]),
        (".py", '"""Where."""\n', ["fragment"]),
        (".py", 'print(f"frozen {when}: {where}")\n', ["frozen"]),
        (".py", 'say(f"{what} is refused here")\nfrozen = 1  # refused\n', ["refused"]),
        (".rs", "/// Octets of it.\nfn octets() {}\n", ["octet"]),
        (".rs", "/// Which.\nrank: u32,\n", ["fragment"]),
        (".rs", 'let said = "the kink lies here";\nlet key = "kink";\n', ["kink"]),
        (".rs", "// refused\n\n#[cfg(test)]\nmod tests {\n    /// refused\n}\n", []),
    ],
)
def test_a_word_is_found_where_a_person_reads_it(
    suffix: str, text: str, found: list[str], tmp_path: Path
) -> None:
    assert names(text, suffix, tmp_path) == found


def test_the_line_is_that_of_the_word(tmp_path: Path) -> None:
    file = tmp_path / "page.rs"
    file.write_text("//! One line.\n//!\n//! Half a round trip.\nfn f() {}\n")
    (one,) = prose.search(prose.read(file), "page.rs", WORDS)
    assert str(one) == "page.rs:3: 'half a round trip': say one-way latency (RTT/2)"
