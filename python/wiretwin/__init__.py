"""wiretwin: measure, fit, simulate, predict, run and compare how parallel programs talk."""

from wiretwin._core import __version__

__all__ = ["__version__"]
