"""The example programs that the tour and the accuracy table run, at two sizes each."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from wiretwin.errors import InputError

Size = Literal["small", "large"]


@dataclass(frozen=True, slots=True)
class Shipped:
    """An example program and the arguments of its two sizes."""

    file: str
    small: tuple[str, ...]
    large: tuple[str, ...]

    def args(self, size: Size) -> tuple[str, ...]:
        """Return the arguments of a size."""
        return self.small if size == "small" else self.large

    def path(self) -> Path:
        """Return the script.

        Raises
        ------
        InputError
            When the examples are not there.
        """
        path = folder() / self.file
        if not path.is_file():
            raise InputError(
                path, reason="is not there", allowed="a checkout, or a package with its examples"
            )
        return path


PROGRAMS = (
    Shipped("heat2d.py", ("--points", "256", "--steps", "1000"), ("--points", "768", "--steps", "300")),
    Shipped("matmul.py", ("--size", "384", "--repeat", "60"), ("--size", "1024", "--repeat", "8")),
    Shipped(
        "ring_allreduce.py",
        ("--elements", "20000", "--repeat", "3000"),
        ("--elements", "1000000", "--repeat", "120"),
    ),
    Shipped(
        "master_worker.py",
        ("--limit", "20000000", "--tasks", "600"),
        ("--limit", "100000000", "--tasks", "100"),
    ),
    Shipped("sample_sort.py", ("--keys", "100000", "--repeat", "40"), ("--keys", "2000000", "--repeat", "5")),
)


def folder() -> Path:
    """Return the folder of the example programs: beside the package, or in the checkout around it."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "programs"
    return inside if inside.is_dir() else package.parent.parent / "examples" / "programs"
