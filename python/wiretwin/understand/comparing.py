"""``wiretwin.compare(A, B)``: two results, or a prediction and a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

if TYPE_CHECKING:
    from wiretwin.predict.records import Comparison, Prediction, Run
    from wiretwin.results import Result
    from wiretwin.understand.changes import Changes

__all__ = ["compare"]


@overload
def compare(prediction: Result, run: Result) -> Changes: ...
@overload
def compare(prediction: Prediction | str | Path, run: Run | str | Path) -> Comparison: ...
def compare(prediction: Any, run: Any) -> Any:
    """Compare two results, before and after a change, or a recorded prediction with a real run.

    Parameters
    ----------
    prediction, run
        Two opened results, or the records or folders of `predict` and `run`.

    Returns
    -------
    Changes or Comparison
        Of results `wiretwin.understand.changes.Changes`; of a prediction and a run
        `wiretwin.predict.records.Comparison`.

    Raises
    ------
    InputError
        They are not of a kind, or what one of them lacks.
    """
    from wiretwin.errors import InputError
    from wiretwin.results import Result

    results = [isinstance(one, Result) for one in (prediction, run)]
    if all(results):
        from wiretwin.understand.changes import changes

        return changes(prediction, run)
    if any(results):
        raise InputError(reason="a result is compared with a result", allowed="two results")
    from wiretwin.predict.compare import compare as join

    return join(prediction, run)
