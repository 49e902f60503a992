"""What a fit leaves is said where it is large or lies on one side, and nowhere else."""

from __future__ import annotations

import numpy as np

from wiretwin.fit.residuals import doubts

SIZES = 2.0 ** np.arange(16)
FITTED = 500.0 + 0.1 * SIZES


def said(factor: object, starts: tuple[int, ...] = (0,)) -> list[str]:
    return [str(one) for one in doubts("shm", SIZES, FITTED * factor, FITTED, starts)]


def test_small_residuals_on_both_sides_are_not_mentioned() -> None:
    assert said(1 + 0.05 * (-1.0) ** np.arange(16)) == []


def test_a_large_residual_is_named_with_its_size_and_side() -> None:
    factor = np.ones(16)
    factor[10] = 0.8
    assert said(factor) == ["shm: at 1024 B the measured time is 20 % shorter than the fitted one"]
    factor[10] = 5.87
    assert said(factor) == ["shm: at 1024 B the measured time is 490 % longer than the fitted one"]


def test_residuals_on_one_side_of_a_segment_are_named() -> None:
    factor = np.where(SIZES < 256, 1.0, 1.04)
    (line,) = said(factor, (0, 256))
    assert line == (
        "shm: from 256 to 32768 B the measured times are longer than the fitted line, by 4 % in the middle"
    )
    assert said(np.where(SIZES < 256, 1.0, 1.01), (0, 256)) == []


def test_sizes_without_a_fitted_time_are_left_out() -> None:
    fitted = np.where(SIZES < 8, np.nan, FITTED)
    assert doubts("shm", SIZES, np.where(SIZES < 8, 9.0, 1.0) * FITTED, fitted, (8,)) == []
