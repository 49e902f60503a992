"""What the calls of the PVM that is installed return is what `tests/golden/pvm/calls.txt` has of them.

Our own machines are held to the same lines (`crates/msg/tests/pvm/calls.rs`).
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests_stacks import configured, nothing_left

from wiretwin import process
from wiretwin.place import HERE

GOLDEN = Path(__file__).parents[2] / "golden" / "pvm"
GROUP_SERVER = Path("/usr/lib/pvm3/lib")


def test_calls_return_what_is_on_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configuration = configured("pvm/pvm3")
    program = tmp_path / "calls"
    made = ["cc", "-w", "-o", str(program), str(GOLDEN / "calls.c"), "-lgpvm3", "-lpvm3"]
    subprocess.run(made, check=True, timeout=60)
    # Where the daemon looks for the group server.
    monkeypatch.setenv("PVM_PATH", str(GROUP_SERVER))
    stack = configuration.kind.stack
    assert stack is not None
    with nothing_left(), stack.up(HERE, configuration.options) as session:
        command = session.commands([str(program)], [Path("unused")], 1)[0]
        done = process.run(command.argv, limit_s=30)
    assert done.stdout == (GOLDEN / "calls.txt").read_text("utf-8")
