"""From a twin to the network model: exact values, and what is absent is refused by name."""

from __future__ import annotations

import pytest
from predict_help import TWIN

from wiretwin.errors import InputError
from wiretwin.predict.model import layer_model, single_host
from wiretwin.twin import Twin

MPI = "mpi4py/mpich"


def test_the_model_of_a_twin_is_exact_and_whole() -> None:
    assert single_host(Twin.parse(TWIN), MPI, 3) == {
        "nodes": [{"cores": 2, "idle": "yield", "quantum_ps": 4_000_000_000}],
        "placement": [0, 0, 0],
        "inter": None,
        "link": None,
        "intra": {
            "call_ps": 90_000,
            "rendezvous_from_bytes": 65_537,
            "overhead_send": [
                {"from_bytes": 0, "base_ps": 500_000, "per_byte_fs": 50_000},
                {"from_bytes": 8192, "base_ps": 700_123, "per_byte_fs": 25_000},
            ],
            "latency": [{"from_bytes": 0, "base_ps": 700_000, "per_byte_fs": 200_000}],
            "overhead_recv": [{"from_bytes": 0, "base_ps": 600_000, "per_byte_fs": 50_000}],
            "gap": [{"from_bytes": 0, "base_ps": 800_000, "per_byte_fs": 100_000}],
        },
    }


def test_the_sides_move_all_times_by_the_interval_of_t_0() -> None:
    layer = Twin.parse(TWIN).layer(MPI)
    low, high = layer_model(layer, "low"), layer_model(layer, "high")
    assert low["call_ps"] == 81_000
    assert low["latency"] == [{"from_bytes": 0, "base_ps": 630_000, "per_byte_fs": 180_000}]
    assert high["call_ps"] == 112_500
    assert high["latency"] == [{"from_bytes": 0, "base_ps": 875_000, "per_byte_fs": 250_000}]
    assert high["overhead_send"][1] == {"from_bytes": 8192, "base_ps": 875_154, "per_byte_fs": 31_250}
    assert low["rendezvous_from_bytes"] == high["rendezvous_from_bytes"] == 65_537


def test_a_layer_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(InputError, match=r"'pvm' is not in the twin; it has mpi4py/mpich, shm"):
        single_host(Twin.parse(TWIN), "pvm", 2)


def test_a_quantity_that_was_not_fitted_is_named() -> None:
    with pytest.raises(
        InputError, match=r"overhead_send was not fitted for this layer; it has half_round_trip"
    ):
        single_host(Twin.parse(TWIN), "shm", 2)


def test_no_ranks_are_refused() -> None:
    with pytest.raises(InputError, match=r"--ranks: 0 .*1 and above"):
        single_host(Twin.parse(TWIN), MPI, 0)
