"""Options that say what is simulated: hosts, their stack, and what joins them; the same for every verb.

A verb takes those that it names as one argument, ``model: Simulated``, by `with_simulated`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wiretwin.cli.where import option, with_options

if TYPE_CHECKING:
    from wiretwin.scenario import Scenario

__all__ = ["NETWORKS_HELP", "Simulated", "with_simulated"]

NETWORKS_HELP = """\b
Networks: TOPOLOGY:rate=…,…  hosts like a twin's, joined as a back-to-back, star, shared-cable, ring, chain,
                             dumbbell, parking-lot, tree, fat-tree; --twin nothing: hosts that cost nothing
          PRESET:key=…,…     ethernet10, fddi, atm, asx100, an2, gige: hosts of their own, under a --stack
          FILE               a TOML file with a table [network], or Slurm's topology.conf:rate=10Gbit/s
                             or topology.yaml, or what ibnetdiscover printed, as a .topo or .txt
"""

OPTIONS: dict[str, Any] = {
    "twin": option(
        "The twin whose host and layers are simulated; `nothing` for hosts that cost nothing.",
        None,
        Path | None,
    ),
    "layer": option(
        "The layer of the twin that messages take, or the stack of a network with hosts of its own; live "
        "the layer of a compiled program or the library of a script.",
        None,
        str | None,
        "--layer",
        "--stack",
        shown="mpi4py/mpich; a compiled program: socket/tcp",
    ),
    "network": option(
        "What joins the hosts, such as fat-tree:hosts=64,rate=100Gbit/s, asx100, or a file; see above.",
        None,
        shown="none: all ranks on one host",
    ),
    "fidelity": option(
        "How finely messages are followed through the network: message (they share its lines max-min "
        "fairly), packet (over its ports, by TCP or, under a +direct stack, by the direct transport) or cell "
        "(over circuits of ATM switches).",
        None,
        shown="message; on a preset what it has",
    ),
    "ranks_per_host": option(
        "Ranks on each host of the network.", None, int | None, shown="1 with --network"
    ),
}


@dataclass(frozen=True, slots=True)
class Simulated:
    """What is simulated, as asked for; what a verb does not name is none.

    Attributes
    ----------
    twin, layer, network, ranks_per_host
        As `wiretwin.predict` takes them; the network's text has the fidelity in it.
    """

    twin: Path | None
    layer: str | None
    network: str | None
    ranks_per_host: int | None

    @classmethod
    def read(cls, options: Mapping[str, Any]) -> Simulated:
        """Return what the options say.

        Raises
        ------
        InputError
            There is a fidelity and no network.
        """
        network, fidelity = options.get("network"), options.get("fidelity")
        if fidelity is not None:
            if network is None:
                from wiretwin.errors import InputError

                raise InputError(key="--fidelity", value=fidelity, allowed="with --network")
            network += f"{',' if ':' in network else ':'}fidelity={fidelity}"
        return cls(options.get("twin"), options.get("layer"), network, options.get("ranks_per_host"))

    @property
    def keywords(self) -> dict[str, Any]:
        """What `wiretwin.predict` and its like take."""
        return {name: getattr(self, name) for name in ("twin", "layer", "network", "ranks_per_host")}

    def moved(self, scenario: Scenario) -> Scenario:
        """Return a scenario where these options put it.

        Raises
        ------
        InputError
            The scenario has no network, or several programs and a stack was given.
        """
        return scenario.on(
            network=self.network, twin=self.twin, ranks_per_host=self.ranks_per_host, stack=self.layer
        )

    def refuse(self, allowed: str) -> None:
        """Reject what has a meaning in the simulated world alone.

        Raises
        ------
        InputError
            A network was given, or how many ranks each of its hosts has.
        """
        from wiretwin.errors import InputError

        for name in ("network", "ranks_per_host"):
            if (value := getattr(self, name)) is not None:
                raise InputError(key=f"--{name.replace('_', '-')}", value=value, allowed=allowed)


def with_simulated(*but: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a verb these options but some; it takes them as ``model``."""
    chosen = {name: one for name, one in OPTIONS.items() if name not in but}
    return lambda verb: with_options(verb, "model", chosen, Simulated.read)
