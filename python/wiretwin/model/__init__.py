"""What is simulated, as typed objects: networks.

- `network`: how hosts are joined, by a topology's name and parameters or by a list of nodes and lines
- `local`: networks of the 1990s by name, their hosts and adapters in every detail
"""

from wiretwin.model.local import LocalNetwork, read_network
from wiretwin.model.network import Network

__all__ = ["LocalNetwork", "Network", "read_network"]
