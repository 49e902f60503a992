"""What the cases share."""

from mpi4py import MPI

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def failing(function):
    """Return what a call raises: the error class of MPI, or type and words of Python's."""
    try:
        value = function()
    except MPI.Exception as error:
        return f"MPI error {error.Get_error_class()} {error.Get_error_string().partition(',')[0]}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return f"no error: {value}"


def ring(comm):
    return (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size


def text(status):
    return f"source {status.Get_source()} tag {status.Get_tag()} count {status.Get_count()}"
