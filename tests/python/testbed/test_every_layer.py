"""Every messaging layer between two hosts, in one measurement that ends in one report."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from beds import need_testbed, program

from wiretwin.results import Result
from wiretwin.stacks.layers import LAYERS, nature_of, parse_layers, refusal
from wiretwin.understand.accounting import SMALL_BYTES, Account
from wiretwin.understand.api import understand

LIMIT_S = 240.0
SIZES = (4, 1024, 98304)
WITHIN_HOST = {name for name, kind in LAYERS.items() if kind.within_host and not kind.opt_in}
BETWEEN = sorted(name for name, kind in LAYERS.items() if not kind.within_host and not kind.opt_in)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Result:
    need_testbed()
    folder = tmp_path_factory.mktemp("all")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WIRETWIN_TESTBEDS", f"/dev/shm/wt-all-{os.getpid()}")
        sizes = ",".join(map(str, SIZES))
        short = ("--sizes", sizes, "--for", "curves", "--launches", "3", "--budget", "none")
        argv = program("measure", "--hosts", "2", "--layers", "all", *short, "-o", "every")
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert not list(Path(f"/dev/shm/wt-all-{os.getpid()}").glob("*")), "something is left there"
    assert done.returncode == 0, done.stderr
    assert f"report: {Path('every', 'report.html')}" in done.stderr
    return Result.open(folder / "every")


def test_every_layer_that_reaches_another_host_is_measured(result: Result) -> None:
    missing = {name: refusal(parse_layers(name)[0]) for name in BETWEEN}
    missing = {name: why for name, why in missing.items() if why is not None}
    assert not (missing and os.environ.get("CI")), missing
    there = [name for name in BETWEEN if name not in missing]
    measured = result.samples()
    counted = {
        name: measured.filter((measured["layer"] == name) & (measured["loop"] == "echo")) for name in there
    }
    for name, samples in counted.items():
        assert sorted(samples["bytes"].unique()) == [size for size in SIZES if size <= limit(name)], name
        assert samples["launch"].n_unique() >= 3, name
    assert set(result.manifest.options["skipped"]) >= WITHIN_HOST


def limit(name: str) -> int:
    return parse_layers(name)[0].max_bytes


def test_every_message_crossed_the_network_once(result: Result) -> None:
    accounts: dict[str, list[Account]] = {}
    for one in understand(result).accounts:
        accounts.setdefault(one.layer, []).append(one)
    assert set(accounts) == set(result.samples()["layer"])
    for name, found in accounts.items():
        assert all(one.crossed for one in found), name
        if nature_of(name).is_bare:  # a socket adds nothing
            assert all(one.envelope == 0 for one in found), name
            continue
        # What a library adds is some tens of bytes. It is a lower bound, far below where messages are few.
        assert all(0 <= one.envelope < 200 for one in found), (name, found)
        if any(one.bytes <= SMALL_BYTES and one.messages > 100 * one.launches for one in found):
            assert all(one.envelope > 4 for one in found), (name, found)
    # On a busy host the daemons of PVM send again what was only late, and cells go by the other circuit.
    sent_again = {one.layer for one in understand(result).findings if one.name == "retransmission"}
    assert sent_again <= {"pvm/pvm3", "pcaal/udp"}


def test_one_report_shows_them_all(result: Result) -> None:
    page = (result.path / "report.html").read_text()
    for name in set(result.samples()["layer"]):
        assert f">{name}<" in page
    for title in (
        "How fast each layer talks",
        "The layers in three numbers",
        "Bytes on the wire for each byte",
    ):
        assert title in page
