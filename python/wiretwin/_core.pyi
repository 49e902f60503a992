"""The compiled core of wiretwin."""

from collections.abc import Callable, Sequence
from ipaddress import IPv4Address
from os import PathLike
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

import numpy as np
import numpy.typing as npt

__version__: str

def probe_main(spec_path: str) -> int:
    """Run the probe that the JSON file specifies; the exit status."""

def wire_main(spec_path: str) -> int:
    """Run the wire that the JSON file specifies; the exit status."""

def crossing_ns(file: str | PathLike[str], first: bool, limit_s: float) -> float | None:
    """Measure how long a cache line takes to another process and back, in nanoseconds.

    The other process calls this at the same time with the same new file and the other `first`; both
    get the same time, or None when the other does not come or answer within `limit_s`. OSError when the
    file cannot be made or mapped.
    """

def direct_past_kernel(interface: str | None = None) -> IPv4Address:
    """Try to have a packet socket, or AF_XDP, on an interface, or on the one that is taken if none is named.

    Returns that interface's address; nothing is kept. PermissionError without the privilege, another OSError
    for another reason.
    """

def direct_exchange(
    asked: dict[str, Any],
    *,
    directory: str | PathLike[str],
    seat: tuple[int, int],
    address: str,
    way: str,
    limit_s: float,
) -> dict[str, Any]:
    """Exchange messages of the direct transport with the other ranks, which meet in a directory.

    `seat` is this rank and how many there are, `way` is ``packet`` or ``udp``. Returns what became of it at
    this rank. ValueError for an order that cannot be, OSError when another rank is not there or the limit has
    passed.
    """

def direct_simulated(asked: dict[str, Any], hosts: int, wire_json: str) -> dict[str, Any]:
    """Exchange them between simulated hosts on a wire; what became of it at all of them together.

    ValueError for an order or a wire that cannot be.
    """

class Reader:
    """A thread on another core that reads what it is told to; OSError if there can be none."""

    def __init__(self, cpu: int) -> None: ...
    def read(self, data: npt.NDArray[np.uint8]) -> None:
        """Have every cache line of one-dimensional contiguous bytes read, and wait until that is done."""

class ReadNetwork(TypedDict):
    """A network that was read and checked; a line counts once for each direction."""

    plan_json: str
    hosts: int
    switches: int
    lines: int

def read_network(text: str, *, hosts: int | None = None) -> ReadNetwork:
    """Read ``NAME:key=value,…`` or a JSON object; `hosts` where a topology takes a number and has none.

    ValueError, with the key, the value found there and what is allowed as its three arguments.
    """

class WorldTotals(TypedDict):
    """Picoseconds per rank; the four add up to each rank's end time."""

    compute_ps: npt.NDArray[np.uint64]
    endpoint_ps: npt.NDArray[np.uint64]
    wire_ps: npt.NDArray[np.uint64]
    waiting_ps: npt.NDArray[np.uint64]

class WorldTimeline(TypedDict):
    """One entry per interval; `kind` is 0 compute, 1 endpoint, 2 wire, 3 waiting; -1 is none."""

    rank: npt.NDArray[np.uint32]
    start_ps: npt.NDArray[np.uint64]
    end_ps: npt.NDArray[np.uint64]
    kind: npt.NDArray[np.uint8]
    name_index: npt.NDArray[np.uint32]
    site: npt.NDArray[np.int32]
    peer: npt.NDArray[np.int32]
    bytes: npt.NDArray[np.uint64]

WorldOp: TypeAlias = (
    tuple[Literal["compute", "sleep"], int]
    | tuple[Literal["enter"], str, int]
    | tuple[Literal["send"], int, int, int, int, str]
    | tuple[Literal["recv"], int, int, int, int]
    | tuple[Literal["probe", "probe_now"], int, int, int]
    | tuple[Literal["cancel"], int]
    | tuple[Literal["wait"], Sequence[int], str]
    | tuple[Literal["exit", "yield", "finish"]]
)
WorldCompletion: TypeAlias = tuple[int, int, int, int, int]
WorldFound: TypeAlias = tuple[int, int, int, int]
WorldOutcome: TypeAlias = list[WorldCompletion] | WorldFound | None

