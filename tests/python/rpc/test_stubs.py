"""Stubs made of a file in the RPC language, against what ``rpcgen`` makes of the same file."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from wiretwin.errors import InputError
from wiretwin.rpc import stubs
from wiretwin.rpc.runtime import RpcError, Server
from wiretwin.rpc.xdr import Packer, Unpacker, XdrError

HERE = Path(__file__).parent
HEADERS = Path("/usr/include/tirpc")
REAL = sorted(Path("/usr/include/rpcsvc").glob("*.x"))
LIMIT_S = 60


def module(source: Path, name: str) -> Any:
    """Make stubs and load them."""
    made = types.ModuleType(name)
    sys.modules[name] = made
    exec(compile(stubs(source), f"{name}.py", "exec"), made.__dict__)
    return made


SHAPES: Any = module(HERE / "shapes.x", "made_shapes")


def missing() -> str | None:
    """Say what a comparison with rpcgen lacks here."""
    programs = [name for name in ("rpcgen", "cc") if shutil.which(name) is None]
    return ", ".join(programs + ([] if HEADERS.exists() else ["libtirpc-dev"])) or None


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile what rpcgen makes of the file."""
    if lacking := missing():
        assert not os.environ.get("CI"), f"CI installs {lacking}"
        pytest.skip(f"{lacking}: not installed")
    folder = tmp_path_factory.mktemp("rpcgen")
    shutil.copy(HERE / "shapes.x", folder)
    parts = {"-h": "shapes.h", "-c": "shapes_xdr.c", "-l": "shapes_clnt.c", "-m": "shapes_svc.c"}
    for option, name in parts.items():
        subprocess.run(["rpcgen", option, "-o", name, "shapes.x"], cwd=folder, check=True, timeout=LIMIT_S)
    sources = [name for name in parts.values() if name.endswith(".c")]
    command = [
        "cc",
        "-O0",
        "-w",
        f"-I{HEADERS}",
        "-I.",
        "-o",
        "shapes",
        str(HERE / "shapes_main.c"),
        *sources,
    ]
    subprocess.run([*command, "-ltirpc"], cwd=folder, check=True, timeout=LIMIT_S)
    return folder / "shapes"


def value() -> Any:
    """Return the value that the other side has too."""
    s = SHAPES
    return s.everything(
        flag=True,
        word=4_000_000_000,
        wide=0x123456789ABCDEF,
        single=-2.5,
        twice=0.1,
        letter=ord("x"),
        small=-3,
        seat=65535,
        sum=b"digest",
        loose=b"loose",
        name="a name",
        many=[1, -2, 3],
        points=[s.point(1, 2), s.point(-1, -2)],
        list_=s.node("one", s.node("two", None)),
        said=s.answer(s.BLUE, [1, -2]),
        more=s.perhaps(1, "so"),
        maybe=s.point(7, -8),
        shade=s.GREEN,
    )


class Shapes(SHAPES.SHAPES_1_Service):  # type: ignore[misc]
    """What the other side's procedures do."""

    def turn(self, argument: Any) -> Any:
        argument.word += 1
        return argument

    def add(self, argument: list[int]) -> int:
        return sum(argument)

    def count(self, argument: int) -> Any:
        made = None
        for at in reversed(range(argument)):
            made = SHAPES.node(str(at), made)
        return made

    def shout(self, argument: str) -> str:
        return argument.upper()

    def quiet(self) -> None:
        return


class More(SHAPES.SHAPES_2_Service):  # type: ignore[misc]
    """The second version."""

    def next(self, argument: Any) -> Any:
        members = list(SHAPES.colour)
        return members[(members.index(argument) + 1) % 3]


@contextmanager
def serving(services: list[Any]) -> Iterator[tuple[int, list[BaseException]]]:
    """Serve in a thread; yields the port and what procedures raised."""
    server, stop, raised = Server(services), threading.Event(), []

    def work() -> None:
        while not stop.is_set():
            try:
                server.step(0.02)
            except ZeroDivisionError as error:
                raised.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield server.port, raised
    finally:
        stop.set()
        thread.join(LIMIT_S)
        assert not thread.is_alive()


