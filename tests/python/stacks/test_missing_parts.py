"""A layer is able to run only when its shim can be built: what a machine lacks for that is named.

The machine of each test is this one in a mount namespace of its own, without some of its files: it is as
where those packages of a library were installed that a program needs to run, and not those to compile it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from wiretwin.stacks.layers import parse_layers, refusal

LIMIT_S = 120
NEEDS = {
    "mpi/mpich": ("mpi.h", "*-linux-gnu/mpich/mpi.h", "libmpich-dev"),
    "mpi/openmpi": ("mpi.h", "*-linux-gnu/openmpi/include/mpi.h", "libopenmpi-dev"),
    "mpi/lam": ("mpi.h", "lam/mpi.h", "lam4-dev"),
    "pvm/pvm3": ("pvm3.h", "pvm3.h", "pvm pvm-dev"),
    "rpc/tirpc": ("rpc/rpc.h", "tirpc/rpc/rpc.h", "libtirpc-dev"),
    "ucx": ("ucp/api/ucp.h", "ucp/api/ucp.h", "libucx-dev"),
    "libfabric": ("rdma/fabric.h", "rdma/fabric.h", "libfabric-dev"),
}
"""Of each layer a header, where it is, and Debian's packages that bring it."""
LIBRARIES = {
    "pvm/pvm3": "libpvm3.so",
    "rpc/tirpc": "libtirpc.so",
    "ucx": "libucp.so",
    "libfabric": "libfabric.so",
}
WITHOUT = """
layer=$(mktemp --directory --tmpdir="$1")
mount -t tmpfs none "$layer"
mkdir "$layer/upper" "$layer/work"
mount -t overlay -o "lowerdir=/usr,upperdir=$layer/upper,workdir=$layer/work" none /usr
shift
while [ "$1" != -- ]; do rm -f "$1"; shift; done
shift
exec "$@"
"""
ASK = """
import json, sys
from wiretwin.stacks.layers import parse_layers, refusal
asked = {name: refusal(parse_layers(name)[0]) for name in sys.argv[1:]}
print(json.dumps({name: found and [found.reason, found.cure] for name, found in asked.items()}))
"""

pytestmark = pytest.mark.needs_hosts


@pytest.fixture(scope="module")
def layers() -> list[str]:
    """Those of the layers that this machine has whole."""
    found = [name for name in NEEDS if refusal(parse_layers(name)[0]) is None]
    if not found:
        pytest.skip("no library is here with its headers: see requirements/debian.txt")
    return found


def without(files: list[Path], layers: list[str], folder: Path) -> dict[str, list[str] | None]:
    """Return why each layer cannot run on a machine without these files, where no shim was built before."""
    argv = ["unshare", "--mount", "sh", "-ec", WITHOUT, "sh", str(folder), *map(str, files), "--"]
    argv += ["env", f"XDG_CACHE_HOME={folder}", sys.executable, "-c", ASK, *layers]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr
    found: dict[str, list[str] | None] = json.loads(done.stdout)
    return found


def cure(packages: str) -> str:
    return f"apt-get install --no-install-recommends gcc libc6-dev {packages}".rstrip()


def test_a_header_that_is_missing_is_named(layers: list[str], tmp_path: Path) -> None:
    folders = (Path("/usr/include"), Path("/usr/lib"))
    headers = [path for name in layers for folder in folders for path in folder.glob(NEEDS[name][1])]
    found = without(headers, layers, tmp_path)
    assert found == {name: [f"no header `{NEEDS[name][0]}`", cure(NEEDS[name][2])] for name in layers}


def test_a_library_that_cannot_be_linked_is_named(layers: list[str], tmp_path: Path) -> None:
    asked = [name for name in layers if name in LIBRARIES]
    links = [path for name in asked for path in Path("/usr/lib").glob(f"*-linux-gnu/{LIBRARIES[name]}")]
    archives = [path.with_suffix(".a") for path in links]
    found = without(links + archives, asked, tmp_path)
    assert found == {name: [f"no library `{LIBRARIES[name]}`", cure(NEEDS[name][2])] for name in asked}


def test_a_compiler_that_is_missing_is_named(layers: list[str], tmp_path: Path) -> None:
    asked = [name for name in layers if name in LIBRARIES]
    found = without([Path("/usr/bin/cc")], asked, tmp_path)
    assert found == {name: ["no C compiler `cc`", cure(NEEDS[name][2])] for name in asked}


def test_a_machine_that_has_everything_is_able_to(layers: list[str], tmp_path: Path) -> None:
    assert without([], layers, tmp_path) == dict.fromkeys(layers)
