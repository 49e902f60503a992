"""The first message of an echo, and an echo beside load: what the model says of either."""

from __future__ import annotations

import functools
import json
from dataclasses import replace
from pathlib import Path

import pytest

from wiretwin.errors import InputError
from wiretwin.model.anatomy import anatomy, lines
from wiretwin.model.echo import measure, try_echo
from wiretwin.model.profiles import Load, Network, lan_json
from wiretwin.model.values import DATA, find_sheet, read_sheet
from wiretwin.papers import lin1995
from wiretwin.papers.lin1995_settings import fore_setting, paper, socket_setting
from wiretwin.papers.page import NOW
from wiretwin.papers.published import committed

VALUES = NOW / "lin1995.csv"
"""What the model says, as another test holds it to it."""


@functools.cache
def found(experiment: str) -> dict[tuple[str, str], tuple[float, float, float]]:
    """Return value, low and high by case and metric."""
    rows = {}
    for (name, case, metric), (value, interval, _) in committed(VALUES.read_text()).items():
        if name == experiment:
            low, high = interval.split(" to ") if interval else (value, value)
            rows[case, metric] = (float(value), float(low), float(high))
    assert rows
    return rows


FORE = "stack=fore/aal5 network=atm host=4/690 adapter=series-200"
DRIVERS = ("series-200", "series-200-direct")
SOCKET = "stack=socket/tcp/aal5 network=atm host=4/690 adapter=series-200 buffer_kib=32"


def test_a_first_message_over_the_fore_interface_takes_the_published_penalty_at_any_size() -> None:
    assert paper()["first_message"]["penalty_ms"]["fore"] == [10, 15]
    for size in (4, 4096, 65536):
        penalty = found("first-message")[f"{FORE} size={size}", "first_penalty_us"]
        assert penalty == pytest.approx((12_500, 10_000, 15_000))


def test_a_first_message_over_tcp_pays_for_no_slow_start_towards_a_neighbour() -> None:
    # Of any size: the window is open from the beginning, so that no acknowledgment is waited for.
    for size in (4, 4096, 65536):
        penalty = found("first-message")[f"{SOCKET} size={size}", "first_penalty_us"][0]
        assert penalty == pytest.approx(35_000, rel=0.01)
    network = socket_setting("atm").network
    [alone] = try_echo(network, [65536], 11)
    assert abs(alone.first_us - alone.round_trip_us.mean()) < 1_000, "nothing where first use costs nothing"
    [slow] = try_echo(replace(network, tcp="bsd43_reno"), [65536], 11)
    assert slow.first_us - slow.round_trip_us.mean() > 100_000, "Reno waits for acknowledgments that are late"


def test_without_load_an_echo_takes_what_it_takes() -> None:
    latency = found("under-load")[f"{FORE} size=4096 load=0.0", "latency_us"][0]
    assert latency == pytest.approx(
        measure(fore_setting("4/690", "series-200", switch=True).network, [4096]).latency_us[0], rel=1e-4
    )


def test_load_delays_and_loses_and_reserved_bandwidth_spares_both() -> None:
    rows = found("under-load")
    latency = [rows[f"{FORE} size=4096 load={load}", "latency_us"][0] for load in lin1995.LOADS]
    assert latency == sorted(latency)
    assert latency[-1] > 1.1 * latency[0]
    lost = rows[f"{FORE} size=4096 load=0.9", "message_loss_ratio"][0]
    assert 0.05 < lost < 0.6
    kept = f"{FORE} size=4096 load=0.9 mechanism=reserved"
    assert rows[kept, "message_loss_ratio"][0] == 0
    assert rows[kept, "cell_loss_ratio"][0] > 0, "of the load alone"
    # A cell of it waits for the cell on the line, at most, at each of both outputs.
    alone = rows[f"{FORE} size=4096 load=0.0 mechanism=reserved", "latency_us"][0]
    assert rows[kept, "latency_us"][0] < alone + 2 * 4.32
    assert rows[f"{SOCKET} size=4096 load=0.9", "tcp_retransmission_ratio"][0] > 0
    assert rows[f"{SOCKET} size=4096 load=0.6", "tcp_retransmission_ratio"][0] == 0


def test_every_round_trip_is_counted_once() -> None:
    setting = fore_setting("4/690", "series-200", switch=True)
    network = replace(setting.network, load=(Load(0.9, octets=9000), Load(0.9, octets=9000)))
    [trial] = try_echo(network, [4096], 21)
    ended = len(trial.round_trip_us) + (trial.first_us == trial.first_us)
    assert ended + trial.lost == 21
    assert trial.lost > 0


