"""Build every fuzz target and run each for a bounded time; fails if one finds an input.

libFuzzer comes with the `libfuzzer-sys` crate and needs a C++ compiler, and the coverage it is guided
by comes from the ordinary compiler, so neither a nightly toolchain nor `cargo fuzz` is needed. (With
them, `cargo +nightly fuzz run TARGET --fuzz-dir fuzz` works too, and adds the address sanitizer.)

What a run learns stays under `build/fuzz/corpus`; the inputs that were earned stand in `fuzz/corpus`.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
OUT = HERE.parent / "build" / "fuzz"

FLAGS = [
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
]
BUILD_LIMIT_S = 3600


def targets() -> list[str]:
    """Return the names of the targets, from the manifest."""
    manifest = tomllib.loads((HERE / "Cargo.toml").read_text())
    return [target["name"] for target in manifest["bin"]]


def build() -> Path:
    """Build all targets and return the folder they are in."""
    host = re.search(r"^host: (\S+)$", subprocess.check_output(["rustc", "-vV"], text=True), re.MULTILINE)
    assert host is not None, "rustc -vV names its host"
    command = ["cargo", "build", "--quiet", "--release", "--target", host[1]]
    # With a target named, the flags are for the targets alone and not for build scripts.
    environment = os.environ | {"RUSTFLAGS": " ".join(FLAGS), "CARGO_TARGET_DIR": str(HERE / "target")}
    subprocess.run(command, cwd=HERE, env=environment, check=True, timeout=BUILD_LIMIT_S)
    return HERE / "target" / host[1] / "release"


def run(binary: Path, seconds: int) -> str | None:
    """Run one target; return why it failed, or None."""
    name = binary.name
    learnt, artifacts = OUT / "corpus" / name, OUT / "artifacts" / name
    learnt.mkdir(parents=True, exist_ok=True)
    artifacts.mkdir(parents=True, exist_ok=True)
    # Longer than any input to start from, which would be cut to this.
    longest = 2 * max((seed.stat().st_size for seed in (HERE / "corpus" / name).iterdir()), default=0)
    options = [f"-max_total_time={seconds}", f"-max_len={max(4096, longest)}"]
    options += ["-timeout=5", "-rss_limit_mb=2048"]
    options += ["-print_final_stats=1", f"-artifact_prefix={artifacts}{os.sep}"]
    command = [str(binary), *options, str(learnt), str(HERE / "corpus" / name)]
    try:
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=seconds + 60,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"did not end {seconds} + 60 s after its start"
    if done.returncode != 0:
        return f"status {done.returncode}; the input is in {artifacts}\n{done.stdout[-2000:]}"
    counted = re.search(r"number_of_executed_units:\s*(\d+)", done.stdout)
    print(f"{name:12} {int(counted[1]) if counted else 0:>12,} inputs, nothing found", flush=True)
    return None


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=20, help="for each target (default: 20)")
    parser.add_argument("target", nargs="*", help=f"of {', '.join(targets())} (default: all)")
    arguments = parser.parse_args()
    unknown = set(arguments.target) - set(targets())
    if unknown:
        parser.error(f"no target {', '.join(sorted(unknown))}: there are {', '.join(targets())}")
    if not any(shutil.which(compiler) for compiler in ("c++", "g++", "clang++")):
        print("libFuzzer needs a C++ compiler: apt-get install g++ (or clang)", file=sys.stderr)
        return 1
    folder = build()
    failed = 0
    for name in arguments.target or targets():
        if why := run(folder / name, arguments.seconds):
            print(f"{name}: {why}", file=sys.stderr, flush=True)
            failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
