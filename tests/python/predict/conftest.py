from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from predict_help import TWIN


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test a working directory and a folder for temporary files of its own."""
    for name in ("work", "tmp"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.fixture
def twin(tmp_path: Path) -> Path:
    """A twin file."""
    path = tmp_path / "twin.toml"
    path.write_text(TWIN)
    return path
