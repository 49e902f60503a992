"""What every rank has for itself in the one process: modules, arguments, folder, random numbers, output.

A rank's own view is put in place at each switch. Modules under the script's folder are loaded once
per rank, and a few of the standard library are copied for each (`own.py`); installed packages are
shared.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import types
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any, TextIO

from .failure import UnsupportedModuleError
from .own import own_atexit, own_logging, own_numpy_random, own_random, virtual_time
from .preimport import belongs, local_file, step_aside

_NEVER = ("wiretwin", "mpi4py")
_OWN = ("__main__", "random", "time", "atexit", "logging")
"""Modules of the standard library that every rank has a copy of."""


class RankView:
    """One rank's view of the interpreter."""

    def __init__(
        self, index: int, script: Path, argv: Sequence[str], seed: int, wanted: Sequence[str]
    ) -> None:
        self.main = types.ModuleType("__main__")
        self.main.__dict__.update(__file__=str(script), __builtins__=__builtins__, __cached__=None)
        self.modules: dict[str, types.ModuleType] = {"__main__": self.main}
        self.argv = [str(script), *argv]
        self.path = [str(script.parent), *sys.path]
        self.folder: str | None = None
        self.stdout = _Output()
        self.stderr = _Output()
        self.prints_to: TextIO = self.stdout
        if local_file("random", script.parent) is None:
            self.modules["random"] = own_random(f"wiretwin random {seed} {index}")
        self.modules["time"] = virtual_time()
        self.modules["atexit"], self.at_exit = own_atexit()
        # Not among them where the program has a file of that name.
        if any(name.partition(".")[0] == "logging" for name in wanted):
            self.modules["logging"] = own_logging()
        self.numpy_random: types.ModuleType | None = None
        if "numpy" in sys.modules:
            self.numpy_random = own_numpy_random(sys.modules["numpy"].random, seed, index)


class _Output(io.TextIOWrapper):
    """Collects what a rank prints."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), encoding="utf-8", errors="replace", newline="", write_through=True)

    def text(self) -> str:
        """Return all of it."""
        self.flush()
        buffer: Any = self.buffer
        return str(buffer.getvalue().decode("utf-8", "replace"))

    def fileno(self) -> int:
        """Reject: there is no file behind it."""
        raise io.UnsupportedOperation("fileno: a simulated rank's output has no file descriptor")


class _Finder:
    """Notes which modules a rank loads from the script's folder."""

    def __init__(self, isolation: Isolation) -> None:
        self.isolation = isolation

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: Any = None
    ) -> ModuleSpec | None:
        """Find a module of the program; leave all others to the finders that follow."""
        if name.startswith("mpi4py."):
            raise UnsupportedModuleError(f"{name} is not simulated; mpi4py.MPI is")
        if name.partition(".")[0] in _NEVER:
            return None
        isolation = self.isolation
        search = path if path is not None else sys.path
        spec = PathFinder.find_spec(name, search)
        if spec is None:
            return None
        origin = spec.origin
        if origin is None and spec.submodule_search_locations:
            origin = str(Path(next(iter(spec.submodule_search_locations))) / "x")
        if not belongs(origin, isolation.folder):
            return None
        if isolation.view is not None:
            isolation.own_names.add(name)
        return spec


class Isolation:
    """Puts ranks' views in place, and the interpreter's own back at the end."""

    def __init__(self, script: Path) -> None:
        self.script = script
        self.folder = script.parent
        self.view: RankView | None = None
        self.own_names: set[str] = set()
        self._hidden: dict[str, types.ModuleType] = {}
        self._home = ""
        self._moved = False
        self._numpy_random: Any = None

    @contextlib.contextmanager
    def installed(self, modules: dict[str, types.ModuleType]) -> Iterator[None]:
        """Replace `modules` in `sys.modules`, and put everything back at the end."""
        kept_modules = {name: sys.modules.get(name) for name in [*modules, *_OWN]}
        kept = (sys.argv, sys.path, sys.stdout, sys.stderr)
        self._home = os.getcwd()
        finder = _Finder(self)
        chdir, force_exit = os.chdir, os._exit
        pid = os.getpid()
        for name in _other_mpi4py():
            kept_modules.setdefault(name, sys.modules.pop(name))
        sys.modules.update(modules)
        self._hidden = step_aside(self.folder)
        if "numpy" in sys.modules:
            self._numpy_random = sys.modules["numpy"].random

        def moving(path: Any) -> None:
            chdir(path)
            if self.view is not None:
                self._moved = True
                self.view.folder = os.getcwd()

        def leaving(status: int) -> Any:
            if os.getpid() == pid and self.view is not None:
                raise SystemExit(status)
            force_exit(status)

        os.chdir = moving
        os._exit = leaving
        sys.meta_path.insert(0, finder)
        try:
            yield
        finally:
            self.take_away()
            sys.meta_path.remove(finder)
            os.chdir, os._exit = chdir, force_exit
            if self._moved:
                chdir(self._home)
            sys.argv, sys.path, sys.stdout, sys.stderr = kept
            for name, module in kept_modules.items():
                if module is None:
                    sys.modules.pop(name, None)
                else:
                    sys.modules[name] = module
            sys.modules.update(self._hidden)
            self._hidden.clear()

    def put(self, view: RankView) -> None:
        """Let `view`'s rank run: everything it sees is its own."""
        if self.view is view:
            return
        self._save()
        modules = sys.modules
        modules.update(view.modules)
        sys.argv, sys.path = view.argv, view.path
        sys.stdout, sys.stderr = view.prints_to, view.stderr
        if view.numpy_random is not None:
            modules["numpy.random"] = view.numpy_random
            modules["numpy"].random = view.numpy_random  # type: ignore[attr-defined]
        if self._moved:
            os.chdir(view.folder or self._home)
        self.view = view

    def take_away(self) -> None:
        """Save what the rank that ran has changed, and put back what is not the views'."""
        self._save()
        if self._numpy_random is not None:
            sys.modules["numpy.random"] = self._numpy_random
            sys.modules["numpy"].random = self._numpy_random  # type: ignore[attr-defined]

    def _save(self) -> None:
        """Save what the rank that ran has changed."""
        view = self.view
        if view is None:
            return
        self.view = None
        modules = sys.modules
        for name in self.own_names:
            module = modules.pop(name, None)
            if module is not None:
                view.modules[name] = module
            else:
                view.modules.pop(name, None)
        view.modules["__main__"] = modules.get("__main__", view.main)
        view.argv, view.path = sys.argv, sys.path


def _other_mpi4py() -> list[str]:
    return [name for name in sys.modules if name == "mpi4py" or name.startswith("mpi4py.")]
