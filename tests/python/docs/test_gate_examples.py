"""The examples that guard speed in a project's tests run as their users run them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from wiretwin.results import Launch, Layer, Result

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "gate"
BIN = Path(sys.executable).parent
LIMIT_S = 120
SIZES = (64, 1024, 16384)
CONSTANT = {"loop": "echo", "messages": 1, "delay_ns": 0, "batch": 1, "index": 1}
MEASURE = "--budget none --launches 3 --sizes 64,1024,16KiB"


def run(folder: Path, *words: str, **more: str) -> str:
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", **more}
    done = subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A baseline that no host is slower than: every message takes milliseconds."""
    folder = tmp_path_factory.mktemp("home")
    result = Result.create(
        folder / "first", seed=1, created_utc="2026-01-01T00:00:00Z", layers=[Layer(layer="shm", name="shm")]
    )
    for number in (1, 2, 3):
        launch = Launch(launch=number, name="shm", order=number, started_utc="now", seconds=1.0, status="ok")
        same = {key: [value] * len(SIZES) for key, value in CONSTANT.items()}
        result.append(launch, {**same, "bytes": list(SIZES), "value_ns": [10**7 + number] * len(SIZES)})
    result.finish("complete")
    run(folder, "wiretwin", "baseline", "keep", "main", "first")
    return folder / "baselines"


def test_the_workflow(baseline: Path, tmp_path: Path) -> None:
    workflow = yaml.safe_load((EXAMPLES / "speed.yml").read_text())
    (job,) = workflow["jobs"].values()
    summary = tmp_path / "shown.md"
    environment = {"MEASURE": f"--layers shm {MEASURE}", "BASELINES": str(baseline)}
    for step in job["steps"]:
        if "run" in step:  # as GitHub's runner calls its shell
            words = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"])
            run(tmp_path, *words, **environment, GITHUB_STEP_SUMMARY=str(summary))
    assert re.match(r"\*\*(passed|inconclusive)\*\*: `new` against `.*main/\d{8}-\d{6}`", summary.read_text())
    (upload,) = [step for step in job["steps"] if "upload-artifact" in step.get("uses", "")]
    paths = upload["with"]["path"].split()
    assert {"new", "speed.xml"} <= {path for path in paths if (tmp_path / path).exists()}


def test_the_reframe_test(baseline: Path, tmp_path: Path) -> None:
    settings = {"layer": "shm", "measure": MEASURE, "baseline": str(baseline / "main")}
    words = [word for key, value in settings.items() for word in ("-S", f"{key}={value}")]
    command = (str(BIN / "reframe"), "-c", str(EXAMPLES / "speed_test.py"), "-r", *words)
    said = run(tmp_path, *command, "--prefix", str(tmp_path), "--performance-report", HOME=str(tmp_path))
    assert "PASSED" in said
    assert re.search(r"latency.* us\b", said)
    assert re.search(r"peak_rate.*MB/s", said)
