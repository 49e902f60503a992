"""What holds for every file of the tree."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from house import MADE, ROOT, files

LINES = 800
# Written by a tool: one entry a dependency.
LOCKS = ["Cargo.lock", "requirements/runtime.txt", "requirements/dev.txt", "fuzz/Cargo.lock"]

# Folders and files at the top.
TOP = {"benches", "crates", "data", "docs", "examples", "fuzz", "python", "requirements", "tests", ".ci"}
TOP |= {
    "CHANGELOG.md",
    "CITATION.cff",
    "CONTRIBUTING.md",
    "Containerfile",
    "LICENSE",
    "Makefile",
    "README.md",
    ".gitignore",
}
TOP |= {"Cargo.lock", "Cargo.toml", "pyproject.toml", "rustfmt.toml"}

# A path of the machine it was written on: a home, a working folder, a private folder of `/tmp`.
MACHINE_PATH = re.compile(r"(?<![\w.~-])/(?:work|root|home|Users)/[\w.-]")
INDEX_OPTION = re.compile(r"(?:extra-)?index-url|find-links|trusted-host|^registry\s*=", re.MULTILINE)
ADDRESS = re.compile(r"[\w+]+://[^\s\"']+")
CRATES_INDEX = "registry+https://github.com/rust-lang/crates.io-index"


def shown(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_no_file_is_too_long_to_read() -> None:
    sources = files(".rs", ".py", ".pyi", ".md", ".c", ".h", ".js", ".css", ".html", ".j2")
    long = {shown(path): count for path in sources if (count := path.read_text().count("\n")) >= LINES}
    assert long == {}, f"files of {LINES} lines or more: split them by idea"


def test_no_file_knows_the_machine_it_was_written_on() -> None:
    found = [
        f"{shown(path)}:{number}: {line.strip()[:80]}"
        for path in files()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if MACHINE_PATH.search(line)
    ]
    assert found == []


def test_a_machine_path_would_be_seen() -> None:
    for folder in ("work", "home", "root", "Users"):
        assert MACHINE_PATH.search(f"open('/{folder}/someone')")
    assert not MACHINE_PATH.search("https://example.org/home/page")
    assert not MACHINE_PATH.search("proto/work/unit")


def locks() -> list[str]:
    return [name for name in LOCKS if (ROOT / name).exists()]


@pytest.mark.parametrize("name", locks())
def test_a_lock_file_carries_no_download_address(name: str) -> None:
    text = (ROOT / name).read_text()
    assert not INDEX_OPTION.search(text)
    addresses = set(ADDRESS.findall(text))
    assert addresses - {CRATES_INDEX} == set()


def test_a_lock_file_pins_every_package_by_digest() -> None:
    for name in ("requirements/runtime.txt", "requirements/dev.txt"):
        entries = re.split(r"\n(?=\S)", (ROOT / name).read_text())
        pins = [entry for entry in entries if not entry.startswith("#")]
        assert pins, name
        assert [pin for pin in pins if "==" not in pin or "--hash=sha256:" not in pin] == []
    packages = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    assert [entry["name"] for entry in packages if "source" in entry and "checksum" not in entry] == []


def test_the_settings_name_no_registry() -> None:
    settings = [ROOT / "pyproject.toml", ROOT / "Makefile", *(ROOT / ".ci").glob("*")]
    settings += [path for path in files(".toml") if path.name in {"Cargo.toml", "config.toml"}]
    settings += list((ROOT / ".cargo").glob("*"))
    # `--no-emit-index-url` keeps the address out of the lock files.
    texts = {path: path.read_text().replace("--no-emit-index-url", "") for path in settings}
    assert [shown(path) for path, text in texts.items() if INDEX_OPTION.search(text)] == []


def test_no_two_test_files_of_python_have_one_name() -> None:
    """Pytest imports them by their name alone."""
    names = [path.name for path in sorted((ROOT / "tests" / "python").rglob("*.py"))]
    twice = {name for name in names if names.count(name) > 1} - {"conftest.py", "__init__.py"}
    assert not twice


def test_the_tree_holds_at_its_top_what_it_is_known_to_hold() -> None:
    """What a command left in the working folder is easily taken in with everything else."""
    listed = subprocess.run(
        ["git", "-c", f"safe.directory={ROOT}", "ls-files"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    # A copy without its history holds nothing else than the tree and what tools make.
    names = listed.stdout.splitlines() if listed.returncode == 0 else [one.name for one in ROOT.iterdir()]
    assert {name.partition("/")[0] for name in names} - MADE <= TOP


STARTS = ("subprocess.Popen(", "subprocess.run(", "subprocess.check_", "Process(", "os.fork(", "os.system(")
"""Ways to start a process."""


def test_a_process_is_started_under_the_keeper_of_its_run() -> None:
    """By `wiretwin.process.start`; the exceptions are the keepers themselves."""
    package = ROOT / "python" / "wiretwin"
    found = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if any(start in path.read_text().replace("psutil.Process(", "") for start in STARTS)
    }
    assert found == {"process.py", "keeper.py", "testbed/bed.py", "testbed/keeper.py"}
