"""Whatever ends, and whenever: a clear word, and nothing left (the census of every test)."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from beds import LIMIT_S, WITHOUT_INTERFACE, need_testbed, on, program, wiretwin

from wiretwin.errors import InputError, MeasureError
from wiretwin.testbed import Link, Testbed
from wiretwin.testbed.bed import clean, take_down
from wiretwin.testbed.state import folders

OWNER = """
import sys, time
from wiretwin.testbed import Testbed
with Testbed.up(2) as bed:
    print(bed.name, flush=True)
    time.sleep(100)
"""


def keeper_of(bed: Testbed) -> int:
    keeper = bed.folder.keeper
    assert keeper is not None
    return keeper.pid


@contextlib.contextmanager
def resident(bed: Testbed, host: str) -> Iterator[subprocess.Popen[str]]:
    """A process in a host that ends by force only."""
    script = "trap '' TERM INT HUP; echo here; while :; do sleep 100; done"
    with subprocess.Popen(
        bed.host(host).command(["setsid", "sh", "-c", script]), stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "here\n"
        yield running


def test_what_runs_in_a_host_ends_with_it() -> None:
    need_testbed()
    with Testbed.up(2) as bed, resident(bed, "h1") as running:
        bed.down()
        assert running.wait(LIMIT_S) == -signal.SIGKILL
        bed.down()  # once more: nothing happens


def test_a_keeper_that_is_killed_is_named_and_what_is_left_is_removed() -> None:
    need_testbed()
    bed = Testbed.up(2, name="k", stay=True)
    with resident(bed, "h2") as running:
        os.kill(keeper_of(bed), signal.SIGKILL)
        end_of(keeper_of(bed))
        assert bed.trouble() == "testbed 'k' is gone: its keeper was ended"
        assert "is gone: its keeper was ended" in on(bed, "h1", "true").stderr
        with pytest.raises(MeasureError, match="does not answer"):
            bed.counters()
        with pytest.raises(MeasureError, match="is gone: its keeper was ended; `wiretwin testbed clean`"):
            Testbed.find("k")
        assert "wiretwin testbed clean" in wiretwin("testbed", "status").stdout
        assert clean() == ["k"]
        assert running.wait(LIMIT_S) == -signal.SIGKILL
        assert clean() == []
    bed.down()


def test_a_host_that_loses_its_interface_is_named() -> None:
    need_testbed()
    with Testbed.up(2, name="lose") as bed:
        assert on(bed, "h2", sys.executable, "-c", WITHOUT_INTERFACE).returncode == 0
        assert bed.trouble() == "testbed 'lose': h2 has lost its interface eth0"
        with pytest.raises(MeasureError, match="h2 has lost its interface"):
            bed.counters()


def test_clean_leaves_alone_what_stands() -> None:
    need_testbed()
    with Testbed.up(1, name="one") as one:
        two = Testbed.up(1, name="two", stay=True)
        with resident(one, "h1") as running:
            os.kill(keeper_of(two), signal.SIGKILL)
            end_of(keeper_of(two))
            assert clean() == ["two"]
            assert running.poll() is None
            assert one.trouble() is None
            one.down()
        two.down()


def test_a_name_that_a_crash_left_is_taken_again() -> None:
    need_testbed()
    first = Testbed.up(1, name="again", stay=True)
    os.kill(keeper_of(first), signal.SIGKILL)
    end_of(keeper_of(first))
    with Testbed.up(1, name="again") as second:
        assert second.trouble() is None
    first.down()


def end_of(pid: int) -> None:
    """Wait until a process has ended, ours or not."""
    with contextlib.suppress(ProcessLookupError):
        descriptor = os.pidfd_open(pid)
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        assert poll.poll(1000 * LIMIT_S)
        os.close(descriptor)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_testbed_goes_with_its_owner(number: signal.Signals) -> None:
    need_testbed()
    with subprocess.Popen(
        [sys.executable, "-c", OWNER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as owner:
        assert owner.stdout is not None
        name = owner.stdout.readline().strip()
        bed = Testbed.find(name)
        keeper = keeper_of(bed)
        with resident(bed, "h1") as running:
            owner.send_signal(number)
            owner.wait(LIMIT_S)
            assert running.wait(LIMIT_S) == -signal.SIGKILL
        end_of(keeper)
    assert folders() == []


@pytest.mark.parametrize("late", range(8))
def test_an_interrupt_while_it_is_made_leaves_nothing(late: int) -> None:
    """Interrupts the owner at moments spread over the making, told by what is there already."""
    need_testbed()
    with subprocess.Popen(
        [sys.executable, "-c", OWNER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as owner:
        assert owner.stdout is not None
        wanted = [
            "",
            "keeper.json",
            "plan.json",
            "shared/.agent",
            "hosts",
            "shared/.keeper",
            "state.json",
            None,
        ][late]
        base = Path(os.environ["WIRETWIN_TESTBEDS"])
        if wanted is None:
            owner.stdout.readline()
        else:
            while owner.poll() is None and not seen(base, wanted):
                pass
        owner.send_signal(signal.SIGINT)
        owner.wait(LIMIT_S)


def seen(base: Path, name: str) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return any(base.glob(f"*/{name}"))
    return False


def test_up_and_down_by_two_at_once_give_one_winner_each() -> None:
    need_testbed()
    ups = [
        subprocess.Popen(program("testbed", "up"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    for up in ups:
        up.communicate(timeout=LIMIT_S)
    assert sorted(up.returncode for up in ups) == [0, 2]
    take_down()
    with pytest.raises(InputError, match="is not up"):
        take_down()


def test_a_testbed_that_cannot_be_made_says_why_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    need_testbed()
    script = """
import os, resource, sys
from wiretwin.errors import WiretwinError
from wiretwin.testbed import Testbed
try:
    Testbed.up(2)
except WiretwinError as error:
    print(error)
    sys.exit(error.exit_code)
"""
    if os.geteuid() != 0:
        pytest.skip("takes rights away, which only root has")
    bare = ["setpriv", "--bounding-set=-sys_admin,-net_admin", "--inh-caps=-sys_admin,-net_admin"]
    done = subprocess.run(
        [*bare, sys.executable, "-c", script], capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert done.returncode == 3
    assert "Operation not permitted; root needs CAP_SYS_ADMIN and CAP_NET_ADMIN" in done.stdout


def test_half_a_testbed_is_undone() -> None:
    need_testbed()
    if not os.path.exists("/proc/sys/user/max_net_namespaces") or os.geteuid() != 0:
        pytest.skip("no limit on network namespaces here")
    with pytest.raises(MeasureError, match="cannot be made: the bridge"):
        # An MTU that a bridge refuses is found only when half of it stands.
        Testbed.up(2, Link(mtu=70_000))


def test_a_folder_of_someone_else_is_not_used(census: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = census / "theirs"
    elsewhere.mkdir(mode=0o777)
    elsewhere.chmod(0o777)
    monkeypatch.setenv("WIRETWIN_TESTBEDS", str(elsewhere))
    with pytest.raises(MeasureError, match="is not a folder of this user alone"):
        Testbed.up(1)
    elsewhere.rmdir()
