"""The wheel is whole: installed where there is no checkout and no Rust, it does what a checkout does."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from page_runner import run_page
from pages import FROM_THE_WHEEL

ROOT = Path(__file__).resolve().parents[3]
BIN = Path(sys.executable).parent
MOST_MB = 250
"""The most that an installation without extras takes, 10^6 bytes."""
SCENARIO = """
format = "wiretwin-scenario"
version = 2
network = "atm"
[echo]
stack = "fore/aal5"
size = "1 KiB"
rounds = 5
"""

pytestmark = pytest.mark.xdist_group("wheel")


def ended(*words: str | Path, folder: Path, path: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command, with that path and nothing else of this environment if it is given."""
    environment = dict(os.environ) if path is None else {"PATH": path, "HOME": os.environ["HOME"]}
    return subprocess.run(
        [str(word) for word in words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def run(*words: str | Path, folder: Path, path: str | None = None) -> str:
    """Run a command that has to end well; its output."""
    done = ended(*words, folder=folder, path=path)
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


MAKE, INSTALL = re.findall(
    r"^    (.*)$", (ROOT / "README.md").read_text().partition("## Install\n")[2].partition("\n## ")[0], re.M
)
"""The lines of the README that make the wheel and install it, as they are."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, by the README's line."""
    folder = tmp_path_factory.mktemp("wheel") / "dist"
    run("env", f"WHEELS={folder}", "sh", "-ec", MAKE, folder=ROOT)
    (found,) = folder.glob("*.whl")
    return found


def fresh(wheel: Path, extras: str, folder: Path) -> Path:
    """Install the wheel with those extras and nothing else, at the versions that are pinned; its command."""
    environment = folder / "env"
    run(BIN / "uv", "--quiet", "venv", "--python", sys.executable, environment, folder=ROOT)
    python = environment / "bin" / "python"
    pins = folder / "pins.txt"
    pins.write_text(
        "\n".join(re.findall(r"^\S+==\S+", (ROOT / "requirements/runtime.txt").read_text(), re.M))
    )
    install = (BIN / "uv", "--quiet", "pip", "install", "--python", python, "--constraints", pins)
    run(*install, f"{wheel}{extras}", folder=ROOT)
    return environment / "bin" / "wiretwin"


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command of an environment with the wheel and its extra for results, by the README's line.

    What the wheel needs is there before, at the versions that are pinned, so that pip has to fetch nothing.
    """
    command = fresh(wheel, "[report]", tmp_path_factory.mktemp("whole"))
    uv = (BIN / "uv", "--quiet", "pip")
    run(*uv, "uninstall", "--python", command.with_name("python"), "wiretwin", folder=ROOT)
    run(*uv, "install", "--python", command.with_name("python"), "pip", folder=ROOT)
    assert not command.exists()
    path = f"PATH={path_to(command)}"
    run("env", path, "PIP_NO_INDEX=1", "sh", "-ec", INSTALL, folder=wheel.parents[1])
    return command


@pytest.fixture(scope="module")
def plain(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command of an environment with the wheel and no extra."""
    return fresh(wheel, "", tmp_path_factory.mktemp("plain"))


def path_to(command: Path) -> str:
    path = f"{command.parent}:/usr/bin:/bin"
    assert shutil.which("cargo", path=path) is None
    return path


def test_it_holds_the_data_the_programs_the_libraries_and_what_is_compiled_at_first_use(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())

    def files(folder: str, pattern: str = "*") -> set[str]:
        return {
            str(path.relative_to(ROOT / folder)) for path in (ROOT / folder).rglob(pattern) if path.is_file()
        }

    data = {f"wiretwin/data/{name}" for name in files("data")}
    programs = {f"wiretwin/programs/{path.name}" for path in (ROOT / "examples" / "programs").glob("*.py")}
    shims = {f"wiretwin/stacks/shim/{name}" for name in files("python/wiretwin/stacks/shim")}
    assert len(data) > 10
    assert len(shims) > 5
    assert programs
    assert data | programs | shims <= names
    assert {"wiretwin/_core.abi3.so", "wiretwin/fabric/libwiretwin-fi.so"} <= names
    vipl = ("libvipl.so.1", "vipl.h", "vipl.pc", "vnettest.c")
    assert {f"wiretwin/vipl/{name}" for name in vipl} <= names


def test_its_name_says_which_pythons_and_systems_it_suits(wheel: Path, tmp_path: Path) -> None:
    named = re.fullmatch(r"wiretwin-[^-]+-cp311-abi3-manylinux_2_(\d+)_x86_64", wheel.stem)
    assert named, wheel.name
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    needed = {
        int(minor)
        for library in (*tmp_path.rglob("*.so"), *tmp_path.rglob("*.so.1"))
        for minor in re.findall(rb"GLIBC_2\.(\d+)\b", library.read_bytes())
    }
    assert max(needed) <= int(named[1]), "a library in it needs a newer glibc than its name says"


def test_every_verb_that_reads_data_works_without_extras(plain: Path, tmp_path: Path) -> None:
    (tmp_path / "scenario.toml").write_text(SCENARIO)

    def said(*words: str) -> str:
        return run(plain, *words, folder=tmp_path, path=path_to(plain))

    assert "869" in said("papers", "lin1995", "table1", "--quick")
    assert "781.270 us" in said("explain", "fore/aal5", "1KiB", "--network", "asx100:host=sparc2")
    assert "latency_us" in said("simulate", "scenario.toml")
    assert "mpi-mvich" in said("advise", "--stack", "mpi-mvich/gige", "--size", "8KiB")
    assert "wiretwin" in said("--version")


@pytest.mark.parametrize("verb", [("tour",), ("measure", "--layers", "shm"), ("fit", ".")])
def test_what_needs_an_extra_says_so_before_it_begins(
    verb: tuple[str, ...], plain: Path, tmp_path: Path
) -> None:
    done = ended(plain, *verb, folder=tmp_path, path=path_to(plain))
    assert done.returncode == 2
    assert re.fullmatch(
        r"wiretwin: this needs \w+, which is not installed: pip install 'wiretwin\[report\]'\n", done.stderr
    )
    assert not list(tmp_path.iterdir())


def test_without_extras_it_is_small(plain: Path) -> None:
    size = sum(path.lstat().st_size for path in plain.parents[1].rglob("*"))
    assert size < MOST_MB * 10**6


def test_a_c_program_is_built_against_the_vipl_of_a_wheel(plain: Path, tmp_path: Path) -> None:
    build = (
        'eval "$(wiretwin direct vipl)"; cc "$VIPL/vnettest.c" $(pkg-config --cflags --libs vipl) -o vnettest'
    )
    run("sh", "-ec", build, folder=tmp_path, path=path_to(plain))
    assert "1 MiB, RDMA write" in run("./vnettest", "200", folder=tmp_path, path=path_to(plain))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", FROM_THE_WHEEL, ids=lambda page: page.stem)
def test_every_command_of_a_page_works_from_the_wheel(page: Path, installed: Path, tmp_path: Path) -> None:
    environment = {"PATH": path_to(installed), "HOME": str(tmp_path / "home")}
    (tmp_path / "home").mkdir()
    folder = tmp_path / "page"
    folder.mkdir()
    run_page(page.read_text(), folder, python=installed.with_name("python"), environment=environment)


TOUR = """
import wiretwin.tour
from wiretwin.cli import main
wiretwin.tour.PROGRAMS = wiretwin.tour.PROGRAMS[:1]
wiretwin.tour.SIZES = "4,64,1KiB,4KiB,64KiB"
main()
"""
"""The tour with one of the five programs: that all are in the wheel is another test."""


def test_a_tour_ends_in_a_report_without_a_checkout(installed: Path, tmp_path: Path) -> None:
    words = ("tour", "--budget", "5s", "--launches", "1", "-o", "tour")
    run(installed.with_name("python"), "-c", TOUR, *words, folder=tmp_path, path=path_to(installed))
    assert (tmp_path / "tour" / "report.html").stat().st_size > 100_000
