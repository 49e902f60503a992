"""What is simulated, as typed objects: networks.

- `network`: how hosts are joined, by a topology's name and parameters or by a list of nodes and lines
"""

from wiretwin.model.network import Network

__all__ = ["Network"]
