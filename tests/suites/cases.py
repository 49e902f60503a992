"""The suites: each case a program with its arguments for each MPI, and a number of ranks."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mpich_tests

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "suites"
RANKS = (2, 4)
_BESIDE = Path(sys.executable).parent
COMPILERS = {
    "openmpi": ("mpicc.openmpi", "mpicxx.openmpi"),
    "mpich": (str(_BESIDE / "mpicc"), str(_BESIDE / "mpicxx")),
}
SAMPLE = ("test_p2p_obj_matched", "test_msgzero", "test_cco_obj")
"""What is run of mpi4py's suite on every change."""
OSU_QUICK = ("-m", "1:65536", "-i", "20", "-x", "2", "-c")
"""Sizes, repetitions and validation of an OSU benchmark: what it measures is not looked at here."""
OSU_OTHER = {"osu_init": (), "osu_hello": (), "osu_latency_mt": (*OSU_QUICK, "-t", "2:2")}
"""What is given to one that takes nothing, or more."""
IMB_QUICK = ("-iter", "10", "-msglog", "0:14", "-time", "5")
"""Repetitions, sizes up to 16 KiB, and the longest of a size in seconds."""


@dataclass(frozen=True)
class Case:
    """A program of a suite, and how it is started.

    Attributes
    ----------
    suite, name
        What it is called: ``mpi4py``, ``test_p2p_buf 2``; the number of ranks is part of the name.
    argv
        The program with its arguments, for each MPI that it is there for.
    ranks
        How many there are.
    """

    suite: str
    name: str
    argv: Mapping[str, Sequence[str]]
    ranks: int


def mpi4py_sources() -> Path:
    """Return the folder of the sources of the mpi4py that is installed; fetch them if they are not there.

    Raises
    ------
    subprocess.CalledProcessError
        The package index does not give them.
    """
    version = importlib.metadata.version("mpi4py")
    folder = BUILD / f"mpi4py-{version}"
    if not folder.is_dir():
        BUILD.mkdir(parents=True, exist_ok=True)
        fetch = ["pip", "download", "--quiet", "--no-deps", "--no-binary", "mpi4py"]
        packages = [f"mpi4py=={version}", "--dest", str(BUILD)]
        subprocess.run([sys.executable, "-m", *fetch, *packages], check=True, timeout=600)
        (archive,) = BUILD.glob(f"mpi4py-{version}.tar.*")
        # Whoever is ended in between leaves no half of it in its place.
        with tempfile.TemporaryDirectory(dir=BUILD) as unpacked, tarfile.open(archive) as packed:
            packed.extractall(unpacked, filter="data")
            (Path(unpacked) / folder.name).rename(folder)
    return folder


def mpi4py_cases(only: Sequence[str] | None = None, numbers: Sequence[int] = RANKS) -> list[Case]:
    """Return mpi4py's own tests, a file each; those of the names, if there are any."""
    tests = mpi4py_sources() / "test"
    names = only or sorted(file.stem for file in tests.glob("test_*.py"))
    python = [sys.executable, str(tests / "main.py"), "-v"]
    return [
        Case("mpi4py", f"{name} {ranks}", {"openmpi": [*python, name], "mpich": [*python, name]}, ranks)
        for name in names
        for ranks in numbers
    ]


def osu_cases(sources: Path) -> list[Case]:
    """Build the OSU benchmarks with the compiler of each MPI; return all of them that both could build."""
    built: dict[str, dict[str, str]] = {}
    for library, (compiler, plus) in COMPILERS.items():
        folder = BUILD / f"osu-{library}"
        if not (folder / "done").exists():
            _copied(sources, folder)
            quiet: dict[str, Any] = {
                "check": True,
                "cwd": folder,
                "timeout": 1200,
                "capture_output": True,
            }
            subprocess.run(["sh", "configure", f"CC={compiler}", f"CXX={plus}"], **quiet)
            for part in ("util", "mpi/pt2pt", "mpi/collective", "mpi/one-sided", "mpi/startup"):
                # What needs a newer MPI than this one is none of the cases.
                subprocess.run(["make", "-k", "-C", f"c/{part}"], **quiet | {"check": False})
            (folder / "done").touch()
        programs = (folder / "c" / "mpi").rglob("osu_*")
        built[library] = {one.name: str(one) for one in programs if one.is_file() and not one.suffix}
    found = []
    for name in sorted(set(built["openmpi"]) & set(built["mpich"])):
        asked = OSU_OTHER.get(name, OSU_QUICK)
        argv = {library: [built[library][name], *asked] for library in built}
        found += [Case("osu", f"{name} {ranks}", argv, ranks) for ranks in RANKS]
    return found


def imb_cases(sources: Path) -> list[Case]:
    """Build the Intel MPI Benchmarks, which check what they move; return all that both MPIs have."""
    parts = ("MPI1", "NBC", "RMA", "EXT", "IO")
    for library, (compiler, plus) in COMPILERS.items():
        folder = BUILD / f"imb-{library}"
        if not (folder / "done").exists():
            _copied(sources, folder)
            for part in parts:
                flags = ["CPPFLAGS=-DCHECK", "CFLAGS=-w", "CXXFLAGS=-w"]
                subprocess.run(
                    ["make", f"TARGET={part}", f"CC={compiler}", f"CXX={plus}", *flags],
                    check=True, cwd=folder / "src_cpp", timeout=1200, capture_output=True,
                )  # fmt: skip
            (folder / "done").touch()
    found = []
    for part in parts:
        programs = {
            library: str(BUILD / f"imb-{library}" / "src_cpp" / f"IMB-{part}") for library in COMPILERS
        }
        listed = subprocess.run(
            [programs["mpich"], "-list"], check=True, timeout=60, capture_output=True, text=True
        )
        for name in re.findall(r"^    (\w+)(?: \(non-default\))?$", listed.stdout, re.MULTILINE):
            for ranks in RANKS:
                asked = [name, "-npmin", str(ranks), *IMB_QUICK]
                argv = {library: [program, *asked] for library, program in programs.items()}
                found.append(Case("imb", f"{part}/{name} {ranks}", argv, ranks))
    return found


def mpich_cases(sources: Path) -> list[Case]:
    """Build MPICH's own tests; return those that need no more than its helpers."""
    found = mpich_tests.programs(sources, COMPILERS["mpich"][0], BUILD / "mpich-tests")
    return [Case("mpich", name, {"mpich": argv}, ranks) for name, ranks, argv in found]


def cases(
    *, sample: bool, osu: Path | None = None, imb: Path | None = None, mpich: Path | None = None
) -> Iterator[Case]:
    """Build the suites whose sources are given; return their cases and those of mpi4py."""
    yield from mpi4py_cases(SAMPLE, (2,)) if sample else mpi4py_cases()
    for sources, made in ((osu, osu_cases), (imb, imb_cases), (mpich, mpich_cases)):
        if sources is not None:
            yield from made(sources.resolve())


def _copied(sources: Path, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(sources, folder, ignore=shutil.ignore_patterns(".git"))
