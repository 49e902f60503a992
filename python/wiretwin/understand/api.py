"""``wiretwin.understand(result)``: what a result says of itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from wiretwin.understand.accounting import Account
from wiretwin.understand.confirmations import merged, read_confirmations
from wiretwin.understand.detect import detect
from wiretwin.understand.finding import Finding
from wiretwin.understand.view import views

if TYPE_CHECKING:
    from wiretwin.results import Result

__all__ = ["Understanding", "understand"]


@dataclass(frozen=True)
class Understanding:
    """What was found in a result.

    Attributes
    ----------
    findings
        Anomalies, by configuration in the order of the result, as counter-runs left them.
    accounts
        What crossed the wire, by configuration and size.
    """

    findings: list[Finding]
    accounts: list[Account]


def understand(result: Result) -> Understanding:
    """Account for the wire and look for anomalies.

    Parameters
    ----------
    result
        A result, measured here or brought in from another program.

    Raises
    ------
    InputError
        What is kept of earlier counter-runs is damaged.
    """
    seen = views(result)
    found = [finding for view in seen for finding in detect(view)]
    return Understanding(
        findings=merged(found, read_confirmations(result.path)),
        accounts=[account for view in seen for account in view.accounts],
    )
