"""Lin et al. 1995: hosts on a local ATM network, and what a message costs them."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from wiretwin.errors import InputError
from wiretwin.model.anatomy import anatomy, lines
from wiretwin.model.echo import Curve, coarse, echo, fine, measure, summary
from wiretwin.model.profiles import CIRCUITS, Network
from wiretwin.model.values import DATA
from wiretwin.papers.fit import Constant, Fit, Residual, constants, fit, joined
from wiretwin.papers.lin1995_beyond import LOADS, first_message, under_load, upgrades
from wiretwin.papers.lin1995_choices import under
from wiretwin.papers.lin1995_circuits import circuits, properties
from wiretwin.papers.lin1995_fore import pvm_fore, scaling
from wiretwin.papers.lin1995_interfaces import evidence, table7
from wiretwin.papers.lin1995_programs import table5, table6
from wiretwin.papers.lin1995_pvm import PVM_KEYS, ROUTES, VERSIONS, is_pvm, pvm_setting
from wiretwin.papers.lin1995_sensitivity import Effect, effects, steady_summary
from wiretwin.papers.lin1995_settings import (
    ADAPTERS,
    BACKGROUND,
    HOSTS,
    NETWORKS,
    PAPER,
    Setting,
    fore_setting,
    paper,
    sized,
    socket_setting,
)
from wiretwin.papers.records import Record, Role
from wiretwin.student import quantile

__all__ = [
    "EVIDENCE",
    "EXPERIMENTS",
    "LOADS",
    "PAPER",
    "SENSITIVITY",
    "TITLE",
    "calibration",
    "experiment",
    "refit",
    "sensitivity",
    "under",
    "write_fit",
]

TITLE = "Lin et al. 1995: distributed network computing over local ATM networks"
METRICS = ("t0_us", "r_max_MB_s", "n_half_bytes")


def calibration() -> dict[tuple[str, str, str], float]:
    """Return the published calibration figures by experiment, case and metric."""
    return {
        (row["experiment"], row["case"], metric): float(row[metric])
        for row in paper()["calibration"]
        for metric in METRICS
    }


def _table1() -> list[Setting]:
    fore = [
        fore_setting("4/690", "series-200", switch=True, stack=f"fore/{layer}") for layer in ("aal5", "aal34")
    ]
    return [*fore, socket_setting("atm"), pvm_setting("advise"), socket_setting("atm", layer="rpc")]


def _table2() -> list[Setting]:
    return [socket_setting(network) for network in NETWORKS]


def _table3() -> list[Setting]:
    pairs = [(host, adapter) for adapter in ADAPTERS for host in HOSTS]
    return [fore_setting(host, adapter, switch=False) for host, adapter in pairs]


def _table4() -> list[Setting]:
    pairs = [(host, adapter) for adapter in ADAPTERS for host in HOSTS]
    layers = ("fore/aal5", "fore/aal34")
    return [
        fore_setting(host, adapter, switch=True, stack=stack) for stack in layers for host, adapter in pairs
    ]


def _sizes(quick: bool) -> list[int]:
    method = paper()["echo"]
    if quick:
        return coarse(1 << 16) + fine(384, method["fine_most_bytes"])
    return coarse(method["coarse_most_bytes"]) + fine(method["fine_step_bytes"], method["fine_most_bytes"])


def _summaries(experiment: str, settings: Iterable[Setting], quick: bool) -> tuple[list[Record], list[str]]:
    """Return t_0, r_max and n_half of each setting; the interval is the spread of the fit's residuals."""
    published = calibration()
    records, runs = [], []
    for setting in settings:
        curve = measure(setting.network, _sizes(quick))
        runs.append(curve.digest)
        for metric, value in summary(curve).items():
            figure = published.get((experiment, setting.case, metric))
            role: Role = "prediction" if figure is None else "calibration"
            half = 1.645 * residual_spread(setting.network.stack, metric)
            low, high = value * math.exp(-half), value * math.exp(half)
            records.append(
                Record(PAPER, experiment, setting.case, metric, value, low, high, role, figure)
                if figure is None
                else Record(PAPER, experiment, setting.case, metric, value, None, None, role, figure)
            )
    return records, runs


