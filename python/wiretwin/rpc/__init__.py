"""The RPC language (RFC 4506, RFC 5531): read, checked, and turned into stubs; what stubs need to run."""

from __future__ import annotations

from pathlib import Path

from wiretwin.errors import InputError
from wiretwin.given import read_text

__all__ = ["stubs"]


def stubs(file: Path) -> str:
    """Return a Python module for a file in the RPC language: types, clients, services.

    Raises
    ------
    InputError
        The file cannot be read, or is not in the language; says where, what was found, and what is allowed
        there.
    """
    from wiretwin.rpc.check import check
    from wiretwin.rpc.generate import generate
    from wiretwin.rpc.lexer import LanguageError
    from wiretwin.rpc.parser import parse

    source = read_text(file)
    try:
        return generate(check(parse(source, file.stem)), file.name)
    except LanguageError as error:
        place = f"line {error.place.line}, column {error.place.column}"
        raise InputError(file, place, reason=error.reason) from None
