"""What the OSU micro-benchmarks and IMB print is read as the time of a message or a call."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCHES = Path(__file__).resolve().parents[3] / "benches"
OSU_LATENCY = """
# OSU MPI Latency Test v7.4
# Size       Avg Latency(us)  P50 Tail Lat(us)  P90 Tail Lat(us)  P99 Tail Lat(us)
8                      19.73              0.43              0.51           4001.14
1024                    0.80              0.70              0.90              1.00
"""
OSU_RATES = """
# [ pairs: 2 ] [ window size: 64 ]
# Size                  MB/s        Messages/s
8                      40.00        5000000.00
"""
IMB_CALLS = """
       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]
            8          200         0.48         0.55         0.51
"""
IMB_PUTS = """
#    MODE: NON-AGGREGATE
            8          200         1.65         4.85
#    MODE: AGGREGATE
            8          200         1.56         5.12
"""


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    sys.path.insert(0, str(BENCHES))
    try:
        spec = importlib.util.spec_from_file_location("benches_osu_imb", BENCHES / "osu_imb.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(BENCHES))
    return module


def test_what_they_print_is_microseconds(bench: ModuleType) -> None:
    by_name = {one.name: one for one in bench.MEASURES}
    assert bench.read_osu(by_name["latency"], OSU_LATENCY) == {8: 0.43, 1024: 0.7}
    # 40 MB/s of two pairs are a message of 8 bytes of each pair every 0.4 us.
    assert bench.read_osu(by_name["two pairs"], OSU_RATES) == {8: pytest.approx(0.4)}
    assert bench.read_imb(by_name["allreduce"], IMB_CALLS) == {8: 0.51}
    assert bench.read_imb(by_name["put"], IMB_PUTS) == {8: 1.65}


def test_a_row_has_the_ratio_within_rounds_and_says_what_it_tells(bench: ModuleType) -> None:
    (latency,) = (one for one in bench.MEASURES if one.name == "latency")
    own = {"median": {8: 0.5}, "mean": {8: 0.6}}
    rounds = [(own, {8: 0.5}, {8: 0.5 + number / 1000}) for number in range(3)]
    cells = [cell.strip() for cell in bench.row(latency, 8, rounds).split("|")]
    assert cells[1:7] == ["latency", "8", "0.5", "0.5", "1.00 (1.00 to 1.00)", "agree"]
    assert cells[9] == "differ"
    assert bench.row(latency, 8, [(own, {}, {})]).endswith("|  |  |  |  |  |  |")
