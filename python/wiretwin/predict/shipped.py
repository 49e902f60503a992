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
    Shipped("heat2d.py", ("--points", "768", "--steps", "400"), ("--points", "1024", "--steps", "600")),
    Shipped("matmul.py", ("--size", "768", "--repeat", "8"), ("--size", "1280", "--repeat", "6")),
    Shipped("ring_allreduce.py", (), ("--repeat", "40")),
    Shipped("master_worker.py", (), ()),
    Shipped("sample_sort.py", ("--keys", "1000000", "--repeat", "6"), ("--keys", "2000000", "--repeat", "8")),
)


def folder() -> Path:
    """Return the folder of the example programs: beside the package, or in the checkout around it."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "programs"
    return inside if inside.is_dir() else package.parent.parent / "examples" / "programs"
