"""The scenario file: a simulated world and what happens in it.

Three worlds can be described. ``[network]`` is a local network in every detail (hosts, adapters, links, a
switch, stations that load it) with ``[echo]``, messages there and back, or ``[program]``, a shipped program.
``[twin]`` is a host as a fit has found it, with ``[program]``. ``[port]`` is an output port that service
categories share, with ``[background]`` traffic and a ``[task]`` that plays the messages of a program.
Everything is checked before anything runs.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from wiretwin.errors import InputError
from wiretwin.faults import explain, shown
from wiretwin.given import read_text

__all__ = ["FORMAT", "TABLES", "VERSION", "Scenario"]

FORMAT: Final = "wiretwin-scenario"
VERSION: Final = 1
TABLES: Final = ("network", "echo", "twin", "program", "port", "background", "task", "tariff")
"""The tables of a scenario."""


def _with_unit(what: str, units: Mapping[str, float], most: float, *, whole: bool = False) -> BeforeValidator:
    """Read a text with a unit into the base unit; a number alone is taken for what it is not."""

    def read(value: object) -> object:
        if not isinstance(value, str):
            raise ValueError(f"{shown(value)}; allowed is {what} in quotes, such as {example!r}")
        number, _, unit = value.strip().partition(" ")
        if not unit:
            at = next((at for at, sign in enumerate(value) if sign.isalpha()), len(value))
            number, unit = value[:at], value[at:].strip()
        try:
            found = float(number) * units[unit]
        except (KeyError, ValueError):
            raise ValueError(f"{value!r}; allowed is {what} with one of {', '.join(units)}") from None
        if not 0 <= found <= most:
            raise ValueError(f"{value!r}; allowed is from 0 to {most:g} {next(iter(units))}")
        if whole and not found.is_integer():
            raise ValueError(f"{value!r}; allowed is a whole number of {next(iter(units))}, not {found:g}")
        return found

    example = f"12 {next(iter(units))}"
    return BeforeValidator(read)


_KIB: Final = 1024
Milliseconds = Annotated[float, _with_unit("a time", {"ms": 1.0, "us": 1e-3, "s": 1e3}, 6e4)]
Megabits = Annotated[
    float, _with_unit("a rate", {"Mbit/s": 1.0, "kbit/s": 1e-3, "Gbit/s": 1e3, "bit/s": 1e-6}, 1e6)
]
Octets = Annotated[
    float,
    _with_unit("a size", {"B": 1.0, "KiB": _KIB, "MiB": _KIB**2, "kB": 1e3, "MB": 1e6}, 2.0**30, whole=True),
]
Share = Annotated[float, Field(ge=0.0, le=1.0)]


class _Table(BaseModel):
    """Nothing unknown, nothing converted, no NaN or infinity, nothing changed after it was made."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, frozen=True)


class LoadTable(_Table):
    """``[[network.load]]``: a station that only generates; the model is that of background load."""

    share: Annotated[float, Field(gt=0.0, le=4.0)]
    law: Literal["constant", "poisson", "on-off"] = "poisson"
    octets: Annotated[int, Field(ge=1, le=65535)] = 1460
    to: Annotated[int, Field(ge=0, le=1023)] = 1
    reserved: bool = False
    counted: Literal["line", "frame"] = "line"
    peak: Share | None = None
    burst: Annotated[float, Field(ge=1.0, le=1e6)] | None = None


class NetworkTable(_Table):
    """``[network]``: hosts and what is between them, by the names of the data files."""

    stack: str
    host: str
    adapter: str | None = None
    switch: str | None = None
    link: str = "taxi100"
    hosts: Annotated[int, Field(ge=2, le=64)] = 2
    cell_loss: Share = 0.0
    buffer: Octets = 32.0 * _KIB
    nodelay: bool = True
    first_use: Milliseconds = 0.0
    reserve: Megabits | None = None
    load: tuple[LoadTable, ...] = ()

    @field_validator("buffer")
    @classmethod
    def _of_kib(cls, value: float) -> float:
        if value < _KIB or value % _KIB:
            raise ValueError(f"'{value:g} B'; allowed is a whole number of KiB, at least one")
        return value

    @property
    def lower(self) -> str:
        """What is under the stack, such as ``aal5`` or ``ethernet``."""
        return self.stack.split("/")[-1]


