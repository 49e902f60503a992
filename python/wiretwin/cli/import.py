"""``wiretwin import``: results of other programs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["register"]

HELP = """Make a result of what another benchmark wrote.

Each file becomes a launch: give several runs of one program, and there are intervals. Only what the files
contain is taken over; the result names the program, and has no host, no options and no samples that were not
there. `report`, `compare`, `understand` and, with enough runs and sizes, `fit` take it as any other.

\b
Programs: netpipe   np.out, the file of -o (NPtcp, NPmpich2, NPpvm, ...)
          osu       what osu_latency prints
          imb       what IMB-MPI1 PingPong prints
          sockperf  the file of --full-log of ping-pong, or what it prints (with --size)
          iperf3    what iperf3 --json prints

\b
Examples:
  wiretwin import np.out --tool netpipe --layer socket/tcp -o theirs
  wiretwin import run1.txt run2.txt run3.txt --tool osu --layer mpi/openmpi -o theirs
  wiretwin compare theirs results/measure-1
"""


def register(app: typer.Typer) -> None:
    """Add the verb."""

    @app.command("import", help=HELP)
    def import_(
        files: Annotated[list[Path], typer.Argument(help="Outputs of one program.", show_default=False)],
        tool: Annotated[str, typer.Option(help="Program: netpipe, osu, imb, sockperf, iperf3.")],
        out: Annotated[Path, typer.Option("--out", "-o", help="The result folder, new or empty.")],
        layer: Annotated[
            str | None, typer.Option(help="What was measured, such as mpi/openmpi.", show_default="program")
        ] = None,
        size: Annotated[
            str | None, typer.Option(help="Of a message, where the file does not say.", show_default="none")
        ] = None,
    ) -> None:
        from wiretwin.quantity import parse_size
        from wiretwin.understand.foreign.bring import bring

        size_bytes = None if size is None else parse_size(size, "--size")
        result = bring(files, tool, out, layer=layer, size_bytes=size_bytes)
        rows = sum(launch.rows for launch in result.manifest.launches)
        print(f"result: {result.path} ({rows} values of {len(files)} runs)", file=sys.stderr)
