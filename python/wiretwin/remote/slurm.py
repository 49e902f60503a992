"""An allocation of Slurm: its nodes, and how ``srun`` starts something on one of them.

A step of its own is laid over the allocation for each process (``--overlap``), without Slurm's MPI, so that
any launcher can be started in it. What Slurm tells a step by its environment is taken away again: an MPI that
finds it would start its ranks by Slurm, on the nodes that it chooses.
"""

from __future__ import annotations

import os
import re
import shlex
import socket
from collections.abc import Mapping
from dataclasses import dataclass

from wiretwin import process
from wiretwin.errors import InputError, MeasureError

__all__ = ["Node", "allocated", "node"]

LIMIT_S = 20.0
"""The longest that Slurm's controller may take to answer, seconds."""
_WITHOUT = (
    "for name in $(env | sed -n 's/^\\(SLURM_[A-Z0-9_]*\\)=.*/\\1/p'); do "
    '[ "$name" = SLURM_CONF ] || unset "$name"; done; exec sh -c "$1"'
)
"""A shell's words that run their argument without what Slurm has set."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node of an allocation, and how it is reached; a `wiretwin.remote.machine.Login` by srun.

    Attributes
    ----------
    word
        Its name in Slurm.
    job
        The number of the job that has it.
    address
        Its IP address, as Slurm knows it.
    python
        The path of the Python there that has wiretwin.
    """

    word: str
    job: str
    address: str
    python: str

    by = "srun"
    package = "slurm-client"

    def _step(self, to: str) -> str:
        words = ["srun", f"--jobid={self.job}", "--overlap", "--nodes=1", "--ntasks=1", "--quiet"]
        words += ["--mpi=none", "--cpu-bind=none", "--kill-on-bad-exit=1"]
        return f"{shlex.join(words)} --nodelist={to} sh -c {shlex.quote(_WITHOUT)} sh"

    @property
    def reach(self) -> list[str]:
        """Return the command up to the remote command."""
        return shlex.split(self._step(shlex.quote(self.word)))

    @property
    def for_any(self) -> str:
        """Return a shell's words that reach the node in its variable ``to``."""
        return self._step('"$to"')


def allocated(
    environment: Mapping[str, str] | None = None, *, launcher: str = "srun"
) -> tuple[str, list[str]]:
    """Return the number of the job that this process runs in, and its nodes.

    Parameters
    ----------
    environment
        The variables in which Slurm says so; by default those of this process.
    launcher
        What shall reach the nodes: ``srun``, which needs Slurm, or another one, for which a job of Slurm is
        only where the names of machines come from if none were given.

    Raises
    ------
    InputError
        It runs in none, or has one node only.
    MeasureError
        Slurm does not answer.
    """
    found = os.environ if environment is None else environment
    job, names = found.get("SLURM_JOB_ID"), found.get("SLURM_JOB_NODELIST")
    if (not job or not names) and launcher != "srun":
        raise InputError(
            key="--launcher",
            value=launcher,
            reason="does not say which machines it shall reach",
            allowed="with --between A B; without it the machines are the nodes of a job of Slurm, and this "
            "is none",
        )
    if not job or not names:
        raise InputError(
            key="--launcher",
            reason="there is no allocation: SLURM_JOB_ID and SLURM_JOB_NODELIST are not set",
            allowed="in a job of Slurm, `salloc --nodes=2 wiretwin …`; or with --between A B",
        )
    nodes = _asked("show", "hostnames", names).split()
    if len(nodes) < 2:
        allowed = "an allocation of two nodes or more; on one, without --launcher"
        raise InputError(key="SLURM_JOB_NODELIST", value=names, reason="is one node", allowed=allowed)
    return job, nodes


def node(name: str, job: str, python: str) -> Node:
    """Return a node of a job with its address.

    Raises
    ------
    MeasureError
        Slurm does not know it, or its address does not resolve.
    """
    said = re.search(r"\bNodeAddr=(\S+)", _asked("show", "node", name, "--oneliner"))
    where = said[1] if said else name
    try:
        address = socket.getaddrinfo(where, None, type=socket.SOCK_STREAM)[0][4][0]
    except OSError as error:
        raise MeasureError(f"{name}: its address in Slurm, {where}, does not resolve: {error}") from None
    return Node(name, job, str(address), python)


def _asked(*words: str) -> str:
    """Ask Slurm's controller; return what it says."""
    try:
        done = process.run(["scontrol", *words], limit_s=LIMIT_S)
    except OSError as error:
        raise MeasureError(f"scontrol: {error.strerror or error}; `apt-get install slurm-client`") from None
    except process.TimeLimit as late:
        raise MeasureError(f"Slurm's controller does not answer: {late}") from None
    if done.returncode != 0:
        raise MeasureError(f"scontrol {' '.join(words)}: {done.last_words(2) or 'no reason given'}")
    return done.stdout
