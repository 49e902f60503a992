"""The command line as a user meets it: help, errors, exit codes, formats."""

from __future__ import annotations

import csv
import inspect
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import wiretwin as wt
from wiretwin.cli.app import VERBS
from wiretwin.results import Launch, Layer, Result

CREATED = "2024-05-01T12:00:00Z"


def cli(*arguments: str | Path, limit_s: float = 120) -> subprocess.CompletedProcess[bytes]:
    script = "from wiretwin.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        capture_output=True,
        timeout=limit_s,
        check=False,
    )


@pytest.fixture
def result(tmp_path: Path) -> Path:
    """A result of two layers with known half round trips: 1 us + 1 ns/B and 2 us + 2 ns/B."""
    folder = tmp_path / "result"
    names = ("shm", "socket/tcp+spin")
    made = Result.create(
        folder,
        seed=1,
        created_utc=CREATED,
        layers=[Layer(layer=name.split("+")[0], name=name) for name in names],
    )
    sizes = [4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096]
    for number in range(6):
        name = names[number % 2]
        record = Launch(
            launch=number + 1, name=name, order=number, started_utc=CREATED, seconds=1, status="ok"
        )
        rows = [(size, index) for size in sizes for index in range(4)]
        factor = (1 + number % 2) * (1 + 0.001 * (number // 2))
        made.append(
            record,
            {
                "loop": ["echo"] * len(rows),
                "bytes": [size for size, _ in rows],
                "messages": [1] * len(rows),
                "delay_ns": [0] * len(rows),
                "batch": [10] * len(rows),
                "index": [index for _, index in rows],
                "value_ns": [round(20 * factor * (1000 + size)) for size, _ in rows],
            },
        )
    made.finish("complete", dict.fromkeys(names, "narrow"))
    return folder


def test_help_lists_every_verb_and_the_exit_codes() -> None:
    shown = cli("--help")
    assert shown.returncode == 0
    for verb in VERBS:
        assert f"\n  {verb} " in shown.stdout.decode()
    assert "130 interrupted" in " ".join(shown.stdout.decode().split())
    listed = shown.stdout.decode().partition("Commands:")[2].partition("Exit codes")[0].strip().splitlines()
    assert len(listed) == len(VERBS), "a line for each"
    assert not [line for line in listed if line.endswith("...")]


def test_help_imports_nothing_heavy() -> None:
    """What keeps `wiretwin --help` below 0.3 s, as a fact instead of a time."""
    script = (
        "import sys\nfrom wiretwin.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "heavy = {'numpy', 'polars', 'pyarrow', 'scipy', 'pydantic', 'plotly', 'rich', 'mpi4py', 'psutil'}\n"
        "print('heavy:', sorted(heavy & set(sys.modules)))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert shown.stdout.splitlines()[-1] == "heavy: []"


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("wiretwin.predict.predict", ("polars", "pyarrow", "scipy", "wiretwin.stacks")),
        ("wiretwin.predict.stage", ("polars", "pyarrow", "scipy", "pydantic")),
        ("wiretwin.predict.named", ("polars", "pyarrow", "scipy", "numpy")),
    ],
)
def test_what_simulates_a_program_imports_nothing_that_it_does_not_need(
    module: str, heavy: tuple[str, ...]
) -> None:
    code = f"import sys, {module}; print(*({set(heavy)!r} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout.strip(), done.returncode) == ("", 0)


def test_importing_wiretwin_imports_nothing_but_the_core() -> None:
    script = (
        "import sys, wiretwin; print(sorted(name for name in sys.modules if name.startswith('wiretwin')))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert shown.stdout.strip() == "['wiretwin', 'wiretwin._core']"


@pytest.mark.parametrize("verb", [name for name in wt.__all__ if callable(getattr(wt, name))])
def test_each_function_has_its_signature_and_words_for_help(verb: str) -> None:
    """Also one that shares its name with its package: a notebook's question mark asks for both."""
    function = getattr(wt, verb)
    assert list(inspect.signature(function).parameters)[:1] != ["args"], "not (*args, **keywords)"
    said = inspect.getdoc(function)
    assert said
    if verb in ("measure", "fit", "predict", "run", "tour", "report", "sweep"):
        assert "\nParameters\n---" in said


@pytest.mark.parametrize("verb", VERBS)
def test_each_verb_has_help_with_an_example(verb: str) -> None:
    shown = cli(verb, "--help")
    assert shown.returncode == 0
    assert f"\n    wiretwin {verb}" in shown.stdout.decode()


def test_version() -> None:
    import wiretwin

    assert cli("--version").stdout.decode() == f"wiretwin {wiretwin.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["measure", "--budget", "5"], "wiretwin: --budget: '5' has no unit; allowed: a number with a unit"),
        (["measure", "--sizes", "-4"], "wiretwin: --sizes: '-4' is not a size list; allowed: names (lin,"),
        (["measure", "--layers", "nosuch"], "wiretwin: --layers: 'nosuch' is no layer; allowed: socket/tcp,"),
        (["measure", "--launches=2"], "wiretwin: --launches: 2 is not allowed here; allowed: 3 to 1000"),
        (
            ["measure", "--precision", "5"],
            "wiretwin: --precision: '5' has no percent sign; allowed: a percentage",
        ),
        (
            ["advise", "--stack=via/gige", "--draws=1001"],
            "wiretwin: --draws: 1001 is not allowed here; allowed: 2 to 1000",
        ),
        (
            ["explain", "via/gige", "4", "--network", "gige:mtu=x"],
            "wiretwin: --network mtu: 'x' is not allowed here; allowed: 576 to 9000",
        ),
        (
            ["simulate", "no.toml", "--seed=-1"],
            "wiretwin: --seed: -1 is not allowed here; allowed: 0 or more",
        ),
        (["measure", "--format", "xml"], "'xml' is not one of"),
        (["measure", "--nosuch"], "No such option: --nosuch"),
        *(
            (
                [*verb.split(), "--format", "osu"],
                "--format: 'osu' suits curves only; here is none; allowed: table, csv",
            )
            for verb in ("tour", "predict x.py", "run x.py", "fit x", "doctor", "compare x y", "understand x")
        ),
        (["nosuch"], "No such command 'nosuch'"),
        (["fit", "nowhere"], "wiretwin: nowhere: is no folder; allowed: a result folder (wiretwin-result)"),
        (["report", "nowhere"], "wiretwin: nowhere: is no folder; allowed: a result folder"),
        (["compare", "nowhere", "there"], "wiretwin: nowhere: no such file or folder; allowed: a folder of"),
        (
            ["run", "nosuch"],
            "'nosuch' is neither a file nor a program; allowed: a Python script that uses mpi4py (.py), ",
        ),
    ],
)
def test_bad_input_ends_with_2_and_says_what_is_allowed(arguments: list[str], words: str) -> None:
    shown = cli(*arguments)
    assert shown.returncode == 2
    assert words in shown.stderr.decode()
    assert b"Traceback" not in shown.stderr
    assert shown.stdout == b""