def residual_spread(stack: str, metric: str) -> float:
    """Return how far the fit's residuals spread, as a share: of sockets or of the Fore interface, by metric.

    A latency of any size is held to the spread of t_0 and r_max together.
    """
    text = (DATA / "papers" / "lin1995-fit.toml").read_text(encoding="utf-8")
    metrics = ("t0_us", "r_max_MB_s") if metric == "latency_us" else (metric,)
    # Two constants are fitted to the one row of PVM: what is left says nothing. What is under it does.
    layer = stack.split("/")[0]
    if layer in CIRCUITS:
        layer = "fore"
    elif layer.startswith("pvm-"):
        layer = "socket"
    family = f"stack={layer}/"
    logs = [
        math.log(row["predicted"] / row["published"])
        for row in tomllib.loads(text)["residual"]
        if row["case"].startswith(family) and row["metric"] in metrics
    ]
    return math.sqrt(sum(log * log for log in logs) / len(logs))


def _latency_spread(stack: str) -> float:
    return residual_spread(stack, "latency_us")


def _latencies(
    experiment: str, settings: Iterable[Setting], sizes: list[int], rounds: int
) -> tuple[list[Record], list[str]]:
    """Return the latency of each size; the interval is the spread of the fit's residuals."""
    records, runs = [], []
    for setting in settings:
        half = 1.645 * residual_spread(setting.network.stack, "latency_us")
        curve = measure(setting.network, sizes, rounds=rounds)
        runs.append(curve.digest)
        for size, value in zip(curve.sizes_bytes, curve.latency_us, strict=True):
            low, high = value * math.exp(-half), value * math.exp(half)
            name = sized(setting.case, size)
            records.append(Record(PAPER, experiment, name, "latency_us", value, low, high, "prediction"))
    return records, runs


BUFFERS_KIB = (16, 32, 51)
PACKING = "user_copy"
"""The activity of copying into PVM's buffers and out of them."""


def _figure8(quick: bool) -> tuple[list[Record], list[str]]:
    """TCP_NODELAY and the size of the buffers; without it, the bands of sizes that stall, on each network."""
    rounds = 6 if quick else 21
    both = [socket_setting("atm", buffer_kib=kib, nodelay=on) for on in (True, False) for kib in BUFFERS_KIB]
    records, runs = _latencies("figure8", both, coarse(1 << 16 if quick else 1 << 20), rounds)
    bands = [socket_setting(network, nodelay=False) for network in NETWORKS]
    more, digests = _latencies(
        "figure8", bands, [n for n in fine(960 if quick else 96, 16384) if n > 4000], rounds
    )
    known = {record.case for record in records}
    return records + [record for record in more if record.case not in known], runs + digests


def _figure9(quick: bool) -> tuple[list[Record], list[str]]:
    """Vary the size of the buffers, by host."""
    return _summaries("figure9", _buffers(), quick)


def _buffers() -> list[Setting]:
    return [socket_setting("atm", host, kib) for host in HOSTS for kib in BUFFERS_KIB]


def _figure10(quick: bool) -> tuple[list[Record], list[str]]:
    """PVM through its daemons and from task to task, there without ``TCP_NODELAY`` too, as 3.2.4 has it.

    What packing and unpacking take of each latency is told apart.
    """
    settings = [pvm_setting(route) for route in ROUTES]
    settings.append(pvm_setting("advise", **VERSIONS["3.2.4"]))
    sizes = coarse(1 << 16 if quick else 1 << 20)
    records, runs = _latencies("figure10", settings, sizes, 6 if quick else 11)
    for setting in settings:
        for size in sizes:
            found = anatomy(setting.network, size)
            packing = sum(line.span_ps for line in lines(found) if line.activity == PACKING) / 1e6
            runs.append(found.digest)
            name = sized(setting.case, size)
            records.append(Record(PAPER, "figure10", name, "packing_us", packing, None, None, "prediction"))
    return records, runs


def _figure11(quick: bool) -> tuple[list[Record], list[str]]:
    """Interfaces side by side: those of table 1 that are simulated."""
    sizes = coarse(1 << 16 if quick else 1 << 20)
    return _latencies("figure11", _table1(), sizes, 6 if quick else 11)