class EchoTable(_Table):
    """``[echo]``: a message from the first host to the second and back, again and again."""

    size: Octets
    rounds: Annotated[int, Field(ge=2, le=1_000_000)] = 21


class TwinTable(_Table):
    """``[twin]``: the file that a fit has written, whose layer of it, and what joins hosts like it."""

    file: str
    layer: str
    network: str | None = None
    ranks_per_host: Annotated[int, Field(ge=1, le=1 << 20)] | None = None


class ProgramTable(_Table):
    """``[program]``: a shipped program; its parameters are whole numbers, the costs of its work times."""

    name: str
    ranks: Annotated[int, Field(ge=1, le=1 << 20)] = 2
    parameters: dict[str, Annotated[int, Field(ge=0)] | str] = {}


class PortTable(_Table):
    """``[port]``: an output port and its line; `leg` is the way to it and from it, each."""

    line: Megabits = 149.76
    buffer: Annotated[int, Field(ge=1, le=1 << 24)] = 1000
    push_out: Literal["last", "first", "none"] = "last"
    efci: Annotated[int, Field(ge=0, le=1 << 24)] | None = None
    becn: Annotated[int, Field(ge=0, le=1 << 24)] | None = None
    utilization: Annotated[float, Field(gt=0.0, le=1.0)] = 0.9
    interval: Annotated[int, Field(ge=1, le=1 << 24)] = 30
    reserve: Literal["guaranteed", "everything"] = "guaranteed"
    plus: Milliseconds | None = None
    leg: Milliseconds = 0.005


class BackgroundTable(_Table):
    """``[background]``: sources that together offer `rho` of the line; an `abr` share of them is of ABR."""

    rho: Annotated[float, Field(ge=0.0, le=4.0)]
    sources: Annotated[int, Field(ge=1, le=1000)] = 10
    abr: Share = 0.5
    abr_peak: Megabits = 50.0
    burst: Milliseconds = 10.0
    peak: Annotated[float, Field(ge=1.0, le=1000.0)] = 2.0


class TaskTable(_Table):
    """``[task]``: a program's messages, by file or by name, over circuits of several categories."""

    program: str | None = None
    trace: str | None = None
    pace: Annotated[float, Field(gt=0.0, le=1e6)] = 1.0
    mechanism: Literal["ubr", "abr", "lme-ece"] = "lme-ece"
    time: Milliseconds = 20_000.0
    warm_up: Milliseconds = 1000.0
    watch: Literal["each-cell", "average", "on-demand", "round-trip", "network"] = "each-cell"
    weight: Annotated[int, Field(ge=1, le=1 << 20)] = 8
    poll: Milliseconds = 100.0
    monitor: Milliseconds = 100.0
    loss: Milliseconds = 100.0
    high: Milliseconds = 0.1
    low: Milliseconds = 0.09
    stamps: bool = True
    window: Annotated[int, Field(ge=1, lt=1 << 31)] = 1024
    max_pd: Annotated[int, Field(ge=1, lt=1 << 32)] = 25
    peak: Megabits = 50.0
    minimum: Megabits = 0.0
    control: Megabits = 1.0
    ahead: Milliseconds = 0.0
    drift_ppm: Annotated[float, Field(ge=-1e5, le=1e5)] = 0.0
    clock_interval: Milliseconds | None = None

    @model_validator(mode="after")
    def _holds(self) -> TaskTable:
        if (self.program is None) == (self.trace is None):
            raise ValueError("has both program and trace, or neither; allowed is one of them")
        if self.low >= self.high:
            raise ValueError(f"has low = {self.low!r} ms; allowed is below high, {self.high!r} ms")
        if self.minimum > self.peak:
            raise ValueError(
                f"has peak = {self.peak!r} Mbit/s; allowed is at least minimum, {self.minimum!r} Mbit/s"
            )
        return self


class TariffTable(_Table):
    """``[tariff]``: what a megabit costs by category."""

    ubr: Annotated[float, Field(ge=0.0, le=1e9)] = 1.0
    abr: Annotated[float, Field(ge=0.0, le=1e9)] = 2.0
    vbr: Annotated[float, Field(ge=0.0, le=1e9)] = 4.0


