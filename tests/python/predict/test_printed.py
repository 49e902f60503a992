"""What a program prints: shown by rank, kept, and compared between the worlds."""

from __future__ import annotations

from pathlib import Path

import pytest
from predict_help import HEAD, wiretwin

from wiretwin.predict import printed
from wiretwin.predict.compare import compare
from wiretwin.predict.records import Prediction, Run, read

#: Prints from each rank, and from a process that rank 0 starts; the last line is a time.
TALK = HEAD + (
    "import subprocess\n"
    "print('rank', rank, 'of', comm.allreduce(1), flush=True)\n"
    "{more}"
    "print('took', MPI.Wtime())\n"
)
CHILD = "if rank == 0: subprocess.run(['echo', 'a child'], check=True)\n"


def test_both_worlds_print_the_same_but_for_times(tmp_path: Path, twin: Path) -> None:
    program = tmp_path / "talk.py"
    program.write_text(TALK.format(more=""))
    ran = wiretwin("run", program, "--launches", 2, "--splits", 0, "-o", "actual")
    assert ran.code == 0, ran.err
    lines = ran.out.splitlines()
    assert [line for line in lines if " of 2" in line and line[0] == "["] == [
        "[0] rank 0 of 2",
        "[1] rank 1 of 2",
    ]
    assert lines[1].startswith("[0] took ")
    simulated = wiretwin(
        "predict", program, "--twin", twin, "--passes", 1, "-o", "predicted", "--format", "csv"
    )
    assert simulated.code == 0, simulated.err
    assert simulated.out.startswith("rank,total_s"), "what machines read is the table alone"
    assert "[1] rank 1 of 2\n" in simulated.err
    run, prediction = read(Run, Path("actual")), read(Prediction, Path("predicted"))
    assert [one.printed is None for one in run.launches] == [False, True]
    assert prediction.printed is not None
    assert [text.splitlines()[0] for text in prediction.printed] == ["rank 0 of 2", "rank 1 of 2"]
    assert compare(prediction, run).printed == "but for numbers"
    said = wiretwin("compare", "predicted", "actual")
    assert "printed: the same in both worlds but for numbers\n" in said.err


def test_what_a_child_prints_is_its_ranks(tmp_path: Path) -> None:
    program = tmp_path / "talk.py"
    program.write_text(TALK.format(more=CHILD))
    ran = wiretwin("run", program, "--launches", 1, "--splits", 0, "-o", "actual")
    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[:2] == ["[0] rank 0 of 2", "[0] a child"]


def test_a_failure_tells_what_was_printed_last(tmp_path: Path) -> None:
    program = tmp_path / "ends.py"
    program.write_text(HEAD + "print('the last word', flush=True)\nimport os; os.kill(os.getpid(), 9)\n")
    ended = wiretwin("run", program, "--launches", 1)
    assert ended.code == 5
    assert "the last word" in ended.err


def test_a_difference_names_its_line() -> None:
    one, other = ["a 1\nb 2\n", "c\n"], ["a 1\nb 3\n", "c\n"]
    assert printed.agreement(one, one) == "same"
    assert printed.agreement(one, other) == "but for numbers"
    assert printed.agreement(one, [*other[:1], "d\n"]) == "different"
    # The same column of numbers, filled up with blanks.
    assert printed.agreement(["#  9.99\n"], ["# 10.01\n"]) == "but for numbers"
    dates = ["Sun Sep  9 2001, 1:46 AM"], ["Friday 27 November 2026, 10:43 PM"]
    assert printed.agreement(*dates) == "but for numbers"
    assert printed.agreement(["Mayor"], ["Major"]) == "different"
    assert printed.agreement(["#  9.99\n"], ["#  9.99 s\n"]) == "different"
    assert printed.first(one, other) == "rank 0, line 2: 'b 2' predicted, 'b 3' printed by the run"
    assert printed.first(one, ["a 1\n", "c\n"]).endswith("'b 2' predicted, nothing printed by the run")


@pytest.mark.parametrize(("ranks", "limit"), [(2, printed.RANK_BYTES), (256, printed.MOST_BYTES // 256)])
def test_no_more_is_kept_than_said(ranks: int, limit: int, tmp_path: Path) -> None:
    text = "x" * (limit + 7)
    files = [tmp_path / str(rank) for rank in range(ranks)]
    files[0].write_text(text)
    for texts in (printed.kept([text, *[""] * (ranks - 1)]), printed.read(files)):
        assert texts[0] == "x" * limit + "\n[7 bytes more]\n"
        assert texts[1:] == [""] * (ranks - 1)


def test_no_more_is_shown_than_said() -> None:
    shown = list(printed.lines(["line\n" * 150, "line\n" * 150]))
    assert len(shown) == printed.SHOWN_LINES + 1
    assert shown[-1] == "[100 lines more]"
