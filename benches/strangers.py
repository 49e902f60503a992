"""The lists of public programs that predictions are judged on, and how each of them is had and called."""

from __future__ import annotations

import csv
import hashlib
import os
import subprocess
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile

from wiretwin.predict.model import LAYER

__all__ = ["LISTS", "Listed", "NotThereError"]

DATA = Path(__file__).parents[1] / "data" / "accuracy"
#: What builds a program for Debian's Open MPI, by the variables that the scripts know it by.
COMPILERS = {"MPICC": "mpicc.openmpi", "MPICXX": "mpicxx.openmpi", "MPIFC": "mpif90.openmpi"}
BUILD_S = 300.0


class NotThereError(Exception):
    """A program is not there, is another than the list has, or does not build."""


@dataclass(frozen=True)
class Listed:
    """A program of a list, by its columns."""

    columns: dict[str, str]
    find: Callable[[dict[str, str], Path, Path, int], tuple[Path, Path]]

    @property
    def name(self) -> str:
        """Return it as tables have it: its repository, and what of it is run how."""
        one = self.columns
        if "path" in one:
            return f"{one['repository']}/{one['path']}"
        program = f"{one['folder']}/{one['program']} {one['arguments']}".removeprefix("./").rstrip()
        return f"{one['repository']}/{program}"

    def program(self, folder: Path, out: Path, ranks: int) -> tuple[Path, Path]:
        """Return the program, built in `out` if need be, and the folder to run it in.

        Raises
        ------
        NotThereError
            It cannot be had, with the reason in a line.
        """
        return self.find(self.columns, folder / self.columns["repository"].replace("/", "+"), out, ranks)

    def words(self, ranks: int) -> tuple[str, ...]:
        """Return its arguments for a number of ranks."""
        return tuple(self.columns["arguments"].format(ranks=ranks, half=ranks // 2).split())


def script(listed: dict[str, str], repository: Path, out: Path, ranks: int) -> tuple[Path, Path]:
    """Return a script, which has to be the file that was listed."""
    found = repository / listed["path"]
    if not found.exists() or hashlib.sha256(found.read_bytes()).hexdigest() != listed["sha256"]:
        raise NotThereError("not there")
    return found, found.parent


def built(listed: dict[str, str], repository: Path, out: Path, ranks: int) -> tuple[Path, Path]:
    """Return a program, built from the commit that was listed if it has not been.

    The script `OWNER+NAME.build` beside the repository builds it, and is told the program.
    """
    name = hashlib.sha256("".join(listed.values()).encode()).hexdigest()[:16]
    tree = out / "built" / name
    there = tree / listed["folder"]
    found = there / listed["program"].format(ranks=ranks)
    if not tree.exists():
        recipe = repository.with_name(repository.name + ".build")
        if not recipe.exists():
            raise NotThereError("nothing says how it is built")
        tree.mkdir(parents=True)
        _extract(repository, listed["commit"], listed["parts"].split(), tree)
        env = os.environ | COMPILERS
        command = ["bash", str(recipe), listed["program"]]
        done = subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True, timeout=BUILD_S)
        (tree / "build.log").write_text(done.stdout + done.stderr, "utf-8")
    if not found.exists():
        words = (tree / "build.log").read_text("utf-8").strip().splitlines()
        raise NotThereError(f"does not build: {words[-1] if words else 'without a word'}")
    return found, there


def _extract(repository: Path, commit: str, parts: list[str], tree: Path) -> None:
    """Put parts of a commit of a repository, all of it where none is named, into a folder."""
    bare = (repository / "HEAD").exists()
    git = ["git", f"--git-dir={repository if bare else repository / '.git'}", "archive", commit, *parts]
    with TemporaryFile() as file:
        try:
            done = subprocess.run(git, stdout=file, stderr=subprocess.PIPE, text=True)
        except OSError as error:
            raise NotThereError(f"git: {error.strerror}") from None
        if done.returncode:
            tree.rmdir()
            raise NotThereError("not there")
        file.seek(0)
        with tarfile.open(fileobj=file) as archive:
            archive.extractall(tree, filter="data")


@dataclass(frozen=True)
class List:
    """A list: its file, the file of its results, the layer of a twin that serves it, and how it is found."""

    file: str
    results: str
    layer: str
    find: Callable[[dict[str, str], Path, Path, int], tuple[Path, Path]]

    def read(self) -> list[Listed]:
        """Return all that are on it, in order."""
        rows = csv.DictReader((DATA / self.file).read_text("utf-8").splitlines())
        return [Listed(row, self.find) for row in rows]


LISTS = {
    "scripts": List("scripts.csv", "strangers.jsonl", LAYER, script),
    "programs": List("programs.csv", "compiled.jsonl", "mpi/openmpi", built),
}
