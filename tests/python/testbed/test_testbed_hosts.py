"""The hosts of a testbed: apart from each other and from the machine, and reached."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from beds import LIMIT_S, need_testbed, on, wiretwin

from wiretwin.errors import InputError, MeasureError
from wiretwin.place import Place, host_of
from wiretwin.stacks.layers import parse_layer, refusal
from wiretwin.testbed import Link, Testbed

TRANSFER = """
import socket, sys
address, count, listen = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "listen"
if listen:
    with socket.create_server((address, 5000)) as server:
        print("listening", flush=True)
        line, peer = server.accept()
        total = 0
        while part := line.recv(1 << 16):
            total += len(part)
        print(total, peer[0])
else:
    with socket.create_connection((address, 5000), 20) as line:
        line.sendall(bytes(count))
"""


@pytest.fixture
def bed() -> Iterator[Testbed]:
    need_testbed()
    with Testbed.up(2) as made:
        yield made


def test_a_host_has_a_name_an_address_and_folders_of_its_own(bed: Testbed) -> None:
    place: Place = bed
    assert [host_of(place, rank).name for rank in range(3)] == ["h1", "h2", "h1"]
    for host in bed.hosts:
        seen = on(
            bed, host.name, "sh", "-c", "hostname; ls -A /tmp /dev/shm; touch /tmp/mine; ls /sys/class/net"
        )
        lines = seen.stdout.split()
        assert lines[0] == host.name, seen.stderr
        assert "mine" not in lines
        assert lines[-2:] == ["eth0", "lo"]
        resolved = on(
            bed, host.name, sys.executable, "-c", "import socket; print(socket.gethostbyname('h2'))"
        )
        assert resolved.stdout.strip() == bed.host("h2").address
    assert socket.gethostname() not in ("h1", "h2")
    assert not Path("/tmp/mine").exists()


def test_every_host_sees_the_shared_folder_under_the_same_path(bed: Testbed) -> None:
    (bed.directory / "note").write_text("from here")
    assert on(bed, "h1", "cat", str(bed.directory / "note")).stdout == "from here"
    on(bed, "h2", "sh", "-c", f"echo -n from h2 > {bed.directory}/note")
    assert (bed.directory / "note").read_text() == "from h2"


def test_streams_status_signals_and_variables_pass_through(bed: Testbed) -> None:
    host = bed.host("h1")
    script = 'read line; echo "$line $WORD"; echo oops >&2; exit 9'
    done = subprocess.run(
        host.command(["sh", "-c", script], env={"WORD": "a b"}),
        input=b"hello\n",
        capture_output=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (9, b"hello a b\n", b"oops\n")
    with subprocess.Popen(host.command(["sleep", "100"])) as asleep:
        asleep.terminate()
        assert asleep.wait(LIMIT_S) == -15


def test_what_crosses_the_link_is_counted_at_both_ends(bed: Testbed) -> None:
    count = 1_000_000
    before = bed.counters()
    address = bed.host("h2").address
    listen = bed.host("h2").command([sys.executable, "-c", TRANSFER, address, "0", "listen"])
    with subprocess.Popen(listen, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "listening\n"
        assert on(bed, "h1", sys.executable, "-c", TRANSFER, address, str(count), "send").returncode == 0
        assert server.communicate(timeout=LIMIT_S)[0].split() == [str(count), bed.host("h1").address]
    spent = {name: after - before[name] for name, after in bed.counters().items()}
    assert count < spent["h1"].bytes_out < 1.1 * count
    assert (spent["h1"].bytes_out, spent["h1"].packets_out) == (spent["h2"].bytes_in, spent["h2"].packets_in)


@pytest.mark.parametrize(
    ("link", "least_packets"), [(Link(offload=False), 690), (Link(mtu=9000, offload=False), 112)]
)
def test_without_offload_every_frame_is_counted(link: Link, least_packets: int) -> None:
    need_testbed()
    count = 1_000_000
    with Testbed.up(2, link) as bed:
        address = bed.host("h2").address
        listen = bed.host("h2").command([sys.executable, "-c", TRANSFER, address, "0", "listen"])
        with subprocess.Popen(listen, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            assert server.stdout.readline() == "listening\n"
            assert on(bed, "h1", sys.executable, "-c", TRANSFER, address, str(count), "send").returncode == 0
            server.communicate(timeout=LIMIT_S)
        sent = bed.counters()["h1"]
    assert sent.packets_out >= least_packets  # a segment of 1448 or 8948 bytes each


def test_a_shared_medium_carries_all_hosts_at_its_rate_together() -> None:
    need_testbed()
    count, rate = 150_000, 8_000_000
    program = TRANSFER + "\nimport time; print(time.monotonic())"
    with Testbed.up(4, Link("shared", offload=False, rate_bit_s=rate)) as bed:
        servers = [
            subprocess.Popen(
                bed.host(to).command([sys.executable, "-c", program, bed.host(to).address, "0", "listen"]),
                stdout=subprocess.PIPE,
                text=True,
            )
            for to in ("h2", "h4")
        ]
        for server in servers:
            assert server.stdout is not None
            assert server.stdout.readline() == "listening\n"
        clock = float(on(bed, "h1", sys.executable, "-c", "import time; print(time.monotonic())").stdout)
        pairs = (("h1", "h2"), ("h3", "h4"))
        senders = [
            subprocess.Popen(
                bed.host(one).command(
                    [sys.executable, "-c", TRANSFER, bed.host(other).address, str(count), "send"]
                )
            )
            for one, other in pairs
        ]
        ends = []
        for running in (*senders, *servers):
            said = running.communicate(timeout=LIMIT_S)[0]
            assert running.returncode == 0
            if said:
                ends.append(float(said.split()[-1]))
    # Two flows between different hosts take as long as their sum: the medium is one. No upper bound: a
    # busy machine may be slower.
    assert max(ends) - clock > 2 * count * 8 / rate * 0.95


def test_the_agent_is_a_remote_shell(bed: Testbed) -> None:
    def agent(*words: str, host: str | None = None) -> subprocess.CompletedProcess[str]:
        argv = [str(bed.agent), *words]
        return subprocess.run(
            argv if host is None else bed.host(host).command(argv),
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )

    assert agent("h2", "hostname;", "echo", "'a  b'").stdout == "h2\na  b\n"
    assert agent("-x", "-o", "BatchMode=yes", "h1", "-n", "exit", "4").returncode == 4
    assert agent("h1", "hostname", host="h2").stdout == "h1\n"
    unknown = agent("h7", "true")
    assert (unknown.returncode, "has no host 'h7'; allowed: h1, h2" in unknown.stderr) == (2, True)
    assert agent("h1").returncode == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes a testbed for other users")
def test_an_ordinary_user_goes_from_host_to_host_by_the_agent(bed: Testbed) -> None:
    argv = [str(bed.agent), "h2", "hostname; id -un; cat; exit 6"]
    done = subprocess.run(
        bed.host("h1").command(argv, user="nobody"),
        input="through\n",
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert (done.returncode, done.stdout) == (6, "h2\nnobody\nthrough\n"), done.stderr
    refused = subprocess.run(
        bed.host("h1").command([str(bed.agent), "-l", "root", "h2", "id"], user="nobody"),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert (refused.returncode, "may not run commands as root" in refused.stderr) == (2, True)
    with subprocess.Popen(
        bed.host("h1").command([str(bed.agent), "h2", "echo $$; exec sleep 100"], user="nobody"),
        stdout=subprocess.PIPE,
        text=True,
    ) as asked:
        assert asked.stdout is not None
        pid = int(asked.stdout.readline())
        watch = os.pidfd_open(pid)
        asked.kill()
        import select

        poll = select.poll()
        poll.register(watch, select.POLLIN)
        assert poll.poll(1000 * LIMIT_S), "the command goes with whoever asked for it"
        os.close(watch)


def test_a_testbed_in_a_user_namespace_is_like_any_other() -> None:
    need_testbed()
    try:
        bed = Testbed.up(2, rootless=True)
    except MeasureError as error:
        pytest.skip(str(error))
    with bed:
        assert on(bed, "h2", "sh", "-c", "hostname; id -u; ls /sys/class/net").stdout.split() == [
            "h2",
            "0",
            "eth0",
            "lo",
        ]
        assert on(bed, "h1", str(bed.agent), "h2", "hostname").stdout == "h2\n"
        assert bed.describe()["rootless"] is True
        assert bed.trouble() is None
        assert sorted(bed.counters()) == ["h1", "h2"]
        with pytest.raises(InputError, match="is another user"):
            bed.host("h1").command(["true"], user="nobody")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user to become")
def test_an_ordinary_user_makes_a_testbed_of_its_own(census: Path) -> None:
    need_testbed()
    script = """
