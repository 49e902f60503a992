"""The result folder: what a measurement leaves behind, and the only thing its readers need.

A folder holds ``manifest.json`` (options, host, layers, launches; see `Manifest`) and one Parquet
file per launch under ``samples/``. A launch is written at once when it ends, first its samples, then
the manifest, each under a temporary name that is synchronised and renamed, so an interrupt, a crash
or a full disk never costs a launch that had ended.

Format ``wiretwin-result``, version 1; ``docs/reference/result-format.md`` lists every key and column.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from wiretwin.errors import InputError, StorageError

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

__all__ = [
    "FORMAT",
    "SAMPLE_COLUMNS",
    "VERSION",
    "Clock",
    "Damage",
    "Launch",
    "Layer",
    "Manifest",
    "Result",
    "StepTraffic",
    "write_atomically",
]

FORMAT: Literal["wiretwin-result"] = "wiretwin-result"
VERSION: Literal[1] = 1
UNDER_WAY, LINES = "under-way.json", "under-way.jsonl"
"""The launch that is being made, and what its probe has written so far; gone when it is stored."""

SAMPLE_COLUMNS: dict[str, str] = {
    "launch": "uint32",
    "layer": "string",
    "loop": "string",
    "bytes": "uint64",
    "messages": "uint32",
    "delay_ns": "uint64",
    "batch": "uint32",
    "index": "uint32",
    "value_ns": "uint64",
}
"""Columns of a sample file and their Arrow types. `index` 0 is the first iteration, kept apart;
`value_ns` is the time of the whole batch."""

Status = Literal["ok", "failed", "interrupted"]
Stop = Literal["narrow", "launches", "budget", "interrupt", "failed"]


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Clock(_Record):
    """The clock a probe reads."""

    name: str
    cost_ns: float = Field(ge=0)
    resolution_ns: float = Field(ge=0)


class Layer(_Record):
    """One measured configuration: a layer, its variant, and the options that were in force."""

    layer: str
    """The layer's own name, ``socket/tcp``."""
    name: str
    """The configuration: the layer and its sorted words, ``socket/tcp+nagle+spin``."""
    options: dict[str, Any] = Field(default_factory=dict)
    """What was asked for."""
    effective: dict[str, Any] = Field(default_factory=dict)
    """What the kernel or the library reports."""
    clock: Clock | None = None


class StepTraffic(_Record):
    """What the interface of rank 0's host carried during one step, beside the payload of the step.

    Headers are in the bytes of the interface, and so are acknowledgements, what was sent again, and the
    few control messages between the ranks. In and out are as rank 0's host sees it.
    """

    loop: str
    bytes: int = Field(ge=0)
    messages: int = Field(ge=1)
    delay_ns: int = Field(ge=0)
    payload_out: int = Field(ge=0)
    payload_in: int = Field(ge=0)
    bytes_out: int = Field(ge=0)
    bytes_in: int = Field(ge=0)
    packets_out: int = Field(ge=0)
    packets_in: int = Field(ge=0)


class Launch(_Record):
    """One launch: fresh processes, every step of the schedule once."""

    launch: int = Field(ge=1)
    name: str
    """The configuration measured."""
    order: int = Field(ge=0)
    """Its place in the interleaved order, from 0."""
    started_utc: str
    seconds: float = Field(ge=0)
    status: Status
    error: str | None = None
    """Why it failed or was interrupted."""
    clock_cost_ns: float | None = None
    load_before: float | None = None
    """Runnable processes over the last minute, before the launch."""
    lost: int = Field(default=0, ge=0)
    """Messages lost, by a layer that may lose them."""
    counted: dict[str, int] = Field(default_factory=dict)
    """What the layer has counted at rank 0, by name, if it counts."""
    crossing_ns: tuple[float, float] | None = None
    """Round trip of a cache line between the two ranks' cores, before the first step and after the last."""
    traffic: list[StepTraffic] = Field(default_factory=list)
    """What crossed the interface, step by step; empty within one host."""
    hosts: tuple[str, str] | None = None
    """The two hosts of the ranks, both alike where they shared one, if pairs of hosts were measured."""
    whole: bool = False
    """Of a pair of hosts: every loop that a fit needs was run, not only round trips."""
    file: str | None = None
    """The sample file, relative to the folder; none if the launch left no samples."""
    rows: int = Field(default=0, ge=0)
    sha256: str | None = None
    """Of the sample file."""


