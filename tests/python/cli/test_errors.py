"""Errors: the text is complete, the exit code belongs to the kind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from wiretwin import errors
from wiretwin.errors import InputError, StorageError, report_error


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            InputError("t.toml", "layers.shm.t_0_us", -1, "a number above 0"),
            "t.toml: layers.shm.t_0_us: -1 is not allowed here; allowed: a number above 0",
        ),
        (
            InputError(key="--budget", value="5", allowed="a time with its unit", reason="has no unit"),
            "--budget: '5' has no unit; allowed: a time with its unit",
        ),
        (InputError("a.parquet", reason="is truncated"), "a.parquet: is truncated"),
        (InputError(reason="nothing to measure"), "nothing to measure"),
        (StorageError("/x/y", "No space left on device", "3 kept"), "/x/y: No space left on device; 3 kept"),
    ],
)
def test_the_text_names_place_value_and_what_is_allowed(error: Exception, text: str) -> None:
    assert str(error) == text


def test_a_long_value_is_cut() -> None:
    assert len(str(InputError(key="k", value="x" * 5000))) < 200


def test_every_kind_has_its_own_exit_code() -> None:
    kinds = [
        getattr(errors, name)
        for name in errors.__all__
        if isinstance(getattr(errors, name), type) and name != "WiretwinError"
    ]
    codes = [kind.exit_code for kind in kinds]
    assert len(set(codes)) == len(codes) == 7
    page = (Path(__file__).parents[3] / "docs" / "reference" / "command-line.md").read_text()
    for code in [*codes, errors.DEFECT_EXIT_CODE]:
        assert f"\n{code} " in str(errors.__doc__), f"exit code {code} is not in the module's table"
        assert f"\n| {code} | " in page, f"exit code {code} is not in the reference"


def test_an_error_of_the_family_is_shown_without_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert report_error(InputError(key="--sizes", value="x")) == 2
    assert capsys.readouterr().err == "wiretwin: --sizes: 'x' is not allowed here\n"


def test_anything_else_is_shown_as_a_defect(capsys: pytest.CaptureFixture[str]) -> None:
    assert report_error(ValueError("oops")) == 70
    shown = capsys.readouterr().err
    assert "a defect of wiretwin, please report it: ValueError: oops" in shown
    assert "Traceback" not in shown


def test_debug_shows_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError) as caught:
        raise InputError(key="--sizes", value="x")
    assert report_error(caught.value, debug=True) == 2
    assert "Traceback (most recent call last)" in capsys.readouterr().err


EARLY = """
import sys
class Early:
    def find_spec(name, *_):
        if name == sys.argv[1]:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Early)
from wiretwin.cli import main
main(["fit", "nowhere"])
"""


@pytest.mark.parametrize("while_loading", ["typer", "wiretwin.cli.fit", "wiretwin.results"])
def test_an_interrupt_at_any_time_ends_in_a_word(while_loading: str) -> None:
    """Before the application is there, while it is put together, and while a verb loads what it needs."""
    shown = subprocess.run(
        [sys.executable, "-c", EARLY, while_loading], capture_output=True, text=True, timeout=60, check=False
    )
    assert (shown.returncode, shown.stdout, shown.stderr) == (130, "", "wiretwin: interrupted\n")


def test_an_interrupt_ends_with_130(capsys: pytest.CaptureFixture[str]) -> None:
    assert report_error(KeyboardInterrupt()) == 130
    assert "interrupted" in capsys.readouterr().err


def test_an_interrupt_while_a_class_is_made_is_one() -> None:
    class Interrupted:
        def __set_name__(self, owner: type, name: str) -> None:
            raise KeyboardInterrupt

    with pytest.raises((KeyboardInterrupt, RuntimeError)) as caught:
        type("Made", (), {"one": Interrupted()})
    assert report_error(caught.value) == 130
