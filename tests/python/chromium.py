"""Chromium for tests of pages: started if it is there, which in CI it must be."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    """Start it; skip the test where there is none."""
    playwright = pytest.importorskip("playwright.sync_api")
    executable = os.environ.get("WIRETWIN_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if executable is None:
        reason = f"no Chromium: looked for {', '.join(NAMES)}; name one in WIRETWIN_CHROMIUM"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(
            executable_path=executable, args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        yield opened
        opened.close()
