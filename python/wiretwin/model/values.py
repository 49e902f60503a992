"""Data files of hosts, adapters and networks: values with unit, source and how they are known."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wiretwin.errors import InputError, StorageError

__all__ = ["DATA", "Sheet", "Value", "read_sheet", "sheet_names", "write_fitted", "write_measured"]

DATA = Path(__file__).resolve().parents[1] / "data"
"""The folder of data files."""

KNOWN = ("input", "choice", "fit", "measured")


@dataclass(frozen=True)
class Value:
    """One value of a data file.

    Attributes
    ----------
    value
        The number, in the unit that ends its key.
    by
        How it is known: ``input``, ``choice``, ``fit`` or, on the machine at hand, ``measured``.
    source
        Where it comes from, in words.
    low, high
        Ends of the 90 % interval of a fitted or measured value.
    """

    value: float
    by: str
    source: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Sheet:
    """One data file.

    Attributes
    ----------
    path, title, name, kind
        Where it is, what it is called, and what it describes.
    values
        Its own values.
    base
        The sheet of the same folder whose values hold where it has none of its own.
    """

    path: Path
    title: str
    name: str
    kind: str
    values: dict[str, Value]
    base: str | None = None

    def __getitem__(self, key: str) -> float:
        """Return the number of a value.

        Raises
        ------
        InputError
            The file has no such value.
        """
        if key not in self.values and self.base is not None:
            return self.parent()[key]
        if key not in self.values:
            raise InputError(
                self.path, f"values.{key}", reason="is missing", allowed="a value with its source"
            )
        return self.values[key].value

    def parent(self) -> Sheet:
        """Return the sheet that this one is based on.

        Raises
        ------
        InputError
            It is based on none, or on one that is not there or based on a third.
        """
        found = [] if self.base is None else [read_sheet(path) for path in self.path.parent.glob("*.toml")]
        for sheet in found:
            if sheet.name == self.base and sheet.base is None:
                return sheet
        names = sorted(sheet.name for sheet in found if sheet.base is None)
        raise InputError(self.path, "base", self.base, allowed=", ".join(names) or "a sheet of this folder")


def sheet_names(folder: str) -> list[str]:
    """Return the names in a folder of data files, sorted."""
    return sorted(read_sheet(path).name for path in (DATA / folder).glob("*.toml"))


def find_sheet(folder: str, name: str, what: str) -> Sheet:
    """Return the sheet of this name.

    Raises
    ------
    InputError
        There is none.
    """
    sheets = {sheet.name: sheet for sheet in map(read_sheet, sorted((DATA / folder).glob("*.toml")))}
    if name not in sheets:
        raise InputError(key=what, value=name, allowed=", ".join(one for one in sheets if one != "software"))
    return sheets[name]


def read_sheet(path: Path) -> Sheet:
    """Read a data file.

    Raises
    ------
    InputError
        It is no TOML, or a value lacks its number, its source or how it is known.
    StorageError
        It cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise StorageError(path, error.strerror or str(error)) from error
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(path, reason=f"is no TOML: {error}") from None
    values: dict[str, Value] = {}
    listed = content.get("values")
    if not isinstance(listed, dict):
        raise InputError(path, "values", reason="is missing", allowed="a table of values")
    for key, entry in listed.items():
        values[key] = _value(path, key, entry)
    name = str(content.get("name", path.stem))
    base = content.get("base")
    if base is not None and not isinstance(base, str):
        raise InputError(path, "base", base, allowed="the name of a sheet of this folder")
    return Sheet(path, str(content.get("title", name)), name, str(content.get("kind", "")), values, base)


def _value(path: Path, key: str, entry: Any) -> Value:
    place = f"values.{key}"
    if not isinstance(entry, dict):
        raise InputError(path, place, entry, allowed="{ value = NUMBER, by = …, source = … }")
    number = entry.get("value")
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number < 1e15:
        raise InputError(path, f"{place}.value", number, allowed="a number, 0 or more")
    if entry.get("by") not in KNOWN:
        raise InputError(path, f"{place}.by", entry.get("by"), allowed=", ".join(KNOWN))
    if not str(entry.get("source", "")).strip():
        raise InputError(path, f"{place}.source", reason="is missing", allowed="where the value comes from")
    unknown = set(entry) - {"value", "by", "source", "low", "high"}
    if unknown:
        raise InputError(
            path, f"{place}.{min(unknown)}", reason="is unknown", allowed="value, by, source, low, high"
        )
    ends = [entry.get("low"), entry.get("high")]
    return Value(
        float(number), entry["by"], entry["source"], *(None if end is None else float(end) for end in ends)
    )


def write_fitted(path: Path, key: str, value: float, low: float, high: float) -> None:
    """Write a fitted value with its interval into its line of a data file.

    Raises
    ------
    InputError
        The file has no such value, or it is not a fitted one.
    StorageError
        The file cannot be written.
    """
    _write(path, key, "fit", f"value = {value:.5g}, low = {low:.4g}, high = {high:.4g}")


def write_measured(path: Path, key: str, value: float, low: float, high: float) -> None:
    """Write a measured value with its interval into its line of a data file.

    Raises
    ------
    InputError
        The file has no such value, or it is not a measured one.
    StorageError
        The file cannot be written.
    """
    _write(path, key, "measured", f"value = {value:.4g}, low = {low:.4g}, high = {high:.4g}")


def _write(path: Path, key: str, by: str, written: str) -> None:
    """Write a value that is known in this way into its line."""
    from wiretwin.results import write_atomically

    text = path.read_text(encoding="utf-8")
    line = re.compile(
        rf'^{re.escape(key)} = \{{ value = [^,]+,(?: low = [^,]+, high = [^,]+,)? by = "{by}"', re.M
    )
    text, count = line.subn(f'{key} = {{ {written}, by = "{by}"', text)
    if count != 1:
        raise InputError(path, f"values.{key}", reason=f"is no {by} value on a line of its own")
    write_atomically(path, text.encode())
