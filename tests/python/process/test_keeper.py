"""What a process has started, and its folders, go with it however it ends; signals end it as Ctrl-C does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from watching import becomes

from wiretwin import folders
from wiretwin.marks import RUN, marked

LIMIT_S = 60.0

STARTS = """
import subprocess, sys
from pathlib import Path
from wiretwin import folders, process, scratch
daemon = (
    "import os\\nif os.fork() == 0:\\n os.setsid()\\n if os.fork() == 0:\\n"
    "  os.execlp('sleep', 'sleep', '600')"
)
nested = (
    "import sys; from pathlib import Path; from wiretwin import process, scratch\\n"
    "with scratch.folder(Path(sys.argv[1]), 'inner'):\\n"
    " process.start(['sleep', '600']); print('on', flush=True); sys.stdin.read()"
)
with scratch.folder(Path(sys.argv[1]), "outer"):
    # What has no owner yet is the run's all the same.
    with scratch.folder(Path(sys.argv[1])) as early:
        (early / folders.OWNER).unlink()
        process.start([sys.executable, "-c", daemon]).wait()
        inner = process.start(
            [sys.executable, "-c", nested, sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        inner.stdout.readline()
        print(process.keeper.environment()["WIRETWIN_RUN"], flush=True)
        if sys.argv[2] == "stay":
            sys.stdin.read()
        if sys.argv[2] == "exit":
            import os
            os._exit(3)
"""


def begin(folder: Path, how: str) -> tuple[subprocess.Popen[str], str]:
    running = subprocess.Popen(
        [sys.executable, "-c", STARTS, str(folder), how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert running.stdout is not None
    return running, running.stdout.readline().strip()


@pytest.mark.parametrize("how", ["stay", "exit", "end"])
def test_nothing_outlives_a_process_however_it_ends(how: str, tmp_path: Path) -> None:
    running, name = begin(tmp_path, how)
    if how == "stay":
        # The daemon, the inner run, and what that has started.
        becomes(3, lambda: len(marked(name, RUN)), LIMIT_S)
        running.kill()
    assert running.wait(LIMIT_S) == {"stay": -signal.SIGKILL, "exit": 3, "end": 0}[how]
    if how == "end":
        assert marked(name, RUN) == set(), "it waits for its keeper at its end"
    becomes(set(), lambda: marked(name, RUN), LIMIT_S)
    becomes([], lambda: list(tmp_path.iterdir()), LIMIT_S)
    running.communicate()


def test_a_keeper_that_is_killed_is_replaced_by_one_that_knows_as_much(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path; from wiretwin import keeper, process, scratch\n"
        "with scratch.folder(Path(sys.argv[1])):\n"
        " child = keeper._kept.keeper; child.kill(); child.wait()\n"
        " process.start(['sleep', '600']); print(keeper.environment()['WIRETWIN_RUN'], flush=True)\n"
        " os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    becomes(set(), lambda: marked(done.stdout.strip(), RUN), LIMIT_S)
    becomes([], lambda: list(tmp_path.iterdir()), LIMIT_S)


WRITES = """
import os, sys
from pathlib import Path
from wiretwin import process, scratch
write = (
    "import sys, time; from pathlib import Path; until = time.monotonic() + 0.8; number = 0\\n"
    "while time.monotonic() < until:\\n"
    "    number += 1\\n"
    "    try: Path(sys.argv[1], str(number)).touch()\\n"
    "    except OSError: pass"
)
with scratch.folder(Path(sys.argv[1])) as made:
    # Without the mark of the run, as a process is while it becomes another program.
    process.start(["env", "-i", sys.executable, "-c", write, str(made)])
    while not Path(made, "1").exists():
        pass
    os.kill(os.getpid(), 9)
"""


def test_a_folder_into_which_something_still_writes_goes_when_that_ends(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", WRITES, str(tmp_path)], check=False, timeout=LIMIT_S)
    becomes([], lambda: list(tmp_path.iterdir()), LIMIT_S)


def test_a_folder_of_a_living_process_is_no_other_runs(tmp_path: Path) -> None:
    folder = tmp_path / "wiretwin-aaaabbbb"
    folder.mkdir()
    (folder / folders.OWNER).write_text(f"{os.getpid()} {folders.started(os.getpid())}\n")
    folders.remove_of_run(tmp_path, "aaaa", owner=1)
    assert folder.is_dir()
    folders.remove_of_run(tmp_path, "bbbb", owner=os.getpid())
    assert folder.is_dir()
    folders.remove_of_run(tmp_path, "aaaa", owner=os.getpid())
    assert not folder.exists()


HEARS = """
import signal, sys
from wiretwin import interruption
from wiretwin.errors import report_error
interruption.DEAF_S = 0.2
interruption.hear(report_error)
try:
    print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN, flush=True)
    if sys.argv[1] == "compiled":
        import hashlib
        hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)
    while True:
        signal.pause()
except KeyboardInterrupt as error:
    sys.exit(report_error(error))
"""


def hears(number: signal.Signals, what: str, *before: str) -> tuple[int, str, str]:
    running = subprocess.Popen(
        [*before, sys.executable, "-c", HEARS, what],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    assert running.stdout is not None
    ignored = running.stdout.readline().strip()
    running.send_signal(number)
    if ignored == "True":
        running.send_signal(signal.SIGTERM)
    _, said = running.communicate(timeout=LIMIT_S)
    return running.returncode, ignored, said


@pytest.mark.parametrize("what", ["python", "compiled"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_what_it_finds_also_in_compiled_code(number: signal.Signals, what: str) -> None:
    name = "" if number is signal.SIGINT else f"{number.name}: "
    assert hears(number, what) == (128 + number, "False", f"wiretwin: {name}interrupted\n")


def test_a_signal_that_the_caller_has_it_ignore_is_ignored() -> None:
    status, ignored, said = hears(signal.SIGHUP, "python", "nohup")
    assert (status, ignored) == (143, "True")
    assert said.endswith("wiretwin: SIGTERM: interrupted\n")
