"""UCX, libfabric and the direct transport, on which MPI libraries stand, driven by their own tagged messages.

Nothing has to be up. The ranks show each other their addresses in the directory of the launch.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import Any

from wiretwin import direct
from wiretwin.place import HERE, Place, interfaces
from wiretwin.stacks.apart import ApartSession
from wiretwin.stacks.base import Refusal, Session, Stack
from wiretwin.stacks.build import Shim
from wiretwin.stacks.mpi import EAGER, direct_refusal
from wiretwin.stacks.nature import Meaning, Nature
from wiretwin.stacks.word import Word, fixed

__all__ = ["Direct", "Libfabric", "Ucx"]

_YIELD = fixed("yield", "gives way to other processes on its core while waiting", wait="yield")
_UCX = Shim("ucx.c", "cc", "libucx-dev", ("-lucp", "-lucs"))
_FABRIC = Shim("libfabric.c", "cc", "libfabric-dev", ("-lfabric",))


def _within(place: Place, name: str, word: str) -> Refusal | None:
    """Reject shared memory between hosts."""
    if len(place.hosts) == 1:
        return None
    return Refusal("shared memory does not reach another host", f"wiretwin measure --layers {name}+{word}")


class Ucx(Stack):
    """UCX by its protocol layer, UCP."""

    name = "ucx"
    summary = "tagged messages of UCX (UCP) over TCP; spinning"
    options: Mapping[str, Any] = {"tls": "tcp,self", "eager_bytes": 0, "wait": "spin"}
    words: tuple[Word, ...] = (
        fixed("shm", "over shared memory and cross-memory attach, within one host", tls="sm,self"),
        fixed("all", "over whatever UCX chooses here", tls="all"),
        EAGER,
        _YIELD,
    )
    nature = Nature(
        spins=True,
        switches=True,
        meanings=(
            Meaning(EAGER.pattern, "environment", "UCX_RNDV_THRESH"),
            Meaning("shm", "environment", "UCX_TLS", "sm,self"),
        ),
    )

    def refusal(self, options: Mapping[str, Any], place: Place = HERE) -> Refusal | None:
        """Build the shim."""
        if options["tls"].startswith("sm") and (refused := _within(place, self.name, "all")):
            return refused
        return _UCX.refusal()

    @contextlib.contextmanager
    def up(self, place: Place, options: Mapping[str, Any]) -> Iterator[Session]:
        """Build the shim."""
        own = dict(options)
        if len(place.hosts) > 1:
            own["devices"] = interfaces(place)
        extra = _limited("UCX_RNDV_THRESH", own.pop("eager_bytes"))
        shim = _UCX.at(place)
        yield ApartSession(
            place,
            shim=shim,
            options=own,
            report={"environment": _environment("UCX_") | extra},
            env={host.name: extra for host in place.hosts},
        )


class Libfabric(Stack):
    """libfabric by its reliable, tagged endpoint."""

    name = "libfabric"
    summary = "tagged messages of libfabric over TCP (tcp;ofi_rxm); spinning"
    options: Mapping[str, Any] = {"provider": "tcp;ofi_rxm", "eager_bytes": 0, "wait": "spin"}
    words: tuple[Word, ...] = (
        fixed("shm", "the provider shm, within one host", provider="shm"),
        fixed("udp", "the provider udp;ofi_rxd: datagrams made reliable", provider="udp;ofi_rxd"),
        EAGER,
        _YIELD,
    )
    nature = Nature(
        spins=True,
        switches=True,
        without_limit=("shm", "udp"),
        meanings=(Meaning(EAGER.pattern, "environment", "FI_OFI_RXM_BUFFER_SIZE"),),
    )

    def refusal(self, options: Mapping[str, Any], place: Place = HERE) -> Refusal | None:
        """Build the shim."""
        if options["provider"] == "shm" and (refused := _within(place, self.name, "udp")):
            return refused
        if options["eager_bytes"] and not options["provider"].endswith("ofi_rxm"):
            reason = f"the provider {options['provider']} has no eager limit to set"
            return Refusal(reason, "wiretwin measure --layers libfabric+eager64k")
        return _FABRIC.refusal()

    @contextlib.contextmanager
    def up(self, place: Place, options: Mapping[str, Any]) -> Iterator[Session]:
        """Build the shim."""
        own = {**options, "addresses": ",".join(host.address for host in place.hosts)}
        extra = _limited("FI_OFI_RXM_BUFFER_SIZE", own.pop("eager_bytes"))
        shim = _FABRIC.at(place)
        yield ApartSession(
            place,
            shim=shim,
            options=own,
            report={"environment": _environment("FI_") | extra},
            env={host.name: extra for host in place.hosts},
        )


class Direct(Stack):
    """The direct transport by one of its ways alone, as a provider of libfabric without an MPI above it.

    Parameters
    ----------
    way
        As ``WIRETWIN_DIRECT_WAYS`` has it.
    summary
        One line for people.
    hosts
        How many hosts it needs: one alone, two or more, or any number (``None``).
    """

    options: Mapping[str, Any] = {"wait": "spin", "service": "ordinary"}
    words: tuple[Word, ...] = (
        _YIELD,
        fixed("protected", "to other hosts by the protected service, DSCP 46", service="protected"),
        fixed("adaptive", "so while the ordinary service's latency is high", service="adaptive"),
    )
    # Ways of one transport, of which one leads between hosts only: `all` has enough to share its time among.
    opt_in = True

    def __init__(self, way: str, summary: str, hosts: int | None = None) -> None:
        self.name = f"direct/{way}"
        self.summary = f"the direct transport alone, {summary}; spinning"
        self._way = way
        self._hosts = hosts

    def refusal(self, options: Mapping[str, Any], place: Place = HERE) -> Refusal | None:
        """Build the shim."""
        if self._hosts == 1 and len(place.hosts) > 1:
            return Refusal(
                "shared memory does not reach another host", "wiretwin measure --layers direct/packet"
            )
        if self._hosts == 2 and len(place.hosts) == 1:
            return Refusal(
                "it leads from one host to another", f"wiretwin measure --layers {self.name} --hosts 2"
            )
        return direct_refusal({"transport": "direct", "eager_bytes": 0}, place) or _FABRIC.refusal()

    @contextlib.contextmanager
    def up(self, place: Place, options: Mapping[str, Any]) -> Iterator[Session]:
        """Build the shim."""
        shim = _FABRIC.at(place)
        own = dict(options)
        env = {"FI_PROVIDER_PATH": str(direct.LIBRARY.parent), "WIRETWIN_DIRECT_WAYS": self._way}
        env["WIRETWIN_DIRECT_SERVICE"] = own.pop("service")
        yield ApartSession(
            place,
            shim=shim,
            options={**own, "provider": direct.PROVIDER},
            report={"environment": _environment("WIRETWIN_DIRECT_") | env},
            env={host.name: env for host in place.hosts},
        )


def _limited(variable: str, eager_bytes: int) -> dict[str, str]:
    """Return the variable that sets a limit other than the library's own."""
    return {variable: str(eager_bytes)} if eager_bytes else {}


def _environment(prefix: str) -> dict[str, str]:
    return {name: value for name, value in sorted(os.environ.items()) if name.startswith(prefix)}
