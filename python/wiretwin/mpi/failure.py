"""`MPI.Exception` and the rejection of what is not simulated."""

from __future__ import annotations

from typing import NoReturn

from .constants import ERROR_TEXTS, INTEGERS

SUCCESS = 0
ERR_UNKNOWN = INTEGERS["ERR_UNKNOWN"]


class MPIException(RuntimeError):
    """An error of MPI, as `mpi4py.MPI.Exception`: an error class and what was wrong.

    Parameters
    ----------
    ierr
        The error class, for example `MPI.ERR_TRUNCATE`.
    detail
        What was wrong, with the value and what is allowed.
    """

    def __init__(self, ierr: int = SUCCESS, detail: str = "") -> None:
        if ierr < SUCCESS:
            ierr = ERR_UNKNOWN
        super().__init__(ierr)
        self._detail = detail

    def __int__(self) -> int:
        return int(self.args[0])

    def __bool__(self) -> bool:
        return int(self) != SUCCESS

    def __hash__(self) -> int:
        return hash(int(self))

    def __eq__(self, other: object) -> bool:
        return int(self) == (int(other) if isinstance(other, MPIException) else other)

    def __lt__(self, other: int) -> bool:
        return int(self) < int(other)

    def __le__(self, other: int) -> bool:
        return int(self) <= int(other)

    def __gt__(self, other: int) -> bool:
        return int(self) > int(other)

    def __ge__(self, other: int) -> bool:
        return int(self) >= int(other)

    def __repr__(self) -> str:
        return f"MPI.Exception({int(self)})"

    def __str__(self) -> str:
        text = self.Get_error_string()
        return f"{text}: {self._detail}" if self._detail else text

    def Get_error_code(self) -> int:
        """Return the error code; here always an error class."""
        return int(self)

    def Get_error_class(self) -> int:
        """Return the error class."""
        return int(self)

    def Get_error_string(self) -> str:
        """Return the text of the error class."""
        return error_string(int(self))

    @property
    def error_code(self) -> int:
        """The error code."""
        return int(self)

    @property
    def error_class(self) -> int:
        """The error class."""
        return int(self)

    @property
    def error_string(self) -> str:
        """The text of the error class."""
        return self.Get_error_string()


MPIException.__name__ = "Exception"
MPIException.__qualname__ = "Exception"
MPIException.__module__ = "mpi4py.MPI"


def error_string(code: int) -> str:
    """Return the text of an error class."""
    return ERROR_TEXTS.get(code, f"Unknown error class {code}")


def fail(name: str, detail: str) -> NoReturn:
    """Raise the MPI error called `name` (`ERR_RANK`, say)."""
    raise MPIException(INTEGERS[name], detail)


def no_input(error: BaseException) -> str:
    """Return what to say of a rank that has read its standard input, which is empty in both worlds."""
    if not isinstance(error, EOFError):
        return ""
    return " (ranks have no standard input: let the script take what it reads as an argument or from a file)"


class UnsupportedError(NotImplementedError):
    """A name of mpi4py that is not simulated."""


class UnsupportedModuleError(UnsupportedError, ImportError):
    """A module of mpi4py that is not simulated."""


class UnsupportedAttributeError(UnsupportedError, AttributeError):
    """A name of a class of mpi4py that is not simulated, which the class so has not."""


def refuse(what: str, instead: str = "") -> NoReturn:
    """Reject `what` by name, saying what may be used instead."""
    text = f"{what} is not simulated"
    if instead:
        text += f"; {instead}"
    raise UnsupportedError(text)
