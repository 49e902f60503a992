"""What every room keeps: lints, purity, a place on the map."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from house import ROOT, crates

NO_STD = ["units", "wire", "proto", "msg", "engine"]
TOUCHES_THE_MACHINE = {"host", "probe", "provider", "py", "vipl"}
PURE = sorted(set(crates()) - TOUCHES_THE_MACHINE)


def rust_files(room: str) -> list[Path]:
    return sorted((ROOT / "crates" / room / "src").rglob("*.rs"))


def without_tests(source: str) -> str:
    """The source without comments and without what follows its first test module."""
    code = re.sub(r"//[^\n]*", "", source)
    return re.split(r"#\[cfg\((?:any\()?test", code, maxsplit=1)[0]


@pytest.mark.parametrize("room", NO_STD)
def test_the_innermost_rooms_have_no_standard_library(room: str) -> None:
    root = (ROOT / "crates" / room / "src" / "lib.rs").read_text()
    assert re.search(r"^#!\[no_std\]$", root, re.MULTILINE), f"{room} lacks #![no_std]"
    for file in rust_files(room):
        assert not re.search(r"\bextern crate std\b|\bstd::", without_tests(file.read_text())), file


@pytest.mark.parametrize("room", PURE)
def test_a_pure_room_forbids_clocks_environment_and_hash_order(room: str) -> None:
    lints = tomllib.loads((ROOT / "crates" / room / "clippy.toml").read_text())
    forbidden = {entry["path"] for entry in lints["disallowed-types"] + lints["disallowed-methods"]}
    assert forbidden >= {
        "std::time::Instant",
        "std::time::SystemTime",
        "std::collections::HashMap",
        "std::collections::HashSet",
        "std::env::var",
        "std::thread::sleep",
    }


@pytest.mark.parametrize("room", PURE)
def test_a_pure_room_does_not_lift_its_own_bans(room: str) -> None:
    for file in rust_files(room):
        assert not re.search(r"allow\(\s*clippy::disallowed", file.read_text()), file


@pytest.mark.parametrize("room", crates())
def test_every_room_has_the_lints_of_the_workspace(room: str) -> None:
    manifest = tomllib.loads((ROOT / "crates" / room / "Cargo.toml").read_text())
    assert manifest["lints"] == {"workspace": True}
    assert manifest["package"]["license"] == {"workspace": True}


@pytest.mark.parametrize("room", sorted(set(crates()) - {"host", "provider", "vipl"}))
def test_only_the_rooms_beside_the_kernel_and_other_libraries_are_unsafe(room: str) -> None:
    for file in rust_files(room):
        code = re.sub(r"//[^\n]*", "", file.read_text())
        assert not re.search(r"\bunsafe\s*(\{|fn\b|impl\b|extern\b)", code), file


def python_rooms() -> list[str]:
    package = ROOT / "python" / "wiretwin"
    return sorted(path.parent.name for path in package.glob("*/__init__.py"))


def top_folders() -> list[str]:
    ours = ["crates", "python", "docs", "data", "examples", "benches", "tests", "fuzz"]
    return [name for name in ours if (ROOT / name).is_dir()]


@pytest.mark.parametrize("page", ["README.md", "docs/explanation/map.md"])
def test_every_room_is_on_the_map(page: str) -> None:
    text = (ROOT / page).read_text()
    missing = [f"crates/{room}" for room in crates() if f"crates/{room}" not in text]
    missing += [f"wiretwin/{room}" for room in python_rooms() if f"wiretwin/{room}" not in text]
    missing += [f"{folder}/" for folder in top_folders() if f"{folder}/" not in text]
    assert missing == [], f"not on the map in {page}"
