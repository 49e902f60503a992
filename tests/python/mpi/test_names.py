"""Every public name of mpi4py is simulated, or refused by its name."""

from __future__ import annotations

import ast
import importlib.util
import inspect
from pathlib import Path

import pytest

from wiretwin.mpi import names
from wiretwin.mpi.failure import UnsupportedError
from wiretwin.mpi.module import modules


def stub() -> ast.Module:
    spec = importlib.util.find_spec("mpi4py")
    assert spec is not None
    assert spec.origin is not None
    return ast.parse(Path(spec.origin).with_name("MPI.pyi").read_text())


def defined(body: list[ast.stmt]) -> set[str]:
    found: set[str] = set()
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return {name for name in found if not name.startswith("__")}


MPI = modules()["mpi4py.MPI"]
CLASSES = [node for node in stub().body if isinstance(node, ast.ClassDef)]
SIMULATED = [node for node in CLASSES if node.name in vars(MPI)]


def test_the_module_has_or_refuses_every_name() -> None:
    real = defined(stub().body)
    assert len(real) > 350
    assert real - set(vars(MPI)) == names.MODULE & real
    assert not names.MODULE & set(vars(MPI))
    for name in sorted(names.MODULE):
        with pytest.raises(UnsupportedError, match=rf"MPI\.{name} is not simulated"):
            getattr(MPI, name)


@pytest.mark.parametrize("node", SIMULATED, ids=lambda node: node.name)
def test_a_class_has_or_refuses_every_name(node: ast.ClassDef) -> None:
    kind = getattr(MPI, node.name)
    refused = names.METHODS.get(node.name, frozenset())
    lacking = {name for name in defined(node.body) if not hasattr(kind, name)}
    assert lacking == refused & defined(node.body)
    assert not {name for name in refused if hasattr(kind, name)}
    for name in sorted(refused):
        with pytest.raises(UnsupportedError, match=rf"{node.name}\.{name} is not simulated"):
            vars(kind)[name].__get__(object(), kind)


def test_types_for_annotations_are_all_there() -> None:
    spec = importlib.util.find_spec("mpi4py")
    assert spec is not None
    assert spec.origin is not None
    real = ast.parse(Path(spec.origin).with_name("typing.py").read_text())
    assigned = {
        node.targets[0].id: node.value
        for node in real.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    typing = modules()["mpi4py.typing"]
    assert set(ast.literal_eval(assigned["__all__"])) == set(typing.__all__)
    public = {name for name in assigned if not name.startswith("_")}
    assert public
    assert public <= set(vars(typing))


LIKELY = """
Send Ssend Bsend Rsend Recv Isend Issend Irecv Sendrecv Sendrecv_replace Probe Iprobe Mprobe
send recv isend irecv sendrecv ssend Bcast Reduce Allreduce Scan Exscan Reduce_scatter_block
Gather Gatherv Scatter Scatterv Allgather Allgatherv Alltoall Alltoallv Barrier Ibarrier Ibcast
Iallreduce bcast reduce allreduce scan exscan gather scatter allgather alltoall barrier
Split Dup Create_cart Create Free
"""


@pytest.mark.parametrize("method", LIKELY.split())
def test_the_calls_a_program_is_likely_to_make_have_mpi4pys_parameters(method: str) -> None:
    declared = {}
    for node in CLASSES:
        if node.name in ("Comm", "Intracomm"):
            for item in node.body:
                if isinstance(item, ast.FunctionDef) and item.name == method:
                    declared = item.args
    assert declared, method
    wanted = [argument.arg for argument in declared.args]
    got = list(inspect.signature(getattr(MPI.Intracomm, method)).parameters)
    assert got == wanted
