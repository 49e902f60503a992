"""A host of the local networks as an object: its costs, each with unit and source."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from wiretwin.errors import InputError
from wiretwin.model.values import Sheet, Value, find_sheet, read_sheet, sheet_names

__all__ = ["Host", "host_names"]

_SOFTWARE = "software"


def host_names() -> list[str]:
    """Return the names of the hosts on file."""
    return [name for name in sheet_names("hosts") if name != _SOFTWARE]


@dataclass(frozen=True)
class Host:
    """What a host's processor, caches and bus cost: a profile, in the one format of ``data/hosts``.

    Examples
    --------
    >>> import wiretwin as wt
    >>> quick = wt.Host.named("sparc2").but(cpu_factor=0.5)
    >>> quick["cpu_factor"], wt.Host.named("sparc2")["cpu_factor"]
    (0.5, 1.0)
    >>> network = wt.read_network({"preset": "asx100", "host": quick})

    Attributes
    ----------
    name
        What it is called.
    base
        The host on file whose values hold where it has none of its own.
    values
        Its own values: each key ends in its unit.
    """

    name: str
    base: str
    values: Mapping[str, Value]

    @classmethod
    def named(cls, name: str) -> Host:
        """Return a host on file: InputError with the names there are if it is none of them."""
        if name not in host_names():
            raise InputError(key="host", value=name, allowed=", ".join(host_names()))
        return cls(name, name, find_sheet("hosts", name, "host").values)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Host:
        """Read a profile: TOML with `base`, the name of a host on file, and a table of its own `values`.

        Raises
        ------
        InputError
            It is none; file, key, value and what is allowed are named.
        StorageError
            It cannot be read.
        """
        sheet: Sheet = read_sheet(Path(path))
        if sheet.base not in host_names():
            reason = "is needed" if sheet.base is None else None
            raise InputError(sheet.path, "base", sheet.base, ", ".join(host_names()), reason)
        known = find_sheet("hosts", sheet.base, "base").values
        for key in sheet.values:
            if key not in known:
                raise InputError(sheet.path, f"values.{key}", reason="is unknown", allowed=", ".join(known))
        return cls(sheet.name, sheet.base, sheet.values)

    def but(self, **values: float) -> Host:
        """Return the same host with other values: InputError for a key of no host, or a value below 0."""
        known = find_sheet("hosts", self.base, "host").values
        for key, value in values.items():
            if key not in known:
                allowed = ", ".join(known)
                raise InputError(key=f"host.{key}", value=value, reason="is unknown", allowed=allowed)
            if not 0 <= value < 1e15:
                raise InputError(key=f"host.{key}", value=value, allowed="0 or more")
        own = {key: Value(float(value), "input", "given") for key, value in values.items()}
        return replace(self, values={**self.values, **own})

    def __getitem__(self, key: str) -> float:
        """Return a value, its own or that of the host that it is based on."""
        return self.values[key].value if key in self.values else find_sheet("hosts", self.base, "host")[key]

    @property
    def overrides(self) -> dict[tuple[str, str], float]:
        """Its own values, by the sheet that they replace those of."""
        return {(self.base, key): value.value for key, value in self.values.items()}
