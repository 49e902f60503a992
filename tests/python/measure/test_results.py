"""The result folder: what is stored is found again, and damage is named."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wiretwin.errors import InputError, StorageError
from wiretwin.results import SAMPLE_COLUMNS, Launch, Layer, Result

CREATED = "2024-05-01T12:00:00Z"


def launch(number: int, name: str = "shm", status: str = "ok") -> Launch:
    return Launch.model_validate(
        {
            "launch": number,
            "name": name,
            "order": number - 1,
            "started_utc": CREATED,
            "seconds": 0.5,
            "status": status,
        }
    )


def columns(values: list[int], size: int = 4) -> dict[str, list[object]]:
    rows = len(values)
    return {
        "loop": ["echo"] * rows,
        "bytes": [size] * rows,
        "messages": [1] * rows,
        "delay_ns": [0] * rows,
        "batch": [10] * rows,
        "index": list(range(rows)),
        "value_ns": list(values),
    }


def folder(path: Path, launches: int = 3) -> Result:
    result = Result.create(path, seed=7, created_utc=CREATED, layers=[Layer(layer="shm", name="shm")])
    for number in range(1, launches + 1):
        result.append(launch(number), columns([900 + number, 100 + number, 200 + number]))
    return result


def sample_file(path: Path, number: int) -> Path:
    return path / "samples" / f"launch-{number:05d}.parquet"


def test_what_was_appended_is_found_again(tmp_path: Path) -> None:
    written = folder(tmp_path / "r")
    written.finish("complete", {"shm": "narrow"}, {"shm": "1.2 % wide"})
    opened = Result.open(tmp_path / "r")
    assert opened.manifest == written.manifest
    assert opened.damaged == []
    frame = opened.samples()
    assert frame.columns == list(SAMPLE_COLUMNS)
    assert frame["value_ns"].to_list() == [901, 101, 201, 902, 102, 202, 903, 103, 203]
    assert frame["launch"].to_list() == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert frame.schema["value_ns"] == pl.UInt64
    assert opened.digest() == written.digest()


def test_digest_follows_the_samples(tmp_path: Path) -> None:
    one, two, longer = (
        folder(tmp_path / name, launches) for name, launches in (("one", 2), ("two", 2), ("longer", 3))
    )
    assert one.digest() == two.digest()
    assert one.digest() != longer.digest()


def test_an_open_folder_can_be_read_after_each_launch(tmp_path: Path) -> None:
    writer = Result.create(tmp_path / "r", seed=1, created_utc=CREATED)
    for number in (1, 2):
        writer.append(launch(number), columns([1, 2]))
        reader = Result.open(tmp_path / "r")
        assert reader.manifest.state == "running"
        assert reader.samples().height == 2 * number


def test_samples_of_failed_launches_are_kept_apart(tmp_path: Path) -> None:
    result = folder(tmp_path / "r", 1)
    result.append(launch(2, status="failed"), columns([5, 6]))
    result.append(launch(3, status="interrupted"), columns([7]))
    result.append(launch(4, status="failed"))
    opened = Result.open(tmp_path / "r")
    assert opened.samples()["launch"].unique().sort().to_list() == [1, 3]
    assert opened.samples(failed=True)["launch"].unique().sort().to_list() == [1, 2, 3]


def test_a_folder_that_holds_something_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="is not empty; allowed: a new or an empty folder"):
        Result.create(tmp_path, seed=1, created_utc=CREATED)
    assert [entry.name for entry in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("keep", [0, 3, 40, -1])
def test_a_truncated_last_launch_is_named_and_the_rest_opens(tmp_path: Path, keep: int) -> None:
    folder(tmp_path / "r")
    file = sample_file(tmp_path / "r", 3)
    file.write_bytes(file.read_bytes()[:keep])
    opened = Result.open(tmp_path / "r")
    assert [damage.file for damage in opened.damaged] == [file]
    assert opened.samples()["launch"].unique().sort().to_list() == [1, 2]


def test_samples_are_read_without_the_threads_of_a_reader(tmp_path: Path) -> None:
    """Where they had only just begun when a verb refused its next argument, the process was aborted."""
    folder(tmp_path / "r")
    looked = "import sys; from wiretwin.results import Result; Result.open(sys.argv[1]).samples(); "
    said = subprocess.run(
        [sys.executable, "-c", f"{looked}print('pyarrow.dataset' in sys.modules)", str(tmp_path / "r")],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert said.stdout == "False\n"


def test_damage_before_the_last_launch_is_refused_and_can_be_salvaged(tmp_path: Path) -> None:
    folder(tmp_path / "r")
    file = sample_file(tmp_path / "r", 2)
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(InputError, match=r"launch-00002\.parquet: is truncated .*\(launch 2 of 3\)"):
        Result.open(tmp_path / "r")
    opened = Result.open(tmp_path / "r", salvage=True)
    assert opened.samples()["launch"].unique().sort().to_list() == [1, 3]


def test_a_flipped_bit_is_found(tmp_path: Path) -> None:
    folder(tmp_path / "r")
    file = sample_file(tmp_path / "r", 1)
    data = bytearray(file.read_bytes())
    data[len(data) // 3] ^= 1
    file.write_bytes(data)
    with pytest.raises(InputError, match="has been changed since it was measured"):
        Result.open(tmp_path / "r")


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"a": [1, 2]}, "column 'launch' is missing"),
        ({key: [1.5] for key in SAMPLE_COLUMNS}, "column 'launch' is double, not uint32"),
    ],
)
def test_foreign_parquet_is_refused(tmp_path: Path, table: dict[str, list[object]], words: str) -> None:
    folder(tmp_path / "r")
    forget_digests(tmp_path / "r")
    pq.write_table(pa.table(table), sample_file(tmp_path / "r", 1))
    with pytest.raises(InputError, match=f"launch-00001.parquet: is a foreign Parquet file: {words}"):
        Result.open(tmp_path / "r")


def test_something_else_named_parquet_is_refused(tmp_path: Path) -> None:
    folder(tmp_path / "r")
    sample_file(tmp_path / "r", 1).write_text("bytes,value\n4,5\n")
    with pytest.raises(InputError, match=r"launch-00001\.parquet: is not a Parquet file"):
        Result.open(tmp_path / "r")


def test_a_missing_sample_file_is_named(tmp_path: Path) -> None:
    folder(tmp_path / "r")
    sample_file(tmp_path / "r", 1).unlink()
    with pytest.raises(InputError, match=r"launch-00001\.parquet: is missing"):
        Result.open(tmp_path / "r")


def test_a_sample_file_outside_the_folder_is_refused(tmp_path: Path) -> None:
    folder(tmp_path / "r")
    edit_manifest(tmp_path / "r", lambda raw: raw["launches"][0].update(file="../../etc/passwd"))
    with pytest.raises(InputError, match="lies outside the folder's samples/"):
        Result.open(tmp_path / "r")


def test_a_launch_stored_without_its_manifest_entry_is_adopted(tmp_path: Path) -> None:
    folder(tmp_path / "r")
    edit_manifest(tmp_path / "r", lambda raw: raw["launches"].pop())
    opened = Result.open(tmp_path / "r")
    assert opened.samples()["launch"].unique().sort().to_list() == [1, 2, 3]
    assert opened.manifest.launches[-1].name == "shm"
    assert opened.manifest.launches[-1].status == "interrupted"


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        (lambda raw: raw.update(version=2), "version: 2 is newer than this wiretwin reads; allowed: 1 to 1"),
        (lambda raw: raw.update(version="x"), "version: 'x' is no version; allowed: 1 to 1"),
        (
            lambda raw: raw.update(format="other"),
            "format: 'other' is not allowed here; allowed: wiretwin-result",
        ),
        (lambda raw: raw.pop("format"), "format: is missing; allowed: wiretwin-result"),
        (lambda raw: raw.pop("seed"), "seed: Field required"),
        (lambda raw: raw.update(sead=1), "sead: 1 Extra inputs are not permitted"),
        (lambda raw: raw["launches"][1].update(status="fine"), "launches.1.status: 'fine' Input should be"),
        (lambda raw: raw["layers"][0].update(clock={"name": "x"}), "layers.0.clock.cost_ns: Field required"),
    ],
)
def test_a_wrong_manifest_names_key_value_and_what_is_allowed(
    tmp_path: Path, edit: object, words: str
) -> None:
    folder(tmp_path / "r")
    edit_manifest(tmp_path / "r", edit)
    with pytest.raises(InputError) as caught:
        Result.open(tmp_path / "r")
    assert f"manifest.json: {words}" in str(caught.value)


def test_no_folder_no_manifest_no_json(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere: is no folder; allowed: a result folder"):
        Result.open(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"manifest\.json: is missing"):
        Result.open(tmp_path)
    (tmp_path / "manifest.json").write_text('{"format": "wiretwin-res')
    with pytest.raises(InputError, match=r"manifest\.json: is not JSON"):
        Result.open(tmp_path)


FILL_A_DISK = """
import sys
from pathlib import Path
from wiretwin.errors import StorageError
from wiretwin.results import Launch, Result
import numpy as np

