"""Samples that no launch can have taken: a file can hold any number, and a fit would take it for a time."""

from __future__ import annotations

import polars as pl

from wiretwin.errors import InputError

__all__ = ["LONGEST_NS", "check_samples"]

LONGEST_NS = 10**14
"""More than a day: the longest that a batch, or a delay in it, can have taken, nanoseconds."""

_MOST = {"bytes": 1 << 40, "delay_ns": LONGEST_NS, "value_ns": LONGEST_NS}


def check_samples(samples: pl.DataFrame, place: str | None) -> None:
    """Reject samples with a number that nothing measured can be.

    Parameters
    ----------
    samples
        With the columns of a result.
    place
        The result's folder, for the message.

    Raises
    ------
    InputError
        A message, a delay or a time is too large; names the launch, the layer, the loop and the size.
    """
    for column, most in _MOST.items():
        if column not in samples.columns:
            continue
        wrong = samples.filter(pl.col(column) > most)
        if wrong.height:
            row = wrong.row(0, named=True)
            where = f"launch {row['launch']}, {row['layer']}, {row['loop']}, {row['bytes']} bytes"
            more = f" (and {wrong.height - 1} more like it)" if wrong.height > 1 else ""
            raise InputError(
                place, where, f"{column} {row[column]}{more}", f"at most {most}", "was not measured"
            )
