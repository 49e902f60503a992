"""Options that say where ranks live and what joins their hosts: the same for every verb that has them.

A verb takes them as one argument: ``link: Link`` by `with_link`, ``where: Where`` by `with_place`.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from pathlib import Path

    from wiretwin.place import Place
    from wiretwin.testbed.plan import Link

__all__ = ["LINKS_HELP", "Launcher", "Where", "option", "with_link", "with_options", "with_place"]


class Launcher(StrEnum):
    """How something is started on another machine."""

    ssh = "ssh"
    srun = "srun"
    mpiexec = "mpiexec"


LINKS_HELP = """\b
Links: veth    virtual Ethernet and a bridge, as fast as it goes
       shared  the same, all hosts sharing --rate fairly; for programs, not for round trips
       wire    holds every frame for its serialisation time at --rate plus --delay; needs /dev/net/tun
"""


def option(text: str, default: Any, kind: Any = str | None, *names: str, shown: Any = "none") -> Any:
    """Return an option for `with_options`: its help, default, type, and names if not its own."""
    declared = Annotated[kind, typer.Option(*names, help=text, show_default=shown)]
    return inspect.Parameter("_", inspect.Parameter.KEYWORD_ONLY, default=default, annotation=declared)


LINK_OPTIONS: dict[str, Any] = {
    "link": option("What joins the hosts: veth, shared, wire.", "veth", str, shown=True),
    "rate": option("Of shared and wire, such as 10Mbit.", None, shown=False),
    "delay": option("Of wire, one way, such as 5us.", None),
    "mtu": option("Largest packet in bytes, 576 to 9000.", 1500, int, shown=True),
    "offload": option(
        "Segmentation offload on veth: up to 64 KiB at a time.",
        True,
        bool,
        "--offload/--no-offload",
        shown=True,
    ),
    "medium": option("Of wire: duplex, or shared, one for all hosts.", None, shown="duplex"),
    "loss": option("Share of frames lost on wire, such as 0.1%.", None),
    "duplicate": option("Share of frames duplicated on wire.", None),
    "reorder": option("Share of frames overtaken on wire.", None),
    "corrupt": option("Share of frames damaged on wire.", None),
    "only": option("Protocol whose packets these act on: tcp, udp, icmp.", None, shown="all"),
    "hold": option("A class (DSCP) of packets that wire holds, and how long: 8=30ms.", None),
    "strict_priority": option(
        "Classes (DSCP) with a queue each, first to last, before all others: 46.", None
    ),
    "weights": option("Classes and weights by which queues share the wire: 46=3,others=1.", None),
    "queue": option("Of wire: what may wait in each queue of a switch, such as 64KiB.", None, shown="512KiB"),
    "background": option("Load on a class of wire, as a share of the rate: 0=0.7, h2:0=0.7.", None),
    "sources": option(
        "Sources of this load on the way to a host, at twice their mean while on.", None, shown="10"
    ),
    "burst": option("How long a source of this load is on, on average.", None, shown="100ms"),
    "switches": option("Of veth: switches in a row, the hosts in even parts at each.", 1, int, shown=True),
    "slow": option("Of veth: hosts, or the trunk between switches, at a lower rate: h3=100Mbit.", None),
    "link_seed": option("Random seed of the link ``wire``.", 1, int, shown=True),
}
PLACE_OPTIONS: dict[str, Any] = {
    "hosts": option("Hosts of a testbed, made for this run.", None, int | None, shown="this host"),
    "testbed": option("A testbed that is up, by its name.", None, shown=False),
    "between": option(
        "Two machines, as ssh knows them; no login may ask for a password.",
        None,
        tuple[str, str] | None,
        shown=False,
    ),
    "launcher": option(
        "How the machines of --between are reached; without it, the nodes of this job of Slurm.",
        None,
        Launcher | None,
        shown="ssh, with --between",
    ),
    "ssh_option": option("For ssh, as after its -o: Port=2222. May be given again.", None, list[str] | None),
    "remote_python": option(
        "The Python on the machines that has wiretwin.", "python3", str, shown="python3 on the path"
    ),
}


def _link(options: Mapping[str, Any]) -> Link:
    from wiretwin.testbed.plan import OUTPUTS, RULES, parse_link

    return parse_link(
        options["link"],
        rate=options["rate"],
        delay=options["delay"],
        mtu=options["mtu"],
        offload=options["offload"],
        medium=options["medium"],
        rules={name: options[name] for name in RULES},
        seed=options["link_seed"],
        hold=options["hold"],
        only=options["only"],
        switches=options["switches"],
        slow=options["slow"],
        outputs={name: options[name] for name in OUTPUTS},
    )


@dataclass(frozen=True, slots=True)
class Where:
    """Where the ranks shall live, as asked for."""

    options: Mapping[str, Any]

    @property
    def here(self) -> bool:
        """Whether this host alone was asked for."""
        return all(self.options[key] is None for key in ("hosts", "testbed", "between", "launcher"))

    def refuse(self, allowed: str) -> None:
        """Reject options of a place where there is none.

        Raises
        ------
        InputError
            One was given.
        """
        from wiretwin.errors import InputError

        for key, parameter in (PLACE_OPTIONS | LINK_OPTIONS).items():
            if self.options[key] not in (parameter.default, []):
                option = "--no-offload" if key == "offload" else f"--{key.replace('_', '-')}"
                raise InputError(key=option, reason="says where ranks live", allowed=allowed)

    def _alone(self, option: str, others: Iterable[str]) -> None:
        """Reject options that contradict another one."""
        from wiretwin.errors import InputError

        for key in others:
            if self.options[key] != {**PLACE_OPTIONS, **LINK_OPTIONS}[key].default:
                name = "--no-offload" if key == "offload" else f"--{key.replace('_', '-')}"
                raise InputError(key=name, allowed=f"without --{option}: those machines have a network")

    def _between(self, words: Sequence[str] | None) -> Iterator[Place]:
        """Yield machines over ssh, by srun or by mpiexec: two, or all of the allocation."""
        from wiretwin.errors import InterruptedRun
        from wiretwin.remote import Remote
        from wiretwin.remote.slurm import allocated

        options, python = self.options["ssh_option"] or (), self.options["remote_python"]
        try:
            if self.options["launcher"] == Launcher.srun:
                self._alone("launcher srun", ("ssh_option",))
                made = Remote.allocated(words or (), python=python)
            elif self.options["launcher"] == Launcher.mpiexec:
                self._alone("launcher mpiexec", ("ssh_option",))
                made = Remote.launched(words or allocated(launcher="mpiexec")[1], python=python)
            else:
                made = Remote.up(words or allocated(launcher="ssh")[1], options=options, python=python)
            with made as place:
                yield place
        except KeyboardInterrupt:
            raise InterruptedRun("interrupted") from None

    @contextlib.contextmanager
    def place(self, *, round_trips: bool, program: Path | None = None) -> Iterator[Place]:
        """Yield the place, which is made for the occasion and gone afterwards unless it stood before.

        Parameters
        ----------
        round_trips
            Whether single messages are timed, which a link of token buckets would distort.
        program
            A file that the hosts are to see.

        Raises
        ------
        InputError, MeasureError
            An option is wrong, or the hosts cannot see the program; the place cannot be made.
        InterruptedRun
            By the user, in the middle of making or removing it.
        """
        from wiretwin.errors import InputError, InterruptedRun
        from wiretwin.place import HERE

        hosts, name, between = (self.options[key] for key in ("hosts", "testbed", "between"))
        if between is not None or self.options["launcher"] is not None:
            self._alone("launcher" if between is None else "between", ("hosts", "testbed", *LINK_OPTIONS))
            yield from self._between(between)
            return
        for key in ("ssh_option", "remote_python"):
            if self.options[key] not in (PLACE_OPTIONS[key].default, []):
                option = f"--{key.replace('_', '-')}"
                raise InputError(key=option, reason="is for machines over ssh", allowed="with --between A B")
        if hosts is None:
            for key, parameter in LINK_OPTIONS.items():
                if self.options[key] != parameter.default:
                    option = "--no-offload" if key == "offload" else f"--{key.replace('_', '-')}"
                    raise InputError(
                        key=option, reason="says what joins hosts, and there is one", allowed="with --hosts 2"
                    )
            if name is None:
                yield HERE
                return
        elif name is not None:
            raise InputError(key="--testbed", value=name, allowed="without --hosts: that one stands already")
        from wiretwin.testbed import Testbed
        from wiretwin.testbed.plan import folder_of

        try:
            if hosts is None:
                bed = Testbed.find(name)
                if program is not None:
                    folder_of(program, bed.name, bed.visible)
                _check_wire(bed.describe()["link"]["kind"], round_trips)
                yield bed
                return
            if hosts < 2:
                raise InputError(key="--hosts", value=hosts, allowed="2 to 64; without it, this host")
            link = _link(self.options)
            _check_wire(link.kind, round_trips)
            share = [] if program is None else folder_of(program)
            with Testbed.up(hosts, link, share=share) as bed:
                yield bed
        except KeyboardInterrupt:
            raise InterruptedRun("interrupted") from None


def _check_wire(kind: str, round_trips: bool) -> None:
    from wiretwin.errors import InputError

    if round_trips and kind == "shared":
        raise InputError(
            key="--link",
            value=kind,
            reason="is made of token buckets: a message that finds them full takes no time, so round trips "
            "come out wrong",
            allowed="wire --medium shared, which holds every frame; shared is for `wiretwin run`",
        )


def with_link(verb: Callable[..., None]) -> Callable[..., None]:
    """Give a verb the options of a link; it takes them as ``link``."""
    return with_options(verb, "link", LINK_OPTIONS, _link)


def with_place(verb: Callable[..., None]) -> Callable[..., None]:
    """Give a verb the options of a place; it takes them as ``where``."""
    return with_options(verb, "where", {**PLACE_OPTIONS, **LINK_OPTIONS}, Where)


def with_options(
    verb: Callable[..., None],
    argument: str,
    options: Mapping[str, Any],
    read: Callable[[Mapping[str, Any]], Any],
) -> Callable[..., None]:
    """Give a verb options besides its own; it takes what is read of them as one argument."""
    signature = inspect.signature(verb, eval_str=True, locals={"Link": Any})
    own = [parameter for name, parameter in signature.parameters.items() if name != argument]
    added = [parameter.replace(name=name) for name, parameter in options.items()]

    @functools.wraps(verb)
    def call(*arguments: Any, **keywords: Any) -> None:
        given = {name: keywords.pop(name) for name in options}
        verb(*arguments, **keywords, **{argument: read(given)})

    both = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own] + added
    call.__signature__ = signature.replace(parameters=both)  # type: ignore[attr-defined]
    call.__annotations__ = {parameter.name: parameter.annotation for parameter in both}
    del call.__wrapped__
    return call
