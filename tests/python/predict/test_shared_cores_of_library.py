"""Compiled programs whose ranks share cores do there what the library does that they run under."""

from __future__ import annotations

from predict_help import TWIN
from test_executable import compiled

from wiretwin.predict.executable import predict_executable
from wiretwin.twin import Twin

BARRIERS = "    for (int at = 0; at < 20; at++)\n        MPI_Barrier(WORLD);\n"


def of(layer: str, idle: str) -> Twin:
    """The twin of a host of two cores whose ranks spin, or give way, while they wait."""
    figure = "low = 0.5, high = 4001.0, launches = 3, samples = 30 }\n"
    one_us = 3.5 if idle == "yield" else 4000
    sharing = f'[layers."{layer}".sharing]\nidle = "{idle}"\n' + "".join(
        f"{name} = {{ value = {value}, {figure}"
        for name, value in (
            ("one_core_us", one_us),
            ("turn_us", one_us),
            ("slice_ms", 4.0),
            ("kept_share", 0.6),
        )
    )
    return Twin.parse(TWIN.replace("mpi4py/mpich", layer).replace("[layers.shm]", sharing + "[layers.shm]"))


def test_ranks_of_mpich_share_cores_as_the_edition_does_that_runs() -> None:
    debians, wheels = of("mpi/mpich", "spin"), of("mpi4py/mpich", "yield")
    both = debians.model_copy(update={"layers": wheels.layers | debians.layers})
    program = compiled(BARRIERS)
    alone, known = (
        predict_executable(program, twin=twin, ranks=4, compute_ps=0, ends=False) for twin in (debians, both)
    )
    assert known.seconds.value < 0.002 < 0.02 < alone.seconds.value
    said = [" ".join(found.warnings) for found in (alone, known)]
    assert "measure mpi4py/mpich for the same twin" in said[0]
    assert "for the same twin" not in said[1]
    on_cores = predict_executable(program, twin=debians, ranks=2, compute_ps=0, ends=False)
    assert "for the same twin" not in " ".join(on_cores.warnings)
