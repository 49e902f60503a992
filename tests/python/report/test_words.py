import pytest

from wiretwin.plot import words


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (4.906, "4.91"),
        (49.06, "49.1"),
        (490.6, "491"),
        (4906, "4\u202f910"),
        (9.999, "10.0"),
        (999.9, "1\u202f000"),
        (0.00123, "0.00123"),
        (-4.906, "\u22124.91"),
        (float("nan"), "\u2013"),
    ],
)
def test_digits_keep_three_figures(value: float, text: str) -> None:
    assert words.digits(value) == text


def test_times_change_unit_where_three_digits_would_not_fit() -> None:
    shown = [words.time_text(seconds) for seconds in (2.1e-10, 2.09e-7, 9.996e-7, 4.9e-6, 0.012, 3.5)]
    assert [text.replace("\u00a0", " ") for text in shown] == [
        "0.210 ns",
        "209 ns",
        "1.00 µs",
        "4.90 µs",
        "12.0 ms",
        "3.50 s",
    ]


def test_what_is_at_least_so_much_is_rounded_down_and_never_says_as_much_alone() -> None:
    shown = [words.at_least_text(factor) for factor in (1.076, 1.1, 2.39, 41.9, 0.978)]
    assert shown == ["1.07 times", "1.1 times", "2.3 times", "41 times", "0.97 times"]


def test_sizes_are_exact_where_they_can_be() -> None:
    shown = [words.size_text(size) for size in (4, 1000, 1023, 1024, 65536, 65539, 1 << 20, 1.5 * (1 << 20))]
    assert [text.replace("\u00a0", " ") for text in shown] == [
        "4 B",
        "1\u202f000 B",
        "1\u202f023 B",
        "1 KiB",
        "64 KiB",
        "65\u202f539 B",
        "1 MiB",
        "1\u202f536 KiB",
    ]


def test_an_interval_shows_ends_that_differ() -> None:
    text = words.time_interval_text(4.906e-6, 4.871e-6, 4.952e-6)
    assert text == "4.91\u00a0µs (4.87\u202f\u2013\u2060\u202f4.95)"
    narrow = words.time_interval_text(4.906e-6, 4.9058e-6, 4.9062e-6)
    assert narrow == "4.91\u00a0µs (4.9058\u202f\u2013\u2060\u202f4.9062)"


def test_no_interval_no_brackets() -> None:
    assert words.rate_interval_text(12345.0, None, None) == "12.3\u00a0GB/s"
    assert words.rate_interval_text(12345.0, float("nan"), float("nan")) == "12.3\u00a0GB/s"


def test_a_bound_is_rounded_up() -> None:
    assert words.within_text(0.1121) == "12\u00a0%"
    assert words.within_text(0.12) == "12\u00a0%"


def test_percent_has_a_sign_only_when_it_is_not_zero() -> None:
    assert words.percent_text(-0.0001, signed=True) == "+0.0\u00a0%"
    assert words.percent_text(-0.044) == "\u22124.4\u00a0%"
    assert words.percent_text(0.044, signed=True) == "+4.4\u00a0%"


def test_lists_and_counts_read_as_words() -> None:
    assert words.list_text(["a"]) == "a"
    assert words.list_text(["a", "b", "c"]) == "a, b and c"
    assert words.count_text(1, "launch", "launches") == "1 launch"
    assert words.count_text(12345, "sample") == "12\u202f345 samples"


def test_dates_are_read_as_utc() -> None:
    assert words.date_text("2031-05-04T12:03:05+02:00") == "4 May 2031, 10:03 UTC"
    assert words.date_text("2031-05-04T10:03:05Z", seconds=True) == "4 May 2031, 10:03:05 UTC"
    assert words.date_text("yesterday") == "yesterday"


def test_names_are_escaped_for_figures() -> None:
    assert words.escape("<b>&\"'") == "&lt;b&gt;&amp;&quot;&#x27;"
