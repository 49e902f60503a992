"""A prediction names messages that are far longer than those that its twin was fitted to."""

from __future__ import annotations

from pathlib import Path

import pytest
from predict_help import HEAD, TWIN
from test_executable import compiled

from wiretwin.predict.executable import predict_executable
from wiretwin.predict.predict import predict
from wiretwin.twin import Twin

SENDS = """
    int bytes = atoi(argv[1]);
    char *buffer = calloc(bytes, 1);
    if (rank)
        MPI_Recv(buffer, bytes, MPI_BYTE, 0, 0, WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(buffer, bytes, MPI_BYTE, 1, 0, WORLD);
"""
SCRIPT = """
import sys
buffer = bytearray(int(sys.argv[1]))
comm.Send(buffer, 1) if rank == 0 else comm.Recv(buffer, 0)
"""


def twin_of(layer: str, largest: int | None) -> Twin:
    known = Twin.parse(TWIN.replace('"mpi4py/mpich"', f'"{layer}"'), "a twin")
    one = known.layer(layer).model_copy(update={"largest_bytes": largest})
    return known.model_copy(update={"layers": {layer: one}})


@pytest.mark.parametrize(("largest", "longest", "is_said"), [
    (1 << 20, 3 << 20, True), (1 << 20, 2 << 20, False), (None, 3 << 20, False),
])  # fmt: skip
def test_they_are_in_the_notes(largest: int | None, longest: int, is_said: bool) -> None:
    words = "messages of up to 3 MiB: the twin was measured with at most 1 MiB"
    program = compiled(SENDS)
    found = predict_executable(
        program, [str(longest)], twin=twin_of("mpi/mpich", largest), ranks=2, compute_ps=0, ends=False
    )
    assert any(words in text for text in found.warnings) == is_said
    script = Path("script.py")
    script.write_text(HEAD + SCRIPT)
    made = predict(script, [str(longest)], twin=twin_of("mpi4py/mpich", largest), compute_ps=0)
    assert any(words in text for text in made.warnings) == is_said
