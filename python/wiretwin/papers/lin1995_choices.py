"""Lin et al. 1995: what its tables say under other choices."""

from __future__ import annotations

from dataclasses import replace

from wiretwin.model.echo import SEED, coarse, fine, measure, summary
from wiretwin.model.profiles import Network
from wiretwin.papers.choices import Draw
from wiretwin.papers.lin1995_programs import costs_s, jobs, settings
from wiretwin.papers.lin1995_settings import HOSTS, fore_setting, renamed
from wiretwin.papers.programs import run_program
from wiretwin.papers.records import Key

__all__ = ["under"]

RUNS = {"mm": 2, "pde": 1}
ROUTES = ("socket", "pvm-advise")
"""What the opened results of the programs ran on."""


def under(draw: Draw) -> dict[Key, float]:
    """Return the values of tables 4, 5 and 6 whose results are opened, at the lengths of ``--quick``."""
    found: dict[Key, float] = {}
    sizes = coarse(1 << 16) + fine(384, 8192)
    for host in HOSTS[:2]:
        for adapter in ("series-100", "series-200"):
            setting = fore_setting(host, adapter, switch=True)
            for metric, value in summary(measure(_drawn(setting.network, draw), sizes)).items():
                found["table4", setting.case, metric] = value
    shares = {key.removeprefix("first_use."): float(draw[key]) for key in draw if "first_use." in key}
    for program, experiment in (("mm", "table5"), ("pde", "table6")):
        for job in jobs(program, int(bits) if (bits := draw.get("mm.element_bits")) else None):
            costs = {kind: cost * float(draw.get(f"cost.{kind}", 1)) for kind, cost in costs_s(job).items()}
            for setting, load in settings(shares):
                layer, lower = (setting.network.stack.split("/")[at] for at in (0, -1))
                if layer not in ROUTES or (program == "pde" and lower != "aal5"):
                    continue
                network = _drawn(setting.network, draw)
                ran = [
                    run_program(network, job.program, job.parameters, costs, SEED + number).elapsed_s
                    for number in range(RUNS[program])
                ]
                name = renamed(setting.case, program=program, load=load or None, **job.keys)
                found[experiment, name, "time_s"] = sum(ran) / len(ran)
    return found


def _drawn(network: Network, draw: Draw) -> Network:
    """Return a network with what a draw says of its sheets and of TCP."""
    of_sheets = {
        (sheet, name): float(value)
        for key, value in draw.items()
        for sheet, _, name in [key.partition(".")]
        if name and sheet not in ("first_use", "cost", "mm")
    }
    return replace(
        network, tcp=str(draw.get("tcp", network.tcp)), overrides={**network.overrides, **of_sheets}
    )
