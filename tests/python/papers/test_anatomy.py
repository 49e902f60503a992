"""The anatomy of a message: it sums to the latency, and opens elsewhere."""

from __future__ import annotations

import itertools
import json
import struct
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from wiretwin.errors import InputError
from wiretwin.model.anatomy import anatomy, capture, chrome_trace, lines
from wiretwin.model.echo import measure
from wiretwin.model.local import own_hosts
from wiretwin.model.profiles import Network
from wiretwin.report.anatomy import render_anatomy


@pytest.mark.parametrize("adapter", ["series-100", "series-200"])
@pytest.mark.parametrize("switch", [None, "asx100"])
@pytest.mark.parametrize("size", [4, 4096, 10_000])
def test_the_parts_of_a_message_sum_to_its_measured_latency(
    adapter: str, switch: str | None, size: int
) -> None:
    network = Network("fore/aal5", "sparc2", adapter, switch=switch)
    found = anatomy(network, size)
    assert sum(line.span_ps for line in lines(found)) == found.latency_ps
    assert found.latency_ps / 1e6 == pytest.approx(measure(network, [size]).latency_us[0], rel=1e-12)
    end = 0
    for part in found.path:
        assert part.start_ps == end, "no gap and no overlap"
        end += part.span_ps


@pytest.mark.parametrize("stack", ["socket/tcp/aal5", "socket/tcp/ethernet", "socket/tcp/fddi"])
@pytest.mark.parametrize("size", [4, 5000, 100_000])
def test_the_parts_of_a_message_over_a_socket_sum_to_its_latency(stack: str, size: int) -> None:
    adapter = "series-200" if stack.endswith("aal5") else "frames"
    found = anatomy(Network(stack, "sparc2", adapter), size)
    assert sum(line.span_ps for line in lines(found)) == found.latency_ps
    assert {"socket_receive", "copy_out", "segment_out"} <= {line.activity for line in lines(found)}


@pytest.mark.parametrize("stack", ["socket/udp/aal5", "socket/udp/ethernet", "socket/udp/fddi"])
def test_a_datagram_is_taken_apart_too(stack: str) -> None:
    adapter = "series-200" if stack.endswith("aal5") else "frames"
    network = Network(stack, "sparc2", adapter, switch="asx100" if adapter == "series-200" else None)
    found = anatomy(network, 8192)
    assert sum(line.span_ps for line in lines(found)) == found.latency_ps
    # Of one packet: TCP may send the first of several while the rest is still copied.
    short, over_tcp = (
        anatomy(replace(network, stack=one), 1024) for one in (stack, stack.replace("udp", "tcp"))
    )
    assert short.latency_ps < over_tcp.latency_ps, "nothing is summed and nothing acknowledged"
    with pytest.raises(InputError, match="at most 32768"):
        anatomy(network, 32_769)


def every_stack() -> list[str]:
    """Return the stacks of local networks, from what is said where one is asked for that is none."""
    with pytest.raises(InputError) as refused:
        anatomy(Network("fore/aal1", "4/690", "series-200"), 4)
    allowed = str(refused.value).split("allowed: ")[1].split(" (")[0]
    return allowed.split(", ")


def test_the_parts_of_a_message_sum_to_its_latency_on_every_stack_there_is() -> None:
    stacks = every_stack()
    assert len(stacks) >= 29
    refused = []
    for stack in stacks:
        if stack == "pvm-mapped/aal5":  # only where no cell is lost
            with pytest.raises(InputError, match="a network of switches with credits"):
                own_hosts(stack, "asx100")
        try:
            network = own_hosts(stack).settings
        except InputError:
            refused.append(stack)
            continue
        longest = 10_000
        if stack.startswith("rpc/udp/"):  # a call is one datagram
            with pytest.raises(InputError, match="at most 8756, and messages are not cut"):
                anatomy(network, longest)
            longest = 8756
        # Programs over sockets and the Fore interface tell messages by their octets alone.
        has_empty = stack.split("/")[0] not in ("fore", "socket")
        for size in (0, 1, longest) if has_empty else (1, longest):
            found = anatomy(network, size)
            assert sum(line.span_ps for line in lines(found)) == found.latency_ps, stack
            assert found.latency_ps > 0
    # Some over gige, where nothing published says what their message layer costs on those hosts.
    known = {"socket/tcp/gige", "mpi-lam/tcp/gige", "mpi-mpich/tcp/gige"}
    assert known.isdisjoint(refused)
    assert all(stack.endswith("/gige") for stack in refused)