def test_debug_shows_where() -> None:
    shown = cli("--debug", "measure", "--layers", "nosuch")
    assert shown.returncode == 2
    assert b"Traceback" in shown.stderr


def test_report_of_a_result_is_one_page(result: Path, tmp_path: Path) -> None:
    shown = cli("report", result, "-o", tmp_path / "page.html")
    assert shown.returncode == 0, shown.stderr
    assert f"report: {tmp_path / 'page.html'}" in shown.stderr.decode()
    page = (tmp_path / "page.html").read_text()
    assert "socket/tcp+spin" in page
    assert page.lstrip().lower().startswith("<!doctype html")


def test_a_reader_that_leaves_early_is_no_error(result: Path) -> None:
    script = f"'{sys.executable}' -c 'from wiretwin.cli import main; main()' fit {result} --format csv | true"
    shown = subprocess.run(
        ["bash", "-o", "pipefail", "-c", script], capture_output=True, text=True, timeout=120, check=False
    )
    assert "Traceback" not in shown.stderr
    assert "defect" not in shown.stderr


@pytest.mark.parametrize(
    "words", ["--help", "--version", "fit RESULT", "fit RESULT --format csv", "fit RESULT --format parquet"]
)
def test_a_disk_that_is_full_below_standard_output_is_said(result: Path, words: str) -> None:
    script = "from wiretwin.cli import main; main()"
    with open("/dev/full", "wb") as full:
        shown = subprocess.run(
            [sys.executable, "-c", script, *words.replace("RESULT", str(result)).split()],
            stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False,
        )  # fmt: skip
    assert shown.stderr == "wiretwin: standard output: not written: No space left on device\n"
    assert shown.returncode == 6


def test_fit_writes_the_twin_and_prints_its_figures(result: Path, tmp_path: Path) -> None:
    shown = cli("fit", result, "-o", tmp_path / "twin.toml", "--format", "json")
    assert shown.returncode == 0, shown.stderr
    rows = json.loads(shown.stdout)
    t_0 = {row["layer"]: row["t_0_us"] for row in rows}
    assert t_0 == {"shm": pytest.approx(1.004, rel=0.01), "socket/tcp+spin": pytest.approx(2.008, rel=0.01)}
    from wiretwin.twin import Twin

    assert set(Twin.read(tmp_path / "twin.toml").layers) == {"shm", "socket/tcp+spin"}


def test_fit_prints_the_lines_by_size(result: Path) -> None:
    shown = cli("fit", result, "--segments", "--layers", "shm", "--format", "json")
    assert shown.returncode == 0, shown.stderr
    (line,) = json.loads(shown.stdout)
    assert (line["layer"], line["quantity"]) == ("shm", "half_round_trip")
    assert (line["from_bytes"], line["to_bytes"]) == (0, None)
    assert line["base_ns"] == pytest.approx(1000, rel=0.01)
    assert line["per_byte_ns"] == pytest.approx(1.0, rel=0.01)
    assert line["per_byte_low_ns"] <= 1.001 <= line["per_byte_high_ns"]


