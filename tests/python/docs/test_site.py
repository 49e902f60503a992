"""The site builds, with warnings as errors, and leaves no page out."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from pages import ROOT


def test_the_site_builds_without_warnings(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    places = ["-d", str(tmp_path / "trees"), str(ROOT / "docs"), str(tmp_path / "html")]
    built = subprocess.run([*command, *places], capture_output=True, text=True, timeout=240, check=False)
    assert built.returncode == 0, built.stderr
    sources = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    missing = [str(page) for page in sources if not (tmp_path / "html" / page.with_suffix(".html")).exists()]
    assert missing == []
    outside = [
        f"{page.name}: {found}"
        for page in (tmp_path / "html").rglob("*.html")
        for found in re.findall(
            r"""<(?:script|link|img)[^>]+(?:src|href)=["'](https?://[^"']+)""", page.read_text()
        )
    ]
    assert outside == [], "the site does not open offline"
    formulas = (tmp_path / "html" / "explanation" / "fitting.html").read_text()
    assert '<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">' in formulas
    assert (tmp_path / "html" / "searchindex.js").is_file()
