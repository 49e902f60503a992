//! What is scheduled: an instant, a place in the order of scheduling, and what happens.

use wiretwin_units::SimTime;

/// A scheduled event, 24 bytes.
///
/// Its key is (`time`, `seq`): events run in the order of time, and those of one instant in the order
/// in which they were scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<E = u64> {
    /// When it happens.
    pub time: SimTime,
    /// Its place in the order of scheduling, from 0, never repeated within a run.
    pub seq: u64,
    /// What happens: the client's own type of at most 8 bytes, such as an enum whose variants say the kind and hold
    /// the number of the part that the event is for.
    pub what: E,
}

impl<E> Event<E> {
    /// The key in one number: the time above the sequence number.
    #[inline]
    pub(crate) const fn key(&self) -> u128 {
        (self.time.as_ps() as u128) << 64 | self.seq as u128
    }
}

const _: () = assert!(size_of::<Event>() == 24, "an event is 24 bytes");

/// Something that takes events of type `E` into its future.
///
/// A part of a network asks for its events through this trait, so that the same part runs on a [`Schedule`] of its
/// own and inside a larger simulation, whose events are of a wider type.
///
/// [`Schedule`]: crate::Schedule
pub trait EventSink<E> {
    /// Takes an event that happens at `time`, which is not before the clock.
    fn put(&mut self, time: SimTime, what: E);
}
