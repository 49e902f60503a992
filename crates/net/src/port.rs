//! An output port: what waits for a line, and the transmitter that sends it.
//!
//! One line takes units (packets, frames or cells) from one port. The port says at once when the last bit of a unit
//! will have left, or that it has no room for the unit: a queue that is served first in, first out, and that nothing
//! holds back, needs no events of its own.

use std::collections::VecDeque;

use wiretwin_plan::Queue;
use wiretwin_units::{BitRate, Bytes, SimTime, Span, Transmitter};

/// What a port is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortSpec {
    /// Bits of units and of what each is wrapped in, per second.
    pub rate: BitRate,
    /// What the line carries for each unit besides the unit.
    pub framing: Bytes,
    /// How much may wait; `None` for a port that loses nothing.
    pub queue: Option<Queue>,
}

/// What a port has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortCounters {
    /// Units that were offered.
    pub offered: u64,
    /// Of these, units that found no room.
    pub dropped: u64,
    /// Bytes of the units that were taken, without framing.
    pub bytes: Bytes,
    /// The longest time for which a unit that was taken waits until its first bit leaves.
    pub longest_wait: Span,
}

/// How a port with a bounded queue finds out whether there is room.
#[derive(Clone, Debug)]
enum Discard {
    /// There always is.
    Never,
    /// By counting: fewer than `most` units are waiting or being sent. The times at which those leave are kept.
    Units { most: usize, leaving: VecDeque<SimTime> },
    /// By time: what waits and the unit itself take the line no longer than this.
    Bytes { most: Span },
}

/// An output port. See the module's description.
#[derive(Clone, Debug)]
pub struct Port {
    transmitter: Transmitter,
    framing: Bytes,
    discard: Discard,
    counters: PortCounters,
}

impl Port {
    /// A port at which nothing waits.
    #[must_use]
    pub fn new(spec: PortSpec) -> Self {
        let discard = match spec.queue {
            None => Discard::Never,
            Some(Queue::Packets(most)) => Discard::Units { most: most as usize, leaving: VecDeque::new() },
            Some(Queue::Bytes(most)) => {
                Discard::Bytes { most: spec.rate.time_for(most.bits()).unwrap_or(Span::MAX) }
            }
        };
        Self {
            transmitter: Transmitter::new(spec.rate),
            framing: spec.framing,
            discard,
            counters: PortCounters::default(),
        }
    }

    /// Takes a unit at `now` and says when its last bit has left; `None` where there is no room. Units are offered in
    /// the order of time.
    ///
    /// # Panics
    /// Where the unit would still be on the line at the end of time, 213 days after the start.
    #[inline]
    pub fn take(&mut self, now: SimTime, bytes: u32) -> Option<SimTime> {
        self.counters.offered += 1;
        let bytes = Bytes::new(u64::from(bytes));
        let bits = (bytes + self.framing).bits();
        match &mut self.discard {
            Discard::Never => {}
            Discard::Units { most, leaving } => {
                while leaving.front().is_some_and(|left| *left <= now) {
                    leaving.pop_front();
                }
                if leaving.len() >= *most {
                    self.counters.dropped += 1;
                    return None;
                }
            }
            Discard::Bytes { most } => {
                let end = self.transmitter.would_send(now, bits).expect(LASTS).end;
                if end - now > *most {
                    self.counters.dropped += 1;
                    return None;
                }
            }
        }
        let sent = self.transmitter.send(now, bits).expect(LASTS);
        if let Discard::Units { leaving, .. } = &mut self.discard {
            leaving.push_back(sent.end);
        }
        self.counters.bytes += bytes;
        let wait = sent.start - now;
        if wait > self.counters.longest_wait {
            self.counters.longest_wait = wait;
        }
        Some(sent.end)
    }

    /// What the port has counted.
    #[must_use]
    pub const fn counters(&self) -> PortCounters {
        self.counters
    }
}

const LASTS: &str = "a run ends within 213 days";

#[cfg(test)]
mod tests {
    use super::*;

    /// A byte takes a picosecond, a unit of 10 bytes with its framing 12.
    fn port(queue: Option<Queue>) -> Port {
        Port::new(PortSpec { rate: BitRate::bit_s(8_000_000_000_000), framing: Bytes::new(2), queue })
    }

    fn at(ps: u64) -> SimTime {
        SimTime::from_ps(ps)
    }

    #[test]
    fn a_unit_leaves_after_those_before_it_and_an_idle_port_sends_at_once() {
        let mut port = port(None);
        assert_eq!(port.take(at(100), 10), Some(at(112)));
        assert_eq!(port.take(at(105), 10), Some(at(124)));
        assert_eq!(port.take(at(500), 10), Some(at(512)));
        let counters = port.counters();
        assert_eq!((counters.offered, counters.dropped, counters.bytes), (3, 0, Bytes::new(30)));
        assert_eq!(counters.longest_wait, Span::from_ps(7));
    }

    #[test]
    fn a_queue_of_two_units_holds_the_one_being_sent_and_one_more() {
        let mut port = port(Some(Queue::Packets(2)));
        assert_eq!(port.take(at(0), 10), Some(at(12)));
        assert_eq!(port.take(at(0), 10), Some(at(24)));
        assert_eq!(port.take(at(11), 10), None);
        assert_eq!(port.take(at(12), 10), Some(at(36)), "one has left");
        assert_eq!(port.counters().dropped, 1);
    }

    #[test]
    fn a_queue_of_bytes_counts_framing_and_what_is_left_of_the_unit_being_sent() {
        let mut port = port(Some(Queue::Bytes(Bytes::new(24))));
        assert_eq!(port.take(at(0), 10), Some(at(12)));
        assert_eq!(port.take(at(0), 10), Some(at(24)));
        assert_eq!(port.take(at(0), 1), None);
        assert_eq!(port.take(at(3), 1), Some(at(27)), "three bytes have left");
        assert_eq!(port.take(at(3), 1), None);
    }
}
