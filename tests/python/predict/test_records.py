"""Records: what is sealed is read back, what was changed or is foreign is refused by name."""

from __future__ import annotations

import json
import re
from itertools import accumulate
from math import comb
from pathlib import Path
from typing import Any

import pytest
from predict_help import prediction, rewrite, run_record
from pydantic import BaseModel

from wiretwin.errors import InputError, StorageError
from wiretwin.predict.records import (
    VERSION,
    Comparison,
    ComputeNote,
    InState,
    Launch,
    Prediction,
    Run,
    median,
    median_spread,
    read,
)


def test_a_sealed_record_is_read_back_as_it_was(tmp_path: Path) -> None:
    frozen, run = prediction(), run_record()
    assert frozen.write(tmp_path / "new" / "p") == tmp_path / "new" / "p" / "prediction.json"
    assert read(Prediction, tmp_path / "new" / "p") == frozen
    file = run.write(tmp_path)
    assert read(Run, file) == run
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["run.json"]


def test_the_digest_covers_everything_but_itself() -> None:
    frozen = prediction()
    assert prediction().digest == frozen.digest
    assert frozen.sealed() == frozen
    changes: dict[str, Any] = {
        "program_sha256": "other",
        "twin_sha256": "other",
        "args": [],
        "seed": 2,
        "warnings": ["x"],
        "frozen_utc": "2026-01-01T00:00:00.001+00:00",
        "network": {"nodes": [1]},
    }
    digests = {prediction(**{key: value}).digest for key, value in changes.items()}
    assert len(digests | {frozen.digest}) == len(changes) + 1


def test_a_changed_record_is_refused_naming_the_digest(tmp_path: Path) -> None:
    file = prediction().write(tmp_path)
    rewrite(file, seed=2)
    with pytest.raises(InputError, match=rf"{file}: digest: '[0-9a-f]{{64}}' .*was changed"):
        read(Prediction, tmp_path)
    rewrite(file, seed=1)
    read(Prediction, tmp_path)
    rewrite(file, digest="")
    with pytest.raises(InputError, match="digest"):
        read(Prediction, tmp_path)


@pytest.mark.parametrize(
    ("changes", "key", "value", "allowed"),
    [
        ({"format": "wiretwin-run"}, "format", "wiretwin-run", "wiretwin-prediction"),
        ({"version": VERSION + 1}, "version", str(VERSION + 1), f"{VERSION}, which this wiretwin reads"),
        ({"colour": "red"}, "colour", "red", "Extra inputs are not permitted"),
        ({"ranks": 0}, "ranks", "0", "greater than or equal to 1"),
        ({"args": "x"}, "args", "x", "valid list"),
        ({"frozen_utc": "yesterday"}, "frozen_utc", "yesterday", "ISO 8601"),
        ({"seconds": {"value": float("nan"), "low": 0, "high": 1}}, "seconds.value", "nan", "finite number"),
    ],
)
def test_a_wrong_key_is_refused_by_file_key_value_and_what_is_allowed(
    tmp_path: Path, changes: dict[str, Any], key: str, value: str, allowed: str
) -> None:
    file = prediction().write(tmp_path)
    rewrite(file, **changes)
    with pytest.raises(InputError) as caught:
        read(Prediction, tmp_path)
    said = str(caught.value)
    assert said.startswith(f"{file}: {key}: ")
    assert value in said.partition("; allowed: ")[0]
    assert allowed in said.partition("; allowed: ")[2]


