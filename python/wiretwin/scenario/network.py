"""A scenario's network, from names to what is simulated; what would be ignored is refused."""

from __future__ import annotations

from dataclasses import replace

from wiretwin._core import lan_echo
from wiretwin.errors import InputError
from wiretwin.model.profiles import CIRCUITS, Load, Network, lan_json
from wiretwin.model.values import find_sheet, sheet_names
from wiretwin.scenario.model import NetworkTable

__all__ = ["built", "check"]

FRAMES = ("ethernet", "fddi")
KINDS = {"link": ("link",), "switch": ("switch", "crossbar")}
"""What kinds of file a key of a scenario can name, where the folder has others."""


def built(table: NetworkTable) -> Network:
    """Return the network that a table describes.

    Raises
    ------
    InputError
        A name is not known, the stack is none, or a key is given that has no effect on it.
    """
    _named(table)
    frames = table.lower in FRAMES
    network = Network(
        stack=table.stack,
        host=table.host,
        adapter="frames" if frames else table.adapter or "series-200",
        switch=None if frames else table.switch,
        link=table.link,
        hosts=table.hosts,
        cell_loss=table.cell_loss or None,
        load=tuple(Load(**one.model_dump()) for one in table.load),
        first_use_ms=table.first_use,
        reserve_Mbit_s=table.reserve,
        buffer_kib=round(table.buffer / 1024),
        nodelay=table.nodelay,
    )
    if (idle := _idle(table)) is not None:
        # That there is no such stack is said before what it would make of its keys.
        _stacked(network)
        raise idle
    return network


def check(table: NetworkTable) -> None:
    """Refuse what `built` would, and a stack that is none; nothing is run but an echo of a few bytes.

    Raises
    ------
    InputError
        See `built`.
    """
    _stacked(built(table))


def _stacked(network: Network) -> None:
    """Refuse a stack that is none."""
    bare = replace(network, hosts=2, load=(), cell_loss=None, reserve_Mbit_s=None)
    try:
        lan_echo(lan_json(bare), [4], 2, 1)
    except ValueError as error:
        said, _, allowed = str(error).partition("; allowed: ")
        if said == f"network: stack is {network.stack}":
            raise InputError(key="network.stack", value=network.stack, allowed=allowed) from None
    except RuntimeError:
        # It is there, and what it does is not asked.
        return


def _named(table: NetworkTable) -> None:
    """Refuse names that no file has, or one of another kind."""
    if table.lower == "gige":
        raise InputError(
            key="network.stack",
            value=table.stack,
            allowed="one on aal5, aal34, ethernet or fddi: a scenario has no adapters of Gigabit Ethernet",
        )
    for key, folder in (
        ("host", "hosts"),
        ("adapter", "adapters"),
        ("switch", "networks"),
        ("link", "networks"),
    ):
        value = getattr(table, key)
        if value is None:
            continue
        known = [name for name in sheet_names(folder) if name != "software"]
        if kinds := KINDS.get(key):
            known = [name for name in known if find_sheet(folder, name, key).kind in kinds]
        if value not in known:
            raise InputError(key=f"network.{key}", value=value, allowed=", ".join(known))


def _idle(table: NetworkTable) -> InputError | None:
    """Return the refusal of a key that has no effect on this stack, if there is one."""
    default = {name: field.default for name, field in NetworkTable.model_fields.items()}
    circuits = table.stack.split("/")[0] in CIRCUITS
    for key, idle, why in (
        *(
            (key, table.lower in FRAMES, f"on {table.lower}")
            for key in ("adapter", "switch", "link", "reserve")
        ),
        *((key, circuits, "on circuits without sockets") for key in ("buffer", "nodelay")),
    ):
        value = getattr(table, key)
        if idle and value != default[key]:
            shown = f"{value:g} Mbit/s" if key == "reserve" else f"{value:g} B" if key == "buffer" else value
            return InputError(key=f"network.{key}", value=shown, allowed=f"nothing, {why}")
    return None