def test_half_duplex_extends_a_short_frame_to_a_slot() -> None:
    full, half = (
        anatomy(own_hosts("socket/tcp/gige", f"gige:duplex={one}").settings, 4) for one in ("full", "half")
    )
    assert sum(line.span_ps for line in lines(half)) == half.latency_ps
    # 70 octets become 512, and the preamble goes before them.
    assert half.latency_ps - full.latency_ps == (512 - 70) * 8_000 + 64_000
    assert "in half duplex" in half.network.between


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ("fore/aal5 0", 2, "SIZE: a message of 0 bytes: this interface carries 1 or more"),
        ("socket/tcp/gige 0B", 2, "SIZE: a message of 0 bytes: this interface carries 1 or more"),
        ("socket/udp/fddi 64KiB", 2, "SIZE: a message of 65536 bytes: this interface takes at most 32768"),
        ("fore/aal5 0.5", 2, "SIZE: '0.5' is out of range; allowed: a whole number of bytes from 0 to 64MiB"),
        ("fore/aal5 8193KiB", 2, "at most 8388608 bytes"),
        ("fore/aal5 4 --network asx100:host=software", 2, "--network host: 'software'"),
        (
            "fore/aal5 4 --network oc3c",
            2,
            "--network: 'oc3c' is not allowed here; allowed: a preset, ethernet10, fddi",
        ),
        ("fore/aal5 4 --network asx100:link=asx100", 2, "--network link: 'asx100'"),
        (
            "fore/aal5 4 --network gige",
            2,
            "--stack: 'fore/aal5' is not allowed here; allowed: one that ends in",
        ),
        ("fore/aal5 4 --network asx100:nic=acenic", 2, "nic: 'acenic' is no key of it"),
        ("socket/tcp/gige 4 --network gige:mtu=70000", 2, "--network mtu: 70000 is not allowed here"),
        ("socket/tcp/gige 4 --network gige:nic=lance", 2, "allowed: gnic-ii, acenic, sk-net"),
        ("socket/tcp/gige 4 --network gige:duplex=simplex", 2, "allowed: full, half, half-in-bursts"),
        ("socket/tcp/fddi 4 --network fddi:duplex=half", 2, "duplex: 'half' is no key of it"),
        ("carrier/pigeon 4", 2, "STACK: 'carrier/pigeon' is not allowed here; allowed: one that ends in"),
        ("shm 4 --twin none.toml --network asx100", 2, "--network"),
        (
            "shm 4 --twin none.toml --pcap t.pcap",
            2,
            "--pcap: 't.pcap' is not allowed here; allowed: without",
        ),
        ("framed/tcp/gige 4", 2, "over gige: socket/tcp/gige"),
        ("fore/aal5 4 --trace /nonexistent/x.json", 6, "not written: No such file or directory"),
        ("fore/aal5 4 --out /", 6, "not written: Is a directory"),
    ],
)
def test_what_cannot_be_explained_is_refused_before_anything_is_printed(
    words: str, status: int, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    from wiretwin.cli import main

    with pytest.raises(SystemExit) as ended:
        main(["explain", *words.split()])
    shown = capfd.readouterr()
    assert (ended.value.code, shown.out) == (status, "")
    assert said in shown.err


def test_a_message_of_one_cell_waits_for_nothing() -> None:
    found = anatomy(Network("fore/aal5", "sparc2", "series-200"), 4)
    activities = [line.activity for line in lines(found)]
    assert "waiting" not in activities
    assert activities[:3] == ["trap", "fore_send", "copy_in"]
    assert activities[-1] == "copy_out"


def test_a_paced_circuit_waits_between_cells() -> None:
    paced = {("asx100", "circuit_pace_us"): 10.0}
    found = anatomy(Network("fore/aal5", "sparc2", "series-200", switch="asx100", overrides=paced), 4096)
    [wait] = [line for line in lines(found) if line.activity == "waiting"]
    assert (wait.resource, wait.times) == ("firmware", 85)
    other = anatomy(Network("fore/aal34", "sparc2", "series-200", switch="asx100", overrides=paced), 4096)
    [wait] = [line for line in lines(other) if line.activity == "waiting"]
    assert (wait.resource, wait.times) == ("firmware", 93)


def test_a_trace_holds_the_path_and_all_that_was_done() -> None:
    found = anatomy(Network("fore/aal5", "sparc2", "series-200", switch="asx100"), 4096)
    trace = json.loads(chrome_trace(found))
    spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    path = [event for event in spans if event["pid"] == 1]
    assert sum(event["dur"] for event in path) == pytest.approx(found.latency_ps / 1e6)
    sent = [event for event in spans if event["name"] == "serialize"]
    assert len(sent) == 2 * 86, "every cell on two links"
    names = {event["args"]["name"] for event in trace["traceEvents"] if event["name"] == "thread_name"}
    assert {"host 0: cpu", "adapter 1: firmware", "link 0: wire", "switch 0: fabric"} <= names


NUMBER = (int, float)
PHASES = {
    "X": {"name": str, "cat": str, "ts": NUMBER, "dur": NUMBER, "pid": int, "tid": int},
    "b": {"name": str, "cat": str, "ts": NUMBER, "id": str, "pid": int, "tid": int},
    "e": {"name": str, "cat": str, "ts": NUMBER, "id": str, "pid": int, "tid": int},
    "M": {"name": str, "args": dict, "pid": int, "tid": int},
}
"""What the Trace Event Format asks of an event, by phase: complete, asynchronous begin and end, metadata."""


def check_trace(trace: dict[str, Any]) -> None:
    """Fail where a viewer of Chrome traces would drop or misplace something."""
    assert set(trace) == {"traceEvents", "displayTimeUnit", "otherData"}
    assert trace["displayTimeUnit"] in ("ms", "ns")
    slices: dict[tuple[int, int], list[tuple[float, float]]] = {}
    begun: dict[tuple[str, str], float] = {}
    named = {(event["pid"], event["tid"]) for event in trace["traceEvents"] if event["name"] == "thread_name"}
    for event in trace["traceEvents"]:
        expected = PHASES[event["ph"]]
        assert set(event) == {"ph", *expected}
        for key, kind in expected.items():
            assert isinstance(event[key], kind), (key, event)
            assert not isinstance(event[key], bool)
        if event["ph"] == "M":
            assert event["name"] in ("process_name", "thread_name")
            assert isinstance(event["args"]["name"], str)
            continue
        assert (event["pid"], event["tid"]) in named
        assert event["ts"] >= 0
        if event["ph"] == "X":
            assert event["dur"] > 0
            at = (event["pid"], event["tid"])
            slices.setdefault(at, []).append((event["ts"], event["ts"] + event["dur"]))
        elif event["ph"] == "b":
            assert begun.setdefault((event["cat"], event["id"]), event["ts"]) == event["ts"]
        else:
            assert begun.pop((event["cat"], event["id"])) < event["ts"]
    assert not begun, "each that begins ends"
    for spans in slices.values():
        spans.sort()
        for (_, end), (start, _) in itertools.pairwise(spans):
            # A viewer stacks what overlaps on a thread as calls, and drops what does not nest.
            assert start >= end - 1e-6


@pytest.mark.parametrize(
    ("stack", "adapter", "link"),
    [
        ("fore/aal5", "series-100", "taxi100"),
        ("fore/aal34", "series-200", "oc3c"),
        ("socket/tcp/aal5", "series-200", "oc3c"),
        ("socket/tcp/ethernet", "frames", "taxi100"),
        ("socket/tcp/fddi", "frames", "taxi100"),
    ],
)
def test_a_trace_is_what_its_viewers_read(stack: str, adapter: str, link: str) -> None:
    switch = None if adapter == "frames" else "asx100"
    found = anatomy(Network(stack, "sparc2", adapter, switch=switch, link=link), 10_000)
    check_trace(json.loads(chrome_trace(found)))


def test_a_capture_is_a_file_of_packets(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from wiretwin.cli import main

    path = tmp_path / "message.pcap"
    with pytest.raises(SystemExit) as ended:
        main(["explain", "socket/tcp/ethernet", "100", "--network", "ethernet10", "--pcap", str(path)])
    assert ended.value.code == 0
    assert f"capture: {path}" in capfd.readouterr().err
    octets = path.read_bytes()
    magic, _, _, _, _, snap, link = struct.unpack("<IHHiIII", octets[:24])
    assert (magic, snap, link & 0xFFFF) == (0xA1B23C4D, 262_144, 1), "nanoseconds, Ethernet"
    at, lengths, last = 24, [], -1.0
    while at < len(octets):
        seconds, nanoseconds, kept, length = struct.unpack("<IIII", octets[at : at + 16])
        assert (kept, seconds + nanoseconds / 1e9 >= last) == (length, True)
        last = seconds + nanoseconds / 1e9
        lengths.append(length)
        at += 16 + kept
    # SYN, SYN, ACK, and twice a message and its answer: 14 + 20 + 20 + 100 + 4.
    assert lengths[3:] == [158] * 4
    with pytest.raises(InputError, match="cannot say that a PDU is of AAL 3/4"):
        capture(Network("fore/aal34", "sparc2", "series-200"), 4)
    with pytest.raises(InputError, match="an integer from 0 to 1"):
        capture(Network("fore/aal5", "sparc2", "series-200"), 4, host=2)


def test_a_page_shows_the_waterfall(tmp_path: Path) -> None:
    found = anatomy(Network("fore/aal5", "sparc2", "series-200"), 4096)
    text = render_anatomy(found, tmp_path / "page.html").read_text()
    assert "The message as a waterfall" in text
    assert f"{found.latency_ps / 1e6:.3f}" in text


def test_the_command_prints_lines_that_sum_to_the_title(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    from wiretwin.cli import main

    with pytest.raises(SystemExit) as ended:
        main(["explain", "fore/aal5", "4KiB", "--network", "atm", "--format", "json"])
    assert ended.value.code == 0
    rows = json.loads(capsysbinary.readouterr().out)
    latency = anatomy(Network("fore/aal5", "sparc2", "series-200"), 4096).latency_ps / 1e6
    assert sum(row["time_us"] for row in rows) == pytest.approx(latency)
    assert sum(row["share_percent"] for row in rows) == pytest.approx(100)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="needs an adaptation layer"):
        anatomy(Network("fore/ethernet", "sparc2"), 4)
    with pytest.raises(InputError, match=r"--adapter.*series-100"):
        anatomy(Network("fore/aal5", "sparc2", "series-300"), 4)
