"""Runs ``tests/conformance/mpi.txt`` over mpi4py: each rank its own lines of every case."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI

RANKS = 3
#: Short for every library, and long for every library.
UNITS = {"S": 100, "L": 200_000}
LIMIT_S = 20.0

comm = MPI.COMM_WORLD
rank = comm.Get_rank()
modes = {
    "standard": comm.Isend,
    "synchronous": comm.Issend,
    "ready": comm.Irsend,
    "buffered": comm.Ibsend,
}


def number(text: str) -> int:
    """Read a number, or so many of a unit."""
    if text[-1] in UNITS:
        return int(text[:-1] or "1") * UNITS[text[-1]]
    return int(text)


def pattern(words: dict[str, str]) -> tuple[int, int]:
    """Return source and tag of a receive or a probe."""
    source = MPI.ANY_SOURCE if words["from"] == "any" else int(words["from"])
    return source, MPI.ANY_TAG if words["tag"] == "any" else int(words["tag"])


def check(status: MPI.Status, words: dict[str, str]) -> None:
    """Compare a status with what it must be."""
    for key, tag_key, found in (
        ("source", "source", status.Get_source()),
        ("tag", "tag_is" if "tag_is" in words else "tag", status.Get_tag()),
        ("bytes", "bytes", status.Get_count(MPI.BYTE)),
    ):
        if tag_key in words:
            assert found == number(words[tag_key]), (key, found, words)


class Case:
    """What one rank holds while it runs a case."""

    def __init__(self) -> None:
        self.requests: dict[str, Any] = {}
        self.buffers: dict[str, Any] = {}
        self.flood: list[Any] = []
        self.attached: Any = None

    def content(self, words: dict[str, str]) -> Any:
        """Octets that tell sender and tag."""
        return np.full(number(words["bytes"]), (rank * 16 + int(words["tag"])) % 256, np.uint8)

    def run(self, verb: str, name: str, words: dict[str, str]) -> None:
        """Do one line."""
        if verb == "isend":
            self.buffers[name] = self.content(words)
            send = modes[words.get("mode", "standard")]
            self.requests[name] = send(self.buffers[name], dest=int(words["to"]), tag=int(words["tag"]))
        elif verb == "irecv":
            self.buffers[name] = np.zeros(number(words["bytes"]), np.uint8)
            source, tag = pattern(words)
            self.requests[name] = comm.Irecv(self.buffers[name], source=source, tag=tag)
        elif verb == "wait":
            self.wait(name, words)
        elif verb == "test":
            assert self.requests[name].Test() == (words["done"] == "yes"), name
        elif verb in ("probe", "iprobe"):
            source, tag = pattern(words)
            status = MPI.Status()
            if verb == "iprobe":
                assert not comm.Iprobe(source=source, tag=tag, status=status), words
            else:
                comm.Probe(source=source, tag=tag, status=status)
                check(status, {key: value for key, value in words.items() if key not in ("from", "tag")})
        elif verb == "cancel":
            self.requests[name].Cancel()
        elif verb == "attach":
            self.attached = np.empty(number(words["bytes"]) + 16 * MPI.BSEND_OVERHEAD, np.uint8)
            MPI.Attach_buffer(self.attached)
        elif verb == "flood":
            self.buffers["flood"] = self.content(words)
            for _ in range(int(words["count"])):
                self.flood.append(comm.Isend(self.buffers["flood"], int(words["to"]), int(words["tag"])))
        elif verb == "drain":
            source, tag = pattern(words)
            for _ in range(int(words["count"])):
                into, status = np.zeros(number(words["bytes"]), np.uint8), MPI.Status()
                comm.Recv(into, source=source, tag=tag, status=status)
                assert status.Get_count(MPI.BYTE) == into.size
        elif verb == "settle":
            MPI.Request.Waitall(self.flood)
        elif verb == "barrier":
            comm.Barrier()
        else:
            raise ValueError(f"no verb {verb!r}")

    def wait(self, name: str, words: dict[str, str]) -> None:
        """Wait for a request, with a limit, and compare how it ended."""
        status = MPI.Status()
        deadline = time.monotonic() + LIMIT_S
        try:
            while not self.requests[name].Test(status):
                assert time.monotonic() < deadline, f"{name} is not done in {LIMIT_S} s"
        except MPI.Exception as error:
            if "truncated" not in words or error.Get_error_class() != MPI.ERR_TRUNCATE:
                raise
            return
        assert "truncated" not in words, "it is longer than its receive"
        if "cancelled" in words:
            assert status.Is_cancelled() == (words["cancelled"] == "yes")
        elif "source" in words:
            check(status, words)
            octets = self.buffers[name][: status.Get_count(MPI.BYTE)]
            sent = (status.Get_source() * 16 + status.Get_tag()) % 256
            assert (octets == sent).all(), f"the octets of {name}"


def main() -> None:
    """Run every case."""
    assert comm.Get_size() == RANKS
    comm.Set_errhandler(MPI.ERRORS_RETURN)
    count = 0
    case, title = Case(), ""
    for line in Path(sys.argv[1]).read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("case "):
            comm.Barrier()
            if case.attached is not None:
                MPI.Detach_buffer()
            case, title, count = Case(), line[5:], count + 1
            continue
        who, what = line.split(": ", 1)
        if who not in ("ALL", str(rank)):
            continue
        verb, *rest = what.split()
        words = dict(word.split("=", 1) if "=" in word else (word, "yes") for word in rest if "=" in word)
        words |= {"truncated": "yes"} if "truncated" in rest else {}
        names = [word for word in rest if "=" not in word and word != "truncated"]
        try:
            case.run(verb, names[0] if names else "", words)
        except Exception as error:
            print(f"{title}: rank {rank}: {what}: {error}", file=sys.stderr, flush=True)
            comm.Abort(1)
    comm.Barrier()
    if rank == 0:
        print(f"{count} cases")


main()
