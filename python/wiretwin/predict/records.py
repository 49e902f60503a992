"""What `predict`, `run` and `compare` leave behind: three JSON records with a digest each.

A prediction is recorded: its digest covers everything in it, the program's and the twin's bytes by
their hashes included, and is made before the real run starts. `compare` rejects a prediction whose
digest no longer fits and says so when the prediction is not older than the run.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from wiretwin.errors import InputError, StorageError
from wiretwin.given import read_text
from wiretwin.predict.printed import Agreement

if TYPE_CHECKING:
    import polars as pl

VERSION = 1
MOST_BYTES = 1 << 30
"""The largest record that is read, bytes: what was recorded of a long run is in it."""

DEFAULT_SEED = 1
DEFAULT_PASSES = 5
"""How often the computation is measured, if nobody says otherwise."""
SHORT_PS, SHORT_PASSES = 10_000_000_000, 15
"""Where no rank computes for longer, launches differ by a tenth or more, and more passes are made."""
SURE, UNSURE_S = 0.03, 15.0
"""Where passes scatter, more are made until the standard error of their median is no larger, as a share of
the computation; none is begun after so long, in seconds."""

Statistic = Literal["median", "minimum"]
"""What is made of the passes, stretch by stretch."""

Finite = Annotated[float, Field(allow_inf_nan=False)]
Seconds = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]


def _utc(text: str) -> str:
    try:
        zone = datetime.fromisoformat(text).tzinfo
    except ValueError:
        zone = None
    if zone is None:
        raise ValueError("a time with its zone as ISO 8601, such as 2026-01-01T00:00:00Z")
    return text


Utc = Annotated[str, AfterValidator(_utc)]


class Spread(BaseModel):
    """A figure with its interval; what the interval means stands in `meaning`."""

    model_config = ConfigDict(extra="forbid")

    value: Seconds
    low: Seconds
    high: Seconds
    meaning: str = ""


class ModelledRank(BaseModel):
    """Where a simulated rank's time went, in seconds; the four parts sum to `total_s`."""

    model_config = ConfigDict(extra="forbid")

    rank: int = Field(ge=0)
    compute_s: Finite
    endpoint_s: Finite
    wire_s: Finite
    waiting_s: Finite
    total_s: Finite


class RealRank(BaseModel):
    """Where a real rank's time went, in seconds: in its own code, and inside MPI calls."""

    model_config = ConfigDict(extra="forbid")

    rank: int = Field(ge=0)
    compute_s: Finite
    mpi_s: Finite
    total_s: Finite


class ComputeNote(BaseModel):
    """How the time between calls was found."""

    model_config = ConfigDict(extra="forbid")

    source: Literal["measured", "given", "replayed"]
    statistic: Statistic = "median"
    passes: int = Field(default=1, ge=1)
    concurrent: int = Field(default=1, ge=1, description="ranks that were measured side by side")
    other_paths: list[str] = Field(default_factory=list, description="repeats that took another path")


class Range(BaseModel):
    """From the least to the largest, in nanoseconds."""

    model_config = ConfigDict(extra="forbid")

    low: float = Field(gt=0.0, allow_inf_nan=False)
    high: float = Field(gt=0.0, allow_inf_nan=False)


class InState(BaseModel):
    """A prediction for one state of the host; see `wiretwin.states`."""

    model_config = ConfigDict(extra="forbid")

    name: str
    crossing_ns: Range = Field(description="how far apart the ranks were where the twin was measured")
    network: dict[str, Any] = Field(description="the network model the ranks ran on")
    passes: int = Field(
        ge=0, description="of the measuring passes, those made in this state; with 0, all of them were taken"
    )
    seconds: Spread
    noise: Spread | None = Field(
        default=None, description="the same, its interval without what the model is wrong by"
    )
    per_rank: list[ModelledRank]
    trace_digest: str

    @property
    def compute_share(self) -> float:
        """The share of the time that the busiest rank, or the cores that ranks share, computed."""
        return compute_share(self.network, [rank.compute_s for rank in self.per_rank], self.seconds.value)


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid")

    FORMAT: ClassVar[str]
    FILE: ClassVar[str]

    def canonical(self) -> bytes:
        """Return the bytes the digest covers: everything but the digest, keys sorted."""
        return _canonical(self.model_dump(mode="json"))

    def sealed(self) -> Self:
        """Return this record with its digest filled in."""
        return self.model_copy(update={"digest": hashlib.sha256(self.canonical()).hexdigest()})

    def write(self, folder: Path) -> Path:
        """Write the record into `folder` (made if absent), whole or not at all; return the file.

        Raises
        ------
        StorageError
            When it cannot be written.
        """
        target = folder / self.FILE
        partial = target.with_suffix(".partial")
        text = json.dumps(self.model_dump(mode="json"), indent=1, sort_keys=True) + "\n"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with partial.open("w", encoding="utf-8") as stream:
                stream.write(text)
                stream.flush()
                os.fsync(stream.fileno())
            partial.replace(target)
        except OSError as error:
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)
            raise StorageError(target, f"not written: {error.strerror or error}") from error
        return target


