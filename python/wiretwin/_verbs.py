"""Packages that are verbs: ``wiretwin.measure`` is a package and ``wiretwin.measure(…)`` a call.

Python binds a package's name in its parent as soon as anything inside it is imported, so a verb that
shares its name with its package cannot be a plain function of the parent. The package itself is made
callable instead.
"""

from __future__ import annotations

import importlib
import inspect
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

    def verb() -> Any:
        return getattr(importlib.import_module(module_name), function)

    class Verb(ModuleType):
        __verb__ = home

        def __call__(self, *args: Any, **keywords: Any) -> Any:
            return verb()(*args, **keywords)

        @property
        def __signature__(self) -> inspect.Signature:
            """What `help` and a notebook's question mark show."""
            return inspect.signature(verb())

        def _doc(self) -> str:
            return "\n\n".join(filter(None, (inspect.getdoc(verb()), vars(self).get("__doc__"))))

        __doc__ = property(_doc)

    sys.modules[package].__class__ = Verb
