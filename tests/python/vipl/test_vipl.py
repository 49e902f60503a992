"""VIPL for C programs: what the library exports is what its header declares."""

from __future__ import annotations

import re
import subprocess

from wiretwin.direct import VIPL


def run(*words: str) -> str:
    ended = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    return ended.stdout


def test_every_call_of_the_header_is_exported_with_a_version_and_nothing_else() -> None:
    declared = set(re.findall(r"^VIP_RETURN (Vip\w+)\(", (VIPL / "vipl.h").read_text(), re.M))
    lines = run(
        "nm", "-D", "--defined-only", "--with-symbol-versions", str(VIPL / "libvipl.so.1")
    ).splitlines()
    functions = {line.split()[-1] for line in lines if " T " in line}
    assert len(declared) == 41
    assert functions == {f"{name}@@VIPL_1.0" for name in declared}


def test_the_header_is_c_and_cxx() -> None:
    for language in ("c", "c++"):
        compiler = "cc" if language == "c" else "c++"
        run(compiler, "-x", language, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", str(VIPL / "vipl.h"))