def test_what_is_no_record_is_refused(tmp_path: Path) -> None:
    file = prediction().write(tmp_path)
    whole = file.read_text()
    file.write_text(whole[: len(whole) // 2])
    with pytest.raises(InputError, match=rf"{file}: line \d+ column \d+: .*JSON of a wiretwin-prediction"):
        read(Prediction, file)
    for text in ("[]", "7", '"x"', "null"):
        file.write_text(text)
        with pytest.raises(InputError, match=rf"{file}: format: .*wiretwin-prediction"):
            read(Prediction, file)
    file.write_text("[" * 100_000)
    with pytest.raises(InputError, match=str(file)):
        read(Prediction, file)
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=rf"{file}: not a text file: byte 0 is not UTF-8"):
        read(Prediction, file)
    with pytest.raises(InputError, match=rf"^{file}/none: cannot be read: Not a directory"):
        read(Prediction, file / "none")
    file.unlink()
    with pytest.raises(InputError, match=rf"^{file}: cannot be read: No such file or directory"):
        read(Prediction, tmp_path)


def test_a_key_that_is_absent_is_named(tmp_path: Path) -> None:
    file = run_record().write(tmp_path)
    content = json.loads(file.read_text())
    del content["launches"]
    file.write_text(json.dumps(content))
    with pytest.raises(InputError, match=rf"{file}: launches: .*required"):
        read(Run, tmp_path)


def test_a_record_that_cannot_be_written_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(StorageError, match=str(blocked)):
        prediction().write(blocked / "folder")
    (tmp_path / "prediction.json").mkdir()
    with pytest.raises(StorageError, match=r"prediction\.json"):
        prediction().write(tmp_path)
    assert not list(tmp_path.glob("*.partial"))


def order_statistic(count: int) -> int:
    """The rank k of the interval [x_k, x_(n+1-k)] that holds the median in at least 95 %; 0 if none does."""
    below = list(accumulate(comb(count, i) / 2**count for i in range(count + 1)))
    return sum(share <= 0.025 for share in below)


@pytest.mark.parametrize(
    # From the tables of the sign test (Conover, Practical Nonparametric Statistics, table A3).
    ("count", "k"),
    [(6, 1), (7, 1), (8, 1), (9, 2), (11, 2), (12, 3), (15, 4), (20, 6), (25, 8), (50, 18)],
)
def test_the_interval_of_the_median_is_that_of_order_statistics(count: int, k: int) -> None:
    assert order_statistic(count) == k
    values = (
        [float((7 * i) % count + 1) for i in range(count)]
        if count % 7
        else [*map(float, range(count, 0, -1))]
    )
    spread = median_spread(values)
    assert (spread.low, spread.high) == (k, count + 1 - k)
    assert spread.value == (count + 1) / 2
    assert spread.meaning == f"95 % interval of the median of {count} launches"


@pytest.mark.parametrize("count", [100, 999, 1000])
def test_the_interval_of_many_launches_follows_the_binomial(count: int) -> None:
    spread = median_spread([float(i + 1) for i in range(count)])
    assert spread.low == order_statistic(count)
    assert spread.high == count + 1 - spread.low


@pytest.mark.parametrize("count", [1, 2, 5])
def test_few_launches_give_their_range_and_say_so(count: int) -> None:
    spread = median_spread([3.0, 1.0, 2.0, 5.0, 4.0][:count])
    assert (spread.low, spread.high) == (min([3, 1, 2, 5, 4][:count]), max([3, 1, 2, 5, 4][:count]))
    assert spread.meaning == ("the one launch" if count == 1 else f"range of {count} launches")


def test_the_median() -> None:
    assert median([3.0]) == 3.0
    assert median([4.0, 1.0, 3.0]) == 3.0
    assert median([4.0, 1.0, 3.0, 2.0]) == 2.5


PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "records.md").read_text("utf-8")


def documented(heading: str) -> list[str]:
    """The words in code style in the first column of the table that follows a heading."""
    table = PAGE.split(heading, 1)[1].split("|---|---|\n", 1)[1].split("\n\n", 1)[0]
    return [word for row in table.splitlines() for word in re.findall(r"`(\w+)`", row.split("|")[1])]


@pytest.mark.parametrize(
    ("heading", "kind"),
    [
        ("## Prediction\n", Prediction),
        ("| Key of `compute` |", ComputeNote),
        ("| Key of one of `states` |", InState),
        ("## Run\n", Run),
        ("| Key of a launch |", Launch),
        ("## Comparison\n", Comparison),
    ],
)
def test_every_key_is_documented(heading: str, kind: type[BaseModel]) -> None:
    assert sorted(documented(heading)) == sorted(kind.model_fields)
