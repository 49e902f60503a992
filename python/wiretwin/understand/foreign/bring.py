"""Bring other programs' results into a result folder: each file is a launch, each value a row."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from wiretwin.errors import InputError
from wiretwin.results import Launch, Layer, Result
from wiretwin.understand.foreign import columns, iperf3, netpipe, sockperf
from wiretwin.understand.foreign.reading import Reading

__all__ = ["TOOLS", "bring"]

LARGEST_FILE = 64 * 2**20
TOOLS: Mapping[str, Callable[[Path, str, int | None], Reading]] = {
    "netpipe": netpipe.read,
    "osu": columns.read_osu,
    "imb": columns.read_imb,
    "sockperf": sockperf.read,
    "iperf3": iperf3.read,
}
"""The readers by the name of their program."""


def bring(
    files: Sequence[str | Path],
    tool: str,
    out: str | Path,
    *,
    layer: str | None = None,
    size_bytes: int | None = None,
) -> Result:
    """Make a result of what another program wrote.

    Each file becomes a launch, so several runs of the program give intervals. Host, options and clock stay
    empty: the files do not say them.

    Parameters
    ----------
    files
        Outputs of the same program over the same layer.
    tool
        The program: netpipe, osu, imb, sockperf, iperf3.
    out
        The result folder, new or empty.
    layer
        What was measured, as it shall be called; by default the program.
    size_bytes
        Of a message, where the file does not say it (sockperf's summary).

    Raises
    ------
    InputError
        A file is not what the program writes: names the line and what it holds.
    StorageError
        The folder cannot be written.
    """
    reader = TOOLS.get(tool)
    if reader is None:
        raise InputError(key="--tool", value=tool, allowed=", ".join(TOOLS))
    if not files:
        raise InputError(key="files", reason="names none", allowed="one or more")
    name = tool if layer is None else layer
    if not re.fullmatch(r"[\w.+/-]{1,100}", name, re.ASCII):
        raise InputError(
            key="--layer", value=name, allowed="letters, digits and any of . + / - _, at most 100 of them"
        )
    readings = [_read(Path(file), reader, size_bytes) for file in files]
    result = Result.create(
        out,
        seed=1,
        created_utc=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        options={
            "foreign": {
                "tool": tool,
                "files": [Path(file).name for file in files],
                "statistic": readings[0].statistic,
                **readings[0].details,
            },
            "sizes_bytes": sorted({row.bytes for reading in readings for row in reading.rows}),
        },
        layers=[Layer(layer=name.split("+")[0], name=name)],
    )
    for number, reading in enumerate(readings, 1):
        rows = reading.rows
        launch = Launch(
            launch=number, name=name, order=number - 1, started_utc="unknown", seconds=0.0, status="ok"
        )
        result.append(
            launch,
            {
                "loop": [reading.loop] * len(rows),
                "bytes": [row.bytes for row in rows],
                "messages": [1] * len(rows),
                "delay_ns": [0] * len(rows),
                "batch": [row.batch for row in rows],
                "index": list(range(1, len(rows) + 1)),
                "value_ns": [row.value_ns for row in rows],
            },
        )
    result.finish("complete")
    return result


def _read(file: Path, reader: Callable[[Path, str, int | None], Reading], size_bytes: int | None) -> Reading:
    try:
        if file.stat().st_size > LARGEST_FILE:
            raise InputError(file, reason="is too large", allowed="at most 64 MiB")
        data = file.read_bytes()
    except OSError as error:
        raise InputError(file, reason=error.strerror or str(error), allowed="a readable file") from error
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            file, f"line {line}", f"byte 0x{data[error.start]:02x}", "text in UTF-8", "is no text"
        ) from None
    found = reader(file, text, size_bytes)
    if not found.rows:
        raise InputError(file, reason="has no value", allowed="at least one line of results")
    return found
