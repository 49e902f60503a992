"""The folder of a sweep: what was to be run, and every run as it ended.

``sweep.json`` holds the scenario, the axes and the rule of replications; ``runs.jsonl`` one line for each
run, written and synchronised when it ends, so that an interrupt, a crash or a full disk never costs a run
that had ended. A line that was cut off by a crash is left out, and its run is done again.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import io
import json
import math
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

import wiretwin
from wiretwin.errors import InputError, StorageError
from wiretwin.faults import explain
from wiretwin.results import write_atomically

if TYPE_CHECKING:
    import polars as pl

__all__ = ["PLAN", "Folder", "Plan", "Run", "Until"]

PLAN: Final = "sweep.json"
RUNS: Final = "runs.jsonl"


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Until(_Record):
    """Go on until a metric's interval is narrow."""

    metric: str
    share: float = Field(gt=0, le=1)
    """The half width, of the mean."""


class Plan(_Record):
    """``sweep.json``."""

    format: Literal["wiretwin-sweep"] = "wiretwin-sweep"
    version: Literal[1] = 1
    wiretwin: str = wiretwin.__version__
    scenario: dict[str, Any]
    over: list[str]
    """The axes, as they were given."""
    replications: int = Field(ge=1)
    most: int = Field(ge=1)
    until: Until | None = None
    confidence: float = Field(gt=0, lt=1)


@dataclass(frozen=True)
class Run:
    """One run that has ended.

    Attributes
    ----------
    point
        Which combination of values, from 0.
    replication
        Which seed, from 0.
    seed
        It.
    metrics, digest
        What came of it; nothing where it failed.
    error
        Why it failed.
    seconds
        What it took.
    lost
        Those that did it died: it is done again when the sweep is gone on with.
    """

    point: int
    replication: int
    seed: int
    metrics: dict[str, float]
    digest: str | None
    error: str | None
    seconds: float
    lost: bool = False


class Folder:
    """An open folder of a sweep.

    Attributes
    ----------
    path
        Where it is.
    plan
        What is to be run.
    runs
        Those that have ended, by point and replication.
    """

    def __init__(self, path: Path, plan: Plan) -> None:
        self.path = path
        self.plan = plan
        self.runs: dict[tuple[int, int], Run] = {}
        self._of: dict[int, dict[int, Run]] = {}
        self._lock: int | None = None

    @classmethod
    def open(cls, path: Path, plan: Plan) -> Folder:
        """Make a folder, or go on with one of the same plan; nobody else can until it is released.

        Raises
        ------
        InputError
            Something else is there, a sweep of another plan, or one that is under way.
        StorageError
            It cannot be written.
        """
        try:
            path.mkdir(parents=True, exist_ok=True)
            lock = os.open(path, os.O_RDONLY)
        except OSError as error:
            raise StorageError(path, error.strerror or str(error)) from error
        try:
            found = cls._found(path, plan, lock)
        except BaseException:
            os.close(lock)
            raise
        found._lock = lock
        return found

    @classmethod
    def _found(cls, path: Path, plan: Plan, lock: int) -> Folder:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                key="--out", value=str(path), reason="is that of a sweep under way",
                allowed="to wait for its end, or a new folder",
            ) from None  # fmt: skip
        # A kill may have left a folder with nothing in it.
        if not any(path.iterdir()):
            write_atomically(path / PLAN, plan.model_dump_json(indent=1).encode() + b"\n")
            return cls(path, plan)
        found = cls.read(path)
        for key in Plan.model_fields:
            ours, theirs = getattr(plan, key), getattr(found.plan, key)
            if ours != theirs:
                raise InputError(
                    key="--out", value=str(path), reason=f"holds a sweep with another {key}: {theirs}",
                    allowed=f"the same sweep, to go on with it, or a new folder; here {key} is {ours}",
                )  # fmt: skip
        return found

    @classmethod
    def read(cls, path: Path) -> Folder:
        """Read a folder.

        Raises
        ------
        InputError
            It is not one of a sweep, or a file in it is damaged other than at its end.
        """
        file = path / PLAN
        try:
            plan = Plan.model_validate_json(file.read_bytes())
        except OSError as error:
            reason = f"holds no sweep: {PLAN}: {error.strerror or error}"
            raise InputError(
                key="--out", value=str(path), reason=reason, allowed="a folder of a sweep"
            ) from None
        except ValidationError as error:
            raise InputError(reason=explain(str(file), error, Plan)) from error
        folder = cls(path, plan)
        with contextlib.suppress(FileNotFoundError):
            folder._take((path / RUNS).read_bytes())
        return folder

    def _take(self, data: bytes) -> None:
        lines = data.split(b"\n")
        for number, line in enumerate(lines, 1):
            try:
                run = Run(**json.loads(line))
                if not run.lost:
                    self._keep(run)
            except (ValueError, TypeError) as error:
                if number < len(lines):
                    raise InputError(
                        self.path / RUNS, f"line {number}", reason=f"is damaged: {error}"
                    ) from None
        whole = data.rfind(b"\n") + 1
        if whole < len(data):  # a crash cut the last line off
            os.truncate(self.path / RUNS, whole)

    def append(self, run: Run) -> None:
        """Keep a run, on disk when this returns.

        Raises
        ------
        StorageError
            It could not be written; the runs before it are kept.
        """
        line = json.dumps(asdict(run), allow_nan=True).encode() + b"\n"
        file = self.path / RUNS
        try:
            size = file.stat().st_size if file.exists() else 0
            try:
                with open(file, "ab", buffering=0) as out:
                    view = memoryview(line)
                    while view:
                        view = view[out.write(view) :]
                    os.fsync(out.fileno())
            except OSError:
                if file.exists():
                    os.truncate(file, size)
                raise
        except OSError as error:
            kept = f"{len(self.runs)} runs are kept; the same command goes on"
            raise StorageError(file, error.strerror or str(error), kept) from error
        self._keep(run)

    def _keep(self, run: Run) -> None:
        self.runs[run.point, run.replication] = run
        self._of.setdefault(run.point, {})[run.replication] = run

    def of(self, point: int) -> list[Run]:
        """Return the runs of a point, by replication."""
        return [run for _, run in sorted(self._of.get(point, {}).items())]

    @property
    def failed(self) -> list[Run]:
        """Return the runs that failed."""
        return [run for _, run in sorted(self.runs.items()) if run.error is not None]

    @property
    def digest(self) -> str:
        """Return a digest of all runs, the same wherever each was done."""
        said = [f"{run.point} {run.replication} {run.digest}" for _, run in sorted(self.runs.items())]
        return hashlib.sha256("\n".join(said).encode()).hexdigest()[:32]

    def frame(self, points: Sequence[dict[str, Any]]) -> pl.DataFrame:
        """Return a row for each run: its point's values, its replication, its metrics."""
        import polars as pl

        rows = [
            {**points[run.point], "replication": run.replication, "seed": run.seed, **run.metrics,
             "digest": run.digest, "error": run.error}
            for _, run in sorted(self.runs.items())
        ]  # fmt: skip
        return pl.DataFrame(rows, infer_schema_length=None)

    def close(self, points: Sequence[dict[str, Any]]) -> None:
        """Write ``runs.parquet``, for those who read tables."""
        data = io.BytesIO()
        self.frame(points).write_parquet(data)
        write_atomically(self.path / "runs.parquet", data.getvalue())

    def release(self) -> None:
        """Let others go on with the folder."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def finite(values: Sequence[float]) -> list[float]:
    """Return those that are numbers."""
    return [value for value in values if not math.isnan(value)]
