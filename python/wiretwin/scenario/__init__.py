"""Scenarios: what to simulate, as one file; and running it."""

from wiretwin.scenario.model import Scenario
from wiretwin.scenario.run import Outcome, simulate

__all__ = ["Outcome", "Scenario", "simulate"]
