"""What counter-runs of a result have shown, kept in ``confirmations.json`` beside its manifest."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from wiretwin.errors import InputError
from wiretwin.understand.finding import Confidence, Finding

__all__ = ["FILE", "Confirmation", "Confirmations", "merged", "read_confirmations"]

FILE = "confirmations.json"


class Confirmation(BaseModel):
    """What a counter-run showed."""

    model_config = ConfigDict(extra="forbid")

    name: str
    layer: str
    sizes: list[int] = Field(min_length=1)
    confidence: Confidence
    outcome: str
    run: str | None = None
    """The counter-run's folder, relative to the result."""


class Confirmations(BaseModel):
    """The file of confirmations, beside the manifest of a result."""

    model_config = ConfigDict(extra="forbid")

    format: str = Field(default="wiretwin-confirmations", pattern="^wiretwin-confirmations$")
    version: int = Field(default=1, ge=1, le=1)
    confirmations: list[Confirmation] = Field(default_factory=list)


def read_confirmations(folder: Path) -> list[Confirmation]:
    """Read what earlier counter-runs of a result showed; nothing if there were none.

    Raises
    ------
    InputError
        The file is damaged or not ours.
    """
    path = folder / FILE
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(path, reason=str(error), allowed="a readable file of confirmations") from error
    try:
        return Confirmations.model_validate_json(text).confirmations
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"])) or None
        raise InputError(path, key, reason=first["msg"], allowed="a file that `--confirm` wrote") from None


def merged(findings: list[Finding], known: list[Confirmation]) -> list[Finding]:
    """Return findings with what counter-runs showed of them."""
    by_key = {(one.name, one.layer, tuple(one.sizes)): one for one in known}
    found = []
    for finding in findings:
        one = by_key.get((finding.name, finding.layer, finding.sizes))
        found.append(finding if one is None else finding.with_outcome(one.confidence, one.outcome))
    return found
