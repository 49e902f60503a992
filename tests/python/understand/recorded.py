"""Views as files: one number a launch and size, what crossed the wire, options; a few kilobytes each."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from wiretwin.fit.stats import summarise
from wiretwin.results import Result
from wiretwin.understand.accounting import Account
from wiretwin.understand.view import View, view_of, views

FOLDER = Path(__file__).parent / "recorded"


def save(result: Result, path: Path) -> None:
    """Keep the one configuration of a result."""
    (view,) = views(result)
    table = summarise(result.samples()).to_arrow()
    known = {
        "name": view.name,
        "layer": view.layer,
        "options": dict(view.options),
        "effective": dict(view.effective),
        "place": {key: value for key, value in view.place.items() if key != "hosts"}
        | {"hosts": [None] * view.hosts},
        "pins": view.pins,
        "accounts": [asdict(account) for account in view.accounts],
    }
    names = [field.name for field in table.schema]
    plain = table.cast(
        pa.schema(
            [
                (name, pa.string() if pa.types.is_large_string(field.type) else field.type)
                for name, field in zip(names, table.schema, strict=True)
            ]
        )
    )
    path.parent.mkdir(exist_ok=True)
    pq.write_table(plain.replace_schema_metadata({"view": json.dumps(known)}), path, compression="zstd")


def load(path: Path) -> View:
    """Read what `save` kept."""
    table = pq.read_table(path)
    known = json.loads(table.schema.metadata[b"view"])
    known["accounts"] = [Account(**account) for account in known["accounts"]]
    known["pins"] = tuple(known["pins"]) if known["pins"] else None
    frame = pl.from_arrow(table)
    assert isinstance(frame, pl.DataFrame)
    return view_of(frame, **known)
