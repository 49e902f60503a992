"""Every command and every Python block of the documentation is run."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from pages import ROOT, Step, pages, steps

from wiretwin.errors import MeasureError
from wiretwin.measure.layers import parse_layer, refusal
from wiretwin.testbed import Link, Testbed
from wiretwin.testbed.bed import take_down
from wiretwin.testbed.state import folders

COMMAND_LIMIT_S = 120
NEEDED = {
    "libraries.md": ("pvm/pvm3", "rpc/tirpc", "ucx", "libfabric"),
    "stacks.md": ("mpi/mpich", "mpi/openmpi", "mpi/lam"),
    "programs.md": ("mpi/mpich",),
}
"""Layers of packages that a user may not have, by the page that measures them."""

# Runs the Python blocks of one page in one namespace: a JSON string a line in, a line out each.
INTERPRETER = """
import json, sys, traceback
lines, answers = sys.stdin, sys.stdout
sys.stdout = sys.stderr
namespace = {"__name__": "__main__"}
for line in lines:
    try:
        exec(compile(json.loads(line), "page", "exec"), namespace)
        answer = ""
    except BaseException:
        answer = traceback.format_exc()
    print(json.dumps(answer), file=answers, flush=True)
"""


class PageFailure(AssertionError):
    """A step of a page that did not work."""


class Runner:
    """One page, run in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = dict(os.environ)
        self.environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.environment.update(COLUMNS="110", NO_COLOR="1", TERM="dumb")
        # Testbeds of this page, apart from those of others; sockets lie there, so its path is short.
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.testbeds = Path(tempfile.mkdtemp(prefix="wt-", dir=memory))
        self.environment["WIRETWIN_TESTBEDS"] = str(self.testbeds / "b")
        self.interpreter: subprocess.Popen[str] | None = None

    def do(self, step: Step) -> None:
        if step.kind == "file":
            path = self.folder / step.name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(step.text)
        elif step.kind == "command":
            self._run(step)
        else:
            self._exec(step)

    def _start(self, arguments: list[str], **keywords: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            arguments,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            start_new_session=True,
            text=True,
            **keywords,
        )

    def _run(self, step: Step) -> None:
        shell = ["bash", "-eu", "-o", "pipefail", "-c", step.text]
        process = self._start(shell, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT)
        try:
            output, _ = process.communicate(timeout=COMMAND_LIMIT_S)
        except subprocess.TimeoutExpired:
            _end(process)
            raise PageFailure(f"line {step.line}: no end after {COMMAND_LIMIT_S} s: {step.text}") from None
        if process.returncode != 0:
            reason = f"line {step.line}: status {process.returncode}: {step.text}"
            raise PageFailure(f"{reason}\n{output[-3000:]}")

    def _exec(self, step: Step) -> None:
        if self.interpreter is None:
            self.interpreter = self._start([sys.executable, "-c", INTERPRETER], stdin=subprocess.PIPE)
        child = self.interpreter
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(json.dumps(step.text) + "\n")
        child.stdin.flush()
        answer = child.stdout.readline()
        if not answer:
            raise PageFailure(f"line {step.line}: the interpreter ended")
        if trouble := json.loads(answer):
            raise PageFailure(f"line {step.line}:\n{trouble}")

    def close(self) -> None:
        if self.interpreter is not None:
            _end(self.interpreter)
        left = sorted(self.testbeds.rglob("*"))
        if left:
            self._end_testbeds()
        shutil.rmtree(self.testbeds, ignore_errors=True)
        if left:
            raise PageFailure(f"testbeds are left behind: {left[0]}")

    def _end_testbeds(self) -> None:
        before = os.environ.get("WIRETWIN_TESTBEDS")
        os.environ["WIRETWIN_TESTBEDS"] = self.environment["WIRETWIN_TESTBEDS"]
        try:
            for folder in folders():
                take_down(folder.name)
        finally:
            os.environ.pop("WIRETWIN_TESTBEDS")
            if before is not None:
                os.environ["WIRETWIN_TESTBEDS"] = before


def _end(process: subprocess.Popen[str]) -> None:
    """End a process that leads its own session, and everything it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def run_page(text: str, folder: Path) -> None:
    runner = Runner(folder)
    try:
        for step in steps(text):
            runner.do(step)
    finally:
        runner.close()


def doing_something() -> list[Path]:
    return [page for page in pages() if steps(page.read_text())]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", doing_something(), ids=lambda page: str(page.relative_to(ROOT)))
def test_everything_a_page_says_to_do_works(page: Path, tmp_path: Path) -> None:
    if page.name in ("testbed.md", "understand.md", "libraries.md", "programs.md"):
        need_testbed()
    for layer in NEEDED.get(page.name, ()):
        refused = refusal(parse_layer(layer))
        if refused is not None:
            assert not os.environ.get("CI"), f"{layer}: {refused}"
            pytest.skip(f"{layer}: {refused}")
    run_page(page.read_text(), tmp_path)


def need_testbed() -> None:
    """Skip where no testbed can be made; CI must be able to."""
    try:
        with Testbed.up(2, Link("wire", rate_bit_s=10**7)):
            return
    except MeasureError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


PAGE = """
Text with `code`, then a file:

```{code-block} python
:caption: deep/hello.py

print("hello")
```

```console
$ python deep/hello.py > said
what it printed
$ grep -c \\
    hello said
```

```python
import pathlib
said = pathlib.Path("said").read_text()
```

```python
assert said == "hello\\n"
```

```text
$ false
```
"""


def test_a_page_is_run_from_top_to_bottom(tmp_path: Path) -> None:
    kinds = [(step.kind, step.line) for step in steps(PAGE)]
    assert kinds == [("file", 4), ("command", 11), ("command", 13), ("python", 17), ("python", 22)]
    run_page(PAGE, tmp_path)
    assert (tmp_path / "said").read_text() == "hello\n"


def test_a_command_that_fails_fails_its_page(tmp_path: Path) -> None:
    with pytest.raises(PageFailure, match=r"line 2: status 3: exit 3"):
        run_page("```console\n$ exit 3\n```\n", tmp_path)
    with pytest.raises(PageFailure, match=r"line 3: status 1: false \| cat"):
        run_page("```console\n$ true\n$ false | cat\n```\n", tmp_path)


def test_a_python_block_that_fails_fails_its_page(tmp_path: Path) -> None:
    with pytest.raises(PageFailure, match="ZeroDivisionError"):
        run_page("```python\n1 / 0\n```\n", tmp_path)
    with pytest.raises(PageFailure, match="SystemExit"):
        run_page("```python\nimport sys; sys.exit()\n```\n", tmp_path)


def test_a_command_that_does_not_end_is_ended_with_its_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "COMMAND_LIMIT_S", 0.5)
    with pytest.raises(PageFailure, match="no end after"):
        run_page("```console\n$ sleep 600 | sleep 600\n```\n", tmp_path)
