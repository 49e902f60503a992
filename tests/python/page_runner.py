"""Runs a page of the documentation: its commands by a shell, its Python blocks by one interpreter."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pages import Step, steps

from wiretwin.testbed.bed import take_down
from wiretwin.testbed.state import folders

COMMAND_LIMIT_S = 120

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

    def __init__(self, folder: Path, python: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self.python = python
        self.environment = dict(environment)
        self.environment["PATH"] = f"{python.parent}{os.pathsep}{environment['PATH']}"
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
            self.interpreter = self._start([str(self.python), "-c", INTERPRETER], stdin=subprocess.PIPE)
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


def run_page(
    text: str,
    folder: Path,
    *,
    python: Path = Path(sys.executable),
    environment: Mapping[str, str] = os.environ,
) -> None:
    """Do what a page says in a folder, with the commands beside an interpreter first on the path."""
    runner = Runner(folder, python, environment)
    try:
        for step in steps(text):
            runner.do(step)
    finally:
        runner.close()
