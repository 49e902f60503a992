"""A recorded run: a folder with a manifest, ``trace.json``, and what each rank asked of MPI, a file for each.

A rank's file is what ``trace.c`` wrote: a header, then records of one length, in the order in which its calls
ended.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from wiretwin import _core
from wiretwin.errors import InputError

__all__ = ["Manifest", "Trace", "rejected"]


class Manifest(BaseModel):
    """What is known of the run as a whole."""

    model_config = ConfigDict(extra="forbid")

    format: Literal["wiretwin-trace"] = "wiretwin-trace"
    version: Literal[1] = 1
    program: str
    args: list[str]
    ranks: int = Field(ge=1)
    library: str = Field(description="the MPI that ran, by name")
    world: Literal["live", "simulated"] = "live"
    printed: str = Field(default="", description="what its launcher handed on")
    recorded_utc: str
    wiretwin: str


class Trace:
    """A recorded run.

    Parameters
    ----------
    path
        Its folder.

    Raises
    ------
    InputError
        It is none: names the file, and what is wrong with it.
    """

    MANIFEST = "trace.json"

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        file = self.path / self.MANIFEST
        try:
            self.manifest = Manifest.model_validate_json(file.read_text("utf-8"))
        except (OSError, UnicodeDecodeError, ValidationError) as error:
            if isinstance(error, ValidationError):
                first = error.errors()[0]
                reason = f"{'.'.join(map(str, first['loc'])) or 'the whole'}: {first['msg']}"
            else:
                reason = str(getattr(error, "strerror", None) or error)
            raise InputError(file=str(file), reason=reason, allowed="a folder of `wiretwin trace`") from None

    @property
    def ranks(self) -> int:
        """How many ranks there were."""
        return self.manifest.ranks

    def summary(self) -> list[tuple[float, ...]]:
        """Return by rank: number, sends, their bytes, receives, collectives, seconds outside MPI, inside.

        Raises
        ------
        InputError
            The file of a rank is not there, is damaged, or was cut off at the limit of its length.
        """
        return [(rank, *row[:4], row[4] / 1e9, row[5] / 1e9) for rank, row in enumerate(self._summary[0])]

    @property
    def unknown(self) -> list[str]:
        """The names of functions that were called and are not recorded, each once."""
        return self._summary[1]

    @cached_property
    def _summary(self) -> tuple[list[tuple[int, int, int, int, int, int]], list[str]]:
        with rejected():
            return _core.recording_summary(self.path, self.ranks)


@contextlib.contextmanager
def rejected() -> Iterator[None]:
    """Turn what the core says of a file into an `InputError`."""
    try:
        yield
    except ValueError as error:
        file, key, value, reason, allowed = error.args
        raise InputError(file=file, key=key, value=value, reason=reason, allowed=allowed) from None
