"""Lin et al. 1995, table 7: what the interfaces can do, found out by asking them to.

Nothing here is typed in: each property is tried on the simulated interface itself, between two 4/690 on ATM.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from wiretwin._core import lan_try
from wiretwin.errors import InputError, SimulationError
from wiretwin.model.anatomy import anatomy, lines
from wiretwin.model.echo import SEED, measure, try_echo
from wiretwin.model.profiles import Network, lan_json
from wiretwin.papers.lin1995_pvm import pvm_setting
from wiretwin.papers.lin1995_settings import PAPER, Setting, fore_setting, program_setting, socket_setting
from wiretwin.papers.records import Record, Tried

__all__ = ["ABILITIES", "evidence", "interfaces", "table7", "tried"]

CELL_LOSS = 0.001
LOSS_BYTES = 4096
LOSS_ROUNDS = 40
LARGEST = 1 << 20
ABILITIES = (
    "spawn",
    "dynamic-groups",
    "data-encapsulation",
    "authentication",
    "concurrent-server",
    "buffered-send",
)
"""What is tried by a small program on three hosts, which says what came of it."""


def interfaces() -> list[Setting]:
    """List every interface that is tried."""
    host = "4/690"
    fore = fore_setting(host, "series-200", switch=True)
    alone = Setting(fore.case, replace(fore.network, cut_messages=False))
    reliable = program_setting(host)
    over = fore_setting(host, "series-200", switch=True, stack="pvm-fore/aal5")
    return [
        alone,
        Setting(fore.case.replace("stack=fore/", "stack=fore+reliable/"), reliable.network),
        socket_setting("atm"),
        socket_setting("atm", layer="rpc"),
        pvm_setting("advise"),
        pvm_setting("normal"),
        over,
        *(_of_datagrams(socket_setting("atm", layer=layer)) for layer in ("socket", "rpc")),
    ]


def _of_datagrams(setting: Setting) -> Setting:
    """Return the same over UDP."""
    network = replace(setting.network, stack=setting.network.stack.replace("/tcp/", "/udp/"))
    return Setting(setting.case.replace("/tcp/", "/udp/"), network)


def _takes(network: Network, size: int) -> bool:
    """Whether a message of a size comes and goes."""
    try:
        measure(network, [size], rounds=2)
    except (InputError, SimulationError):
        return False
    return True


def tried(network: Network, ability: str) -> Tried:
    """Try one of `ABILITIES` on three hosts.

    Raises
    ------
    InputError
        The network, or the ability, is rejected.
    """
    try:
        able, evidence = lan_try(lan_json(replace(network, hosts=3)), ability, SEED)
    except ValueError as error:
        raise InputError(reason=str(error)) from None
    return Tried(able, evidence)


@cache
def evidence() -> tuple[tuple[str, str, Tried], ...]:
    """Return what came of the trial of each ability of each interface."""
    return tuple((one.case, name, tried(one.network, name)) for one in interfaces() for name in ABILITIES)


def _passes_sockets(network: Network) -> bool:
    """Whether a message passes the socket layer on its way, and not the device driver alone."""
    return any(line.activity == "socket_send" for line in lines(anatomy(network, 1024)))


def largest(network: Network) -> int:
    """Return the largest message that goes as one, up to a mebibyte."""
    if _takes(network, LARGEST):
        return LARGEST
    low, high = 1, LARGEST
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _takes(network, middle) else (low, middle)
    return low


def table7(quick: bool) -> tuple[list[Record], list[str]]:
    """Return the properties of each interface: 1 is yes, 0 is no, where the metric is no amount."""
    records: list[Record] = []
    runs: list[str] = []
    able = {(case, ability): trial.able for case, ability, trial in evidence()}
    for setting in interfaces():
        network = setting.network
        lossy = replace(network, cell_loss=CELL_LOSS)
        [trial] = try_echo(lossy, [LOSS_BYTES], 10 if quick else LOSS_ROUNDS)
        curve = measure(network, [4, 1024, 4096], rounds=3 if quick else 6)
        runs += [trial.digest, curve.digest]
        for metric, value in (
            ("max_transfer_bytes", float(largest(network))),
            ("carries_empty_messages", float(_takes(network, 0))),
            ("reliability", float(trial.lost == 0)),
            ("latency_us", curve.latency_us[0]),
            ("throughput_Mbit_s", 8 * curve.throughput_MB_s[2]),
            ("through_sockets", float(_passes_sockets(network))),
            *((one.replace("-", "_"), float(able[setting.case, one])) for one in ABILITIES),
        ):
            records.append(Record(PAPER, "table7", setting.case, metric, value, None, None, "prediction"))
    return records, runs
