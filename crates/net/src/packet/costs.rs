//! What hosts take for protocol work, where they are to take any time at all.

use std::collections::VecDeque;

use wiretwin_proto::{Work, WorkKind};
use wiretwin_units::{SimTime, Span};

/// Prices of one processor that does one thing after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// For each segment sent or received.
    pub per_segment: Span,
    /// For each octet copied between user and kernel.
    pub per_octet_copied: Span,
    /// For each octet of a checksum.
    pub per_octet_summed: Span,
    /// For each acknowledgment, timer and wake-up.
    pub per_event: Span,
}

impl Costs {
    /// What work takes.
    pub fn price(&self, work: Work) -> Span {
        let times = |span: Span, count: u64| Span::from_ps(span.as_ps().saturating_mul(count));
        match work.kind {
            WorkKind::SegmentIn | WorkKind::SegmentOut => times(self.per_segment, work.count.into()),
            WorkKind::CopyIn | WorkKind::CopyOut => times(self.per_octet_copied, work.bytes.get()),
            WorkKind::Checksum => times(self.per_octet_summed, work.bytes.get()),
            WorkKind::AckIn | WorkKind::TimerExpiry | WorkKind::Wakeup => {
                times(self.per_event, work.count.into())
            }
            _ => Span::ZERO,
        }
    }
}

/// A host's processor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Processor {
    pub costs: Option<Costs>,
    /// When it is done with all that it was given.
    pub free_at: SimTime,
    /// Packets that arrived and wait for it.
    pub waiting: VecDeque<u32>,
}

impl Processor {
    pub(crate) fn pay(&mut self, now: SimTime, work: Work) {
        if let Some(costs) = &self.costs {
            self.free_at = self.free_at.max(now) + costs.price(work);
        }
    }

    /// When what is done now leaves the host.
    pub(crate) fn done(&self, now: SimTime) -> SimTime {
        self.free_at.max(now)
    }
}
