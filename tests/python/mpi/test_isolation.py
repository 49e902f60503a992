"""Every rank lives as if it had the process to itself."""

from __future__ import annotations

import logging
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from mpi_help import Simulate, model

from wiretwin.mpi import Given, Replay, simulate
from wiretwin.mpi.preimport import preimport, scan

HEAD = """
from mpi4py import MPI
comm = MPI.COMM_WORLD
rank = comm.rank
"""


def lines(text: str) -> list[str]:
    return text.splitlines()


def test_modules_of_the_program_are_loaded_once_for_each_rank(tmp_path: Path) -> None:
    (tmp_path / "counter.py").write_text(
        "value = 0\ndef bump():\n    global value\n    value += 1\n    return value\n"
    )
    package = tmp_path / "tools"
    package.mkdir()
    (package / "__init__.py").write_text("from . import inner\nnames = []\n")
    (package / "inner.py").write_text("import counter\nseen = [counter]\n")
    script = tmp_path / "main.py"
    script.write_text(
        "import counter\nimport tools\nfrom tools.inner import seen\n" + HEAD + "for _ in range(rank + 1):\n"
        "    counter.bump()\n"
        "    tools.names.append(rank)\n"
        "    comm.Barrier() if comm.size == 1 else comm.sendrecv(0, rank, source=rank)\n"
        "comm.Barrier()\n"
        "import sys\n"
        "print(counter.value, tools.names, seen[0] is counter, sys.modules['counter'] is counter)\n"
        "def late():\n"
        "    import counter as again\n"
        "    return again.value\n"
        "print(late())\n"
    )
    done = simulate(script, [], 3, model(3))
    assert [lines(text) for text in done.stdout] == [
        ["1 [0] True True", "1"],
        ["2 [1, 1] True True", "2"],
        ["3 [2, 2, 2] True True", "3"],
    ]
    assert "counter" not in sys.modules
    assert "tools.inner" not in sys.modules


def test_a_module_of_the_caller_with_the_same_name_is_kept_apart(tmp_path: Path) -> None:
    (tmp_path / "mpi_help.py").write_text("who = 'the program'\n")
    script = tmp_path / "main.py"
    script.write_text("import mpi_help\nprint(mpi_help.who)\n")
    import mpi_help

    assert simulate(script, [], 2, model(2)).stdout == ["the program\n"] * 2
    assert sys.modules["mpi_help"] is mpi_help


def test_a_file_of_the_program_goes_before_the_library_s_module_of_its_name(tmp_path: Path) -> None:
    for name in ("statistics", "random", "json"):
        (tmp_path / f"{name}.py").write_text("mine = []\n")
    (tmp_path / "os.py").write_text("raise ImportError('every interpreter has imported its own')\n")
    script = tmp_path / "main.py"
    script.write_text(
        HEAD + "import json, os, random, statistics\n"
        "for module in (json, random, statistics):\n"
        "    assert module.mine == []\n"
        "    module.mine.append(rank)\n"
        "comm.Barrier()\n"
        "print(json.mine, random.mine, statistics.mine, os.sep)\n"
    )
    done = simulate(script, [], 2, model(2))
    assert done.stdout == ["[0] [0] [0] /\n", "[1] [1] [1] /\n"]
    assert not hasattr(sys.modules["json"], "mine")


def test_arguments_folder_and_path_belong_to_the_rank(run: Simulate, tmp_path: Path) -> None:
    home = os.getcwd()
    for rank in range(2):
        (tmp_path / f"place-{rank}").mkdir()
    program = HEAD + (
        "import os, sys\n"
        f"os.chdir(os.path.join({str(tmp_path)!r}, f'place-{{rank}}'))\n"
        "sys.argv.append(str(rank))\n"
        "sys.path.append(f'extra-{rank}')\n"
        "for _ in range(3):\n"
        "    comm.Barrier()\n"
        "    name = os.path.basename\n"
        "    print(name(os.getcwd()), sys.argv[1:], sys.path[-1], name(sys.argv[0]))\n"
    )
    done = run(program, 2, "--flag", "x y")
    for rank in range(2):
        assert (
            lines(done.stdout[rank])
            == [f"place-{rank} ['--flag', 'x y', '{rank}'] extra-{rank} program.py"] * 3
        )
    assert os.getcwd() == home
    assert "--flag" not in sys.argv


