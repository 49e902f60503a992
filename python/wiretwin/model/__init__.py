"""What is simulated, as typed objects: hosts and networks.

- `network`: how hosts are joined, by a topology's name and parameters or by a list of nodes and lines
- `host`: what a host of the local networks costs
- `local`: networks of the 1990s by name, their hosts and adapters in every detail
"""

from wiretwin.model.host import Host
from wiretwin.model.local import LocalNetwork, read_network
from wiretwin.model.network import Network

__all__ = ["Host", "LocalNetwork", "Network", "read_network"]
