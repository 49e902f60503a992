"""What the simulator takes of a core that it shares with a rank is left out of that rank's work."""

import pytest

from wiretwin.predict.disturbance import Disturbance


def test_last_and_first_rank_are_disturbed_in_turn_and_nothing_is_left_out_at_first() -> None:
    disturbance = Disturbance(2)
    assert [disturbance.of(run) for run in range(Disturbance.LEAST)] == [(1, 0.0), (0, 0.0)]
    assert Disturbance(4).of(0) == (3, 0.0)


def test_what_a_rank_takes_longer_when_disturbed_is_left_out() -> None:
    disturbance = Disturbance(2)
    disturbance.saw(1, 0.0, [30e-6, 45e-6])
    disturbance.saw(0, 0.0, [40e-6, 36e-6])
    assert disturbance.of(2) == (1, pytest.approx(1 - 36 / 45))
    assert disturbance.of(3) == (0, pytest.approx(1 - 30 / 40))


def test_runs_in_which_it_was_left_out_already_say_the_same() -> None:
    disturbance = Disturbance(2)
    disturbance.saw(1, 0.0, [30e-6, 45e-6])
    disturbance.saw(0, 0.0, [40e-6, 36e-6])
    rank, share = disturbance.of(2)
    disturbance.saw(rank, share, [30e-6, 45e-6 * (1 - share)])
    assert disturbance.of(2) == (1, pytest.approx(share))


@pytest.mark.parametrize(("disturbed", "alone"), [(0.0, 0.0), (0.0, 1e-3), (1e-3, 2e-3)])
def test_work_that_takes_no_longer_stays_as_it_is(disturbed: float, alone: float) -> None:
    disturbance = Disturbance(2)
    disturbance.saw(1, 0.0, [alone, disturbed])
    disturbance.saw(0, 0.0, [disturbed, alone])
    assert disturbance.of(2)[1] == 0.0


def test_one_rank_is_never_alone() -> None:
    disturbance = Disturbance(1)
    disturbance.saw(0, 0.0, [1.0])
    assert disturbance.of(1) == (0, 0.0)
