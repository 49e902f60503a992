//! What happened in a run: a digest to compare runs by, and a recording to find where two part.
//!
//! A model calls [`Trace::record`] at every point that is to be the same in two runs. It is written
//! against the trait, so that a run costs nothing for it ([`Untraced`]), a hash ([`TraceDigest`]) or
//! memory ([`TraceRecorder`]).

use alloc::vec::Vec;
use core::fmt;
use core::hash::Hasher as _;

use siphasher::sip128::{Hasher128 as _, SipHasher13};
use wiretwin_units::SimTime;

/// One observable point of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceEvent {
    /// The simulated time at which it happened.
    pub time: SimTime,
    /// What, in the model's own numbering.
    pub kind: u32,
    /// To whom or what: a rank, a port, a message.
    pub a: u64,
    /// A further value: a length, a sequence number.
    pub b: u64,
}

impl fmt::Display for TraceEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {}: kind {}, a {}, b {}", self.time, self.kind, self.a, self.b)
    }
}

/// Something that is told what happens.
pub trait Trace {
    /// Takes note of one event. Events come in the order in which they happen.
    fn record(&mut self, event: TraceEvent);
}

/// Takes note of nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Untraced;

impl Trace for Untraced {
    fn record(&mut self, _: TraceEvent) {}
}

/// A digest of 128 bits over all events: SipHash-1-3 (Aumasson and Bernstein 2012) with a key of
/// zero, over time, kind, a and b of each event in turn as little-endian numbers of 64 bits.
///
/// Equal runs have equal digests on every machine and in every version; it is no protection against
/// someone who makes two runs collide on purpose.
#[derive(Clone, Debug)]
pub struct TraceDigest {
    hasher: SipHasher13,
    events: u64,
}

impl Default for TraceDigest {
    fn default() -> Self {
        Self::new()
    }
}

impl TraceDigest {
    /// The digest of nothing yet.
    pub fn new() -> Self {
        Self { hasher: SipHasher13::new(), events: 0 }
    }

    /// How many events it covers.
    pub const fn events(&self) -> u64 {
        self.events
    }

    /// The digest of what came so far.
    pub fn value(&self) -> Digest {
        Digest(self.hasher.finish128().as_u128())
    }
}

impl Trace for TraceDigest {
    fn record(&mut self, event: TraceEvent) {
        let mut bytes = [0; 32];
        let words = [event.time.as_ps(), u64::from(event.kind), event.a, event.b];
        for (into, word) in bytes.chunks_exact_mut(8).zip(words) {
            into.copy_from_slice(&word.to_le_bytes());
        }
        self.hasher.write(&bytes);
        self.events += 1;
    }
}

/// The value of a [`TraceDigest`]; prints as 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digest(u128);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// Keeps every event, for tests and for finding where two runs part.
#[derive(Clone, Debug, Default)]
pub struct TraceRecorder {
    digest: TraceDigest,
    events: Vec<TraceEvent>,
}

impl TraceRecorder {
    /// A recording of nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// What happened, in order.
    pub fn events(&self) -> &[TraceEvent] {
        &self.events
    }

    /// The digest that a [`TraceDigest`] of the same run has.
    pub fn digest(&self) -> Digest {
        self.digest.value()
    }

    /// Where this run and `other` part, if they do.
    pub fn first_difference(&self, other: &Self) -> Option<Difference> {
        let common = self.events.iter().zip(&other.events).take_while(|(a, b)| a == b).count();
        let (left, right) = (self.events.get(common).copied(), other.events.get(common).copied());
        if left.is_none() && right.is_none() { None } else { Some(Difference { index: common, left, right }) }
    }
}

impl Trace for TraceRecorder {
    fn record(&mut self, event: TraceEvent) {
        self.digest.record(event);
        self.events.push(event);
    }
}

/// The first event in which two runs differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// How many events are the same before it.
    pub index: usize,
    /// The event of the one run; `None` where it has ended.
    pub left: Option<TraceEvent>,
    /// The event of the other.
    pub right: Option<TraceEvent>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fn side(f: &mut fmt::Formatter<'_>, event: Option<TraceEvent>) -> fmt::Result {
            match event {
                Some(event) => write!(f, "{event}"),
                None => f.write_str("the end of the run"),
            }
        }
        write!(f, "after {} equal events, one run has ", self.index)?;
        side(f, self.left)?;
        f.write_str("; the other has ")?;
        side(f, self.right)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn event(time: u64, kind: u32, a: u64, b: u64) -> TraceEvent {
        TraceEvent { time: SimTime::from_ps(time), kind, a, b }
    }

    #[test]
    fn the_digest_is_pinned() {
        let mut digest = TraceDigest::new();
        assert_eq!(digest.value().to_string(), "b91c5ed031fb33032134935d61d9b40d");
        digest.record(event(1, 2, 3, 4));
        digest.record(event(u64::MAX, u32::MAX, 0, u64::MAX));
        assert_eq!(digest.value().to_string(), "c95ad8f748844649b4e5207bcef98adf");
        assert_eq!(digest.events(), 2);
    }

    #[test]
    fn every_field_and_the_order_of_events_change_the_digest() {
        let digest = |events: &[TraceEvent]| {
            let mut digest = TraceDigest::new();
            events.iter().for_each(|&event| digest.record(event));
            digest.value()
        };
        let (one, two) = (event(1, 2, 3, 4), event(5, 6, 7, 8));
        let base = digest(&[one, two]);
        for changed in [event(9, 2, 3, 4), event(1, 9, 3, 4), event(1, 2, 9, 4), event(1, 2, 3, 9)] {
            assert_ne!(digest(&[changed, two]), base);
        }
        assert_ne!(digest(&[two, one]), base);
        assert_ne!(digest(&[one]), base);
        assert_eq!(digest(&[one, two]), base);
    }

    #[test]
    fn a_recording_has_the_digest_of_its_run_and_names_the_first_difference() {
        let (mut left, mut right, mut digest) =
            (TraceRecorder::new(), TraceRecorder::new(), TraceDigest::new());
        for time in 0..5 {
            left.record(event(time, 1, 0, 0));
            digest.record(event(time, 1, 0, 0));
            right.record(event(time, 1, 0, if time == 3 { 7 } else { 0 }));
        }
        assert_eq!(left.digest(), digest.value());
        assert_eq!(left.first_difference(&left.clone()), None);
        assert_eq!(
            left.first_difference(&right).map(|difference| difference.to_string()).as_deref(),
            Some(
                "after 3 equal events, one run has at 3 ps: kind 1, a 0, b 0; \
                 the other has at 3 ps: kind 1, a 0, b 7"
            )
        );
    }

    #[test]
    fn a_run_that_ends_early_differs_at_its_end() {
        let (mut left, right) = (TraceRecorder::new(), TraceRecorder::new());
        left.record(event(1, 1, 1, 1));
        let difference = left.first_difference(&right).unwrap();
        assert_eq!((difference.index, difference.right), (0, None));
        assert!(difference.to_string().ends_with("the other has the end of the run"));
    }
}