class Manifest(_Record):
    """``manifest.json``."""

    format: Literal["wiretwin-result"] = FORMAT
    version: Literal[1] = VERSION
    wiretwin: str
    created_utc: str
    seed: int
    host: dict[str, Any] = Field(default_factory=dict)
    options: dict[str, Any] = Field(default_factory=dict)
    layers: list[Layer] = Field(default_factory=list)
    launches: list[Launch] = Field(default_factory=list)
    stopped: dict[str, Stop] = Field(default_factory=dict)
    """Why each configuration was measured no longer."""
    stopped_because: dict[str, str] = Field(default_factory=dict)
    """The same in words, with the figure that decided."""
    not_measured: dict[str, list[int]] = Field(default_factory=dict)
    """By configuration the sizes asked for, in bytes, that no launch has an echo of."""
    state: Literal["running", "complete", "interrupted"] = "complete"
    """``running`` in a folder that nobody writes any more: the measuring process was killed."""


@dataclass(frozen=True)
class Damage:
    """A sample file that cannot be used, and why."""

    file: Path
    reason: str

    def __str__(self) -> str:
        return f"{self.file}: {self.reason}"


class Result:
    """A result folder, opened.

    Attributes
    ----------
    path
        The folder.
    manifest
        Its manifest.
    damaged
        Sample files left out because they are damaged; at most the last launch's, unless opened
        with ``salvage=True``.
    """

    def __init__(
        self,
        path: Path,
        manifest: Manifest,
        damaged: Sequence[Damage] = (),
        adopted: pa.Table | None = None,
    ) -> None:
        self.path = path
        self._adopted = adopted
        self.manifest = manifest
        self.damaged = list(damaged)

    def __repr__(self) -> str:
        layers = ", ".join(layer.name for layer in self.manifest.layers)
        return f"Result({str(self.path)!r}: {len(self.manifest.launches)} launches of {layers or 'nothing'})"

    @classmethod
    def create(
        cls,
        path: str | Path,
        *,
        seed: int,
        created_utc: str,
        host: Mapping[str, Any] | None = None,
        options: Mapping[str, Any] | None = None,
        layers: Sequence[Layer] = (),
    ) -> Result:
        """Make a new folder with an empty manifest in state ``running``.

        Raises
        ------
        InputError
            The path exists and is not an empty folder.
        StorageError
            The folder cannot be written.
        """
        import wiretwin

        folder = Path(path)
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError(
                folder, reason="exists already and is not empty", allowed="a new or an empty folder"
            )
        try:
            (folder / "samples").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(folder, _words(error)) from error
        result = cls(
            folder,
            Manifest(
                wiretwin=wiretwin.__version__,
                created_utc=created_utc,
                seed=seed,
                host=dict(host or {}),
                options=dict(options or {}),
                layers=list(layers),
                state="running",
            ),
        )
        result._write_manifest()
        return result

    @classmethod
    def open(cls, path: str | Path, *, salvage: bool = False) -> Result:
        """Open a folder and check every file in it.

        A damaged sample file of the last launch (what a crash can leave) is set aside and named in
        `damaged`. A sample file that was stored when its manifest entry was not is adopted as the
        last launch. With ``salvage=True`` any damaged sample file is set aside.

        Raises
        ------
        InputError
            Not a result, a newer version, or a damaged file; names file, key and what is allowed.
        """
        folder = Path(path)
        manifest = _read_manifest(folder)
        _adopt_unlisted(folder, manifest)
        adopted = _adopt_under_way(folder, manifest)
        damaged: list[Damage] = []
        last = max((launch.launch for launch in manifest.launches), default=0)
        for launch in manifest.launches:
            if launch.file is None:
                continue
            reason = _check_samples(folder, launch)
            if reason is None:
                continue
            damage = Damage(folder / launch.file, reason)
            if launch.launch != last and not salvage:
                raise InputError(
                    damage.file,
                    reason=f"{reason} (launch {launch.launch} of {last})",
                    allowed="the file as it was measured; --salvage (in Python salvage=True) leaves it out",
                )
            damaged.append(damage)
        return cls(folder, manifest, damaged, adopted)

    def append(self, launch: Launch, samples: Mapping[str, Any] | None = None) -> Launch:
        """Store one launch for good: its samples, then the manifest.

        Parameters
        ----------
        launch
            Its record; file, rows and digest are filled in here.
        samples
            Columns as in `SAMPLE_COLUMNS` (without ``launch`` and ``layer``, which are the record's);
            ``None`` or no rows: no sample file.

        Raises
        ------
        StorageError
            Nothing of this launch is stored, or (named in the text) its samples only; earlier
            launches are intact either way.
        """
        stored = launch
        if samples is not None and len(samples["value_ns"]):
            data = _encode(launch, samples)
            file = f"samples/launch-{launch.launch:05d}.parquet"
            self._store(self.path / file, data)
            stored = launch.model_copy(
                update={
                    "file": file,
                    "rows": len(samples["value_ns"]),
                    "sha256": hashlib.sha256(data).hexdigest(),
                }
            )
        self.manifest.launches.append(stored)
        self._write_manifest()
        for name in (UNDER_WAY, LINES):
            (self.path / name).unlink(missing_ok=True)
        return stored

    def under_way(self, launch: Launch) -> Path:
        """Note a launch that begins; return the file for the lines of its probe.

        Were this process killed, `open` would find the samples of its finished steps there.

        Raises
        ------
        StorageError
            The note could not be written.
        """
        self._store(self.path / UNDER_WAY, launch.model_dump_json().encode())
        return self.path / LINES

    def finish(
        self,
        state: Literal["complete", "interrupted"],
        stopped: Mapping[str, Stop] | None = None,
        because: Mapping[str, str] | None = None,
    ) -> None:
        """Write the manifest for the last time, with why each configuration stopped."""
        self.manifest.state = state
        self.manifest.stopped.update(stopped or {})
        self.manifest.stopped_because.update(because or {})
        self._write_manifest()

    def samples(self, *, failed: bool = False) -> pl.DataFrame:
        """Every sample, in order of launch, as a data frame with the columns of `SAMPLE_COLUMNS`.

        Parameters
        ----------
        failed
            Include the steps that a launch finished before it failed. Those of an interrupted
            launch are always included: a step is complete or absent.
        """
        import polars as pl
        import pyarrow as pa

        unusable = {damage.file for damage in self.damaged}
        tables = [
            _read_table(self.path / launch.file)
            for launch in self.manifest.launches
            if launch.file is not None
            and self.path / launch.file not in unusable
            and (failed or launch.status != "failed")
        ]
        if self._adopted is not None:
            tables.append(self._adopted)
        table = pa.concat_tables(tables) if tables else _schema().empty_table()
        frame = pl.from_arrow(table)
        assert isinstance(frame, pl.DataFrame)
        return frame

    def traffic(self) -> pl.DataFrame:
        """Return what crossed the interface, one row a step of a launch that ended well, in order.

        The columns are ``launch``, ``layer`` and those of `StepTraffic`.
        """
        import polars as pl

        counts = [name for name, field in StepTraffic.model_fields.items() if field.annotation is int]
        schema = {
            "launch": pl.UInt32,
            "layer": pl.String,
            "loop": pl.String,
            **dict.fromkeys(counts, pl.UInt64),
        }
        rows = [
            {"launch": launch.launch, "layer": launch.name, **step.model_dump()}
            for launch in self.manifest.launches
            if launch.status == "ok"
            for step in launch.traffic
        ]
        return pl.DataFrame(rows, schema=schema)

    def digest(self) -> str:
        """SHA-256 over the names and contents of the usable sample files, in order of launch."""
        whole = hashlib.sha256()
        unusable = {damage.file for damage in self.damaged}
        for launch in self.manifest.launches:
            if launch.file is None or self.path / launch.file in unusable:
                continue
            digest = launch.sha256 or hashlib.sha256((self.path / launch.file).read_bytes()).hexdigest()
            whole.update(f"{launch.file} {digest}\n".encode())
        if self._adopted is not None:
            whole.update((self.path / LINES).read_bytes())
        return whole.hexdigest()

    def _write_manifest(self) -> None:
        text = json.dumps(self.manifest.model_dump(mode="json"), indent=1, ensure_ascii=False)
        self._store(self.path / "manifest.json", (text + "\n").encode())

    def _store(self, path: Path, data: bytes) -> None:
        stored = sum(launch.file is not None for launch in self.manifest.launches)
        kept = f"{stored} earlier launch{'' if stored == 1 else 'es'} in {self.path} intact"
        write_atomically(path, data, kept=kept)


