"""What the ranks of a program asked of MPI, recorded from a real run, and done again over any network."""

from wiretwin.trace.format import Trace
from wiretwin.trace.goal import read_goal, write_goal
from wiretwin.trace.operations import Operations, operations
from wiretwin.trace.record import record
from wiretwin.trace.replay import replay

__all__ = ["Operations", "Trace", "operations", "read_goal", "record", "replay", "write_goal"]