@contextmanager
def their_server(program: Path) -> Iterator[int]:
    """Run the server that rpcgen made; yields its port."""
    process = subprocess.Popen([program, "serve"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.communicate(timeout=LIMIT_S)


def octets(made: Any) -> bytes:
    """Return a value in XDR."""
    packer = Packer()
    SHAPES.pack_everything(packer, made)
    return packer.octets


def test_a_value_has_the_octets_that_rpcgen_gives_it(theirs: Path) -> None:
    said = subprocess.run([theirs, "octets"], capture_output=True, text=True, check=True, timeout=LIMIT_S)
    assert octets(value()).hex() == said.stdout.strip()
    unpacker = Unpacker(octets(value()))
    assert SHAPES.unpack_everything(unpacker) == value()
    unpacker.done()


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_a_client_made_by_rpcgen_calls_our_server(theirs: Path, transport: str) -> None:
    with serving([Shapes(), More()]) as (port, raised):
        command = [theirs, "call", str(port), transport]
        said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=LIMIT_S)
    assert raised == []
    # A list of 1500 is too long for a datagram.
    count = 1500 if transport == "tcp" else 0
    expected = ["turn: same", "add: 2", f"count: {count}", "shout: QUIET", "quiet: done", "next: 6"]
    expected.append("garbage: RPC: Server can't decode arguments")
    assert said.stdout.splitlines() == expected


def test_our_client_calls_a_server_made_by_rpcgen(theirs: Path) -> None:
    with their_server(theirs) as port:
        client = SHAPES.SHAPES_1("127.0.0.1", port, timeout_s=10)
        turned = value()
        turned.word += 1
        assert client.turn(value()) == turned
        assert client.add([1, 2, 3]) == 6
        assert client.shout("a word") == "A WORD"
        assert client.quiet() is None
        found, names = client.count(1500), []
        while found is not None:
            names.append(found.name)
            found = found.next
        assert names == [str(at) for at in range(1500)]
        assert SHAPES.SHAPES_2("127.0.0.1", port, timeout_s=10).next(SHAPES.BLUE) is SHAPES.RED
        with pytest.raises(RpcError, match="PROC_UNAVAIL"):
            client.call(9, Packer(), None)
        with pytest.raises(RpcError, match=r"results of procedure 2 .* 4 octets are left"):
            client.call(2, packed([1]), None)


def packed(numbers: list[int]) -> Packer:
    """Return arguments."""
    packer = Packer()
    SHAPES.pack_numbers(packer, numbers)
    return packer


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_our_client_calls_our_server_and_hears_what_is_wrong(transport: str) -> None:
    class Broken(Shapes):
        def add(self, argument: list[int]) -> int:
            return sum(argument) // len(argument)

    with serving([Broken()]) as (port, raised):
        client = SHAPES.SHAPES_1("127.0.0.1", port, transport=transport, timeout_s=10)
        assert client.add([6, 8]) == 7
        assert raised == []
        with pytest.raises(RpcError, match="SYSTEM_ERR"):
            client.add([])
        garbage = Packer()
        garbage.uint32(3)
        with pytest.raises(RpcError, match="GARBAGE_ARGS"):
            client.call(2, garbage, None)
        with pytest.raises(RpcError, match=r"PROG_MISMATCH.*versions 1 to 1"):
            SHAPES.SHAPES_2("127.0.0.1", port, transport=transport, timeout_s=10).next(SHAPES.RED)
        with pytest.raises(XdrError, match=r"an array: a length of 17; allowed: at most 16"):
            client.add(list(range(17)))
    assert [type(one) for one in raised] == [ZeroDivisionError]


def defined(source: Path, folder: Path) -> dict[str, int]:
    """Return the numbers of the header that rpcgen makes, where they are numbers there."""
    header = folder / f"{source.stem}.h"
    subprocess.run(["rpcgen", "-h", "-o", header, source], check=True, timeout=LIMIT_S, cwd=folder)
    lines = re.findall(r"^#define[ \t]+(\w+)[ \t]+\(?\(?(?:\w+\))?(-?(?:0[xX][0-9a-fA-F]+|\d+))\)?[ \t]*$",
                       header.read_text(), re.M)  # fmt: skip
    octal = {name: re.sub(r"^(-?)0(?=\d)", r"\g<1>0o", number) for name, number in lines}
    return {name: int(number, 0) for name, number in octal.items()}


@pytest.mark.parametrize("source", REAL, ids=lambda path: path.stem)
def test_a_real_file_has_the_numbers_that_rpcgen_gives_it_or_is_refused_by_name(
    source: Path, tmp_path: Path
) -> None:
    refusals = {
        "key_prot": "there is no type 'des_block'",
        "nis": "#include: files are read one by one",
        "nis_callback": "there is no type 'nis_object'",
        "nlm_prot": "there is no constant 'LM_MAXSTRLEN'",
    }
    if source.stem in refusals:
        with pytest.raises(InputError, match=re.escape(refusals[source.stem])):
            stubs(source)
        return
    made = module(source, f"made_{source.stem}")
    numbers = defined(source, tmp_path) if shutil.which("rpcgen") else {}
    programs: dict[str, set[int]] = {}
    for name, kind in vars(made).items():
        if re.search(r"_\d+$", name) and hasattr(kind, "PROGRAM"):
            programs.setdefault(name.rpartition("_")[0], set()).add(kind.PROGRAM)
    for name, number in numbers.items():
        if isinstance(getattr(made, name, None), int):
            assert getattr(made, name) == number
        elif name in programs:
            assert programs[name] == {number}
    described = re.search(r"^\s*program\s+\w+", source.read_text(), re.M) is not None
    assert bool(programs) == described


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("struct a { int b };", "line 1, column 18: '}', where ';' after b is expected"),
        ("struct a { c b; };", "there is no type 'c'"),
        ("struct a { a b; };", "'a' contains itself, and has no end"),
        ("typedef a a;", "'a'"),
        ("const A = 1;\nconst A = 2;", "line 2, column 7: 'A' is defined twice"),
        ("typedef int a<B>;", "there is no constant 'B'"),
        ("typedef string a[3];", "has a bound in '<' and '>'"),
        ("union a switch (float b) { case 1: void; };", "a discriminant is"),
        ("union a switch (int b) { case 1: void; case 1: int c; };", "1 has an arm already"),
        ("program P { version V { void A(void) = 1; void B(void) = 1; } = 1; } = 7;", "B is 1, and so is"),
        ("program P { version V { void A(x) = 1; } = 1; } = 7;", "there is no type 'x'"),
        ("enum a { B = 3000000000 };", "allowed: what an int holds"),
        ("/* open", "this comment has no end"),
        ("#ifdef A", "this condition has no #endif"),
        ("const A = `;", "begins no word"),
    ],
)
def test_what_is_not_in_the_language_is_refused_where_it_stands(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "wrong.x"
    file.write_text(text)
    with pytest.raises(InputError, match=re.escape(said)) as raised:
        stubs(file)
    assert "wrong.x: line " in str(raised.value)


def test_a_file_that_cannot_be_read_is_said_to_be_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        stubs(tmp_path / "none.x")
    (tmp_path / "octets.x").write_bytes(b"const \xff")
    with pytest.raises(InputError, match="byte 6 is not UTF-8"):
        stubs(tmp_path / "octets.x")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"word": -1}, "unsigned int: -1; allowed: an integer from 0 to 4294967295"),
        ({"letter": 200}, "char: 200; allowed: an integer from -128 to 127"),
        ({"sum": b"short"}, "a length of 5; allowed: 6"),
        ({"loose": bytes(11)}, "a length of 11; allowed: at most 10"),
        ({"name": "x" * 301}, "string: a length of 301; allowed: at most 300"),
        ({"shade": 1}, "colour: 1; allowed: RED (0), GREEN (5), BLUE (6)"),
        ({"points": []}, "an array: a length of 0; allowed: 2"),
        ({"single": 1e39}, "float: 1e+39"),
    ],
)
def test_a_value_that_its_type_does_not_have_is_refused(change: dict[str, Any], said: str) -> None:
    made = value()
    for name, wrong in change.items():
        setattr(made, name, wrong)
    with pytest.raises(XdrError, match=re.escape(said)):
        octets(made)


def test_octets_that_are_no_value_are_refused_wherever_they_end() -> None:
    whole = octets(value())
    for length in range(0, len(whole), 4):
        with pytest.raises(XdrError):
            SHAPES.unpack_everything(Unpacker(whole[:length]))
    for at in range(len(whole)):
        broken = bytearray(whole)
        broken[at] ^= 0x80
        try:
            SHAPES.unpack_everything(Unpacker(bytes(broken)))
        except XdrError:
            continue


def test_the_verb_writes_what_is_loaded_here_and_names_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from wiretwin.cli import main

    out = tmp_path / "shapes.py"
    for words, code in (
        (["rpc", "generate", str(HERE / "shapes.x"), "--out", str(out)], 0),
        (["rpc", "generate", str(HERE / "shapes.x")], 0),
        (["rpc", "generate", str(tmp_path / "none.x")], 2),
    ):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert (ended.value.code or 0) == code
    said = capsys.readouterr()
    assert said.out == out.read_text() == stubs(HERE / "shapes.x")
    assert "none.x: cannot be read: No such file" in said.err
