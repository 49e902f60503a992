"""The one small family of errors that wiretwin raises for what a caller can mend."""

__all__ = ["InputError", "MeasureError", "SimulationError", "WiretwinError"]


class WiretwinError(Exception):
    """Anything wiretwin refuses or fails at, with a message meant for a person."""


class InputError(WiretwinError):
    """A file, a key or an argument is wrong: the message names it, its value and what is allowed."""


class MeasureError(WiretwinError):
    """A measurement could not be made or did not finish."""


class SimulationError(WiretwinError):
    """A simulated run cannot go on."""
