"""Published measurements rebuilt: profiles as data, fits to calibration figures, blind predictions."""

from wiretwin.papers.records import Record, Role
from wiretwin.papers.run import PAPERS, run_paper

__all__ = ["PAPERS", "Record", "Role", "run_paper"]
