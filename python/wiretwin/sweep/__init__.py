"""Many runs of a scenario, over its values and over seeds, on cores or on a cluster.

``wiretwin.sweep(…)`` is the verb (`wiretwin.sweep.run.sweep`).

- `plan`: keys and values, every combination, seeds
- `work`: one run; `local` and `cluster`: where runs are done
- `record`: the folder that keeps every run
- `run`: the verb, and when it is enough
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wiretwin._verbs import make_callable

if TYPE_CHECKING:
    from wiretwin.sweep.run import sweep

__all__ = ["sweep"]

make_callable(__name__, "wiretwin.sweep.run:sweep")