class Scenario(_Table):
    """A scenario; see the module's description.

    Attributes
    ----------
    name
        What it is, one line.
    seed
        Of every random stream.
    network, echo
        A local network and the messages on it.
    twin, program
        A fitted host and the program on it; a local network takes a program too.
    port, background, task, tariff
        A port that service categories share, what else comes to it, a task, and what bits cost.
    """

    format: Literal["wiretwin-scenario"] = FORMAT
    version: Literal[1] = VERSION
    name: str = ""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    network: NetworkTable | None = None
    echo: EchoTable | None = None
    twin: TwinTable | None = None
    program: ProgramTable | None = None
    port: PortTable | None = None
    background: BackgroundTable | None = None
    task: TaskTable | None = None
    tariff: TariffTable | None = None

    @model_validator(mode="after")
    def _one_world(self) -> Scenario:
        given = [name for name in TABLES if getattr(self, name) is not None]
        worlds = (
            ["network", "echo"],
            ["network", "program"],
            ["twin", "program"],
            ["port", "background", "task"],
        )
        if [name for name in given if name != "tariff"] not in worlds or (
            "tariff" in given and "task" not in given
        ):
            raise ValueError(
                f"has {' and '.join(f'[{name}]' for name in given) or 'no world'}; allowed is [network] with "
                "[echo] or [program], or [twin] with [program], or [port] with [background] and [task], and "
                "[tariff]"
            )
        return self

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Scenario:
        """Read a scenario file; the files of a twin and of a network in it are taken relative to its folder.

        Raises
        ------
        InputError
            It cannot be read, or a fault in it, by key.
        """
        source = Path(path)
        text = read_text(source)
        try:
            document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InputError(source, reason=f"is not TOML: {error}") from error
        found = cls.of(document, str(source))
        if found.task is not None and found.task.trace is not None:
            trace = str((source.parent / found.task.trace).resolve())
            return found.model_copy(update={"task": found.task.model_copy(update={"trace": trace})})
        if found.twin is None:
            return found
        files = {"file": str((source.parent / found.twin.file).resolve())}
        if found.twin.network is not None and found.twin.network.partition(":")[0].endswith(
            (".toml", ".conf")
        ):
            files["network"] = str(source.parent.resolve() / found.twin.network)
        return found.model_copy(update={"twin": found.twin.model_copy(update=files)})

    @classmethod
    def of(cls, document: Mapping[str, Any], name: str = "scenario") -> Scenario:
        """Check a document, as TOML gives it.

        Raises
        ------
        InputError
            A fault in it, by key.
        """
        if document.get("version", VERSION) != VERSION:
            raise InputError(name, "version", document["version"], str(VERSION), "is not known here")
        try:
            return cls.model_validate(_listed(document))
        except ValidationError as error:
            raise InputError(reason=explain(name, error, cls)) from error

    @property
    def document(self) -> dict[str, Any]:
        """The scenario as it was written, with what was left out; JSON can hold it."""
        return _written(self)


def _listed(document: Mapping[str, Any]) -> dict[str, Any]:
    """Give lists the type that a frozen model has."""
    return {
        key: _listed(value)
        if isinstance(value, dict)
        else tuple(map(_listed, value))
        if _tables(value)
        else value
        for key, value in document.items()
    }


def _tables(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) for one in value)


def _written(table: BaseModel) -> dict[str, Any]:
    """Turn a table back into what a file would hold: quantities with their unit."""
    found: dict[str, Any] = {}
    for key, field in type(table).model_fields.items():
        value = getattr(table, key)
        if value is None:
            continue
        if isinstance(value, BaseModel):
            value = _written(value)
        elif isinstance(value, tuple):
            value = [_written(one) for one in value]
        elif unit := _unit(field.metadata, field.annotation):
            value = f"{int(value) if value.is_integer() else value!r} {unit}"
        found[key] = value
    return found


def _unit(metadata: list[Any], annotation: object) -> str | None:
    marks = [
        *metadata,
        *(mark for part in get_args(annotation) for mark in getattr(part, "__metadata__", ())),
    ]
    for quantity, unit in ((Milliseconds, "ms"), (Megabits, "Mbit/s"), (Octets, "B")):
        if any(mark is get_args(quantity)[1] for mark in marks):
            return unit
    return None
