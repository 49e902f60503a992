"""What the tests need of Debian: one list, which says what is left out where something is missing."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from house import ROOT

FOLDER = ROOT / "requirements"


def script(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = ["bash", str(folder / "debian.sh"), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_there_is_one_list_in_order() -> None:
    names = [line for line in (FOLDER / "debian.txt").read_text().splitlines() if not line.startswith("#")]
    assert names == sorted(set(names))
    assert "apt-get" not in (ROOT / ".ci" / "run").read_text()


@pytest.mark.skipif(shutil.which("dpkg") is None, reason="not Debian")
def test_what_is_missing_is_said_with_the_line_that_gets_it(tmp_path: Path) -> None:
    shutil.copy(FOLDER / "debian.sh", tmp_path)
    (tmp_path / "debian.txt").write_text("# a comment\ndpkg\n")
    assert script(tmp_path, "report").stdout == ""
    (tmp_path / "debian.txt").write_text("dpkg\nno-such-package\nnor-this\n")
    said = script(tmp_path, "report")
    assert said.returncode == 0
    assert said.stdout.endswith("sudo apt-get install no-such-package nor-this\n")


def test_a_wrong_word_is_rejected() -> None:
    ended = script(FOLDER, "remove")
    assert (ended.returncode, ended.stderr) == (2, "usage: debian.sh install|report\n")
