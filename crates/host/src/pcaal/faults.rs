//! Faults that a sender makes by itself, on the way to its sockets.

use std::time::{Duration, Instant};

/// What is done to the datagrams of an end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Of a hundred datagrams, so many are lost: 0 to 100.
    pub loss_percent: u32,
    /// And so many are sent twice: 0 to 100.
    pub repeat_percent: u32,
    /// Each is held for up to so long, so that they overtake each other.
    pub jitter: Duration,
    /// The ordinary circuit holds each for so long more, while it is congested.
    pub congestion: Duration,
    /// It is congested from the message of this number on to before that of the second, counted from 0 as
    /// they are handed in.
    pub congested: (u64, u64),
    /// What the chances begin from.
    pub seed: u64,
}

impl Faults {
    /// Congestion whatever the message.
    pub const ALWAYS: (u64, u64) = (0, u64::MAX);

    /// Whether nothing is done at all.
    const fn is_none(&self) -> bool {
        let congested = !self.congestion.is_zero() && self.congested.0 < self.congested.1;
        self.loss_percent == 0 && self.repeat_percent == 0 && self.jitter.is_zero() && !congested
    }
}

/// A datagram that is held back.
#[derive(Clone, Debug)]
pub(super) struct Held {
    at: Instant,
    pub circuit: usize,
    pub octets: Vec<u8>,
}

/// Chances, and what they hold back.
#[derive(Debug)]
pub(super) struct Mischief {
    pub faults: Faults,
    chance: u64,
    held: Vec<Held>,
}

impl Mischief {
    pub(super) const fn new(faults: Faults) -> Self {
        let chance = faults.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        Self { faults, chance, held: Vec::new() }
    }

    /// Whether datagrams go by themselves.
    pub(super) const fn is_idle(&self) -> bool {
        self.faults.is_none() && self.held.is_empty()
    }

    /// Takes a datagram; `message` is the number of those handed in so far.
    pub(super) fn take(&mut self, circuit: usize, octets: &[u8], message: u64) {
        let Faults { loss_percent, repeat_percent, jitter, congestion, congested, .. } = self.faults;
        let copies = 1 + u32::from(self.below(100) < repeat_percent.into());
        for _ in 0..copies {
            let mut delay = Duration::from_nanos(self.below(jitter.as_nanos() as u64 + 1));
            if self.below(100) < loss_percent.into() {
                continue;
            }
            if circuit == 0 && (congested.0..congested.1).contains(&message) {
                delay += congestion;
            }
            self.held.push(Held { at: Instant::now() + delay, circuit, octets: octets.to_vec() });
        }
    }

    /// What has been held back for long enough, in the order in which it goes.
    pub(super) fn due(&mut self) -> Vec<Held> {
        if self.held.is_empty() {
            return Vec::new();
        }
        let now = Instant::now();
        let (mut due, held): (Vec<Held>, Vec<Held>) = self.held.drain(..).partition(|held| held.at <= now);
        self.held = held;
        due.sort_by_key(|held| held.at);
        due
    }

    /// How long until the next may go.
    pub(super) fn wait(&self) -> Option<Duration> {
        let now = Instant::now();
        self.held.iter().map(|held| held.at.saturating_duration_since(now)).min()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    const fn below(&mut self, bound: u64) -> u64 {
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        (self.chance >> 11) % bound
    }
}
