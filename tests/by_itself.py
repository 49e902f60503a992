"""What failed beside other tests is run once more, by itself, and said.

Two processes share the tests, and what comes down to who had a core at that instant then is no verdict on the
code. A test that fails by itself too fails; one that passes is printed, for it is to be mended all the same.
More than `MOST` failures are not run again: then the code is at fault. On a slow machine with two cores it is
up to seven that wait for a core beside others for longer than they may, each time other ones.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
FAILED = ROOT / ".pytest_cache" / "v" / "cache" / "lastfailed"
MOST = 10


def main() -> int:
    names = sorted(name.rpartition("@")[0] or name for name in json.loads(FAILED.read_text()))
    if not 0 < len(names) <= MOST:
        print(f"{len(names)} failed; up to {MOST} are run again by themselves")
        return 1
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    ended = {name: subprocess.run([*words, name], cwd=ROOT, check=False).returncode for name in names}
    for name, status in ended.items():
        found = "failed by itself too" if status else "FLAKY: failed beside other tests, passed by itself"
        print(f"{name}: {found}")
    return int(any(ended.values()))


if __name__ == "__main__":
    sys.exit(main())
