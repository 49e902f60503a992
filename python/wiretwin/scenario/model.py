"""The scenario file: a simulated world and what happens in it.

``[network]`` is what ``--network`` takes, as a table: a network with hosts of its own in every detail, or a
topology that joins hosts of a ``twin``. On it run ``[echo]``, messages there and back, or ``[[program]]``:
one shipped program, or several at once. ``[port]`` is an output port that service categories share, with
``[background]`` traffic and a ``[task]`` that plays the messages of a program. ``[switch]`` is a switch of
cells on its own, under uniform traffic. Everything is checked before anything runs.
"""

from __future__ import annotations

import copy
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
    model_validator,
)

from wiretwin.errors import InputError
from wiretwin.faults import explain, shown
from wiretwin.given import read_text
from wiretwin.model.local import PRESETS
from wiretwin.model.network import FROM_1_TO_2, VERSION, network_table

__all__ = ["FORMAT", "TABLES", "VERSION", "Scenario"]

FORMAT: Final = "wiretwin-scenario"
TABLES: Final = ("network", "echo", "program", "port", "background", "task", "tariff", "switch")
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


class EchoTable(_Table):
    """``[echo]``: a message from the first host to the second and back, again and again."""

    stack: str | None = None
    size: Octets
    rounds: Annotated[int, Field(ge=2, le=1_000_000)] = 21


class ProgramTable(_Table):
    """``[[program]]``: a shipped program, or one of those that go on until the others have ended.

    `hosts` are those of its ranks; `label` is what its metrics begin with, where there are several.
    """

    name: str
    label: str | None = None
    stack: str | None = None
    ranks: Annotated[int, Field(ge=1, le=1 << 20)] | None = None
    hosts: tuple[Annotated[int, Field(ge=0, le=1 << 20)], ...] | None = None
    parameters: dict[str, Annotated[int, Field(ge=0)] | str] = {}

    @property
    def size(self) -> int:
        """How many ranks it has."""
        return self.ranks or (2 if self.hosts is None else len(self.hosts))


def _network(value: object) -> object:
    """Take the text of a network for its table."""
    return network_table(value, PRESETS) if isinstance(value, str) else value


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
    keep_alive: Milliseconds | None = None
    source: Megabits | None = None
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


class SwitchTable(_Table):
    """``[switch]``: a switch of cells; in each slot a cell comes to each port with the probability `load`.

    It goes to any output alike. `scheduler` says where cells wait: at the outputs, in one queue an input
    (``fifo``), or in a queue for each output at each input, matched by rounds of ``pim`` or ``islip``, or by
    a ``maximum`` matching. The first half of the `slots` is not counted.
    """

    ports: Annotated[int, Field(ge=2, le=64)] = 16
    scheduler: Literal["output-queued", "fifo", "pim", "islip", "maximum"] = "output-queued"
    iterations: Annotated[int, Field(ge=1, le=64)] | None = None
    load: Annotated[float, Field(gt=0.0, le=1.0)]
    slots: Annotated[int, Field(ge=1000, le=10**9)] = 100_000

    @model_validator(mode="after")
    def _iterates(self) -> SwitchTable:
        if self.iterations is not None and self.scheduler not in ("pim", "islip"):
            raise ValueError(f"has iterations and scheduler = {self.scheduler!r}; allowed is pim or islip")
        return self


