"""What is here: cores, clocks, interfaces, which layers run, what is missing and how to get it.

A layer counts as running only after two processes have exchanged messages over it, under a limit.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from wiretwin import direct, folders, scratch, shared_memory
from wiretwin._verbs import make_callable
from wiretwin.measure import host
from wiretwin.measure.launch import launch
from wiretwin.measure.schedule import Step
from wiretwin.stacks.layers import LAYERS, Configuration, mpiexec, parse_layers, refusal

__all__ = ["Examination", "LayerState", "Missing", "doctor"]

make_callable(__name__, "wiretwin.doctor:doctor")

TRIAL_LIMIT_S = 15.0
"""The longest a layer's trial may take, seconds."""
BUSY_SHARE = 0.5
"""A load above this share of the cores disturbs measurements."""
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


@dataclass(frozen=True)
class LayerState:
    """A layer after its trial.

    Attributes
    ----------
    layer
        Its name.
    runs
        Two processes exchanged messages.
    half_round_trip_us
        Median of the trial's few samples, 4 bytes: an indication, not a measurement.
    reason
        Why it does not run.
    cure
        The one line that may change that.
    """

    layer: str
    runs: bool
    half_round_trip_us: float | None
    reason: str | None
    cure: str | None = None


@dataclass(frozen=True)
class Missing:
    """Something that is absent or in the way.

    Attributes
    ----------
    what
        The thing.
    matters
        What is not possible, or less exact, because of it.
    remedy
        The one line that changes it.
    """

    what: str
    matters: str
    remedy: str


@dataclass(frozen=True)
class Examination:
    """What `doctor` found.

    Attributes
    ----------
    host
        Facts about the host; keys end in their unit.
    clock
        Name, ``cost_ns`` of a reading, ``resolution_ns``, and the kernel's source.
    interfaces
        Network interfaces: name, addresses, ``speed_Mbit_s``, ``mtu_bytes``, up or not.
    layers
        Every layer after its trial.
    tools
        Version or path of what is used besides; ``None`` if absent.
    direct
        The ways of the direct transport from rank to rank.
    missing
        What is missing and how to get it.
    """

    host: dict[str, Any]
    clock: dict[str, Any]
    interfaces: list[dict[str, Any]]
    layers: list[LayerState]
    tools: dict[str, str | None]
    missing: list[Missing] = field(default_factory=list)
    direct: list[direct.Way] = field(default_factory=list)

    @property
    def usable(self) -> bool:
        """At least one layer runs."""
        return any(layer.runs for layer in self.layers)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        return asdict(self)


def doctor() -> Examination:
    """Examine this host; takes a few seconds, most of them for trying the layers.

    Returns
    -------
    Examination
        Never raises for what is missing; that is what it reports.
    """
    from wiretwin.measure.probe_mpi4py import clock

    # Before the layers are tried: every run removes them.
    abandoned = [path for parent in scratch.parents() for path in folders.sweep(parent)]
    memory = shared_memory.room() or shared_memory.Room(0, 0)
    facts = host.describe() | {
        "shared_memory_MiB": round(memory.size / 2**20, 1),
        "shared_memory_free_MiB": round(memory.free / 2**20, 1),
        "shared_memory_needed_MiB": round(shared_memory.ROOM_BYTES / 2**20, 1),
    }
    layers = [_try(configuration) for configuration in _configurations()]
    tools = _tools()
    ways = direct.ways()
    return Examination(
        host=facts,
        clock=clock() | {"source": facts.get("clock_source", "unknown")},
        interfaces=_interfaces(),
        layers=layers,
        tools=tools,
        missing=[*_missing(facts, layers, tools), *_without(ways), *_abandoned(abandoned)],
        direct=ways,
    )


def _without(ways: Sequence[direct.Way]) -> list[Missing]:
    return [
        Missing(
            f"the direct transport's way `{way.name}`",
            f"ranks of two hosts go through the kernel, at two to three times the latency: {way.reason}",
            way.remedy or "wiretwin doctor",
        )
        for way in ways
        if way.reason is not None
    ]


def _abandoned(found: Sequence[Path]) -> list[Missing]:
    if not found:
        return []
    folders = ", ".join(map(str, found))
    return [
        Missing(
            f"a clean end of an earlier run: {folders}",
            "its process was killed; what it left in shared memory holds memory until the next boot",
            "none: removed just now, as every run does",
        )
    ]


