"""What a layer is like: data of its registration, which other parts ask for in place of its name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["Kind", "Meaning", "Nature"]

Kind = Literal["environment", "socket", "command", "launcher"]
"""What a setting is: a variable; an option of ``setsockopt``; a line for an administrator; an option of the
program that starts ranks."""


@dataclass(frozen=True)
class Meaning:
    """What a word of a configuration is to its library: a setting that users can make themselves.

    Attributes
    ----------
    word
        Regular expression of the word; a group of it is a number of KiB, and the value is in bytes.
    kind, name
        The setting.
    value
        What it is set to, where the word has no number.
    edition
        A word that must stand beside it, or, after ``!``, must not.
    """

    word: str
    kind: Kind
    name: str
    value: str = ""
    edition: str = ""

    def told(self, word: str, words: Sequence[str]) -> tuple[Kind, str, str] | None:
        """Return the setting of a word among the words of a configuration, if it is this one."""
        match = re.fullmatch(self.word, word)
        other = self.edition.lstrip("!")
        if match is None or (other and (other in words) != (other == self.edition)):
            return None
        return self.kind, self.name, str(int(match[1]) * 1024) if match.groups() else self.value


@dataclass(frozen=True)
class Nature:
    """What a layer is like.

    Attributes
    ----------
    streams
        It has no message protocol: a writer that meets a full buffer waits, which only looks like rendezvous.
    loses
        What it sends may be lost.
    spins
        A rank that waits keeps its core, unless the options say otherwise.
    switches
        It has a message protocol, which changes at a length: eager, then rendezvous.
    without_limit
        Words with which no such length can be set.
    stalls
        TCP may carry it, whose acknowledgements may be late.
    packet_headers
        Bytes of headers inside the MTU: IPv4 and TCP with time stamps, or IPv4 and UDP.
    own_header
        The most bytes that it puts before a message.
    is_bare
        No library is in it: what it adds to a message is nothing, or known.
    cells
        It sends cells: the bytes of one, those of a message that it holds, and after how many cells a
        request and its answer take one more each.
    buffers
        The kernel's buffers that its messages pass through: of a size that was asked for (``asked``), of one
        that never grows (``fixed``), or none that it tells of.
    leaves_daemons
        The word with which messages do not go through daemons that send again what is late.
    binds_by
        The option by which its launcher binds ranks to cores.
    only_here
        By edition (``""``: whichever) why it does not run between other machines.
    meanings
        What its words are to its library.
    """

    streams: bool = False
    loses: bool = False
    spins: bool = False
    switches: bool = False
    without_limit: tuple[str, ...] = ()
    stalls: bool = True
    packet_headers: int = 52
    own_header: int = 128
    is_bare: bool = False
    cells: tuple[int, int, int] | None = None
    buffers: Literal["asked", "fixed"] | None = None
    leaves_daemons: str | None = None
    binds_by: str | None = None
    only_here: Mapping[str, str] = field(default_factory=dict)
    meanings: Sequence[Meaning] = ()
