//! Work that was done and not yet put out, summed by kind.

use wiretwin_units::Bytes;

use crate::{Work, WorkKind};

/// The kinds that a TCP puts out, in the order in which it does.
const KINDS: [WorkKind; 8] = [
    WorkKind::TimerExpiry,
    WorkKind::SegmentIn,
    WorkKind::Checksum,
    WorkKind::AckIn,
    WorkKind::Wakeup,
    WorkKind::CopyOut,
    WorkKind::CopyIn,
    WorkKind::SegmentOut,
];

#[derive(Clone, Copy, Debug)]
pub(super) struct Tally {
    octets: [u32; KINDS.len()],
    counts: [u8; KINDS.len()],
    /// Which of the sums are not empty, a bit each.
    filled: u8,
}

impl Tally {
    pub(super) const NONE: Self = Self { octets: [0; KINDS.len()], counts: [0; KINDS.len()], filled: 0 };

    /// Adds work; a count stops at 255.
    pub(super) fn add(&mut self, kind: WorkKind, octets: u32, count: u32) {
        let Some(index) = KINDS.iter().position(|&each| each == kind) else { return };
        self.octets[index] = self.octets[index].saturating_add(octets);
        self.counts[index] = self.counts[index].saturating_add(count.min(255) as u8);
        self.filled |= 1 << index;
    }

    /// The next sum.
    pub(super) fn take(&mut self) -> Option<Work> {
        if self.filled == 0 {
            return None;
        }
        let index = self.filled.trailing_zeros() as usize;
        self.filled &= self.filled - 1;
        let octets = core::mem::take(&mut self.octets[index]);
        let count = core::mem::take(&mut self.counts[index]);
        Some(Work { kind: KINDS[index], bytes: Bytes::new(u64::from(octets)), count: u32::from(count) })
    }
}