def _figure12(quick: bool) -> tuple[list[Record], list[str]]:
    """Three networks."""
    sizes = coarse(1 << 16 if quick else 1 << 20)
    return _latencies("figure12", _table2(), sizes, 6 if quick else 11)


def _figure7(quick: bool) -> tuple[list[Record], list[str]]:
    """Echo statistics: the mean with its 90 % interval, least and most, on hosts that do other things too."""
    import numpy as np

    records: list[Record] = []
    setting = _table1()[0]
    network = Network(**{**vars(setting.network), "background": BACKGROUND})
    sizes = fine(960 if quick else 96, 8192)
    for size, run in zip(sizes, echo(network, sizes, paper()["echo"]["rounds"]), strict=True):
        latency = run / 2
        mean = float(np.mean(latency))
        half = float(quantile(len(latency) - 1, 0.95) * np.std(latency, ddof=1) / math.sqrt(len(latency)))
        name = sized(setting.case, size)
        for metric, value, (low, high) in (
            ("latency_us", mean, (mean - half, mean + half)),
            ("latency_min_us", float(latency.min()), (None, None)),
            ("latency_max_us", float(latency.max()), (None, None)),
        ):
            records.append(Record(PAPER, "figure7", name, metric, value, low, high, "prediction"))
    return records, []


def _table(
    name: str, settings: Callable[[], list[Setting]]
) -> Callable[[bool], tuple[list[Record], list[str]]]:
    return lambda quick: _summaries(name, settings(), quick)


SENSITIVITY: dict[str, Callable[[], list[Setting]]] = {
    "table1": _table1,
    "table2": _table2,
    "table3": _table3,
    "table4": _table4,
    "figure9": _buffers,
    "upgrades": upgrades,
}
"""Experiments whose values are those of whole curves: what each is measured on."""


def sensitivity(name: str) -> Iterator[tuple[int, str, list[Effect]]]:
    """Say what could move each value of an experiment; yields how many cases there are, one, and its effects.

    Raises
    ------
    InputError
        The experiment has no values of whole curves.
    """
    if name not in SENSITIVITY:
        raise InputError(
            key="EXPERIMENT",
            value=name,
            reason="has no t_0, r_max and n_half" if name in EXPERIMENTS else None,
            allowed=f"with --sensitivity: {', '.join(SENSITIVITY)}",
        )
    settings = SENSITIVITY[name]()
    published = calibration()
    found = effects(name, settings, lambda case, metric: published.get((name, case, metric)))
    for setting, of_case in zip(settings, found, strict=True):
        yield len(settings), setting.case, of_case


EXPERIMENTS: dict[str, Callable[[bool], tuple[list[Record], list[str]]]] = {
    "table1": _table("table1", _table1),
    "table2": _table("table2", _table2),
    "table3": _table("table3", _table3),
    "table4": _table("table4", _table4),
    "table5": lambda quick: table5(_latency_spread, quick),
    "table6": lambda quick: table6(_latency_spread, quick),
    "figure7": _figure7,
    "figure8": _figure8,
    "figure9": _figure9,
    "figure10": _figure10,
    "figure11": _figure11,
    "figure12": _figure12,
    "first-message": first_message,
    "under-load": under_load,
    "upgrades": _table("upgrades", upgrades),
    "scaling": scaling,
    "pvm-fore": lambda quick: pvm_fore(_latency_spread, quick),
    "table7": table7,
    "properties": properties,
    "circuits": circuits,
}
"""What there is, by name: makes the records, and the digests of the runs."""

EVIDENCE = {"table7": evidence}
"""What values that say yes or no rest on, by experiment: case, ability and what came of its trial."""


def experiment(name: str, *, quick: bool = False) -> tuple[list[Record], list[str]]:
    """Run one experiment."""
    return EXPERIMENTS[name](quick)


def curve(setting_case: str) -> Curve:
    """Return the whole curve of a case of table 4."""
    found = next(one for one in _table4() if one.case == setting_case)
    return measure(found.network, _sizes(False))


N_HALF_WEIGHT = 0.2
"""What n_half of sockets counts in the fit: the model has no constant that moves it alone, and of the three
published values one lies where the throughput without TCP_NODELAY stalls."""

SOCKET_KEYS = ("socket_us", "checksum_factor", "packet")