def write_atomically(path: Path, data: bytes, *, kept: str | None = None) -> None:
    """Write a file so that it is whole or absent: temporary name, fsync, rename, fsync of the folder.

    Raises
    ------
    StorageError
        It could not be written; a file that was there before is untouched.
    """
    with atomically(path, kept=kept) as temporary, open(temporary, "xb", buffering=0) as file:
        view = memoryview(data)
        while view:
            view = view[file.write(view) :]


@contextlib.contextmanager
def atomically(path: Path, *, kept: str | None = None) -> Iterator[Path]:
    """Give a name to write a file under; at the end of the block it is flushed and renamed to `path`.

    Raises
    ------
    StorageError
        It could not be written; a file that was there before is untouched. Where the block raises anything,
        nothing is left.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield temporary
        _flush(temporary)
        os.replace(temporary, path)
        _flush(path.parent)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            raise StorageError(path, f"not written: {_words(error)}", kept) from error
        raise


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _words(error: OSError) -> str:
    return error.strerror or str(error)


def _schema() -> pa.Schema:
    import pyarrow as pa

    return pa.schema([(name, pa.type_for_alias(kind)) for name, kind in SAMPLE_COLUMNS.items()])


def _table(launch: Launch, samples: Mapping[str, Any]) -> pa.Table:
    import pyarrow as pa

    rows = len(samples["value_ns"])
    columns = dict(samples) | {"launch": [launch.launch] * rows, "layer": [launch.name] * rows}
    return pa.table({name: columns[name] for name in SAMPLE_COLUMNS}, schema=_schema())


def _encode(launch: Launch, samples: Mapping[str, Any]) -> bytes:
    import pyarrow.parquet as pq

    table = _table(launch, samples)
    table = table.replace_schema_metadata({"format": FORMAT, "version": str(VERSION)})
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd", write_page_checksum=True)
    return buffer.getvalue()


def _parquet(source: Path | io.BytesIO) -> pa.Table:
    """Read a whole file in this thread: a process that ends as others begin is aborted by them."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(source, pre_buffer=False, page_checksum_verification=True) as file:
        return file.read(use_threads=False)