def _configurations() -> list[Configuration]:
    """Return every layer's default and its other installations."""
    names = []
    for kind in LAYERS.values():
        names += [kind.name, *(f"{kind.name}+{word}" for word in kind.editions)]
    return [parse_layers(name)[0] for name in names]


def _try(configuration: Configuration) -> LayerState:
    name = configuration.name
    refused = refusal(configuration)
    if refused is not None:
        return LayerState(name, False, None, refused.reason, refused.cure)
    step = Step("echo", 4, warmup=20, min_samples=20, max_samples=200, budget_ms=20.0)
    outcome = launch(configuration, [step], limit_s=TRIAL_LIMIT_S, pins=host.measuring_cpus())
    median = outcome.medians("echo").get(4)
    if outcome.status != "ok" or median is None:
        again = f"wiretwin --debug measure --layers {name} --budget 1s"
        return LayerState(name, False, None, outcome.error or "no samples came", again)
    return LayerState(name, True, median / 2000.0, None)


def _interfaces() -> list[dict[str, Any]]:
    import psutil

    addresses, states = psutil.net_if_addrs(), psutil.net_if_stats()
    families = (socket.AF_INET, socket.AF_INET6)
    return [
        {
            "name": name,
            "addresses": [one.address for one in addresses[name] if one.family in families],
            "up": states[name].isup if name in states else False,
            "speed_Mbit_s": (states[name].speed or None) if name in states else None,
            "mtu_bytes": states[name].mtu if name in states else None,
        }
        for name in sorted(addresses)
    ]


def _tools() -> dict[str, str | None]:
    return {
        "mpiexec": str(launcher) if (launcher := mpiexec()) else None,
        "mpi4py": _version("mpi4py"),
        "mpich": _version("mpich"),
        "chromium": next((found for name in CHROMIUM if (found := shutil.which(name))), None),
        "cc": shutil.which("cc"),
    }


def _version(package: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _missing(facts: dict[str, Any], layers: list[LayerState], tools: dict[str, str | None]) -> list[Missing]:
    found = []
    usable = len(facts["cpus_usable"])
    if usable < 2:
        found.append(
            Missing(
                "a second CPU",
                "two ranks share one core: spinning layers wait for whole scheduler ticks",
                "give this process two CPUs: `taskset -c 0,1 wiretwin …`, or a larger machine",
            )
        )
    if "cpu_quota_cores" in facts and facts["cpu_quota_cores"] < 2:
        found.append(
            Missing(
                f"CPU time: the control group allows {facts['cpu_quota_cores']:g} cores",
                "two busy ranks are stopped again and again",
                "raise the container's CPU limit to 2 or more",
            )
        )
    if facts.get("governor") not in (None, "performance"):
        found.append(
            Missing(
                f"a steady clock rate: the governor is {facts['governor']}",
                "the first iterations of each step run at a lower rate",
                "cpupower frequency-set -g performance",
            )
        )
    if facts.get("clock_source") not in (None, "tsc", "arch_sys_counter"):
        found.append(
            Missing(
                f"a cheap clock: the source is {facts['clock_source']}",
                "a reading of the clock costs up to a microsecond and each sample holds one",
                "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource",
            )
        )
    memory = shared_memory.room() or shared_memory.Room(0, 0)
    if memory.free < shared_memory.ROOM_BYTES:
        found.append(
            Missing(
                f"shared memory: {memory}, needed are {facts['shared_memory_needed_MiB']:g} MiB",
                "folders of a run go to a disk; ranks of MPI are ended by SIGBUS, 2 MiB each are needed",
                "remove what nobody uses there, or `mount -o remount,size=1G /dev/shm`; of a container: "
                "`--shm-size 1g`",
            )
        )
    load = os.getloadavg()[0]
    if load > BUSY_SHARE * usable:
        found.append(
            Missing(
                f"quiet: the load is {load:.1f} on {usable} CPUs",
                "other processes take the cores away from the ranks; intervals become wide",
                "end what else is running, or measure longer: `--budget 5min`",
            )
        )
    for layer in layers:
        if layer.reason is not None:
            found.append(Missing(layer.layer, layer.reason, layer.cure or "wiretwin doctor"))
    if tools["chromium"] is None:
        found.append(
            Missing(
                "chromium",
                "the test that opens a report in a browser is skipped",
                "apt-get install chromium",
            )
        )
    return found
