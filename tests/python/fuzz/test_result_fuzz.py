"""Whatever a result folder holds, it is read or refused with an error of the family."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mutate import SETTINGS, changed, edited

from wiretwin.errors import WiretwinError
from wiretwin.results import SAMPLE_COLUMNS, Clock, Launch, Layer, Result

ROWS = 4


def make(folder: Path) -> Path:
    """A folder with two launches."""
    clock = Clock(name="monotonic", cost_ns=20.0, resolution_ns=1.0)
    layer = Layer(layer="shm", name="shm", options={"spin": True}, effective={}, clock=clock)
    result = Result.create(folder, seed=1, created_utc="2026-01-01T00:00:00Z", layers=[layer])
    for number in (1, 2):
        launch = Launch(
            launch=number, name="shm", order=number - 1, started_utc="now", seconds=0.5, status="ok"
        )
        columns = {"loop": ["echo"] * ROWS, "value_ns": list(range(ROWS))}
        columns |= {name: [1] * ROWS for name in ("bytes", "messages", "delay_ns", "batch")}
        result.append(launch, columns | {"index": list(range(ROWS))})
    result.finish("complete", {"shm": "budget"})
    return folder


@pytest.fixture
def copy_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Makes a fresh copy of the folder, in the same place each time."""
    place = tmp_path_factory.mktemp("result")
    original, copy = make(place / "original"), place / "copy"

    def again() -> Path:
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(original, copy)
        return copy

    return again


def use(folder: Path, *, salvage: bool) -> bool:
    """Whether the folder is read; what is read can be used."""
    try:
        result = Result.open(folder, salvage=salvage)
    except WiretwinError as error:
        refused = str(error)
    else:
        check(result)
        return True
    assert str(folder) in refused
    return False


def check(result: Result) -> None:
    frame = result.samples(failed=True)
    assert frame.columns == list(SAMPLE_COLUMNS)
    assert sum(frame.null_count().row(0)) == 0
    assert len(result.digest()) == 64
    assert str(result)


def test_the_seed_is_a_result(copy_of: Callable[[], Path]) -> None:
    assert use(copy_of(), salvage=False)


@SETTINGS
@given(data=st.data())
def test_any_manifest_is_read_or_refused(data: st.DataObject, copy_of: Callable[[], Path]) -> None:
    folder = copy_of()
    manifest = folder / "manifest.json"
    manifest.write_bytes(data.draw(edited(manifest.read_bytes()) | st.binary(max_size=100)))
    use(folder, salvage=data.draw(st.booleans()))


@SETTINGS
@given(data=st.data())
def test_any_change_of_a_manifest_key_is_read_or_refused(
    data: st.DataObject, copy_of: Callable[[], Path]
) -> None:
    folder = copy_of()
    manifest = folder / "manifest.json"
    document = data.draw(changed(json.loads(manifest.read_bytes())))
    manifest.write_text(json.dumps(document))
    use(folder, salvage=data.draw(st.booleans()))


def without_digests(folder: Path) -> None:
    """As a folder whose manifest does not vouch for its files: the Parquet reader must cope alone."""
    manifest = folder / "manifest.json"
    document = json.loads(manifest.read_bytes())
    for launch in document["launches"]:
        launch["sha256"] = None
    manifest.write_text(json.dumps(document))


@SETTINGS
@given(data=st.data())
def test_any_sample_file_is_read_or_set_aside(data: st.DataObject, copy_of: Callable[[], Path]) -> None:
    folder = copy_of()
    without_digests(folder)
    file = folder / "samples" / f"launch-0000{data.draw(st.integers(1, 2))}.parquet"
    file.write_bytes(data.draw(edited(file.read_bytes())))
    use(folder, salvage=data.draw(st.booleans()))


COLUMN_TYPES = st.sampled_from(
    [
        pa.uint32(),
        pa.uint64(),
        pa.int64(),
        pa.float64(),
        pa.string(),
        pa.large_string(),
        pa.binary(),
        pa.bool_(),
    ]
)


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """Whole Parquet tables that need not be ours: any columns, types, empty values and lengths."""
    names = draw(st.lists(st.sampled_from([*SAMPLE_COLUMNS, "other"]), unique=True, max_size=10))
    rows = draw(st.sampled_from([0, 1, ROWS]))
    right = draw(st.booleans())
    columns = {}
    for name in list(SAMPLE_COLUMNS) if right else names:
        wanted = pa.type_for_alias(SAMPLE_COLUMNS.get(name, "int64"))
        kind = wanted if draw(st.booleans()) else draw(COLUMN_TYPES)
        value: Any = "x" if pa.types.is_string(kind) or pa.types.is_large_string(kind) else 1
        value = b"x" if pa.types.is_binary(kind) else value == 1 if pa.types.is_boolean(kind) else value
        values = [None if draw(st.integers(0, 9)) == 0 else value for _ in range(rows)]
        columns[name] = pa.array(values, type=kind)
    return pa.table(columns)


@SETTINGS
@given(data=st.data())
def test_a_foreign_table_is_read_or_set_aside(data: st.DataObject, copy_of: Callable[[], Path]) -> None:
    folder = copy_of()
    without_digests(folder)
    number = data.draw(st.integers(1, 3))
    pq.write_table(data.draw(tables()), folder / "samples" / f"launch-0000{number}.parquet")
    use(folder, salvage=data.draw(st.booleans()))
