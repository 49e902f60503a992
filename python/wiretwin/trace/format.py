"""A recorded run: a folder with a manifest, ``trace.json``, and what each rank asked of MPI, a file for each.

A rank's file is what ``trace.c`` wrote: a header, then records of one length, in the order in which its calls
ended.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from wiretwin.errors import InputError

__all__ = ["COLLECTIVES", "MODES", "Kind", "Manifest", "Trace"]


class Kind(IntEnum):
    """What a record is of, as ``trace.c`` numbers it."""

    SEND = 1
    ISEND = 2
    RECV = 3
    IRECV = 4
    DONE = 5
    """A request that the WAIT behind it has completed."""
    WAIT = 6
    PROBE = 7
    """A message that was found."""
    COLLECTIVE = 8
    COUNT = 9
    """The bytes for one rank of the COLLECTIVE behind it."""
    MEMBER = 10
    """A rank of a communicator that is used for the first time."""
    UNKNOWN = 11
    """A function that is not recorded."""
    END = 12


MODES = ("standard", "synchronous", "ready", "buffered")
"""Of sends, by number."""
COLLECTIVES = (
    "barrier", "bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "alltoall", "reduce_scatter",
    "scan", "exscan",
)  # fmt: skip
"""As the core calls them, by number."""

_HEADER = np.dtype([("mark", "S8"), ("rank", "u4"), ("ranks", "u4"), ("is_cut", "u8")])
_RECORD = np.dtype(
    [
        ("kind", "u4"),
        ("peer", "i4"),
        ("tag", "i4"),
        ("context", "i4"),
        ("bytes", "u8"),
        ("request", "u8"),
        ("compute_ns", "u8"),
        ("inside_ns", "u8"),
    ]
)
_MARK = b"wttrace1"


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

    def records(self, rank: int) -> npt.NDArray[Any]:
        """Return the records of a rank, in order.

        Raises
        ------
        InputError
            Its file is not there, is damaged, or was cut off at the limit of its length.
        """
        file = self.path / str(rank)
        try:
            raw = file.read_bytes()
        except OSError as error:
            raise InputError(file=str(file), reason=error.strerror or str(error)) from None
        header = np.frombuffer(raw[: _HEADER.itemsize], _HEADER) if len(raw) >= _HEADER.itemsize else None
        if header is None or header["mark"][0] != _MARK:
            raise InputError(file=str(file), reason="is not what a rank recorded")
        if (int(header["rank"][0]), int(header["ranks"][0])) != (rank, self.ranks):
            raise InputError(file=str(file), reason=f"is of rank {header['rank'][0]} of {header['ranks'][0]}")
        if header["is_cut"][0]:
            raise InputError(
                file=str(file), reason="was cut off at its longest", allowed="a larger --most when recording"
            )
        if (len(raw) - _HEADER.itemsize) % _RECORD.itemsize:
            raise InputError(file=str(file), reason="ends within a record")
        found = np.frombuffer(raw, _RECORD, offset=_HEADER.itemsize)
        if not len(found) or found["kind"][-1] != Kind.END:
            raise InputError(file=str(file), reason="has no end: the rank did not call MPI_Finalize")
        return found

    def summary(self) -> list[tuple[float, ...]]:
        """Return by rank: number, sends, their bytes, receives, collectives, seconds outside MPI, inside."""
        rows: list[tuple[float, ...]] = []
        for rank in range(self.ranks):
            found = self.records(rank)
            kinds = found["kind"]
            sends = found[np.isin(kinds, (Kind.SEND, Kind.ISEND))]
            counts = [
                int(np.isin(kinds, wanted).sum()) for wanted in ((Kind.RECV, Kind.IRECV), Kind.COLLECTIVE)
            ]
            calls = found[~np.isin(kinds, (Kind.COUNT, Kind.MEMBER, Kind.UNKNOWN))]
            spans = (calls["compute_ns"].sum() / 1e9, calls["inside_ns"].sum() / 1e9)
            rows.append((rank, len(sends), int(sends["bytes"].sum()), *counts, *map(float, spans)))
        return rows

    @cached_property
    def unknown(self) -> list[str]:
        """The names of functions that were called and are not recorded, each once."""
        names = {
            name_of(one) for rank in range(self.ranks) for one in self.records(rank) if one["kind"] == 11
        }
        return sorted(names)


def name_of(record: Any) -> str:
    """Return the name in a record of kind UNKNOWN: it takes the place of the four last numbers."""
    return bytes(record.tobytes()[16:]).split(b"\0")[0].decode("ascii", "replace")