def test_random_numbers_are_each_ranks_own(run: Simulate) -> None:
    program = HEAD + (
        "import random\n"
        "import numpy as np\n"
        "from numpy.random import rand\n"
        "random.seed(5); np.random.seed(6)\n"
        "mine = []\n"
        "for _ in range(4):\n"
        "    drawn = random.random(), float(np.random.rand()), float(rand())\n"
        "    mine.append((*drawn, int(np.random.randint(1000))))\n"
        "    comm.Barrier()\n"
        "print(mine)\n"
    )
    generator, legacy = random.Random(5), np.random.RandomState(6)
    expected = [
        (generator.random(), float(legacy.rand()), float(legacy.rand()), int(legacy.randint(1000)))
        for _ in range(4)
    ]
    state = random.getstate(), np.random.get_state()[1].tolist()
    done = run(program, 3)
    assert done.stdout == [f"{expected}\n"] * 3
    assert (random.getstate(), np.random.get_state()[1].tolist()) == state


def test_unseeded_random_numbers_follow_the_seed_of_the_run(run: Simulate) -> None:
    program = HEAD + (
        "import random\nimport numpy as np\n"
        "print(random.random(), np.random.rand(), np.random.default_rng().random(), end=' ')\n"
        "print(np.random.default_rng(3).random())\n"
    )
    first, again, other = run(program, 2), run(program, 2), run(program, 2, seed=2)
    assert first.stdout == again.stdout
    assert first.stdout[0] != first.stdout[1]
    assert first.stdout[0] != other.stdout[0]
    fixed = str(np.random.default_rng(3).random())
    assert all(text.split()[3] == fixed for text in [*first.stdout, *other.stdout])


def test_objects_of_the_programs_own_classes_travel(run: Simulate) -> None:
    program = HEAD + (
        "class Task:\n"
        "    made = 0\n"
        "    def __init__(self, n):\n"
        "        self.n = n\n"
        "        Task.made += 1\n"
        "got = comm.sendrecv(Task(10 + rank), 1 - rank, source=1 - rank)\n"
        "print(got.n, type(got) is Task, Task.made, __name__)\n"
    )
    assert run(program).stdout == ["11 True 1 __main__\n", "10 True 1 __main__\n"]


def test_output_is_kept_by_rank(run: Simulate) -> None:
    program = HEAD + (
        "import sys\n"
        "for turn in range(2):\n"
        "    print('é', rank, turn, flush=True)\n"
        "    sys.stderr.write(f'{rank}!')\n"
        "    sys.stdout.buffer.write(b'raw\\n')\n"
        "    comm.Barrier()\n"
    )
    done = run(program)
    assert done.stdout == ["é 0 0\nraw\né 0 1\nraw\n", "é 1 0\nraw\né 1 1\nraw\n"]
    assert done.stderr == ["0!0!", "1!1!"]
    assert done.output() == "".join(done.stdout)


def test_the_real_mpi4py_stays_out_and_comes_back(run: Simulate) -> None:
    before = {name: module for name, module in sys.modules.items() if name.startswith("mpi4py")}
    done = run(
        "import mpi4py, sys\nfrom mpi4py import MPI\nprint(mpi4py.__version__, MPI.get_vendor()[0])\n", 1
    )
    assert done.stdout[0].split()[1] == "wiretwin"
    assert {name: module for name, module in sys.modules.items() if name.startswith("mpi4py")} == before


def test_installed_modules_are_found_and_the_programs_own_are_not(tmp_path: Path) -> None:
    (tmp_path / "local.py").write_text("import fractions\nfrom . import nothing\n")
    package = tmp_path / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("from .deep import x\n")
    (package / "deep.py").write_text("import colorsys\nx = 1\n")
    script = tmp_path / "main.py"
    script.write_text(
        "import local, numpy.linalg\nfrom mpi4py import MPI\nfrom pack import x\n"
        "def f():\n    import decimal as d\n    from json import decoder, dumps\n"
        "try:\n    import not_installed_at_all\nexcept ImportError:\n    pass\n"
    )
    names, files = scan(script)
    assert {"numpy.linalg", "fractions", "decimal", "colorsys", "json", "json.decoder"} <= set(names)
    assert not {"local", "pack", "mpi4py", "mpi4py.MPI"} & set(names)
    assert [path.name for path in files] == ["main.py", "local.py", "__init__.py", "deep.py"]
    done = preimport(names)
    assert "not_installed_at_all" not in done
    assert {"fractions", "json.decoder", "numpy.linalg"} <= set(done)


