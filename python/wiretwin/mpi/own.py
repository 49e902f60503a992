"""Modules of the standard library of which every rank has its own.

`random` and `numpy.random` because their functions share hidden state, `logging` for its handlers,
`atexit` because a rank's end is not the interpreter's, `time` because the clocks are virtual.
"""

from __future__ import annotations

import importlib.util
import random
import sys
import time
import types
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from .rank import current

_EPOCH_S = 946_684_800
"""When every simulated program begins, by its own clock: 2000-01-01, 00:00 UTC."""


def own_random(seed: str) -> types.ModuleType:
    """Return a copy of `random` with its own generator, seeded for this rank."""
    module = types.ModuleType("random")
    instance = random.Random(seed)
    module.__dict__.update(random.__dict__)
    shared = getattr(random, "_inst", None)
    for name, value in random.__dict__.items():
        if getattr(value, "__self__", None) is shared and shared is not None:
            setattr(module, name, getattr(instance, name))
    module.__dict__["_inst"] = instance
    return module


def own_numpy_random(shared: Any, seed: int, index: int) -> types.ModuleType:
    """Return a copy of `numpy.random` whose global generator belongs to this rank.

    Unseeded generators are seeded from the seed of the run, the rank and their number, so that a
    simulation can be repeated; in a real process they differ from run to run.
    """
    import numpy as np

    module = types.ModuleType("numpy.random")
    module.__dict__.update(shared.__dict__)
    state = np.random.RandomState(np.random.MT19937(np.random.SeedSequence([seed, index, 0])))
    for name in dir(shared):
        value = getattr(shared, name)
        if type(getattr(value, "__self__", None)).__name__ == "RandomState":
            setattr(module, name, getattr(state, name))
    made = [0]

    def entropy() -> Any:
        made[0] += 1
        return np.random.SeedSequence([seed, index, made[0]])

    def default_rng(seed: Any = None) -> Any:
        return shared.default_rng(entropy() if seed is None else seed)

    def reseed(seed: Any = None) -> None:
        state.seed(entropy().generate_state(4) if seed is None else seed)

    default_rng.__doc__, reseed.__doc__ = shared.default_rng.__doc__, shared.seed.__doc__
    own: dict[str, Any] = {
        "seed": reseed,
        "default_rng": default_rng,
        "sample": state.random_sample,
        "ranf": state.random_sample,
    }
    module.__dict__.update(own)
    return module


def own_logging() -> types.ModuleType:
    """Return a fresh `logging`: loggers, handlers and levels of this rank."""
    spec = importlib.util.find_spec("logging")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    kept = sys.modules.get("atexit")
    sys.modules["atexit"], _ = own_atexit()  # its shutdown is not the interpreter's
    try:
        spec.loader.exec_module(module)
    finally:
        if kept is None:
            del sys.modules["atexit"]
        else:
            sys.modules["atexit"] = kept
    return module


def own_atexit() -> tuple[types.ModuleType, Callable[[], None]]:
    """Return an `atexit` whose functions are called at the rank's end, and what calls them."""
    module = types.ModuleType("atexit", "Functions to be called at the end of a simulated rank.")
    registered: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = []

    def register(func: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        registered.append((func, args, kwargs))
        return func

    def unregister(func: Callable[..., Any], /) -> None:
        registered[:] = [item for item in registered if item[0] != func]

    def run() -> None:
        while registered:
            func, args, kwargs = registered.pop()
            func(*args, **kwargs)

    module.__dict__.update(register=register, unregister=unregister, _run_exitfuncs=run)
    return module, run


@lru_cache(maxsize=1)
def virtual_time() -> types.ModuleType:
    """Return a `time` whose clocks are the clock of the rank that asks, and whose sleep is virtual.

    A rank that sleeps needs no core. Choice: `process_time` and `thread_time` show the rank's clock too.
    """
    module = types.ModuleType("time", time.__doc__)
    module.__dict__.update(time.__dict__)

    def clock(name: str, offset_s: int, whole: bool) -> Callable[[], Any]:
        real: Callable[[], Any] = getattr(time, name)

        def read() -> Any:
            rank = getattr(current, "rank", None)
            if rank is None:
                return real()
            now_ps = rank.read_clock(name)
            return now_ps // 1000 + offset_s * 10**9 if whole else now_ps / 1e12 + offset_s

        read.__name__, read.__doc__ = name, real.__doc__
        return read

    for name in ("perf_counter", "monotonic", "process_time", "thread_time", "time"):
        offset = _EPOCH_S if name == "time" else 0
        module.__dict__[name] = clock(name, offset, False)
        module.__dict__[name + "_ns"] = clock(name + "_ns", offset, True)

    def sleep(seconds: float, /) -> None:
        """Let virtual time pass."""
        rank = getattr(current, "rank", None)
        if rank is None:
            time.sleep(seconds)
            return
        if seconds < 0:
            raise ValueError("sleep length must be non-negative")
        rank.sleep(round(seconds * 1e12))

    def now_by_default(name: str) -> Callable[..., Any]:
        real = getattr(time, name)

        def convert(seconds: float | None = None, /) -> Any:
            return real(module.__dict__["time"]() if seconds is None else seconds)

        convert.__name__, convert.__doc__ = name, real.__doc__
        return convert

    module.__dict__["sleep"] = sleep
    for name in ("localtime", "gmtime", "ctime"):
        module.__dict__[name] = now_by_default(name)
    return module
