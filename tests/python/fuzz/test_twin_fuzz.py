"""Whatever a twin file holds, it is read or refused with an error of the family."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import Any

import tomli_w
from hypothesis import given
from hypothesis import strategies as st
from mutate import SETTINGS, changed, edited

from wiretwin.errors import WiretwinError
from wiretwin.twin import QUANTITIES, Twin

TEXT = """
format = "wiretwin-twin"
version = 1
created_utc = "2026-01-01T00:00:00Z"

[source]
digest = "d"
samples = 100
launches = 7
confidence = 0.95
seed = 1

[host]
name = "node"
cores = 2
idle = "spin"
quantum_ms = 4.0

[layers."socket/tcp+spin"]
t_0_us = { value = 1.2, low = 1.1, high = 1.3, launches = 7, samples = 90 }
r_max_MB_s = { value = 9000.0, low = 8000.0, high = 9500.0, launches = 7, samples = 90 }
n_half_bytes = { value = 2048.0, low = 1024.0, high = 4096.0, launches = 7, samples = 90 }
call_ns = { value = 90.0, low = 80.0, high = 99.0, launches = 7, samples = 90 }
rendezvous_from_bytes = 65537

[[layers."socket/tcp+spin".half_round_trip]]
from_bytes = 0
to_bytes = 8192
base_ns = { value = 300.0, low = 200.0, high = 400.0 }
per_byte_ns = { value = 0.1, low = 0.09, high = 0.11 }
samples = 40
lack_of_fit_p = 0.4

[[layers."socket/tcp+spin".half_round_trip]]
from_bytes = 8192
from_bytes_low = 4096
from_bytes_high = 16384
base_ns = { value = -100.0, low = -200.0, high = 400.0 }
per_byte_ns = { value = 0.2, low = 0.1, high = 0.3 }
samples = 40
"""


def read(octets: bytes, folder: Path) -> Twin | None:
    path = folder / "twin.toml"
    path.write_bytes(octets)
    try:
        return Twin.read(path)
    except WiretwinError as error:
        refused = str(error)
    assert str(path) in refused
    return None


def check(twin: Twin, folder: Path) -> None:
    """A twin that was read can be used at every size, and is the same when it was written and read."""
    for layer in twin.layers.values():
        for quantity in QUANTITIES:
            if getattr(layer, quantity):
                for size in (0, 1, 4096, 2**40):
                    time_ns = layer.at(quantity, size)
                    assert math.isfinite(time_ns)
                    assert time_ns >= 0
    written = twin.to_toml()
    again = read(written.encode(), folder)
    assert again is not None
    assert again.to_toml() == written


def test_the_seed_is_a_twin(tmp_path: Path) -> None:
    twin = read(TEXT.encode(), tmp_path)
    assert twin is not None
    check(twin, tmp_path)


@SETTINGS
@given(octets=edited(TEXT.encode()) | st.binary(max_size=200))
def test_any_octets_are_read_or_refused(octets: bytes, tmp_path: Path) -> None:
    twin = read(octets, tmp_path)
    if twin is not None:
        check(twin, tmp_path)


@SETTINGS
@given(document=changed(tomllib.loads(TEXT)))
def test_any_change_of_a_key_is_read_or_refused(document: Any, tmp_path: Path) -> None:
    try:
        octets = tomli_w.dumps(document).encode()
    except (TypeError, ValueError, AttributeError):
        return  # not a TOML document: None in it, or a lone surrogate
    twin = read(octets, tmp_path)
    if twin is not None:
        check(twin, tmp_path)
