"""Advice where intervals separate, settings where they are certain or confirmed; nothing is applied."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from provoke import CASES
from recorded import FOLDER, load
from typer.testing import CliRunner

import wiretwin as wt
from wiretwin.cli.app import _build
from wiretwin.results import Launch, Layer, Result
from wiretwin.understand.advice import Win, advise
from wiretwin.understand.detect import detect
from wiretwin.understand.settings import of_finding, script

SIZES = [4, 64, 1024, 16384, 262144]


def made(folder: Path, layers: Mapping[str, Callable[[int], float]], launches: int = 5) -> Result:
    """A result whose launches scatter by 1 % around the given half round trips, us."""
    random = np.random.default_rng(3)
    described = [Layer(layer=name.split("+")[0], name=name) for name in layers]
    result = Result.create(folder, seed=1, created_utc="2026-01-01T00:00:00Z", layers=described)
    for number in range(launches * len(layers)):
        name = list(layers)[number % len(layers)]
        values = [round(2000 * layers[name](size) * np.exp(random.normal(0, 0.01))) for size in SIZES]
        columns = {"loop": ["echo"] * len(SIZES), "bytes": SIZES, "value_ns": values}
        columns |= {key: [1] * len(SIZES) for key in ("messages", "batch", "index")}
        launch = Launch(
            launch=number + 1, name=name, order=number, started_utc="now", seconds=1.0, status="ok"
        )
        result.append(launch, columns | {"delay_ns": [0] * len(SIZES)})
    result.finish("complete")
    return result


def test_a_layer_wins_where_its_interval_is_apart_and_nowhere_else(tmp_path: Path) -> None:
    result = made(
        tmp_path / "result",
        {
            "shm": lambda size: 10.0 if size < 1000 else 100.0,
            "socket/unix": lambda size: 20.0 if size < 1000 else 100.0 if size < 16384 else 50.0,
        },
    )
    found = advise(result)
    assert [(win.from_bytes, win.to_bytes, win.layer) for win in found.wins] == [
        (4, 64, "shm"),
        (16384, 262144, "socket/unix"),
    ]
    assert all(1.9 < win.least_times < 2.1 for win in found.wins)
    assert found.undecided == [1024]
    assert isinstance(found.wins[0], Win)


def test_one_layer_alone_wins_nothing(tmp_path: Path) -> None:
    found = advise(made(tmp_path / "result", {"shm": lambda _: 10.0}))
    assert (found.wins, found.undecided, found.settings) == ([], [], [])


def test_a_variant_is_advised_only_if_it_is_nowhere_slower(tmp_path: Path) -> None:
    result = made(
        tmp_path / "result",
        {
            "mpi/openmpi": lambda size: 10.0 if size < 1000 else 100.0,
            "mpi/openmpi+eager64k": lambda size: 10.0 if size < 1000 else 60.0,
            "socket/tcp": lambda _: 10.0,
            "socket/tcp+buf64k": lambda size: 5.0 if size < 1000 else 20.0,
        },
    )
    settings = {(one.kind, one.name): one.value for one in advise(result).settings}
    assert settings == {
        ("environment", "OMPI_MCA_btl_tcp_eager_limit"): "65536",
        ("environment", "OMPI_MCA_btl_vader_eager_limit"): "65536",
    }


EXPORTED = {
    "nagle": ("socket", "TCP_NODELAY", "1"),
    "rendezvous": ("environment", "UCX_RNDV_THRESH", "69632"),
    "mtu": ("command", 'ip link set dev "$INTERFACE" mtu', "9000"),
}


@pytest.mark.parametrize("name", EXPORTED)
def test_a_finding_becomes_a_setting_when_it_is_confirmed_and_not_before(name: str) -> None:
    (finding,) = detect(load(FOLDER / f"{CASES[name].name}.parquet"))
    assert of_finding(finding) == []
    assert of_finding(finding.with_outcome("refuted", "still there")) == []
    (setting,) = of_finding(finding.with_outcome("confirmed", "gone"))
    assert (setting.kind, setting.name, setting.value) == EXPORTED[name]


def test_the_file_exports_variables_and_does_nothing_else(tmp_path: Path) -> None:
    settings = []
    for name in EXPORTED:
        (finding,) = detect(load(FOLDER / f"{name}.parquet"))
        settings += of_finding(finding.with_outcome("confirmed", "gone\nwith a line; touch here"))
    file = tmp_path / "settings.sh"
    file.write_text(script(settings))
    code = [line for line in file.read_text().splitlines() if line and not line.startswith("#")]
    assert code == ["export UCX_RNDV_THRESH=69632"]
    shell = ["bash", "-euc", f". {file}; echo $UCX_RNDV_THRESH; ls"]
    done = subprocess.run(shell, cwd=tmp_path, capture_output=True, text=True, timeout=20, check=True)
    assert done.stdout.split() == ["69632", "settings.sh"]


def test_the_command_exports_and_the_report_shows(tmp_path: Path) -> None:
    layers = {"mpi/openmpi": lambda _: 10.0, "mpi/openmpi+eager64k": lambda _: 5.0}
    result = made(tmp_path / "result", layers)
    out = tmp_path / "settings.sh"
    argv = ["understand", str(tmp_path / "result"), "--advice", "--export-settings", str(out)]
    done = CliRunner().invoke(_build(), [*argv, "--format", "csv"])
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[1].startswith("4,262144,mpi/openmpi+eager64k,")
    assert "export OMPI_MCA_btl_tcp_eager_limit=65536" in out.read_text()
    page = wt.report(result=result, out=tmp_path / "report.html").read_text()
    assert "Why, and what to choose" in page
    assert "OMPI_MCA_btl_tcp_eager_limit=65536" in page
