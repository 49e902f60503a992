"""What a result says: what crossed the wire, why the curve has that anomaly, what to choose, what changed.

``wiretwin.understand(result)`` is the verb (`wiretwin.understand.api.understand`).

- `accounting`: bytes and packets on the interface against payload
- `detect`: anomalies by name, one file each; `view` is what they see, `steps` where a curve jumps
- `confirm`: counter-runs that remove the supposed cause
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wiretwin._verbs import make_callable

if TYPE_CHECKING:
    from wiretwin.understand.api import understand as understand

make_callable(__name__, "wiretwin.understand.api:understand")
