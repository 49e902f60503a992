"""Whole numbers of the command line, rejected as all else is: the place, the value, what is allowed."""

from __future__ import annotations

from collections.abc import Callable

from wiretwin.errors import InputError

__all__ = ["whole"]


def whole(option: str, least: int = 0, most: int | None = None) -> Callable[[str], int]:
    """Return a reader of `option` for whole numbers from `least` to `most`.

    It goes to ``typer.Option(parser=...)``; a default passes through it too. It raises `InputError` for what
    is no whole number, or is outside.
    """
    allowed = f"{least} or more" if most is None else f"{least} to {most}"

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError as error:
            raise InputError(key=option, value=text, reason="is no whole number", allowed=allowed) from error
        if number < least or (most is not None and number > most):
            raise InputError(key=option, value=number, allowed=allowed)
        return number

    return read
