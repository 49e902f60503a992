"""Make the picture in the README from a report: `python docs/picture.py report.html docs/_static/report.png`.

Needs Chromium; its place may be given in WIRETWIN_CHROMIUM.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

WIDTH, HEIGHT = 1180, 1330
MOST_BYTES = 300_000
LIMIT_MS = 60_000


def main(report: Path, picture: Path) -> int:
    """Write the top of the page, as wide as a laptop shows it; fail if the file grows too large."""
    chromium = os.environ.get("WIRETWIN_CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        print("no Chromium: name one in WIRETWIN_CHROMIUM", file=sys.stderr)
        return 1
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.goto(report.resolve().as_uri())
        page.wait_for_function("document.documentElement.dataset.ready === 'yes'", timeout=LIMIT_MS)
        page.screenshot(path=picture)
        browser.close()
    size = picture.stat().st_size
    print(f"{picture}: {size} bytes")
    return 0 if size <= MOST_BYTES else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
