"""A host for tests of the fit: one whose loops take what its lines say."""

from __future__ import annotations

from wiretwin.fit.synthetic import Lines, Machine

HOST = Machine(
    send=Lines(((0, 300.0, 0.02),)),
    recv=Lines(((0, 400.0, 0.03),)),
    latency=Lines(((0, 200.0, 0.01),)),
    gap=Lines(((0, 500.0, 0.05),)),
    call_ns=90.0,
)
