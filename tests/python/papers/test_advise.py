"""Advice: found by search, compared under drawn constants, and refused by name where it cannot be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from wiretwin.cli import main
from wiretwin.errors import InputError
from wiretwin.model.advise import advise
from wiretwin.model.gigabit import of_stack
from wiretwin.model.local import own_hosts
from wiretwin.model.netpipe import netpipe


def test_no_single_change_of_what_is_advised_is_better() -> None:
    found = advise(of_stack("mpi-mpich/tcp/gige", "sk-net"), [65_536], draws=3)
    best = netpipe(found.setting, [65_536]).time_us[0]
    assert found.setting.mtu > 1500, "fewer packets, fewer interrupts"
    assert found.setting.asked_kib is not None
    assert found.setting.asked_kib > 4, "what 4096 octets make holds a window back"
    assert 1 < found.low <= found.high
    for change in ({"mtu": 1500}, {"asked_kib": 4}, {"switch_over": 4096}):
        assert netpipe(replace(found.setting, **change), [65_536]).time_us[0] >= best
    assert {one.name for one in found.choices} == {"mtu_bytes", "buffer_kib", "switch_over_bytes"}
    assert all(one.slower_percent >= 0 for one in found.choices)


def test_advice_is_the_same_again_and_says_how_sure_it_is() -> None:
    one = of_stack("mpi-mvich/gige", "gnic-ii")
    found = advise(one, [8192], draws=4)
    assert found == advise(one, [8192], draws=4)
    assert 0 <= found.sure <= 1
    assert {choice.name for choice in found.choices} == {"mtu_bytes", "transfer_kib", "switch_over_bytes"}


def test_a_stack_without_prices_and_a_message_that_it_does_not_carry_are_refused() -> None:
    with pytest.raises(InputError, match="mpi-mvich/gige"):
        of_stack("framed/tcp/gige")
    with pytest.raises(InputError, match="bytes"):
        advise(of_stack("via/gige"), [1 << 21], draws=2)


@pytest.mark.parametrize(
    ("stack", "words"),
    [
        ("mpi-mvich/gige", "better under 100 % of 2 draws of the constants"),
        ("via/gige", "none of 3 settings tried is faster than those on file"),
    ],
)
def test_the_verb_prints_settings_and_how_sure(
    capsys: pytest.CaptureFixture[str], stack: str, words: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["advise", "--stack", stack, "--size", "8KiB", "--draws", "2", "--format", "csv"])
    assert ended.value.code == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == "setting,before,best,slower_percent"
    assert words in err


def test_a_network_of_the_mid_1990s_has_settings_of_its_sockets() -> None:
    one = own_hosts("socket/tcp/aal5", "asx100").settings
    found = advise(one, [8192, 65_536], draws=2)
    assert [choice.name for choice in found.choices] == ["buffer_kib", "nodelay"]
    assert found.choices[0].best > 8, "a window of 8 KiB waits for acknowledgments"
    assert found == advise(one, [8192, 65_536], draws=2)
    with pytest.raises(InputError, match="one with sockets"):
        advise(own_hosts("fore/aal5").settings, [8192])
    with pytest.raises(InputError, match="joins hosts of a --twin"):
        own_hosts("socket/tcp/aal5", "star:rate=1Gbit/s")
