"""Whatever is typed for a size, a time, a share, a list of sizes or a layer, it is read or refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mutate import SETTINGS, edited

from wiretwin.errors import InputError
from wiretwin.measure.schedule import parse_sizes
from wiretwin.quantity import MAX_SIZE, parse_rate, parse_share, parse_size, parse_time
from wiretwin.stacks.layers import parse_layers

CASES: list[tuple[Callable[..., Any], list[str], Callable[[Any], bool]]] = [
    (parse_size, ["64KiB", "1.5MiB", "4"], lambda size: 1 <= size <= MAX_SIZE),
    (parse_time, ["30s", "500ms", "2min"], lambda seconds: math.isfinite(seconds) and seconds >= 0),
    (parse_rate, ["10Mbit", "1.5 Gbit/s", "64kbit"], lambda rate: 1 <= rate <= 10**12),
    (parse_share, ["5%", "0.05"], math.isfinite),
    (parse_sizes, ["lin", "powers", "4,8,64KiB", "netpipe"], lambda sizes: bool(sizes) and min(sizes) >= 1),
    (parse_layers, ["shm,socket/tcp+spin+nagle", "mpi4py/mpich"], lambda layers: bool(layers)),
]


@pytest.mark.parametrize(
    ("parse", "seeds", "sound"), CASES, ids=lambda value: getattr(value, "__name__", None)
)
@SETTINGS
@given(data=st.data())
def test_any_text_is_read_or_refused(
    parse: Callable[..., Any], seeds: list[str], sound: Callable[[Any], bool], data: st.DataObject
) -> None:
    seed = data.draw(st.sampled_from(seeds))
    text = data.draw(edited(seed.encode()).map(lambda octets: octets.decode("utf-8", "replace")) | st.text())
    try:
        value = parse(text, "--option")
    except InputError as error:
        refused = str(error)
    else:
        assert sound(value), f"{text!r} is read as {value!r}"
        return
    assert "--option" in refused
