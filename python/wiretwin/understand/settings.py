"""Findings as the settings that libraries and kernels read. Written for people to apply, never applied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wiretwin.stacks.layers import nature_of
from wiretwin.stacks.nature import Kind
from wiretwin.understand.finding import Finding

__all__ = ["Setting", "of_finding", "of_words", "script"]


@dataclass(frozen=True)
class Setting:
    """One setting.

    Attributes
    ----------
    layer
        The layer it is for.
    kind
        ``environment``: a variable; ``socket``: an option of ``setsockopt``; ``command``: a line for an
        administrator; ``launcher``: an option of the program that starts ranks.
    name, value
        As its reader has them.
    because
        What was measured.
    """

    layer: str
    kind: Kind
    name: str
    value: str
    because: str


def of_words(layer: str, words: Sequence[str], word: str, because: str) -> list[Setting]:
    """Return what a word of a configuration means to the library; nothing for a word it cannot be told by.

    Parameters
    ----------
    layer
        The layer without its words.
    words
        All words of the configuration: another edition of a library has other names.
    word
        The one asked for.
    because
        What was measured.
    """
    told = (meaning.told(word, words) for meaning in nature_of(layer).meanings)
    return [Setting(layer, *one, because) for one in told if one is not None]


def of_finding(finding: Finding) -> list[Setting]:
    """Return the settings that remove an anomaly, if a counter-run has confirmed that they do."""
    if not finding.confirmed or finding.counter is None:
        return []
    layer = finding.layer.split("+")[0]
    because = f"{finding.name} of {finding.layer} at {finding.sizes[0]} B on: {finding.outcome}"
    if finding.name == "delayed-acknowledgement":
        return [Setting(layer, "socket", "TCP_NODELAY", "1", because)]
    if finding.name == "protocol-switch":
        words = finding.counter.layer.split("+")[1:]
        return [
            setting
            for word in words
            if word.startswith("eager")
            for setting in of_words(layer, words, word, because)
        ]
    if finding.name == "packet-boundary" and "mtu_bytes" in finding.counter.link:
        mtu = str(finding.counter.link["mtu_bytes"])
        return [Setting(layer, "command", 'ip link set dev "$INTERFACE" mtu', mtu, because)]
    if finding.name == "shared-core" and "bound" in finding.layer.split("+"):
        option = nature_of(layer).binds_by
        return [Setting(layer, "launcher", option, "none", because)] if option else []
    return []


def script(settings: Sequence[Setting]) -> str:
    """Return settings as a file for a shell: variables to be exported, the rest as comments."""
    lines = ["# Settings by measurement. Nothing here is applied until somebody sources or follows it."]
    for setting in settings:
        lines += ["", f"# {setting.layer}: {' '.join(setting.because.split())}"]
        if setting.kind == "environment":
            lines.append(f"export {setting.name}={setting.value}")
        elif setting.kind == "socket":
            lines.append(f"# setsockopt: {setting.name} = {setting.value}")
        else:
            lines.append(f"# {setting.kind}: {setting.name} {setting.value}")
    if not settings:
        lines.append("# Nothing is certain enough to be advised.")
    return "\n".join(lines) + "\n"
