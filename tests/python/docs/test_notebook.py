"""The notebook runs from top to bottom, shows what it says it shows, and is kept without outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from pages import ROOT

NOTEBOOKS = sorted((ROOT / "examples").rglob("*.ipynb"))
IDS = [path.name for path in NOTEBOOKS]
CELL_LIMIT_S = 120


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)


def shown(notebook: Any, kind: str) -> list[Any]:
    """Everything the cells show of this media type."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output["data"][kind] for output in outputs if kind in output.get("data", {})]


def test_there_is_a_notebook() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=IDS)
def test_a_notebook_is_kept_without_outputs(path: Path) -> None:
    for cell in read(path).cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("default")  # of the Jupyter packages, not ours
@pytest.mark.parametrize("path", NOTEBOOKS, ids=IDS)
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    notebook = read(path)
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=CELL_LIMIT_S, kernel_name="python3", resources=resources).execute()
    figures = shown(notebook, "application/vnd.plotly.v1+json") + shown(notebook, "text/html")
    drawn = sum("wt.plot." in cell.source for cell in notebook.cells)
    assert drawn > 0
    assert len(figures) >= drawn
    assert (tmp_path / "twin.toml").is_file()