def test_more_bandwidth_than_a_line_carries_is_refused() -> None:
    setting = fore_setting("4/690", "series-200", switch=True)
    with pytest.raises(InputError, match=r"reservations\[0\].*98\.148148 Mbit/s"):
        try_echo(replace(setting.network, reserve_Mbit_s=99), [4], 1)
    other = fore_setting("4/690", "series-100", switch=True)
    with pytest.raises(InputError, match="cannot space cells"):
        try_echo(replace(other.network, reserve_Mbit_s=1), [4], 1)
    with pytest.raises(InputError, match="constant, poisson or on-off"):
        try_echo(replace(setting.network, load=(Load(0.5, law="steady"),)), [4], 1)


def test_a_driver_outside_streams_saves_its_path_and_nothing_else() -> None:
    cases = {
        adapter: anatomy(Network("fore/aal5", "sparc2", adapter, switch="asx100"), 4) for adapter in DRIVERS
    }
    through, direct = ({line.activity: line.span_ps for line in lines(one)} for one in cases.values())
    saved = through.pop("fore_send") - direct.pop("fore_send")
    sheet = find_sheet("adapters", "series-200-direct", "--adapter")
    software = read_sheet(DATA / "hosts" / "software.toml")
    assert saved / 1e6 == pytest.approx(software["fore_send_us"] - sheet["driver_us"])
    assert through == direct
    row = FORE.replace("4/690", "sparc2").replace("series-200", "series-200-direct")
    t_0 = found("upgrades")[row, "t0_us"][0]
    assert t_0 == pytest.approx(cases["series-200-direct"].latency_ps / 1e6, rel=1e-4)


def test_a_sheet_stands_on_another_and_both_follow_an_override() -> None:
    direct = find_sheet("adapters", "series-200-direct", "--adapter")
    assert direct["send_fifo_cells"] == find_sheet("adapters", "series-200", "--adapter")["send_fifo_cells"]
    changed = {("series-200", "send_fifo_cells"): 5.0}
    adapters = [
        json.loads(lan_json(Network("fore/aal5", "sparc2", name, overrides=changed)))["hosts"][0]["adapter"]
        for name in DRIVERS
    ]
    assert adapters[0] == adapters[1]
    assert adapters[0]["send_fifo_cells"] == 5


def test_a_sheet_on_nothing_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "sheet.toml"
    path.write_text("base = 'nobody'\n[values]\na_us = {value = 1, by = 'choice', source = 'x'}")
    with pytest.raises(InputError, match=r"base.*nobody"):
        _ = read_sheet(path)["b_us"]
    path.write_text("base = 3\n[values]")
    with pytest.raises(InputError, match=r"the name of a sheet"):
        read_sheet(path)


def test_a_line_of_155_mbit_s_carries_cells_at_its_payload_rate() -> None:
    found = anatomy(Network("fore/aal5", "sparc2", "series-200", switch="asx100", link="oc3c"), 4)
    [one, other] = [line for line in lines(found) if line.activity == "serialize"]
    assert one.span_ps == other.span_ps == 424 * 10**12 // 149_760_000


def test_faults_are_switched_on_and_their_losses_counted() -> None:
    setting = fore_setting("4/690", "series-200", switch=True)
    [quiet] = try_echo(setting.network, [4096], 21)
    [loud] = try_echo(replace(setting.network, bit_error=1e-5), [4096], 21)
    assert (quiet.lost, loud.lost > 0) == (0, True)
    [late] = try_echo(replace(setting.network, reassembly_timer_us=20), [4096], 21)
    assert late.lost == 21
    with pytest.raises(InputError, match=r"bit_error is 0\.5; allowed: 0, or 1e-12 to 0\.01"):
        try_echo(replace(setting.network, bit_error=0.5), [4], 1)


def test_packing_is_a_part_of_a_latency_that_no_route_changes() -> None:
    values = found("figure10")
    packed = {case: value for (case, metric), (value, _, _) in values.items() if metric == "packing_us"}
    assert len(packed) == 3 * 19
    for case, packing in packed.items():
        assert 0 <= packing < values[case, "latency_us"][0]
        other = case.replace("pvm-normal/udp", "pvm-advise/tcp")
        assert packing == pytest.approx(packed[other], rel=0.01)
    assert max(packed.values()) > 1000 * (1 + min(packed.values()))
