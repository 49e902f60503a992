"""The RPC language (RFC 4506, RFC 5531): read, checked, and turned into stubs; what stubs need to run."""

from __future__ import annotations

from pathlib import Path

from wiretwin.errors import InputError, StorageError

__all__ = ["stubs"]


def stubs(file: Path) -> str:
    """Return a Python module for a file in the RPC language: types, clients, services.

    Raises
    ------
    InputError
        The file is not in the language; says where, what was found, and what is allowed there.
    StorageError
        It cannot be read.
    """
    from wiretwin.rpc.check import check
    from wiretwin.rpc.generate import generate
    from wiretwin.rpc.lexer import LanguageError
    from wiretwin.rpc.parser import parse

    try:
        source = file.read_text(encoding="utf-8")
    except OSError as error:
        raise StorageError(file, error.strerror or str(error)) from None
    except UnicodeDecodeError as error:
        raise InputError(file, reason=f"octet {error.start} is no UTF-8") from None
    try:
        return generate(check(parse(source, file.stem)), file.name)
    except LanguageError as error:
        place = f"line {error.place.line}, column {error.place.column}"
        raise InputError(file, place, reason=error.reason) from None
