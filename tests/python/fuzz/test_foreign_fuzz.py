"""Whatever another program's output holds, it is read or refused with an error that names the file."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mutate import SETTINGS, edited

from wiretwin.errors import InputError
from wiretwin.understand.foreign.bring import TOOLS, _read
from wiretwin.understand.foreign.reading import Reading

GOLDEN = Path(__file__).parents[1] / "understand" / "foreign"
SEEDS = {
    "netpipe": "nptcp.out",
    "osu": "osu-7.4.txt",
    "imb": "imb.txt",
    "sockperf": "sockperf-log.csv",
    "iperf3": "iperf3.json",
}


def seed_of(tool: str) -> bytes:
    """The beginning of a golden file, so that edits meet every kind of line."""
    data = (GOLDEN / SEEDS[tool]).read_bytes()
    return data if tool == "iperf3" else b"\n".join(data.splitlines()[:30])


@pytest.mark.parametrize("tool", TOOLS)
@SETTINGS
@given(data=st.data())
def test_any_output_is_read_or_refused(tool: str, data: st.DataObject, tmp_path: Path) -> None:
    file = tmp_path / "given"
    file.write_bytes(data.draw(edited(seed_of(tool)) | st.binary(max_size=60)))
    try:
        found = _read(file, TOOLS[tool], 64)
    except InputError as error:
        refused = str(error)
    else:
        check(found)
        return
    assert str(file) in refused


def check(found: Reading) -> None:
    for row in found.rows:
        assert 0 <= row.bytes <= 2**62
        assert 1 <= row.batch < 2**32
        assert 1 <= row.value_ns < 2**63
