"""This host as a place, and what all places share."""

from __future__ import annotations

import os
import pwd
import socket
import subprocess
from pathlib import Path

import pytest
from beds import need_testbed, on

from wiretwin.errors import InputError
from wiretwin.measure.api import pins_of
from wiretwin.place import HERE, Counters, Place, as_user, cores_of, host_of, read_counters
from wiretwin.testbed import Testbed, parse_link

DEV = """Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:     111      12    0    0    0     0          0         0      131      14    0    0    0     0       0          0
  eth0:99999999999999 7    0    0    0     0          0         0        8       9    0    0    0     0       0          0
"""  # noqa: E501


def here() -> Place:
    return HERE


def test_every_rank_lives_on_this_host() -> None:
    assert [host_of(here(), rank).name for rank in range(3)] == [socket.gethostname()] * 3
    assert here().agent is None
    assert here().trouble() is None


def test_a_command_runs_with_the_variables_it_is_given() -> None:
    argv = host_of(here(), 0).command(["sh", "-c", 'printf "%s" "$A"; exit 3'], env={"A": "b c"})
    done = subprocess.run(argv, capture_output=True, timeout=10, check=False)
    assert (done.returncode, done.stdout) == (3, b"b c")


def test_the_interface_is_read_from_the_kernels_table() -> None:
    assert read_counters(DEV, "lo") == Counters(111, 131, 12, 14)
    assert read_counters(DEV, "eth0") == Counters(99999999999999, 8, 7, 9)
    assert read_counters(DEV, "eth1") is None
    assert Counters(5, 6, 7, 8) - Counters(1, 1, 1, 1) == Counters(4, 5, 6, 7)


def test_the_loopback_interface_is_counted() -> None:
    (before,) = here().counters().values()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"x" * 1000, ("127.0.0.1", 9))
    (after,) = here().counters().values()
    assert (after - before).bytes_out >= 1028


def test_another_user_is_refused_unless_there_is_one_and_we_are_root() -> None:
    with pytest.raises(InputError, match="is no user of this machine"):
        as_user(["true"], "no-such-user")
    own = pwd.getpwuid(os.geteuid()).pw_name
    assert as_user(["true"], own) == ["true"]
    if os.geteuid() != 0:
        with pytest.raises(InputError, match="is another user"):
            as_user(["true"], "root")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may be someone else")
def test_a_command_runs_as_another_user(tmp_path: Path) -> None:
    argv = host_of(here(), 0).command(["sh", "-c", "id -un; echo $USER $HOME"], user="nobody")
    done = subprocess.run(argv, capture_output=True, timeout=10, check=True, text=True)
    assert done.stdout.split() == ["nobody", "nobody", pwd.getpwnam("nobody").pw_dir]


def test_what_runs_on_a_host_stays_on_its_core_where_hosts_on_a_wire_fill_the_machine() -> None:
    need_testbed()
    usable = sorted(os.sched_getaffinity(0))
    with Testbed.up(len(usable), parse_link("wire", rate="1Gbit")) as bed:
        cores = [host.core for host in bed.hosts]
        assert cores == usable
        for host in bed.hosts:
            seen = on(bed, host.name, "grep", "Cpus_allowed_list", "/proc/self/status").stdout.split()
            assert seen[1:] == [str(host.core)]
            by_agent = subprocess.check_output(
                [str(bed.agent), host.name, "grep Cpus_allowed_list /proc/self/status"], text=True
            )
            assert by_agent.split()[1:] == [str(host.core)]
        assert cores_of(bed, len(usable) + 1) == (*usable, usable[0])
        assert pins_of("auto", bed, 2) == tuple(usable[:2])
        with pytest.raises(InputError, match="the cores that the hosts have"):
            pins_of((usable[1], usable[0]), bed, 2)
    with Testbed.up(2) as bed:
        assert [host.core for host in bed.hosts] == [None, None]
        assert cores_of(bed, 2) is None
