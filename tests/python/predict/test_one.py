"""The anatomy of one message between hosts as a twin has them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from predict_help import TWIN, wiretwin

from wiretwin.predict.model import Site
from wiretwin.predict.one import message_anatomy
from wiretwin.predict.predict import predict
from wiretwin.twin import Twin

MPI = "mpi4py/mpich"
ONE = """
from mpi4py import MPI
comm = MPI.COMM_WORLD
buffer = bytearray({size})
if comm.rank == 0:
    comm.Send(buffer, dest=1)
else:
    comm.Recv(buffer, source=0)
"""


@pytest.mark.parametrize("size", [1000, 200_000])
@pytest.mark.parametrize(
    "network", [None, "star:rate=10Gbit/s,delay=1us", "star:rate=1Gbit/s,fidelity=packet"]
)
def test_the_parts_sum_to_what_a_message_takes(size: int, network: str | None) -> None:
    found = message_anatomy(Site.of(2, network), Twin.parse(TWIN), MPI, size).path
    begun = 0
    for part in found:
        assert part.start_ps == begun, "no gap and no overlap"
        begun += part.span_ps
    assert {"sends", "receives"} <= {part.activity for part in found}
    assert (network is None) or any(part.place == "link 0" for part in found)


def test_it_is_the_time_of_the_same_message_in_a_program(tmp_path: Path) -> None:
    twin, network = Twin.parse(TWIN), "star:rate=1Gbit/s,delay=5us"
    script = tmp_path / "one.py"
    script.write_text(ONE.format(size=1000))
    whole = predict(script, twin=twin, ranks=2, network=network, compute_ps=0)
    parts = message_anatomy(Site.of(2, network), twin, MPI, 1000).path
    # The program pays for its calls besides.
    assert whole.seconds.value >= sum(part.span_ps for part in parts) / 1e12
    slower = message_anatomy(Site.of(2, "star:rate=100Mbit/s,delay=5us"), twin, MPI, 1000).path
    assert sum(part.span_ps for part in slower) > sum(part.span_ps for part in parts)


def test_the_command_line_explains_it(tmp_path: Path) -> None:
    twin = tmp_path / "twin.toml"
    twin.write_text(TWIN)
    ended = wiretwin("explain", MPI, "4KiB", "--twin", str(twin), "--network", "star:rate=10Gbit/s")
    assert ended.code == 0, ended.err
    assert "two hosts, star:hosts=2,rate=10Gbit/s" in ended.out
    page, trace = tmp_path / "page.html", tmp_path / "trace.json"
    more = ["--fidelity", "packet", "-o", str(page), "--trace", str(trace)]
    ended = wiretwin("explain", MPI, "4KiB", "--twin", str(twin), "--network", "star:rate=10Gbit/s", *more)
    assert ended.code == 0, ended.err
    assert "receives at host 1" in page.read_text() or "carries at link 0" in page.read_text()
    assert {"cpu"} <= {event["name"].split(": ")[-1] for event in _threads(trace)}
    refused = wiretwin("explain", MPI, "4KiB", "--twin", str(twin), "--network", "asx100")
    assert refused.code == 2
    assert "a topology, with --twin" in refused.err


def _threads(trace: Path) -> list[dict[str, str]]:
    events = json.loads(trace.read_text())["traceEvents"]
    return [event["args"] for event in events if event["name"] == "thread_name"]
