"""What other programs write: the golden files are what each of them printed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

import wiretwin as wt
from wiretwin.cli.app import _build
from wiretwin.errors import InputError
from wiretwin.fit.ranking import size_table
from wiretwin.results import Result
from wiretwin.understand.changes import changes
from wiretwin.understand.foreign.bring import TOOLS, bring

GOLDEN = Path(__file__).parent / "foreign"
FILES = {
    "nptcp.out": "netpipe",
    "npmpich2.out": "netpipe",
    "osu-5.3.txt": "osu",
    "osu-7.4.txt": "osu",
    "osu-7.4-percentiles.txt": "osu",
    "imb.txt": "imb",
    "sockperf-log.csv": "sockperf",
    "sockperf.txt": "sockperf",
    "iperf3.json": "iperf3",
}


def size_for(name: str) -> int | None:
    return 64 if name == "sockperf.txt" else None


@pytest.mark.parametrize("name", FILES)
def test_a_golden_file_becomes_a_result_that_says_whose_it_is(name: str, tmp_path: Path) -> None:
    bring([GOLDEN / name], FILES[name], tmp_path / "result", size_bytes=size_for(name))
    result = Result.open(tmp_path / "result")
    assert result.manifest.options["foreign"]["tool"] == FILES[name]
    assert result.manifest.host == {}
    assert result.manifest.layers[0].clock is None
    assert result.samples().height > 0
    assert result.samples()["index"].min() == 1
    # Whatever it is, it is looked through and shown.
    wt.understand(result)
    wt.report(result=result, out=tmp_path / "report.html")


def test_every_reader_has_a_golden_file() -> None:
    assert set(FILES.values()) == set(TOOLS)
    assert {path.name for path in GOLDEN.iterdir()} == set(FILES)


def test_values_are_those_of_the_file(tmp_path: Path) -> None:
    def half_us(name: str) -> dict[int, float]:
        result = bring([GOLDEN / name], FILES[name], tmp_path / name, size_bytes=size_for(name))
        table = size_table(result.samples())
        return dict(zip(table["bytes"].to_list(), table["value_us"].to_list(), strict=True))

    osu = half_us("osu-5.3.txt")
    assert (osu[0], osu[1048576]) == (pytest.approx(0.58), pytest.approx(30.80))
    newer = half_us("osu-7.4.txt")
    assert (min(newer), newer[1], newer[1048576]) == (1, pytest.approx(0.57), pytest.approx(30.70))
    imb = half_us("imb.txt")
    assert (imb[0], imb[65536]) == (pytest.approx(4.50), pytest.approx(12.44))
    for line in (GOLDEN / "nptcp.out").read_text().splitlines():
        size, _, seconds = line.split()
        # Printed with eight decimals.
        assert half_us_of(tmp_path / "nptcp.out")[int(size)] == pytest.approx(float(seconds) * 1e6, abs=0.01)
    log = (GOLDEN / "sockperf-log.csv").read_text().splitlines()
    observed = [float(line.split(",")[3]) for line in log if line[:1].isdigit()]
    result = bring([GOLDEN / "sockperf-log.csv"], "sockperf", tmp_path / "log")
    assert result.samples()["value_ns"].to_list() == [pytest.approx(2000 * one, abs=2) for one in observed]
    assert result.samples()["bytes"].unique().to_list() == [64]
    record = json.loads((GOLDEN / "iperf3.json").read_text())
    flow = bring([GOLDEN / "iperf3.json"], "iperf3", tmp_path / "flow").samples()
    moved = (flow["bytes"] * flow["batch"]).sum()
    assert moved == pytest.approx(record["end"]["sum_sent"]["bytes"], rel=0.01)


def half_us_of(folder: Path) -> dict[int, float]:
    if not folder.exists():
        bring([GOLDEN / folder.name], FILES[folder.name], folder)
    table = size_table(Result.open(folder).samples())
    return dict(zip(table["bytes"].to_list(), table["value_us"].to_list(), strict=True))


def test_several_runs_give_intervals_a_fit_and_a_comparison(tmp_path: Path) -> None:
    files = []
    for run in range(3):
        files.append(tmp_path / f"run-{run}.out")
        lines = (line.split() for line in (GOLDEN / "nptcp.out").read_text().splitlines())
        scale = 1 + run / 100
        files[-1].write_text(
            "".join(
                f"{size} {float(rate) / scale:.6f} {float(time) * scale:.8f}\n" for size, rate, time in lines
            )
        )
    result = bring(files, "netpipe", tmp_path / "result", layer="socket/tcp")
    table = size_table(result.samples())
    assert (table["launches"] == 3).all()
    assert (table["high_us"] < 2 * table["value_us"]).all()
    twin = wt.fit(result)
    assert twin.layer("socket/tcp").at("half_round_trip", 1024) > 0
    found = changes(result, result)
    assert {row.verdict for row in found.rows} == {"no change"}


@pytest.mark.parametrize(
    ("tool", "text", "place", "content"),
    [
        ("netpipe", "1 4.0 0.00000191\n2 nonsense 1\n", "line 2", "2 nonsense 1"),
        ("netpipe", "1 4.0 0.5\n", "line 1", "contradicts itself"),
        ("netpipe", "1 4.0\n", "line 1", "too few columns"),
        ("osu", "# OSU MPI Bandwidth Test v5\n1 2\n", "line 1", "is another test"),
        ("osu", "# OSU MPI Latency Test v5\n1 2\n4 -1\n", "line 3", "'4 -1'"),
        ("osu", "1 2\n", "no title", ""),
        ("osu", "# OSU MPI Latency Test v7.4\n1 0.57 Pass\n2 0.58 Fail\n", "line 3", "came damaged"),
        (
            "imb",
            "# Benchmarking PingPong\n#bytes #repetitions t[usec] Mbytes/sec\n0 x 1 1\n",
            "line 3",
            "0 x 1 1",
        ),
        ("imb", "# Benchmarking Bcast\n", "Benchmarking PingPong", ""),
        ("sockperf", "packet, txTime(sec), rxTime(sec), latency(usec)\n0, 2.0, 1.0, 3\n", "line 2", "before"),
        ("sockperf", "hello\n", "no observation", ""),
        ("iperf3", '{"start": 1,\n nonsense}', "line 2", "nonsense}"),
        ("iperf3", '{"error": "unable to connect"}', "error", "unable to connect"),
        ("iperf3", "{}", "start", "is missing"),
    ],
)
def test_a_bad_file_is_refused_by_line_and_content(
    tool: str, text: str, place: str, content: str, tmp_path: Path
) -> None:
    file = tmp_path / "given"
    file.write_text(text)
    with pytest.raises(InputError) as refused:
        bring([file], tool, tmp_path / "result")
    assert str(file) in str(refused.value)
    assert place in str(refused.value)
    assert content in str(refused.value)
    assert not (tmp_path / "result").exists()


def test_what_is_no_text_is_refused_by_line_and_octet(tmp_path: Path) -> None:
    file = tmp_path / "given"
    file.write_bytes(b"# OSU\n\xd0\n")
    with pytest.raises(InputError, match="line 2: 'byte 0xd0' is no text; allowed: text in UTF-8"):
        bring([file], "osu", tmp_path / "result")


def test_a_size_that_nothing_says_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--size"):
        bring([GOLDEN / "sockperf.txt"], "sockperf", tmp_path / "result")


def test_the_command_imports(tmp_path: Path) -> None:
    shutil.copy(GOLDEN / "osu-7.4.txt", tmp_path)
    out = tmp_path / "result"
    argv = ["import", str(tmp_path / "osu-7.4.txt"), "--tool", "osu", "--layer", "mpi/mpich", "-o", str(out)]
    assert CliRunner().invoke(_build(), argv).exit_code == 0
    assert Result.open(out).manifest.layers[0].layer == "mpi/mpich"
    bad = CliRunner().invoke(_build(), [*argv[:2], "--tool", "nuttcp", "-o", str(tmp_path / "x")])
    assert isinstance(bad.exception, InputError)
