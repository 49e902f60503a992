"""Every command and every Python block of the documentation is run."""

from __future__ import annotations

import os
from pathlib import Path

import page_runner
import pytest
from page_runner import PageFailure, run_page
from pages import FROM_THE_WHEEL, ROOT, pages, steps

from wiretwin.errors import MeasureError
from wiretwin.stacks.layers import parse_layer, refusal
from wiretwin.testbed import Link, Testbed

NEEDED = {
    "libraries.md": ("pvm/pvm3", "rpc/tirpc", "ucx", "libfabric"),
    "stacks.md": ("mpi/mpich", "mpi/openmpi", "mpi/lam"),
    "programs.md": ("mpi/mpich",),
    "together.md": ("mpi/mpich", "mpi/openmpi"),
}
"""Layers of packages that a user may not have, by the page that measures them."""


def doing_something() -> list[Path]:
    return [page for page in pages() if page not in FROM_THE_WHEEL and steps(page.read_text())]


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
    monkeypatch.setattr(page_runner, "COMMAND_LIMIT_S", 0.5)
    with pytest.raises(PageFailure, match="no end after"):
        run_page("```console\n$ sleep 600 | sleep 600\n```\n", tmp_path)