def _read_table(path: Path) -> pa.Table:
    table = _parquet(path)
    return table.select(list(SAMPLE_COLUMNS)).cast(_schema())


def _read_manifest(folder: Path) -> Manifest:
    path = folder / "manifest.json"
    if not folder.is_dir():
        raise InputError(folder, reason="is no folder", allowed=f"a result folder ({FORMAT})")
    if not path.is_file():
        raise InputError(path, reason="is missing", allowed=f"a result folder ({FORMAT}) has one")
    try:
        raw = json.loads(path.read_bytes())
    except ValueError as error:
        raise InputError(path, reason=f"is not JSON: {error}", allowed="the manifest as written") from error
    except OSError as error:
        raise StorageError(path, _words(error)) from error
    if not isinstance(raw, dict) or raw.get("format") != FORMAT:
        found = raw.get("format") if isinstance(raw, dict) else None
        raise InputError(path, "format", found, FORMAT, None if found else "is missing")
    version = raw.get("version")
    if not isinstance(version, int) or version > VERSION:
        newer = "is newer than this wiretwin reads" if isinstance(version, int) else "is no version"
        raise InputError(path, "version", version, f"1 to {VERSION}", newer)
    try:
        return Manifest.model_validate(raw)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        value = None if first["type"] == "missing" else first.get("input")
        raise InputError(path, key, value, "the keys and types of version 1", first["msg"]) from error