random = np.random.default_rng(1)
root = Path(sys.argv[1])
result = Result.create(root / "r", seed=1, created_utc="2024-05-01T12:00:00Z")
for number in range(1, 1000):
    rows = 5000
    record = Launch(launch=number, name="shm", order=number - 1, started_utc="2024-05-01T12:00:00Z",
                    seconds=0.1, status="ok")
    zeros = np.zeros(rows, dtype=np.uint64)
    try:
        result.append(record, {"loop": ["echo"] * rows, "bytes": zeros, "messages": zeros.astype(np.uint32),
            "delay_ns": zeros, "batch": zeros.astype(np.uint32), "index": np.arange(rows, dtype=np.uint32),
            "value_ns": random.integers(0, 2**60, rows, dtype=np.uint64)})
    except StorageError as error:
        print(error)
        break
else:
    sys.exit("the disk never filled")
opened = Result.open(root / "r")
frame = opened.samples()
print(number - 1, frame["launch"].n_unique(), frame.height, len(opened.damaged))
print(sorted(p.name for p in (root / "r" / "samples").iterdir() if p.suffix != ".parquet"))
"""


def test_a_full_disk_is_an_error_and_costs_no_earlier_launch(tmp_path: Path) -> None:
    """On a small tmpfs in a mount namespace of its own."""
    mount = subprocess.run(["unshare", "-m", "true"], capture_output=True, timeout=20, check=False)
    if mount.returncode != 0:
        pytest.skip("unshare -m is not permitted here")
    script = tmp_path / "fill.py"
    script.write_text(FILL_A_DISK)
    disk = tmp_path / "disk"
    disk.mkdir()
    shell = 'mount -t tmpfs -o size=1m none "$1" && exec "$2" "$3" "$1"'
    run = subprocess.run(
        ["unshare", "-m", "sh", "-c", shell, "sh", str(disk), sys.executable, str(script)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    message, counts, leftovers = run.stdout.splitlines()
    whole, found, rows, damaged = map(int, counts.split())
    assert "not written: No space left on device" in message
    assert f"{whole} earlier launches in {disk / 'r'} intact" in message
    assert whole > 3
    assert (found, rows, damaged) == (whole, whole * 5000, 0)
    assert leftovers == "[]"


def test_a_folder_that_cannot_be_made_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="Not a directory"):
        Result.create(tmp_path / "file" / "r", seed=1, created_utc=CREATED)


def edit_manifest(path: Path, edit: object) -> None:
    file = path / "manifest.json"
    raw = json.loads(file.read_text())
    edit(raw)  # type: ignore[operator]
    file.write_text(json.dumps(raw))


def forget_digests(path: Path) -> None:
    def forget(raw: dict[str, list[dict[str, object]]]) -> None:
        for entry in raw["launches"]:
            entry["sha256"] = None

    edit_manifest(path, forget)