import subprocess, sys
from wiretwin.errors import WiretwinError
from wiretwin.testbed import Testbed
try:
    with Testbed.up(2) as bed:
        print(subprocess.check_output(bed.host("h2").command(["sh", "-c", "hostname; id -u"]), text=True))
        print(subprocess.check_output([bed.agent, "h1", "hostname"], text=True))
        print(bed.describe()["rootless"], sorted(bed.counters()))
except WiretwinError as error:
    print(error)
    sys.exit(3)
"""
    for needed in (__file__, sys.executable):
        if subprocess.run(["setpriv", "--reuid=65534", "--clear-groups", "test", "-r", needed]).returncode:
            pytest.skip(f"another user may not read {needed}")
    folder = census / "nobody"
    folder.mkdir()
    os.chown(folder, 65534, 65534)
    done = subprocess.run(
        ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", sys.executable, "-c", script],
        env=dict(os.environ) | {"WIRETWIN_TESTBEDS": str(folder / "b"), "HOME": "/"},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    if done.returncode == 3:
        assert "user.max_user_namespaces" in done.stdout, "a refusal says what would help"
        pytest.skip(done.stdout)
    assert done.stdout.split() == ["h2", "0", "h1", "True", "['h1',", "'h2']"], done.stderr
    folder.rmdir()


def test_the_command_line_brings_up_runs_and_takes_down() -> None:
    need_testbed()
    up = wiretwin("testbed", "up", "--hosts", "3", "--no-offload", "--mtu", "9000")
    assert up.returncode == 0, up.stderr
    assert up.stdout.split() == ["h1", "10.20.0.1", "h2", "10.20.0.2", "h3", "10.20.0.3"]
    try:
        again = wiretwin("testbed", "up")
        assert (again.returncode, "is up already" in again.stderr) == (2, True)
        (row,) = json.loads(wiretwin("testbed", "status", "--format", "json").stdout)
        assert (row["name"], row["hosts"], row["state"]) == ("default", 3, "up")
        assert row["link"] == "veth, MTU 9000, no offload"
        done = wiretwin("testbed", "exec", "h3", "--", "sh", "-c", "hostname; cat; exit 5", input="in")
        assert (done.returncode, done.stdout) == (5, "h3\nin")
        if refusal(parse_layer("rpc/tirpc")) is None:
            asked = ("testbed", "broadcast", "--sizes", "4,1000", "--samples", "3", "--format", "json")
            rows = json.loads(wiretwin(*asked).stdout)
            assert [(row["size_bytes"], row["answers"], row["samples"]) for row in rows] == [
                (4, 2, 3),
                (1000, 2, 3),
            ]
            assert all(0 < row["least_us"] <= row["median_us"] <= row["most_us"] for row in rows)
            over = wiretwin("testbed", "broadcast", "--sizes", "1025")
            assert (over.returncode, "allowed: 0 to 1024" in over.stderr) == (2, True)
        unknown = wiretwin("testbed", "exec", "h4", "--", "true")
        assert (unknown.returncode, "'h4' is no host; allowed: h1, h2, h3" in unknown.stderr) == (2, True)
        assert wiretwin("testbed", "clean").stderr == "nothing was left\n"
    finally:
        assert wiretwin("testbed", "down").returncode == 0
    twice = wiretwin("testbed", "down")
    assert (twice.returncode, "is not up" in twice.stderr) == (2, True)
    gone = wiretwin("testbed", "exec", "h1", "--", "true")
    assert (gone.returncode, "`wiretwin testbed up` makes one" in gone.stderr) == (2, True)


def test_an_option_that_there_is_not_is_no_host() -> None:
    done = wiretwin("testbed", "exec", "--testbed", "here", "h1", "--", "true")
    assert (done.returncode, "exec: '--testbed' is no option; allowed: --name" in done.stderr) == (2, True)


def test_a_working_directory_that_the_host_does_not_see_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_testbed()
    if not any(tmp_path.is_relative_to(folder) for folder in ("/tmp", "/run", "/dev/shm")):
        pytest.skip("the folder of this test lies elsewhere")
    with Testbed.up(1, name="here", share=[tmp_path]) as bed:
        assert wiretwin("testbed", "exec", "--name", "here", "h1", "--", "pwd", cwd=tmp_path).stdout == (
            f"{tmp_path}\n"
        )
        hidden = tmp_path.parent / f"{tmp_path.name}-hidden"
        hidden.mkdir()
        done = wiretwin("testbed", "exec", "--name", "here", "h1", "--", "pwd", cwd=hidden)
        assert (done.returncode, "--share" in done.stderr) == (2, True)
        with pytest.raises(InputError, match="'h2' is no host; allowed: h1"):
            bed.host("h2")
