"""What this host is: everything a reader needs to judge figures measured on it."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

__all__ = ["cores", "describe", "measuring_cpus"]


def describe() -> dict[str, Any]:
    """Describe the host; keys end in their unit, absent facts are left out."""
    import psutil

    import wiretwin

    facts: dict[str, Any] = {
        "name": platform.node(),
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "python": platform.python_version(),
        "wiretwin": wiretwin.__version__,
        "cpu_model": _cpu_model(),
        "cores": len(_core_of_cpu()) and len(set(_core_of_cpu().values())),
        "cpus": os.cpu_count(),
        "cpus_usable": sorted(os.sched_getaffinity(0)),
        "cpu_quota_cores": _cpu_quota(),
        "frequency_MHz": _frequency_mhz(),
        "governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "clock_source": _read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "memory_MiB": psutil.virtual_memory().total >> 20,
        "virtualisation": _virtualisation(),
        "load_1min": round(os.getloadavg()[0], 2),
    }
    return {key: value for key, value in facts.items() if value is not None and value != ""}


def cores() -> int:
    """Return how many cores this process may use; as many as CPUs where the system does not tell."""
    return len(set(_core_of_cpu().values())) or len(os.sched_getaffinity(0))


def measuring_cpus(ranks: int = 2) -> tuple[int, ...] | None:
    """Choose usable CPUs for ranks, on different cores as far as there are; nothing if there is one.

    Where there are more ranks than CPUs, all are returned, and ranks take turns on them.

    Choice: hyper-threads of one core share its execution units, so a pair of them measures something
    else than two processes on two cores.
    """
    usable = sorted(os.sched_getaffinity(0))
    if len(usable) < 2:
        return None
    core_of = _core_of_cpu()
    first = {core_of.get(cpu, ("", str(cpu))): cpu for cpu in reversed(usable)}  # the lowest of each core
    apart = sorted(first.values())
    others = [cpu for cpu in usable if cpu not in apart]
    return tuple([*apart, *others][:ranks])


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return None


def _cpu_info(key: str) -> str | None:
    for line in (_read("/proc/cpuinfo") or "").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return None


def _cpu_model() -> str | None:
    return _cpu_info("model name") or platform.processor() or None


def _frequency_mhz() -> float | None:
    text = _cpu_info("cpu MHz")
    return round(float(text), 1) if text else None


def _core_of_cpu() -> dict[int, tuple[str, str]]:
    """Map each usable CPU to its (package, core)."""
    cores = {}
    for cpu in os.sched_getaffinity(0):
        base = f"/sys/devices/system/cpu/cpu{cpu}/topology"
        core, package = _read(f"{base}/core_id"), _read(f"{base}/physical_package_id")
        if core is not None and package is not None:
            cores[cpu] = (package, core)
    return cores


def _cpu_quota() -> float | None:
    """Cores that the control group allows, if fewer than there are (cgroup v2, ``cpu.max``)."""
    text = _read("/sys/fs/cgroup/cpu.max")
    if not text or text.startswith("max"):
        return None
    quota, period = text.split()
    return int(quota) / int(period)


def _virtualisation() -> str | None:
    """Name the hypervisor, as far as the processor and firmware tell."""
    if " hypervisor" not in (_cpu_info("flags") or ""):
        return None
    return _read("/sys/hypervisor/type") or _read("/sys/class/dmi/id/sys_vendor") or "hypervisor present"