def _of_sockets(constant: Constant) -> bool:
    return any(part in constant[1] for part in SOCKET_KEYS)


RPC_KEYS = ("rpc_head_us",)


def is_rpc(case_of: str) -> bool:
    """Whether a case is of remote procedure calls."""
    return case_of.startswith("stack=rpc/")


def refit(evaluations: int = 30) -> Fit:
    """Fit every constant that is marked as fitted to the calibration figures there are rows for.

    In three steps: hosts, adapters, switch and the Fore interface to the figures of AAL 5 and AAL 3/4; then,
    with these as they are, sockets, TCP and the drivers of the three networks to table 2; then what PVM
    and RPC have of their own, each to its row of table 1.
    """
    rows = {("table1", one.case): one for one in _table1()[:2]} | {
        ("table3", one.case): one for one in _table3()
    }
    free = constants()
    above = (*PVM_KEYS, *RPC_KEYS)
    below = {key: value for key, value in free.items() if not _of_sockets(key) and key[1] not in above}
    first = _stage(rows, below, evaluations, {})
    found = {(one.sheet, one.key): one.value for one in first.constants}
    rows = {("table2", one.case): one for one in _table2()}
    second = _stage(rows, {key: value for key, value in free.items() if _of_sockets(key)}, evaluations, found)
    found |= {(one.sheet, one.key): one.value for one in second.constants}
    pvm = refit_layer(is_pvm, PVM_KEYS, evaluations, found)
    stages = (first, second, pvm, refit_layer(is_rpc, RPC_KEYS, evaluations, found))
    return joined(stages)


def refit_layer(
    mine: Callable[[str], bool],
    keys: Collection[str],
    evaluations: int = 30,
    found: Mapping[Constant, float] | None = None,
) -> Fit:
    """Fit what a message layer has of its own to its row of table 1, all below it as found or as on file."""
    rows = {("table1", one.case): one for one in _table1() if mine(one.case)}
    known = constants()
    free = {key: value for key, value in known.items() if key[1] in keys}
    below = {key: value for key, value in known.items() if key not in free}
    return _stage(rows, free, evaluations, below if found is None else found)


def _stage(
    settings: Mapping[tuple[str, str], Setting],
    free: Mapping[Constant, float],
    evaluations: int,
    found: Mapping[Constant, float],
) -> Fit:
    published = calibration()
    wanted = [key for key in settings if (*key, "t0_us") in published]
    rows = [(*key, metric, published[(*key, metric)]) for key in wanted for metric in METRICS]

    def predict(values: Mapping[Constant, float]) -> list[float]:
        figures: list[float] = []
        # Whatever is tried, no FIFO overflows: what is on file is checked when the experiments run.
        large = {(name, "receive_fifo_cells"): 1e6 for name in ADAPTERS}
        for key in wanted:
            network = Network(**{**vars(settings[key].network), "overrides": {**found, **values, **large}})
            found_now = steady_summary(network)
            figures += [found_now[metric] for metric in METRICS]
        return figures

    def weight(metric: str) -> float:
        return N_HALF_WEIGHT if found and metric == "n_half_bytes" else 1.0

    return fit(predict, rows, free, evaluations=evaluations, weight=weight)


def _families(residuals: Iterable[Residual]) -> dict[str, list[Residual]]:
    """Group residuals: the Fore interface, sockets, PVM, RPC."""
    found: dict[str, list[Residual]] = {
        name: [] for name in ("spread", "spread_of_sockets", "spread_of_pvm", "spread_of_rpc")
    }
    for one in residuals:
        key = "spread_of_sockets" if one.experiment == "table2" else "spread"
        key = "spread_of_pvm" if is_pvm(one.case) else key
        found["spread_of_rpc" if is_rpc(one.case) else key].append(one)
    return found


def write_fit(fitted: Fit) -> None:
    """Write fitted values into the data files, and the spread and residuals beside the paper's."""
    from wiretwin.papers.fit import spread_of, write, write_residuals

    write(fitted)
    spreads = {key: spread_of(some) for key, some in _families(fitted.residuals).items()}
    write_residuals(DATA / "papers" / "lin1995-fit.toml", PAPER, spreads, fitted.residuals)
