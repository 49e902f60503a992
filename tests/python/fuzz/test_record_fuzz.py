"""Whatever a prediction or a run's record holds, it is read and compared, or refused."""

from __future__ import annotations

import contextlib
import json
import math
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from mutate import SETTINGS, changed, edited
from pydantic import ValidationError

from wiretwin.errors import WiretwinError
from wiretwin.predict.compare import compare
from wiretwin.predict.records import Prediction, Run, read

COMMON: dict[str, Any] = {
    "version": 1,
    "program": "ring.py",
    "program_sha256": "0" * 64,
    "args": ["--steps", "3"],
    "ranks": 2,
    "layer": "mpi4py/mpich",
    "seconds": {"value": 0.5, "low": 0.4, "high": 0.6, "meaning": "range"},
    "wiretwin": "0.1.0",
}
MODELLED = {"compute_s": 0.3, "endpoint_s": 0.1, "wire_s": 0.05, "waiting_s": 0.05, "total_s": 0.5}
PREDICTION = COMMON | {
    "format": "wiretwin-prediction",
    "twin_sha256": "1" * 64,
    "network": {"nodes": [{"cores": 2}], "placement": [0, 0]},
    "seed": 1,
    "compute": {"source": "measured", "statistic": "median", "passes": 3},
    "per_rank": [MODELLED | {"rank": 0}, MODELLED | {"rank": 1}],
    "messages": 6,
    "trace_digest": "2" * 32,
    "warnings": [],
    "frozen_utc": "2026-01-01T00:00:00Z",
}
REAL = {"compute_s": 0.3, "mpi_s": 0.2, "total_s": 0.5}
RUN = COMMON | {
    "format": "wiretwin-run",
    "launcher": ["mpiexec", "-n", "2"],
    "library": "MPICH",
    "launches": [{"seconds": 0.5, "per_rank_s": [0.5, 0.49], "split": None}],
    "split": [REAL | {"rank": 0}, REAL | {"rank": 1}],
    "started_utc": "2026-01-01T00:01:00Z",
}
KINDS = {"prediction": (Prediction, PREDICTION), "run": (Run, RUN)}


def sealed(name: str, document: Any) -> bytes:
    """A record with the digest that fits it, if it is one; else as it is."""
    kind = KINDS[name][0]
    with contextlib.suppress(ValidationError, ValueError):
        document = kind.model_validate(document).sealed().model_dump(mode="json")
    return json.dumps(document).encode()


def opened(name: str, octets: bytes, folder: Path) -> Prediction | Run | None:
    """The record, if it is read."""
    kind = KINDS[name][0]
    file = folder / kind.FILE
    file.write_bytes(octets)
    try:
        return read(kind, folder)
    except WiretwinError as error:
        refused = str(error)
    assert str(file) in refused
    return None


def use(folder: Path) -> None:
    """Two records that may or may not fit each other."""
    try:
        comparison = compare(folder, folder)
    except WiretwinError as error:
        refused = str(error)
    else:
        assert math.isfinite(comparison.error)
        return
    assert refused


def fresh(folder: Path) -> None:
    for name, (kind, document) in KINDS.items():
        (folder / kind.FILE).write_bytes(sealed(name, document))


def test_the_seeds_are_records_that_fit(tmp_path: Path) -> None:
    fresh(tmp_path)
    assert compare(tmp_path, tmp_path).error == 0.0


@SETTINGS
@given(name=st.sampled_from(sorted(KINDS)), data=st.data())
def test_any_octets_are_read_or_refused(name: str, data: st.DataObject, tmp_path: Path) -> None:
    octets = data.draw(edited(sealed(name, KINDS[name][1])) | st.binary(max_size=100))
    opened(name, octets, tmp_path)


@SETTINGS
@given(name=st.sampled_from(sorted(KINDS)), data=st.data())
def test_any_change_of_a_key_is_read_and_compared_or_refused(
    name: str, data: st.DataObject, tmp_path: Path
) -> None:
    fresh(tmp_path)
    opened(name, sealed(name, data.draw(changed(KINDS[name][1]))), tmp_path)
    use(tmp_path)


def test_deep_nesting_and_endless_numbers_are_refused(tmp_path: Path) -> None:
    for octets in (b"[" * 100_000, b'{"version": ' + b"9" * 10_000 + b"}", b"\xff\xfe", b""):
        assert opened("run", octets, tmp_path) is None