class Scenario(_Table):
    """A scenario; see the module's description.

    Attributes
    ----------
    name
        What it is, one line.
    seed
        Of every random stream.
    network, twin, ranks_per_host
        What joins hosts, as a table or as the text of ``--network``; the file of the twin that they are like,
        or ``nothing``; how many ranks a host of a twin takes.
    echo, program
        Messages on it, or programs.
    port, background, task, tariff
        A port that service categories share, what else comes to it, a task, and what bits cost.
    switch
        A switch of cells under uniform traffic.
    """

    format: Literal["wiretwin-scenario"] = FORMAT
    version: Literal[2] = VERSION
    name: str = ""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    twin: str | None = None
    ranks_per_host: Annotated[int, Field(ge=1, le=1 << 20)] | None = None
    network: Annotated[dict[str, Any] | None, BeforeValidator(_network)] = None
    echo: EchoTable | None = None
    program: tuple[ProgramTable, ...] = ()
    port: PortTable | None = None
    background: BackgroundTable | None = None
    task: TaskTable | None = None
    tariff: TariffTable | None = None
    switch: SwitchTable | None = None

    @model_validator(mode="after")
    def _one_world(self) -> Scenario:
        given = [name for name in TABLES if getattr(self, name) not in (None, ())]
        has = [name for name in given if name != "network"] or ["no world"]
        worlds = (["echo"], ["program"], ["port", "background", "task"], ["switch"])
        alone = self.port is not None or self.switch is not None
        if [name for name in has if name != "tariff"] not in worlds or (
            ("network" in given and alone) or ("tariff" in given and "task" not in given)
        ):
            raise ValueError(
                f"has {' and '.join(f'[{name}]' for name in given) or 'no world'}; allowed is [echo] or "
                "[[program]], with [network], a twin or both, or [port] with [background], [task], "
                "[tariff], or [switch]"
            )
        if not alone and self.network is None and self.twin is None:
            raise ValueError("has neither [network] nor a twin; allowed is one of them, or both")
        labels = self.labels
        if twice := [label for label in labels if labels.count(label) > 1]:
            raise ValueError(f"has two programs of the label {twice[0]!r}; allowed is each label once")
        return self

    @property
    def labels(self) -> list[str]:
        """What the metrics of each program begin with: its label, or its name."""
        return [one.label or one.name for one in self.program]

    def on(
        self,
        *,
        network: str | None = None,
        twin: str | os.PathLike[str] | None = None,
        ranks_per_host: int | None = None,
        stack: str | None = None,
    ) -> Scenario:
        """Return the scenario on another network, hosts of a twin, or another stack, where they are given.

        Raises
        ------
        InputError
            The scenario has no network, or there are programs whose stacks are apart.
        """
        given = {"network": network, "twin": None if twin is None else str(twin)}
        if given["twin"] not in (None, "nothing"):
            given["twin"] = str(Path(str(twin)).resolve())
        changes: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
        if ranks_per_host is not None:
            changes["ranks_per_host"] = ranks_per_host
        if (self.port is not None or self.switch is not None) and (changes or stack):
            key = f"--{next(iter(changes), 'stack').replace('_', '-')}"
            has = "[switch]" if self.port is None else "[port]"
            raise InputError(key=key, allowed=f"for a scenario with [network] or a twin: this one has {has}")
        document = self.document | changes
        if stack is not None:
            if len(self.program) > 1:
                raise InputError(key="--stack", value=stack, allowed="for one program; here each has its own")
            table = document["echo"] if self.echo is not None else document["program"][0]
            table["stack"] = stack
        return Scenario.of(document) if changes or stack else self

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
        changes: dict[str, Any] = {}
        if found.twin not in (None, "nothing"):
            changes["twin"] = str((source.parent / str(found.twin)).resolve())
        if found.network is not None and "file" in found.network:
            file = str(source.parent.resolve() / found.network["file"])
            changes["network"] = {**found.network, "file": file}
        return found.model_copy(update=changes)

    @classmethod
    def of(cls, document: Mapping[str, Any], name: str = "scenario") -> Scenario:
        """Check a document, as TOML gives it.

        Raises
        ------
        InputError
            A fault in it, by key.
        """
        if document.get("version", VERSION) != VERSION:
            raise InputError(name, "version", document["version"], FROM_1_TO_2, "is not known here")
        if isinstance(document.get("program"), dict):
            document = {**document, "program": [document["program"]]}
        try:
            return cls.model_validate(_listed(document))
        except ValidationError as error:
            raise InputError(reason=explain(name, error, cls)) from error

    @property
    def document(self) -> dict[str, Any]:
        """The scenario as it was written, with what was left out; JSON can hold it."""
        return _written(self)


def _listed(document: Mapping[str, Any]) -> dict[str, Any]:
    """Give lists of programs and of hosts the type of an immutable model; a network is read elsewhere."""
    found = dict(document)
    if isinstance(programs := found.get("program"), list):
        found["program"] = tuple(
            {key: tuple(value) if isinstance(value, list) else value for key, value in one.items()}
            if isinstance(one, dict)
            else one
            for one in programs
        )
    return found


def _written(table: BaseModel) -> dict[str, Any]:
    """Turn a table back into what a file would hold: quantities with their unit."""
    found: dict[str, Any] = {}
    for key, field in type(table).model_fields.items():
        value = getattr(table, key)
        if value is None or value == ():
            continue
        if isinstance(value, BaseModel):
            value = _written(value)
        elif isinstance(value, tuple):
            value = [_written(one) if isinstance(one, BaseModel) else one for one in value]
        elif isinstance(value, dict):
            value = copy.deepcopy(value)
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