class World:
    """Ranks that compute and send messages in virtual time.

    Post operations of a rank until a suspending one (`wait`, `probe`, `probe_now`, `yield`,
    `finish`), then step until the rank is among those returned.

    A completion is (request, source, tag, nbytes, message_id); `nbytes` is the length of the
    message even where that is more than the receive's capacity (truncation); a cancelled receive
    has source and tag -2 and message 0. A probe gives (source, tag, nbytes, message_id) or None.
    """

    def __init__(self, ranks: int, model_json: str, *, seed: int = 1, timeline: bool = True) -> None: ...
    @property
    def size(self) -> int: ...
    @property
    def is_behind(self) -> bool:
        """Whether a rank's clock may show what it has posted only later: yield and step first."""
    def post(self, rank: int, op: WorldOp) -> int:
        """Post an operation; a send or receive returns its request, anything else 0."""
    def enter(self, rank: int, ps: int, name: str, site: int) -> None:
        """Post a computation and the beginning of the call that ends it: `compute`, then `enter`.

        Before, what `leave` posts.
        """
    def leave(self, rank: int) -> None:
        """Post `exit` if the rank is in a call that `enter` or `exchange` has begun."""
    def exchange(
        self,
        rank: int,
        ps: int,
        name: str,
        site: int,
        context: int,
        receive: tuple[int, int, int],
        send: tuple[int, int, int],
        mode: str,
    ) -> tuple[int, int]:
        """Do as `enter`, post a receive and a send, and wait for both; return their requests, 0 for none.

        `receive` is source, tag and capacity, `send` destination, tag and length; a source or destination of
        -2 is none. What the rank is resumed with is the completion of the receive, or None.
        """
    def record(self) -> None:
        """Keep what ranks post and are answered from now on."""
    def recorded(self) -> list[RankTrace]:
        """Return what has been kept, by rank, and keep no more."""
    @property
    def timed(self) -> bool:
        """Whether an answer to an operation may have depended on time."""
    def step(self) -> list[tuple[int, WorldOutcome]]:
        """Go to the next instant at which ranks can go on; [] if there is none, ever."""
    def replay(
        self,
        traces: Sequence[RankTrace],
        durations_ps: Sequence[Sequence[int]] | None = None,
        asleep_ps: Sequence[Sequence[tuple[int, int]]] | None = None,
    ) -> bool:
        """Do what ranks did in another world, each computation as long as the next of its rank's durations.

        Of the stretches that are numbered in `asleep_ps` the rank sleeps for so long, and needs no core.

        Without durations each takes what the trace says. Returns whether all operations were done; where a
        path depends on time they may not be.
        """
    def serve(
        self,
        path: str,
        goes_on: Callable[[], bool],
        *,
        launched: int,
        tag_bits: int,
        ignored: int,
        apart: int,
        patience: int,
        windows_in_memory: bool,
        own_cores: bool,
        disturbed: tuple[int, float],
        look_ps: int,
        compute_ps: int | None,
        memory_bytes: int,
    ) -> (
        tuple[Literal["done"], list[tuple[int, list[int], int, int]]]
        | tuple[Literal["absent", "spawned", "deadlock", "asked"], tuple[int, str]]
        | tuple[Literal["gone"], tuple[int, list[tuple[int, str, str, int]], list[tuple[int, str]]]]
    ):
        """Let processes be the ranks, which meet the world in memory at `path`, until all have ended.

        `goes_on` is asked now and then whether they are still to. Where the ranks have `own_cores`, each goes
        to one, counted from the last that the process may use, and looks for its turn there instead of
        sleeping; of what the work of a `disturbed` one takes, a share is left out. Returns what each rank
        took, the same by kind, the messages it sent and the turns it had, all between its library's start and
        its end; or why the run ended before: not all ranks came (how many did), a rank went or was ended (and
        what ranks waited and looked for where nothing else happened any more, as from `blocked`; and which
        slept outside their library, in which function of the kernel), all wait for ever, one asked for what
        there is not (its number, and why), or the program spawns more processes than the world has ranks for
        (how many).
        """
    def begun_ps(self, rank: int) -> int:
        """Return when a rank first had a core: 0, or later where it shares cores and another came before."""
    def now_ps(self, rank: int) -> int:
        """Return a rank's clock; see `is_behind`."""
    def blocked(self) -> list[tuple[int, str, str, int]]:
        """Return who waits, for what, in which call, at which site."""
    def blocked_since_ps(self) -> list[tuple[int, int]]:
        """Return who waits, and since when."""
    def totals(self) -> WorldTotals: ...
    def timeline(self) -> WorldTimeline: ...
    def timeline_coarse_ps(self) -> int:
        """Return within how long stretches the timeline has time summed by kind; 0 where it is whole.

        It is not beyond a million intervals; the time of each kind stays what it was.
        """
    def write_chrome_trace(self, path: str | PathLike[str]) -> None:
        """Write the timeline to a file as a Chrome trace (JSON), for Perfetto and the like."""
    def names(self) -> list[str]: ...
    def counts(self) -> tuple[int, int, int]:
        """Return how many messages were sent, were delivered, and are still held."""
    def longest(self) -> int:
        """Return the length of the longest message that was sent, bytes."""
    def digest(self) -> str:
        """Return a digest of every match and completion with its time."""

