"""Options that say where ranks live and what joins their hosts, the same for every verb that has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from wiretwin.testbed.plan import Link

__all__ = [
    "CorruptOption",
    "DelayOption",
    "DuplicateOption",
    "LinkOption",
    "LossOption",
    "MediumOption",
    "MtuOption",
    "OffloadOption",
    "RateOption",
    "ReorderOption",
    "link_from",
]

LinkOption = Annotated[
    str,
    typer.Option(
        help="What joins the hosts: veth, as fast as it goes; shared, one rate for all, for programs; wire, "
        "which holds every frame for its time.",
    ),
]
RateOption = Annotated[
    str | None, typer.Option(help="Of shared and wire, such as 10Mbit.", show_default=False)
]
DelayOption = Annotated[str | None, typer.Option(help="Of wire, one way, such as 5us.", show_default="none")]
MtuOption = Annotated[int, typer.Option(help="Largest packet in bytes, 576 to 9000.")]
OffloadOption = Annotated[
    bool,
    typer.Option("--offload/--no-offload", help="Segmentation offload on veth: frames of up to 64 KiB."),
]
MediumOption = Annotated[
    str | None,
    typer.Option(help="Of wire: duplex, each host its own; shared, one for all.", show_default="duplex"),
]
LossOption = Annotated[str | None, typer.Option(help="Share of frames lost (wire).", show_default="none")]
DuplicateOption = Annotated[str | None, typer.Option(help="Share duplicated (wire).", show_default="none")]
ReorderOption = Annotated[str | None, typer.Option(help="Share reordered (wire).", show_default="none")]
CorruptOption = Annotated[str | None, typer.Option(help="Share corrupted (wire).", show_default="none")]


def link_from(
    link: str,
    rate: str | None,
    delay: str | None,
    mtu: int,
    offload: bool,
    medium: str | None,
    loss: str | None,
    duplicate: str | None,
    reorder: str | None,
    corrupt: str | None,
    seed: int,
) -> Link:
    """Read the options of a link.

    Raises
    ------
    InputError
        An option is wrong, or not one of this link's.
    """
    from wiretwin.testbed.plan import parse_link

    return parse_link(
        link,
        rate=rate,
        delay=delay,
        mtu=mtu,
        offload=offload,
        medium=medium,
        rules={"loss": loss, "duplicate": duplicate, "reorder": reorder, "corrupt": corrupt},
        seed=seed,
    )
