"""Packages that are verbs: ``wiretwin.measure`` is a package and ``wiretwin.measure(…)`` a call.

Python binds a package's name in its parent as soon as anything inside it is imported, so a verb that
shares its name with its room cannot be a plain function of the parent. The room itself is made
callable instead.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any

__all__ = ["make_callable"]


def make_callable(package: str, home: str) -> None:
    """Make an imported package callable.

    Parameters
    ----------
    package
        The package's ``__name__``.
    home
        Where the verb lives, as ``module:function``; imported at the first call.
    """
    module_name, _, function = home.partition(":")

    class Verb(ModuleType):
        __verb__ = home

        def __call__(self, *args: Any, **keywords: Any) -> Any:
            return getattr(importlib.import_module(module_name), function)(*args, **keywords)

    sys.modules[package].__class__ = Verb
