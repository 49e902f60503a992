"""The wheel is whole: installed where there is no checkout and no Rust, it does what a checkout does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
BIN = Path(sys.executable).parent
SCENARIO = """
format = "wiretwin-scenario"
version = 2
network = "atm"
[echo]
stack = "fore/aal5"
size = "1 KiB"
rounds = 5
"""


def run(*words: str | Path, folder: Path, path: str | None = None) -> str:
    """Run a command, with that path and nothing else of this environment if it is given; its output."""
    environment = dict(os.environ) if path is None else {"PATH": path, "HOME": os.environ["HOME"]}
    built = {"VIRTUAL_ENV": str(BIN.parent), "PYO3_PYTHON": sys.executable} if path is None else {}
    ended = subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env=environment | built,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.returncode == 0, f"{words}: {ended.stdout}{ended.stderr}"
    return ended.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, made of the core that is built already."""
    folder = tmp_path_factory.mktemp("wheel")
    run(BIN / "maturin", "build", "--release", "--locked", "-o", folder, folder=ROOT)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command of a fresh environment with nothing but the wheel and what it needs."""
    environment = tmp_path_factory.mktemp("fresh") / "env"
    run(BIN / "uv", "--quiet", "venv", "--python", sys.executable, environment, folder=ROOT)
    python = environment / "bin" / "python"
    install = (BIN / "uv", "--quiet", "pip", "install", "--python", python)
    run(*install, "--require-hashes", "-r", "requirements/runtime.txt", folder=ROOT)
    run(*install, "--no-deps", wheel, folder=ROOT)
    return environment / "bin" / "wiretwin"


def test_it_holds_the_data_the_programs_and_the_libraries(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    data = {
        f"wiretwin/data/{path.relative_to(ROOT / 'data')}"
        for path in (ROOT / "data").rglob("*")
        if path.is_file()
    }
    programs = {f"wiretwin/programs/{path.name}" for path in (ROOT / "examples" / "programs").glob("*.py")}
    assert data
    assert programs
    assert data | programs <= names
    assert {"wiretwin/_core.abi3.so", "wiretwin/fabric/libwiretwin-fi.so"} <= names


def test_every_verb_that_reads_data_works_without_a_checkout(installed: Path, tmp_path: Path) -> None:
    path = f"{installed.parent}:/usr/bin:/bin"
    assert shutil.which("cargo", path=path) is None
    (tmp_path / "scenario.toml").write_text(SCENARIO)

    def said(*words: str) -> str:
        return run(installed, *words, folder=tmp_path, path=path)

    assert "869" in said("papers", "lin1995", "table1", "--quick")
    assert "856.512 us" in said("explain", "fore/aal5", "1KiB", "--network", "asx100:host=sparc2")
    assert "latency_us" in said("simulate", "scenario.toml")
    assert "mpi-mvich" in said("advise", "--stack", "mpi-mvich/gige", "--size", "8KiB")
    assert "wiretwin" in said("--version")


TOUR = """
import wiretwin.tour
from wiretwin.cli import main
wiretwin.tour.PROGRAMS = wiretwin.tour.PROGRAMS[:1]
wiretwin.tour.SIZES = "4,64,1KiB,4KiB,64KiB"
main()
"""
"""The tour with one of the five programs: that all are in the wheel is another test."""


def test_a_tour_ends_in_a_report_without_a_checkout(installed: Path, tmp_path: Path) -> None:
    path = f"{installed.parent}:/usr/bin:/bin"
    words = ("tour", "--budget", "5s", "--launches", "1", "-o", "tour")
    run(installed.with_name("python"), "-c", TOUR, *words, folder=tmp_path, path=path)
    assert (tmp_path / "tour" / "report.html").stat().st_size > 100_000
