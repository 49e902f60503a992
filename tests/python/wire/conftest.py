from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benches"))

from namespaces import missing


@pytest.fixture(autouse=True)
def _hosts_can_be_made(request: pytest.FixtureRequest) -> None:
    if "needs_hosts" not in request.keywords:
        return
    reason = missing()
    if reason is not None and os.environ.get("CI"):
        pytest.fail(f"CI makes hosts of network namespaces: {reason}")
    if reason is not None:
        pytest.skip(reason)