class RankTrace:
    """What one rank asked of the world and what the world answered, in order."""

    def __len__(self) -> int:
        """Return how many operations it has."""
    def append(self, op: WorldOp, request: int = 0) -> None:
        """Add an operation and the request that it makes, 0 if none."""
    def operations(self) -> list[tuple[tuple[Any, ...], int]]:
        """Return the operations as they were posted, with the request that each made, 0 if none.

        Of a collective that does not block, the first messages stand where it begins, the others where it
        is waited for.
        """
    def outcomes(self) -> list[WorldOutcome]:
        """Return what each suspension ended with."""
    def messages(self) -> list[int]:
        """Return the numbers of the messages that the rank received or found."""
    def sends(self) -> int:
        """Return how many messages it sends."""
    def longest(self) -> int:
        """Return the length of the longest message that it sends, bytes."""
    def is_silent(self) -> bool:
        """Return whether it asks for nothing but time."""
    def calls(self) -> list[str]:
        """Return the names of its calls, each once, in the order of the first of each."""
    def kind(self) -> int:
        """Return a number of what it does, without whom with; for ranks of one world.

        It tells which calls it makes where, how long its messages are, how many requests it waits for.
        """
    @classmethod
    def from_bytes(cls, data: bytes) -> RankTrace:
        """Return the trace that was pickled."""

class TracePlayer:
    """Answers one rank from its trace, as the world did."""

    def __init__(self, trace: RankTrace) -> None: ...
    def post(self, op: WorldOp) -> int:
        """Take the next operation, return the request it made; ValueError where it is another than then."""
    def resume(self) -> tuple[WorldOutcome] | None:
        """Return what the suspended rank is resumed with; None if it is not suspended or never resumed."""

