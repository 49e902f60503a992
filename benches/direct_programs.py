"""The shipped programs over the direct transport, against each MPI's own paths between hosts.

    python benches/direct_programs.py [--hosts 2] [--mpi openmpi] [--programs heat2d,matmul] [--turns 9]

Prints one JSON line for each program, as ``direct.py`` does, with the time of the slowest rank from after
Init to before Finalize. With two hosts, joined by one pair of interfaces, each rank has a core. Four hosts,
joined by the testbed's bridge, share the machine's cores: there Open MPI's own way of giving way is among
the kernel's paths. In a turn every path is launched once, and the order alternates; every launch counts.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from functools import partial
from pathlib import Path as File
from typing import Any

from direct import OFI, PATHS, Path, compare, join_directly, line, setting

from wiretwin.errors import WiretwinError
from wiretwin.predict.library import library
from wiretwin.predict.live import Job, launch
from wiretwin.predict.shipped import PROGRAMS, Shipped, Size
from wiretwin.testbed import Testbed

LIMIT_S = 40.0
TARGETS = {2: 1.05, 4: 1.1}
"""The most that a program may take over the best path of the kernel, by the number of hosts."""
MOST_SLOWER = 1
"""So many of the five programs may be slower than over the best path of the kernel, on two hosts."""
YIELDING = {
    "openmpi": (
        Path("BTL tcp, yielding", "mpi/openmpi+yield"),
        Path(
            "libfabric tcp, yielding",
            "mpi/openmpi+yield",
            {**OFI, "OMPI_MCA_mtl_ofi_provider_include": "tcp;ofi_rxm"},
        ),
    ),
    "mpich": (),
}


def took_ns(path: Path, program: Shipped, size: Size, bed: Testbed) -> list[float] | None:
    """Launch a program once over a path; return the time of its slowest rank, or none if it fails."""
    try:
        with tempfile.TemporaryDirectory(dir=bed.directory) as folder, setting(path.env):
            job = Job(program.path(), program.args(size), len(bed.hosts), File(folder))
            with library(path.layer, bed) as on:
                return [1e9 * launch(job, on, split=False, limit_s=LIMIT_S, place=bed).seconds]
    except WiretwinError as error:
        print(f"direct: {path.name} of {path.layer}: {error}", file=sys.stderr)
        return None


def main() -> int:
    """Print the lines."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="three turns")
    parser.add_argument("--turns", type=int)
    parser.add_argument("--mpi", choices=sorted(PATHS))
    parser.add_argument("--hosts", type=int, choices=sorted(TARGETS), action="append")
    parser.add_argument("--size", choices=["small", "large"], default="small")
    parser.add_argument("--programs", help="names without .py, with commas between")
    options = parser.parse_args()
    turns = options.turns or (3 if options.quick else 9)
    names = options.programs.split(",") if options.programs else None
    programs = [one for one in PROGRAMS if names is None or one.file.removesuffix(".py") in names]
    if os.geteuid() != 0:
        print("direct: left out: namespaces with one pair of interfaces need root", file=sys.stderr)
        return 0
    for hosts in options.hosts or sorted(TARGETS):
        for mpi in [options.mpi] if options.mpi else sorted(PATHS):
            paths = [*PATHS[mpi], *(YIELDING[mpi] if hosts > 2 else ())]
            rows: list[dict[str, Any]] = []
            with Testbed.up(hosts, name=f"dp-{os.getpid()}") as bed:
                if hosts == 2:
                    join_directly(bed)
                for program in programs:
                    of = partial(took_ns, program=program, size=options.size, bed=bed)
                    found = compare(paths, of, turns)
                    name = f"{mpi} {program.file}, {options.size}, {hosts} hosts"
                    rows.append(line(name, found, 0, TARGETS[hosts]))
                    print(json.dumps(rows[-1]), flush=True)
            if hosts == 2 and len(programs) == len(PROGRAMS):
                slower = sum(row["ratio"] >= 1 for row in rows)
                row = {"bench": f"direct/{mpi} programs that are slower", "value": slower, "unit": "programs"}
                print(json.dumps(row | {"target_value": MOST_SLOWER}), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
