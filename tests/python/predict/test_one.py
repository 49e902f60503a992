"""The anatomy of one message between hosts as a twin has them."""

from __future__ import annotations

from pathlib import Path

import pytest
from predict_help import TWIN, wiretwin

from wiretwin.predict.model import Site
from wiretwin.predict.one import message_lines
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
    found = message_lines(Site.of(2, network), Twin.parse(TWIN), MPI, size)
    begun = 0
    for part in found:
        assert part.start_ps == begun, "no gap and no overlap"
        begun += part.span_ps
    assert {"send", "receive"} <= {part.activity for part in found}
    assert (network is None) or any(part.place == "network" for part in found)


def test_it_is_the_time_of_the_same_message_in_a_program(tmp_path: Path) -> None:
    twin, network = Twin.parse(TWIN), "star:rate=1Gbit/s,delay=5us"
    script = tmp_path / "one.py"
    script.write_text(ONE.format(size=1000))
    whole = predict(script, twin=twin, ranks=2, network=network, compute_ps=0)
    parts = message_lines(Site.of(2, network), twin, MPI, 1000)
    # The program pays for its calls besides.
    assert whole.seconds.value >= sum(part.span_ps for part in parts) / 1e12
    slower = message_lines(Site.of(2, "star:rate=100Mbit/s,delay=5us"), twin, MPI, 1000)
    assert sum(part.span_ps for part in slower) > sum(part.span_ps for part in parts)


def test_the_command_line_explains_it(tmp_path: Path) -> None:
    twin = tmp_path / "twin.toml"
    twin.write_text(TWIN)
    ended = wiretwin("explain", MPI, "4KiB", "--twin", str(twin), "--network", "star:rate=10Gbit/s")
    assert ended.code == 0, ended.err
    assert "two hosts joined by star:hosts=2,rate=10Gbit/s" in ended.out
    refused = wiretwin("explain", MPI, "4KiB", "--twin", str(twin), "--network", "asx100")
    assert refused.code == 2
    assert "a topology, with --twin" in refused.err