def test_keys_of_a_twin_end_in_their_unit(result: Path) -> None:
    (row, _) = json.loads(cli("fit", result, "--format", "json").stdout)
    assert list(row) == [
        "layer", "launches", "samples", "t_0_us", "t_0_low_us", "t_0_high_us", "r_max_MB_s", "r_max_low_MB_s",
        "r_max_high_MB_s", "n_half_bytes", "n_half_low_bytes", "n_half_high_bytes", "call_ns", "call_low_ns",
        "call_high_ns", "rendezvous_from_bytes", "segments", "endpoints",
    ]  # fmt: skip


def test_fit_of_a_layer_that_was_not_measured_is_refused(result: Path) -> None:
    shown = cli("fit", result, "--layers", "socket/udp")
    assert shown.returncode == 2
    assert b"'socket/udp' was not measured; allowed: shm, socket/tcp+spin" in shown.stderr


def test_fit_names_a_damaged_last_launch_and_goes_on(result: Path) -> None:
    last = result / "samples" / "launch-00006.parquet"
    last.write_bytes(last.read_bytes()[:-9])
    shown = cli("fit", result, "--format", "csv")
    assert shown.returncode == 0, shown.stderr
    assert f"left out: {last}: is truncated" in shown.stderr.decode()
    rows = list(csv.DictReader(io.StringIO(shown.stdout.decode())))
    assert {row["layer"]: row["launches"] for row in rows} == {"shm": "3", "socket/tcp+spin": "2"}


def test_a_measurement_prints_osu_curves_and_leaves_a_result(tmp_path: Path) -> None:
    shown = cli(
        "measure", "--layers", "shm", "--budget", "none", "--launches", "3", "--sizes", "4,1KiB",
        "--for", "curves", "-o", tmp_path / "r", "--format", "osu",
    )  # fmt: skip
    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.decode().splitlines()
    assert lines[0] == "# one-way latency by size: shm"
    assert lines[1].split() == ["#", "Size", "Latency", "(us)"]
    assert [line.split()[0] for line in lines[2:]] == ["4", "1024"]
    assert all(float(line.split()[1]) > 0 for line in lines[2:])
    assert f"result: {tmp_path / 'r'}" in shown.stderr.decode()
    assert Result.open(tmp_path / "r").manifest.state == "complete"


def test_doctor_tries_every_layer_and_ends_well() -> None:
    from wiretwin.stacks.layers import LAYERS

    shown = cli("doctor", "--format", "json")
    assert shown.returncode == 0, shown.stderr
    found = json.loads(shown.stdout)
    names = [[name, *(f"{name}+{word}" for word in kind.editions)] for name, kind in LAYERS.items()]
    assert [layer["layer"] for layer in found["layers"]] == [name for several in names for name in several]
    lacking = not os.environ.get("CI")
    optional = {name for name, kind in LAYERS.items() if kind.opt_in or (kind.stack is not None and lacking)}
    for layer in found["layers"]:
        if layer["runs"]:
            assert layer["half_round_trip_us"] > 0
            continue
        # Another installation than the default, or a library that this machine may lack.
        assert "+" in layer["layer"] or layer["layer"] in optional, layer
        assert layer["cure"], layer
        assert any(one["what"] == layer["layer"] for one in found["missing"])
    assert found["clock"]["cost_ns"] > 0
    assert "lo" in {one["name"] for one in found["interfaces"]}
    assert found["tools"]["mpi4py"]
    assert found["host"]["memory_MiB"] > 0


def test_doctor_says_what_is_missing_and_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from wiretwin import doctor as module
    from wiretwin.cli.doctor import table
    from wiretwin.stacks import Refusal
    from wiretwin.stacks import layers as registry

    need = "no MPI launcher `mpiexec`"
    refused = Refusal(need, "pip install mpich")
    absent = registry.LayerKind("mpi4py/mpich", "", "mpiexec", need=lambda: refused)
    for known in (module, registry):
        monkeypatch.setattr(known, "LAYERS", {"mpi4py/mpich": absent})
    monkeypatch.setattr(module.shutil, "which", lambda _: None)  # type: ignore[attr-defined]
    found = module.doctor()  # type: ignore[operator]
    assert not found.usable
    missing = {one.what: one for one in found.missing}
    assert missing["mpi4py/mpich"].matters == need
    assert missing["mpi4py/mpich"].remedy == "pip install mpich"
    assert missing["chromium"].remedy == "apt-get install chromium"
    rows = [row for row in table(found).rows if row[0] == "missing"]
    assert ("missing", "mpi4py/mpich", need, "pip install mpich") in rows