class Prediction(_Record):
    """What the simulated world said before the real run."""

    FORMAT: ClassVar[str] = "wiretwin-prediction"
    FILE: ClassVar[str] = "prediction.json"

    format: Literal["wiretwin-prediction"] = "wiretwin-prediction"
    version: Literal[1] = 1
    program: str
    program_sha256: str
    args: list[str]
    ranks: int = Field(ge=1)
    layer: str
    twin_sha256: str | None
    network: dict[str, Any] = Field(description="the network model the ranks ran on")
    seed: int
    compute: ComputeNote
    seconds: Spread
    noise: Spread | None = Field(
        default=None, description="the same, its interval without what the model is wrong by"
    )
    setup: str | None = Field(
        default=None, description="which predictions on record it is like: `wiretwin.predict.learnt.SETUPS`"
    )
    per_rank: list[ModelledRank]
    messages: int = Field(ge=0)
    trace_digest: str
    state: str | None = Field(
        default=None, description="the state of the host that network, seconds, per_rank are of"
    )
    states: list[InState] = Field(default_factory=list, description="one prediction for each of the twin's")
    printed: list[str] | None = Field(
        default=None, description="what each rank printed, at most `printed.RANK_BYTES` of it; a script's"
    )
    warnings: list[str] = Field(default_factory=list)
    wiretwin: str
    frozen_utc: Utc
    digest: str = ""

    @property
    def compute_share(self) -> float:
        """The share of the time that the busiest rank, or the cores that ranks share, computed."""
        return compute_share(self.network, [rank.compute_s for rank in self.per_rank], self.seconds.value)


def compute_share(model: Mapping[str, Any], computed_s: Sequence[float], seconds: float) -> float:
    """Return the share of `seconds` that the busiest rank computed, or the cores of a host that ranks share.

    A rank that waits for the core that it shares waits for what others compute there.

    Parameters
    ----------
    model
        What the ranks lived on.
    computed_s
        For how long each of them computed, in seconds.
    seconds
        The time of the program, in seconds.
    """
    if seconds <= 0:
        return 1.0
    nodes = model.get("nodes", ())
    by_host: dict[int, float] = {}
    for node, computed in zip(model.get("placement", ()), computed_s, strict=False):
        host = nodes[node].get("cores_of", node)
        by_host[host] = by_host.get(host, 0.0) + computed / nodes[host]["cores"]
    return min(1.0, max([*computed_s, *by_host.values()]) / seconds)


class Launch(BaseModel):
    """One launch of the real program."""

    model_config = ConfigDict(extra="forbid")

    seconds: Seconds = Field(description="slowest rank, after Init to before Finalize")
    per_rank_s: list[Seconds]
    split: list[RealRank] | None = None
    echo_us: float | None = Field(
        default=None, ge=0, description="the one-way latency of 64 KiB just before the program, ranks 0 and 1"
    )
    crossing_ns: tuple[float, float] | None = Field(
        default=None, description="a cache line from rank 0 to rank 1 and back, before and after the program"
    )
    queued_s: Seconds | None = Field(
        default=None,
        description="the longest that a rank was ready to run and had no core; not where ranks share cores",
    )
    printed: list[str] | None = Field(
        default=None, description="what each rank printed, of a script's first launch that counts"
    )