def test_what_is_loaded_on_first_use_is_loaded_before_too(tmp_path: Path) -> None:
    package = tmp_path / "elsewhere" / "lazy_wiretwin_test"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("def taken(): return 'a function'\n")
    (package / "taken.py").write_text("")
    (package / "later.py").write_text("")
    script = tmp_path / "program" / "main.py"
    script.parent.mkdir()
    script.write_text(
        "import argparse, sys\nfrom numpy import *\nimport numpy as np, lazy_wiretwin_test as lazy\n"
        "def f():\n    return np.random.default_rng(1), lazy.taken(), lazy.later, sys.argv\n"
        "def g():\n    return argparse.ArgumentParser().add_argument('--n')\n"
    )
    # In an interpreter of its own, for this one has loaded all of it.
    ask = (
        "import sys\nfrom pathlib import Path\nfrom wiretwin.mpi.preimport import preimport, scan\n"
        "preimport(scan(Path(sys.argv[1]))[0])\nbefore = set(sys.modules)\n"
        "sys.path.insert(0, str(Path(sys.argv[1]).parent))\nimport main\nmain.f(), main.g()\n"
        "print(*sorted(set(sys.modules) - before), main.f()[1])"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": f"{package.parent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}",
    }
    done = subprocess.run(
        [sys.executable, "-c", ask, str(script)], capture_output=True, text=True, env=environment, timeout=60
    )
    assert done.stdout.split("\n")[0] == "main a function", done.stderr


def test_import_time_of_installed_modules_is_not_computation(tmp_path: Path) -> None:
    """The module below is outside the program's folder, and busy when it is imported."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "busy_wiretwin_test.py").write_text("total = sum(range(3_000_000))\n")
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "main.py").write_text("import busy_wiretwin_test\n" + HEAD + "comm.Barrier()\n")
    sys.path.insert(0, str(elsewhere))
    try:
        away = simulate(folder / "main.py", [], 1, model(1))
    finally:
        sys.path.remove(str(elsewhere))
        sys.modules.pop("busy_wiretwin_test", None)
    (folder / "busy_wiretwin_test.py").write_text((elsewhere / "busy_wiretwin_test.py").read_text())
    own = simulate(folder / "main.py", [], 1, model(1))
    # Its own module is the program's computation: millions of additions against a few lookups.
    assert own.end_ps[0] > 5 * away.end_ps[0]


def test_the_clocks_of_time_are_the_ranks_own(run: Simulate, monkeypatch: pytest.MonkeyPatch) -> None:
    program = HEAD + (
        "import time\n"
        "from time import perf_counter\n"
        "begin = perf_counter(), time.time(), MPI.Wtime(), time.monotonic_ns()\n"
        "time.sleep(0.25 * (rank + 1))\n"
        "end = perf_counter(), time.time(), MPI.Wtime(), time.monotonic_ns()\n"
        "print(*(b - a for a, b in zip(begin, end)), time.gmtime()[:3])\n"
        "comm.Barrier()\n"
        "assert perf_counter() > 0.5\n"
    )

    def asleep(seconds: float) -> None:
        raise AssertionError("the simulator does not sleep")

    monkeypatch.setattr(time, "sleep", asleep)
    done = run(program, 2, compute=Given(0))
    for rank, text in enumerate(done.stdout):
        *seconds, whole = text.split(" (")[0].split()
        assert [round(float(value), 6) for value in seconds] == [0.25 * (rank + 1)] * 3
        assert int(whole) == 250_000_000 * (rank + 1)
        assert text.endswith("(2000, 1, 1)\n")
    assert 0.5 < done.seconds < 0.5001
    assert done.totals_ps["waiting_ps"][0] > 0.24e12
    again = run(program, 2, compute=Replay(done.compute.durations_ps, done.compute.digests))
    assert again.digest == done.digest


def test_polling_a_clock_that_nothing_moves_gets_ahead(run: Simulate) -> None:
    program = HEAD + "import time\nwhile time.perf_counter() < 0.0001:\n    pass\nprint('done')\n"
    for cores in (1, 2):
        network = model(2, cores=cores, call_ps=0)
        assert run(program, 2, compute=Given(0), model_json=network).stdout == ["done\n"] * 2


def test_functions_for_the_end_are_called_at_the_ranks_end(run: Simulate) -> None:
    program = HEAD + (
        "import atexit\n"
        "@atexit.register\n"
        "def last():\n"
        "    print('last', comm.allreduce(rank))\n"
        "atexit.register(print, 'first', rank)\n"
    )
    assert run(program).stdout == ["first 0\nlast 1\n", "first 1\nlast 1\n"]


def test_every_rank_has_its_own_loggers(run: Simulate) -> None:
    program = HEAD + (
        "import logging, sys\n"
        "logging.basicConfig(stream=sys.stdout, format=f'[{rank}] %(message)s', level=10 * (rank + 1))\n"
        "comm.Barrier()\n"
        "logging.getLogger('here').debug('debug')\n"
        "logging.info('info')\n"
    )
    before = logging.getLogger().handlers[:]
    assert run(program).stdout == ["[0] debug\n[0] info\n", "[1] info\n"]
    assert logging.getLogger().handlers == before