def combined(operation: str, a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[Any] | None:
    """Combine two arrays of numbers of one type by SUM, PROD, MAX or MIN, in compiled loops as libraries do.

    None for another operation, other types of numbers, or arrays that do not lie as the processor reads them.
    Whole numbers wrap around.
    """

def recording_summary(
    folder: str | PathLike[str], ranks: int
) -> tuple[list[tuple[int, int, int, int, int, int]], list[str]]:
    """Return what the ranks of a recorded run did, and the functions that were called and are not recorded.

    By rank: sends, their bytes, receives, collectives, nanoseconds outside MPI and inside. Raises ValueError
    of file, key, value, reason and what is allowed, as do `read_recording` and `read_goal`.
    """

def read_recording(
    folder: str | PathLike[str], ranks: int, compute_scale: float, to: int | None = None
) -> list[RankTrace]:
    """Return what the ranks of a recorded run do, collectives as messages; or `to` ranks, by their places."""

def read_goal(path: str | PathLike[str], data: bytes, unit_ps: float) -> list[RankTrace]:
    """Return what the ranks of a schedule in GOAL do, given as the bytes of its file.

    A calc of 1 takes `unit_ps` picoseconds.
    """

class ScheduleLayout(TypedDict):
    """Where a schedule expects its data in the workspace: (offset, length), bytes."""

    algorithm: str
    input: tuple[int, int]
    output: tuple[int, int]
    workspace_bytes: int

def schedule(
    collective: str,
    algorithm: str,
    rank: int,
    size: int,
    root: int = 0,
    nbytes: int = 0,
    *,
    unit: int = 1,
    commutative: bool = True,
    counts: Sequence[int] | None = None,
    recv_counts: Sequence[int] | None = None,
) -> list[list[tuple[str, int, int, int]]]:
    """Return what one rank does in a collective: rounds of (kind, peer, offset, length).

    All sends and receives of a round start together and must be complete before the next.
    `reduce` is local: combine what the receive before it brought (or, with peer -1, what is in the
    workspace); `copy` is local too. `nbytes` is the message of a broadcast or reduction, and one
    block of the others; `counts` gives blocks by rank instead, with `recv_counts` for an uneven
    all-to-all; `unit` is the length of an element. `algorithm` is `auto` (MPICH's defaults) or a name.
    """

def schedule_layout(
    collective: str,
    algorithm: str,
    rank: int,
    size: int,
    root: int = 0,
    nbytes: int = 0,
    *,
    unit: int = 1,
    commutative: bool = True,
    counts: Sequence[int] | None = None,
    recv_counts: Sequence[int] | None = None,
) -> ScheduleLayout:
    """Return where a schedule's data lie, and the algorithm that `auto` stands for."""

class ProgramOutcome(TypedDict):
    """What one rank of a shipped program reports."""

    elapsed_ps: int
    digest: str
    verified: bool
    points: list[tuple[int, float, int]]

class ProgramRun(TypedDict):
    """A shipped program that has run in the simulated world."""

    outcomes: list[ProgramOutcome]
    end_ps: npt.NDArray[np.uint64]
    totals: WorldTotals
    timeline: NotRequired[WorldTimeline]
    timeline_coarse_ps: NotRequired[int]
    names: list[str]
    messages: int
    congestion: dict[str, int]
    digest: str
    sent_ps: NotRequired[npt.NDArray[np.uint64]]
    sent_bytes: NotRequired[npt.NDArray[np.uint64]]
    sent_to: NotRequired[npt.NDArray[np.uint64]]

def run_program(
    name: str,
    params_json: str,
    model_json: str,
    ranks: int,
    seed: int,
    *,
    traced: int | None = None,
    timeline: bool = False,
    chrome_trace: str | PathLike[str] | None = None,
) -> ProgramRun:
    """Run `echo`, `stream`, `ring`, `jacobi`, `mm`, `pde`, `pde1` or `pde2` in a simulated world.

    Parameters are an object: `bytes` and `rounds` (echo), `bytes` and `messages` (stream), `elements`
    and `rounds` (ring), `rows`, `columns` and `iterations` (jacobi), `n`, `bits`, `rounds`, `down` and
    `across` (mm), `n`, `accuracy`, `down` and `across` (pde, pde2), the same and `check` (pde1);
    `costs_ps` by kind of work (`add`, `stencil-point`, `multiply-add`, `sor-point`, `relax-point`,
    `smooth-point`, `transfer-point`); `fault` (`delivery`,
    `byte`, `flip`) to change a byte on its way. Of the rank `traced`, what it sent is there as well.
    With `timeline`, what each rank did when is there as well; `chrome_trace` is a file to write that to, as
    `World.write_chrome_trace` does. Neither goes together with `traced`.
    """

class ProgramPart(TypedDict):
    """A program that has run among others; times by process, what comes back by rank but the first."""

    end_ps: list[int]
    parts_ps: list[list[int]]
    outcomes: list[ProgramOutcome]
    response_ps: list[npt.NDArray[np.uint64]]
    received_bytes: list[int]

class ProgramsRun(TypedDict):
    """Programs that have run at once."""

    programs: list[ProgramPart]
    end_ps: int
    congestion: dict[str, int]
    digest: str

def run_together(model_json: str, programs_json: str, seed: int) -> ProgramsRun:
    """Run programs at once until those that end have ended; each has `name`, `parameters`, `places`, `stack`.

    Raises
    ------
    ValueError
        What cannot be, with key, value and what is allowed.
    RuntimeError
        A program failed on a rank, or ranks wait for what will not come.
    """

class LanEcho(TypedDict):
    """An echo of one size on a local network."""

    bytes: int
    round_trip_ps: npt.NDArray[np.uint64]
    digest: str
    events: int
    busy_ps: list[int]
    deepest_queue_cells: int
    lost_rounds: int
    switched_cells: int
    switch_lost_cells: int
    sent_segments: int
    retransmitted_segments: int

def lan_echo(
    config_json: str, sizes: Sequence[int], rounds: int, seed: int, patient: bool = False
) -> list[LanEcho]:
    """Echo messages of each size between ranks 0 and 1 of a fresh network; every round trip.

    With `patient`, a round trip of which a message is lost is given up and counted; else it is an error.
    """

class LanSegments(TypedDict):
    """Stretches of time: what, of which layer, keeping which resource of which host or link busy."""

    activity: list[str]
    layer: list[str]
    resource: list[str]
    place: npt.NDArray[np.uint64]
    start_ps: npt.NDArray[np.uint64]
    end_ps: npt.NDArray[np.uint64]
    waited_ps: npt.NDArray[np.uint64]

class LanAnatomy(TypedDict):
    """One message: its critical path, which sums to its latency, and all that was done for it."""

    bytes: int
    begun_ps: int
    ended_ps: int
    path: LanSegments
    busy: LanSegments
    digest: str

def lan_anatomy(config_json: str, size: int, rounds: int, seed: int) -> LanAnatomy:
    """Return the anatomy of the last message from rank 0 to rank 1 in an echo of so many rounds."""

def lan_capture(config_json: str, size: int, rounds: int, seed: int) -> bytes:
    """Return what one host sends and receives in an echo, as a file in the pcap format."""

class LanRun(TypedDict):
    """A program that has run on a local network."""

    elapsed_ps: npt.NDArray[np.uint64]
    points: list[list[tuple[int, float, int]]]
    results: list[str]
    verified: bool
    end_ps: int
    carried_ps: int
    sent_segments: int
    retransmitted_segments: int
    digest: str
    events: int
    lost_cells: int
    circuits: int
    set_up_ps: int
    sent_to_several: int

def lan_run(config_json: str, program: str, params_json: str, seed: int) -> LanRun:
    """Run a shipped program, one rank a host; ``costs_ps`` among its parameters price its work.

    Raises
    ------
    ValueError
        Configuration or parameters are refused.
    RuntimeError
        The program failed on a rank, or ranks wait for what will not come.
    """

class LanFlood(TypedDict):
    """What came of a flood of datagrams, in the second half of its time."""

    length_ps: int
    sent: int
    got: int
    unread: int
    lost: int
    busy_ps: int
    digest: str

def lan_flood(config_json: str, bytes: int, gap_ps: int, length_ps: int, seed: int) -> LanFlood:
    """Flood rank 0 with datagrams from all others, each of which works for a gap between two.

    Raises
    ------
    ValueError
        The configuration or a datagram of this length is refused.
    """

def lan_netpipe(
    config_json: str, sizes: list[int], seed: int, full: bool = False
) -> tuple[list[tuple[int, float, int]], str]:
    """Run NetPIPE over these sizes: by size nanoseconds and round trips made; and the digest of the run.

    A trial stops when its state repeats, unless `full`.

    Raises
    ------
    ValueError
        The configuration is refused.
    RuntimeError
        A message was refused or lost.
    """

def lan_collective(
    config_json: str, collective: str, bytes: int, calls: int, seed: int
) -> tuple[list[int], str]:
    """Return how long each call of a collective of MPI takes, in picoseconds, and the digest of the run.

    Raises
    ------
    ValueError
        Configuration or collective are refused.
    RuntimeError
        A message was lost.
    """

def lan_try(config_json: str, ability: str, seed: int) -> tuple[bool, str]:
    """Try what an interface can do, on three hosts or more; return whether it did, and what came of it."""

def check_lan(config_json: str) -> None:
    """Refuse a configuration of a local network: a ValueError of key, value and what is allowed."""

def pim_pairs(ports: int, probability: float, trials: int, seed: int) -> list[int]:
    """Return the pairs that each round of parallel iterative matching has found, summed over trials.

    In a trial every input asks for every output with this probability. The last entry is the whole of a
    maximal matching.
    """

class SwitchCarries(TypedDict):
    """What a switch of cells does in the second half of a run, as shares of its port-slots."""

    carried: float
    offered: float
    mean_wait_slots: float

def switch_carries(
    scheduler: str, iterations: int, ports: int, load: float, slots: int, seed: int
) -> SwitchCarries:
    """Run a switch under uniform traffic: `pim`, `islip`, `maximum`, `fifo` or `output-queued`."""

def run_sessions(plan_json: str) -> str:
    """Run streams and echoes over a network of cell switches: a plan and a report, both JSON.

    What the report counts of sessions and lines is counted after the warm-up.
    """

class RpcClient:
    """A client of one version of a program, over a real socket.

    Raises
    ------
    OSError
        There is no such host, or no socket.
    ValueError
        A time-out that is not allowed.
    """

    def __new__(
        cls,
        host: str,
        port: int,
        program: int,
        version: int,
        stream: bool,
        timeout_s: float,
        system: tuple[int, int] | None = None,
    ) -> RpcClient: ...
    def call(self, procedure: int, arguments: bytes) -> bytes:
        """Call a procedure: its results, as octets of XDR; ``RuntimeError`` says why there are none."""

class RpcServer:
    """A server of some programs, over TCP and UDP at one port.

    `programs` are program, version and the procedures that there are besides the one that does nothing.
    """

    def __new__(
        cls, host: str, port: int, programs: Sequence[tuple[int, int, Sequence[int]]]
    ) -> RpcServer: ...
    @property
    def port(self) -> int: ...
    def step(self, limit_s: float, react: Callable[[int, int, int, bytes], bytes | None]) -> None:
        """Serve what is there, after waiting no longer than `limit_s`.

        `react` gets program, version, procedure and arguments and returns results, or nothing for arguments
        that are garbage; what it raises is raised here, after the caller was answered with SYSTEM_ERR.
        """

def service_run(scenario_json: str) -> str:
    """Run ports that service categories share: a scenario and a report, both JSON."""
