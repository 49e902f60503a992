//! What is scheduled: an instant, a place in the order of scheduling, and an index of the client's.

use wiretwin_units::SimTime;

/// A scheduled event, 24 bytes.
///
/// Its key is (`time`, `seq`): events run in the order of time, and those of one instant in the order
/// in which they were scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When it happens.
    pub time: SimTime,
    /// Its place in the order of scheduling, from 0, never repeated within a run.
    pub seq: u64,
    /// What happens: an index into the client's own tables, free for it to divide (32 bits of slot
    /// and 32 of generation, say, where events are to be cancelled).
    pub index: u64,
}

impl Event {
    /// The key in one number: the time above the sequence number.
    pub(crate) const fn key(&self) -> u128 {
        (self.time.as_ps() as u128) << 64 | self.seq as u128
    }
}

const _: () = assert!(size_of::<Event>() == 24, "an event is 24 bytes");
