"""The intervals of a simulated run as a frame: rank, from, to, kind, call, source line, peer, bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

__all__ = ["FILE", "KINDS", "coarse_note", "frame"]

#: What it is called in a prediction's folder.
FILE = "timeline.parquet"
#: Where a simulated rank's time goes, in the world's order.
KINDS = ("compute", "endpoint", "wire", "waiting")


def frame(columns: Mapping[str, Any], names: Sequence[str], places: Sequence[str] = ()) -> pl.DataFrame:
    """Return a world's intervals with kinds, calls and source lines in words.

    Parameters
    ----------
    columns
        As `World.timeline` has them.
    names, places
        Of the calls and of the source lines, by number; -1 is none.
    """
    import numpy as np
    import polars as pl

    # An index of -1 finds the empty word at the end.
    calls, lines = (np.array([*words, ""], dtype=object) for words in (names, places))
    return pl.DataFrame(
        {
            "rank": columns["rank"],
            "start_ps": columns["start_ps"],
            "end_ps": columns["end_ps"],
            "kind": pl.Series(np.array([*KINDS], dtype=object)[columns["kind"]], dtype=pl.String),
            "name": pl.Series(calls[columns["name_index"].astype(np.int64)], dtype=pl.String),
            "site": pl.Series(lines[columns["site"].astype(np.int64)], dtype=pl.String),
            "peer": columns["peer"],
            "bytes": columns["bytes"],
        }
    )


def coarse_note(coarse_ps: int) -> tuple[str, ...]:
    """Return the warning that a timeline is not whole, if it is not."""
    if not coarse_ps:
        return ()
    return (
        f"the timeline would have more than a million intervals: those within {coarse_ps / 1e6:.4g} us are "
        "summed by kind",
    )
