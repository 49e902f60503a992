"""What makes the file whole by itself: the plotting script and the figures, compressed inside it.

Both are gzip in base64, unpacked by the browser (`DecompressionStream`), which takes the file from five
megabytes to two. Where a browser cannot, the page says so, and the tables carry the data.
"""

from __future__ import annotations

import base64
import functools
import gzip
import json
from typing import Any


def pack(text: str) -> str:
    """Compress and encode a text; the same text gives the same characters."""
    return base64.b64encode(gzip.compress(text.encode("utf-8"), compresslevel=9, mtime=0)).decode("ascii")


@functools.cache
def plotly_script() -> str:
    """Return plotly.js as it comes with the Python package, packed."""
    from plotly.offline import get_plotlyjs

    return pack(get_plotlyjs())


def pack_figures(specs: dict[str, Any], translation: dict[str, str]) -> str:
    """Pack what the page draws, and how its colours turn dark."""
    return pack(json.dumps({"figures": specs, "dark": translation}, separators=(",", ":"), sort_keys=True))
