"""Completion by the shell: verbs and options come from the command line itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

WIRETWIN = str(Path(sys.executable).with_name("wiretwin"))
BASH, FISH, ZSH = (shutil.which(shell) for shell in ("bash", "fish", "zsh"))


def completed(line: str, folder: Path) -> list[str]:
    """What Bash offers at the end of a line, by the script that ``--show-completion`` prints."""
    words = line.split(" ")
    script = f"""
    source <(SHELL={BASH} {WIRETWIN} --show-completion)
    COMP_WORDS=({" ".join(repr(word) for word in words)})
    COMP_CWORD={len(words) - 1}
    $(complete -p wiretwin | sed 's/.*-F \\([^ ]*\\) .*/\\1/') {WIRETWIN}
    printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    command = [str(BASH), "--noprofile", "--norc", "-c", script]
    ended = subprocess.run(
        command, cwd=folder, env=dict(os.environ), capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("wiretwin com", {"compare"}),
        ("wiretwin measure --la", {"--layers", "--launcher", "--launches"}),
    ],
)
def test_bash_completes_verbs_and_options(line: str, offered: set[str], tmp_path: Path) -> None:
    assert set(completed(line, tmp_path)) == offered


@pytest.mark.skipif(FISH is None, reason="fish is not installed")
def test_fish_completes_verbs(tmp_path: Path) -> None:
    source = f"source (env _WIRETWIN_COMPLETE=source_fish {WIRETWIN} | psub)"
    offers = f"{source}; complete --do-complete 'wiretwin com'"
    assert said([str(FISH), "--no-config", "-c", offers], tmp_path).split()[0] == "compare"


@pytest.mark.skipif(ZSH is None, reason="zsh is not installed")
def test_zsh_asks_for_verbs_and_understands_the_answer(tmp_path: Path) -> None:
    script = f"""
    compdef() {{ print "for $2: $1" }}
    _arguments() {{ print -r -- "offered: $*" }}
    eval "$(env _WIRETWIN_COMPLETE=source_zsh {WIRETWIN})"
    words=(wiretwin com) CURRENT=2
    _wiretwin_completion
    """
    lines = said([str(ZSH), "-f", "-c", script], tmp_path).splitlines()
    assert lines[0] == "for wiretwin: _wiretwin_completion"
    assert lines[1].startswith('offered: *: :(("compare":')


def said(command: list[str], folder: Path) -> str:
    path = f"{Path(WIRETWIN).parent}:{os.environ['PATH']}"
    ended = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | {"PATH": path, "HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
