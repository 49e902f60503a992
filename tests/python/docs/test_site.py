"""The site builds, with warnings as errors, and leaves no page out."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from chromium import chromium
from pages import ROOT

SCREEN = {"width": 1920, "height": 1080}
MOST_SCREENS = 10
LEAST_LETTERS = 15_000
"""Of the file of a page, without what is folded: with fewer it cannot be so long."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html"]
    places = ["-d", str(folder / "trees"), str(ROOT / "docs"), str(folder / "html")]
    built = subprocess.run([*command, *places], capture_output=True, text=True, timeout=240, check=False)
    assert built.returncode == 0, built.stderr
    return folder / "html"


def test_the_site_builds_without_warnings(site: Path) -> None:
    sources = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    missing = [str(page) for page in sources if not (site / page.with_suffix(".html")).exists()]
    assert missing == []
    outside = [
        f"{page.name}: {found}"
        for page in site.rglob("*.html")
        for found in re.findall(
            r"""<(?:script|link|img)[^>]+(?:src|href)=["'](https?://[^"']+)""", page.read_text()
        )
    ]
    assert outside == [], "the site does not open offline"
    formulas = (site / "explanation" / "fitting.html").read_text()
    assert '<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">' in formulas
    assert (site / "searchindex.js").is_file()


def test_no_page_is_longer_than_ten_screens(site: Path) -> None:
    with chromium() as browser:
        page = browser.new_page(viewport=SCREEN)
        heights = {}
        for file in sorted(site.rglob("*.html")):
            page.goto(file.as_uri())
            heights[str(file.relative_to(site))] = page.evaluate("document.documentElement.scrollHeight")
    print(sorted(((h, n) for n, h in heights.items()), reverse=True))
    assert {name: one for name, one in heights.items() if one > MOST_SCREENS * SCREEN["height"]} == {}
