//! A finite queue before a transmitter, without an event for each departure.

use std::collections::VecDeque;

use wiretwin_units::{Bits, SimTime, Span, Transmission, Transmitter};

/// A transmitter and the pieces that wait for it.
///
/// When a piece will leave is known as soon as it comes, so nothing is kept of it but that time and
/// the room it takes until then.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    line: Transmitter,
    waiting: VecDeque<(SimTime, u64)>,
    taken: u64,
    room: u64,
}

impl Queue {
    /// `room` is what may wait, the piece being sent apart, in whatever unit pieces are pushed with.
    pub fn new(line: Transmitter, room: u64) -> Self {
        Self { line, waiting: VecDeque::new(), taken: 0, room }
    }

    /// Takes a piece of this many bits that needs `room` while it waits, and a silence after it: when
    /// its bits are on the line, or `None` if the queue is full.
    pub fn push(&mut self, now: SimTime, bits: Bits, gap: Bits, room: u64) -> Option<Transmission> {
        while let Some(&(start, freed)) = self.waiting.front()
            && start <= now
        {
            self.waiting.pop_front();
            self.taken -= freed;
        }
        let waits = self.line.is_busy(now);
        if waits && self.taken + room > self.room {
            return None;
        }
        let mut line = self.line;
        // A piece that would end after the last instant there is finds no room either.
        let sent = line.send(now, bits).ok()?;
        line.send(sent.end, gap).ok()?;
        self.line = line;
        if waits {
            self.waiting.push_back((sent.start, room));
            self.taken += room;
        }
        Some(sent)
    }

    /// The time that bits take from now on, rounded up.
    pub fn time_for(&self, bits: Bits) -> Span {
        self.line.rate().time_for(bits).unwrap_or(Span::MAX)
    }
}
