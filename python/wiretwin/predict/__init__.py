"""Predict a program, run it for real, compare.

``wiretwin.predict(program, …)`` is the verb (`wiretwin.predict.predict.predict`).

- `model`: from a twin to the network that simulated ranks run on
- `stage`: a simulated run in a process of its own
- `solo`: a measuring pass, every rank in a process and on a core of its own
- `predict`: recording, passes, replay, and the recorded record
- `live`: real launches
- `compiled`, `named`, `named_process`: a compiled program predicted; run by name in either world; simulated
- `repeats`: real launches of a compiled program
- `compare`: a prediction beside its run
- `records`: the JSON records
- `shipped`: the example programs and their sizes
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wiretwin._verbs import make_callable

if TYPE_CHECKING:
    from wiretwin.predict.predict import predict

__all__ = ["predict"]

make_callable(__name__, "wiretwin.predict.predict:predict")