def _adopt_unlisted(folder: Path, manifest: Manifest) -> None:
    """List the launch whose samples were stored when writing its manifest entry failed."""
    following = max((launch.launch for launch in manifest.launches), default=0) + 1
    file = f"samples/launch-{following:05d}.parquet"
    if not (folder / file).is_file():
        return
    launch = Launch(
        launch=following,
        name="",
        order=following - 1,
        started_utc=manifest.created_utc,
        seconds=0.0,
        status="interrupted",
        error="its samples were stored, its manifest entry was not",
        file=file,
    )
    if _check_samples(folder, launch) is None:
        table = _read_table(folder / file)
        launch.name = table.column("layer")[0].as_py()
        launch.rows = table.num_rows
    manifest.launches.append(launch)


def _adopt_under_way(folder: Path, manifest: Manifest) -> pa.Table | None:
    """List the launch during which the measuring process was killed; return the samples of its steps."""
    from wiretwin import lines

    try:
        launch = Launch.model_validate_json((folder / UNDER_WAY).read_bytes())
        columns = lines.columns(lines.steps((folder / LINES).read_bytes()))
    except (OSError, ValidationError):
        return None
    known = {one.launch for one in manifest.launches}
    if columns is None or launch.launch in known or manifest.state != "running":
        return None
    manifest.launches.append(launch.model_copy(update={"rows": len(columns["value_ns"])}))
    return _table(launch, columns)


def _check_samples(folder: Path, launch: Launch) -> str | None:
    """Say what is wrong with a launch's sample file; ``None`` if nothing."""
    import pyarrow as pa

    assert launch.file is not None
    if not re.fullmatch(r"samples/[\w.-]+\.parquet", launch.file):
        return "lies outside the folder's samples/"
    path = folder / launch.file
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read: {_words(error)}"
    if not data.startswith(b"PAR1"):
        return "is not a Parquet file"
    if not data.endswith(b"PAR1"):
        return f"is truncated ({len(data)} bytes)"
    if launch.sha256 is not None and hashlib.sha256(data).hexdigest() != launch.sha256:
        return "has been changed since it was measured (its digest differs)"
    try:
        table = _parquet(io.BytesIO(data))
    except (pa.ArrowException, OSError) as error:
        return f"is a damaged Parquet file: {str(error).splitlines()[0]}"
    for name, kind in SAMPLE_COLUMNS.items():
        if name not in table.column_names:
            return f"is a foreign Parquet file: column {name!r} is missing"
        found = table.schema.field(name).type
        wanted = pa.type_for_alias(kind)
        text = pa.types.is_string(wanted) and (pa.types.is_large_string(found) or found == pa.string_view())
        if found != wanted and not text:
            return f"is a foreign Parquet file: column {name!r} is {found}, not {kind}"
        if table.column(name).null_count:
            return f"column {name!r} has {table.column(name).null_count} empty values"
    if launch.rows and table.num_rows != launch.rows:
        return f"has {table.num_rows} rows, the manifest says {launch.rows}"
    if table.num_rows == 0:
        return "has no rows"
    return None