def typical(launches: Sequence[Launch]) -> int:
    """Return the index of the launch in the middle by its time, of an even number the shorter of two."""
    order = sorted(range(len(launches)), key=lambda at: launches[at].seconds)
    return order[(len(order) - 1) // 2]


class Run(_Record):
    """What the real program took, launch by launch."""

    FORMAT: ClassVar[str] = "wiretwin-run"
    FILE: ClassVar[str] = "run.json"

    format: Literal["wiretwin-run"] = "wiretwin-run"
    version: Literal[1] = 1
    program: str
    program_sha256: str
    args: list[str]
    ranks: int = Field(ge=1)
    layer: str
    launcher: list[str]
    library: str
    launches: list[Launch] = Field(min_length=1)
    seconds: Spread
    split: list[RealRank]
    split_launch: int | None = Field(
        default=None, ge=1, description="the launch that the split is of, counted from 1 in `launches`"
    )
    wiretwin: str
    started_utc: Utc
    digest: str = ""

    @property
    def printed(self) -> list[str] | None:
        """What each rank printed, of the launch that has it; none of a compiled program."""
        return next((one.printed for one in self.launches if one.printed is not None), None)


class Beside(BaseModel):
    """Predicted and actual time in one state of the host."""

    model_config = ConfigDict(extra="forbid")

    state: str | None = Field(description="none where no launch's state is known to the twin")
    passes: int = Field(ge=0, description="measuring passes that were made in this state")
    launches: int = Field(ge=0, description="launches in it, of those that count")
    predicted: Spread
    actual: Spread | None = None
    error: float | None = Field(default=None, description="(predicted - actual) / actual")


class Comparison(BaseModel):
    """A prediction beside the run it was made for.

    `predicted`, `actual` and `error` are those of the state that most launches were in; `by_state` has all.
    """

    model_config = ConfigDict(extra="forbid")

    prediction: Prediction
    run: Run
    state: str | None = None
    launches: int = Field(ge=1, description="how many the actual time is the median of")
    predicted: Spread
    actual: Spread
    error: float = Field(description="(predicted - actual) / actual")
    by_state: list[Beside] = Field(default_factory=list)
    elsewhere: int = Field(
        default=0, ge=0, description="launches in no state of the twin, or that saw it change"
    )
    notes: list[str] = Field(default_factory=list)
    printed: Agreement | None = Field(
        default=None, description="whether the program printed the same in both worlds; none if not known"
    )

    def to_json(self) -> bytes:
        """Return the record as a file holds it: format ``wiretwin-comparison``."""
        body = {"format": "wiretwin-comparison", "version": VERSION, **self.model_dump(mode="json")}
        return (json.dumps(body, indent=1, sort_keys=True) + "\n").encode()


R = TypeVar("R", bound=_Record)


def read(kind: type[R], path: Path) -> R:
    """Read a record of `kind` from a file or the folder that holds it.

    Raises
    ------
    InputError
        When it is absent, not JSON, of another format or version, or when its digest does not fit.
    """
    file = path / kind.FILE if path.is_dir() else path
    text = read_text(file, most=MOST_BYTES, keys=kind.model_fields)
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(
            str(file), f"line {error.lineno} column {error.colno}", error.msg, f"JSON of a {kind.FORMAT}"
        ) from error
    except (RecursionError, ValueError) as error:
        raise InputError(file, reason=str(error), allowed=f"JSON of a {kind.FORMAT}") from error
    if not isinstance(data, dict) or data.get("format") != kind.FORMAT:
        found = data.get("format") if isinstance(data, dict) else type(data).__name__
        raise InputError(str(file), "format", repr(found), kind.FORMAT)
    if data.get("version") != VERSION:
        raise InputError(
            str(file), "version", repr(data.get("version")), f"{VERSION}, which this wiretwin reads"
        )
    try:
        record = kind.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        raise InputError(str(file), key, repr(first.get("input"))[:80], first["msg"]) from error
    if data.get("digest") != hashlib.sha256(_canonical(data)).hexdigest():
        raise InputError(
            str(file), "digest", str(data.get("digest")), "the digest of the record: it was changed"
        )
    return record


def _canonical(body: dict[str, Any]) -> bytes:
    """Return the bytes of a record as it stands in its file, without its digest.

    Of the file, not of what this version makes of it: a later version may know more keys.
    """
    rest = {key: value for key, value in body.items() if key != "digest"}
    return json.dumps(rest, sort_keys=True, separators=(",", ":")).encode()


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def utc_now() -> str:
    """Return the present time as ISO 8601 in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def median(values: Sequence[float]) -> float:
    """Return the median of at least one value."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2


def median_spread(values: Sequence[float]) -> Spread:
    """Return the median with the distribution-free interval of order statistics (about 95 %).

    Fewer than six values cannot give 95 %: the interval is then their whole range, and says so.
    """
    ordered = sorted(values)
    count = len(ordered)
    # Binomial(n, 1/2): the largest k with P(X < k) <= 0.025 leaves [x_k, x_(n+1-k)].
    cumulative, k = 0.0, 0
    term = 0.5**count
    for i in range(count):
        cumulative += term
        if cumulative > 0.025:
            k = i
            break
        term = term * (count - i) / (i + 1)
    if k == 0:
        meaning = "the one launch" if count == 1 else f"range of {count} launches"
        return Spread(value=median(ordered), low=ordered[0], high=ordered[-1], meaning=meaning)
    return Spread(
        value=median(ordered),
        low=ordered[k - 1],
        high=ordered[count - k],
        meaning=f"95 % interval of the median of {count} launches",
    )


def keep(folder: Path, prediction: Prediction, tables: Mapping[str, pl.DataFrame]) -> None:
    """Write the files of a prediction; the record last, so that it is never without the others.

    Raises
    ------
    StorageError
        When one cannot be written.
    """
    import polars as pl

    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, table in tables.items():
            table.write_parquet(folder / name)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise StorageError(folder, f"not written: {getattr(error, 'strerror', None) or error}") from error
    prediction.write(folder)
