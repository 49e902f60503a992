//! An output port: what waits for a line, and the transmitter that sends it.
//!
//! One line takes units (packets, frames or cells) from one port. A port has no events of its own. Where units leave as
//! they come, it says at once when the last bit of a unit will have left, or that it has no room for the unit. Where
//! they leave in another order, whose turn it was is found out when it matters: at the next offer, and when a unit
//! arrives at the end of the line, before which no later one can. Nothing that is offered afterwards could have
//! changed it.

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
    /// In what order units leave, and how many may wait.
    pub discipline: Discipline,
}

/// In what order units leave a port, and how many may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discipline {
    /// As they come; a unit for which the queue has no room is lost. `None` for a queue that has always room.
    Fifo(Option<Queue>),
    /// Flows that have units waiting send one each in turns; a flow's own leave as they come, and none is lost.
    RoundRobin,
}

/// What becomes of a unit that is offered to a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// Its last bit will have left at this time.
    Sent(SimTime),
    /// Its turn is not known yet: [`Port::next`] tells of it.
    Waits,
    /// There is no room for it.
    Lost,
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

/// What a port keeps of the units that wait.
#[derive(Clone, Debug)]
enum Queued {
    /// Nothing: they leave as they come, and there is always room.
    Never,
    /// By counting: fewer than `most` units are waiting or being sent. The times at which those leave are kept.
    Units { most: usize, leaving: VecDeque<SimTime> },
    /// By time: what waits and the unit itself take the line no longer than this.
    Bytes { most: Span },
    /// Each flow's own.
    RoundRobin(Box<Rounds>),
}

/// Flows that send in turns.
#[derive(Clone, Debug, Default)]
struct Rounds {
    /// By flow: when each unit came, its number, its length.
    flows: Vec<VecDeque<(SimTime, u32, u32)>>,
    /// The flows that have some, the one whose turn is next in front.
    turns: VecDeque<u32>,
}

/// An output port. See the module's description.
#[derive(Clone, Debug)]
pub struct Port {
    transmitter: Transmitter,
    framing: Bytes,
    queued: Queued,
    counters: PortCounters,
}

impl Port {
    /// A port at which nothing waits.
    #[must_use]
    pub fn new(spec: PortSpec) -> Self {
        let queued = match spec.discipline {
            Discipline::Fifo(None) => Queued::Never,
            Discipline::Fifo(Some(Queue::Packets(most) | Queue::Cells(most))) => {
                Queued::Units { most: most as usize, leaving: VecDeque::new() }
            }
            Discipline::Fifo(Some(Queue::Bytes(most))) => {
                Queued::Bytes { most: spec.rate.time_for(most.bits()).unwrap_or(Span::MAX) }
            }
            Discipline::RoundRobin => Queued::RoundRobin(Box::default()),
        };
        Self {
            transmitter: Transmitter::new(spec.rate),
            framing: spec.framing,
            queued,
            counters: PortCounters::default(),
        }
    }

    /// Adds a flow; all units are of one flow where units leave as they come.
    pub fn flow(&mut self) -> u32 {
        let Queued::RoundRobin(rounds) = &mut self.queued else { return 0 };
        rounds.flows.push(VecDeque::new());
        (rounds.flows.len() - 1) as u32
    }

    /// Takes a unit of a flow at `now`, by the number under which [`Port::next`] will tell of it. Units are offered in
    /// the order of time, each after [`Port::next`] has told of all that left before.
    ///
    /// # Panics
    /// Where the unit would still be on the line at the end of time, 213 days after the start, and for a flow that
    /// has not been added.
    #[inline]
    pub fn take(&mut self, now: SimTime, flow: u32, unit: u32, bytes: u32) -> Taken {
        self.counters.offered += 1;
        match &mut self.queued {
            Queued::Never => {}
            Queued::Units { most, leaving } => {
                while leaving.front().is_some_and(|left| *left <= now) {
                    leaving.pop_front();
                }
                if leaving.len() >= *most {
                    self.counters.dropped += 1;
                    return Taken::Lost;
                }
            }
            Queued::Bytes { most } => {
                let bits = (Bytes::new(u64::from(bytes)) + self.framing).bits();
                let end = self.transmitter.would_send(now, bits).expect(LASTS).end;
                if end - now > *most {
                    self.counters.dropped += 1;
                    return Taken::Lost;
                }
            }
            Queued::RoundRobin(rounds) => {
                if !rounds.turns.is_empty() || self.transmitter.is_busy(now) {
                    let waiting = &mut rounds.flows[flow as usize];
                    if waiting.is_empty() {
                        rounds.turns.push_back(flow);
                    }
                    waiting.push_back((now, unit, bytes));
                    return Taken::Waits;
                }
            }
        }
        let end = self.send(now, now, bytes);
        if let Queued::Units { leaving, .. } = &mut self.queued {
            leaving.push_back(end);
        }
        Taken::Sent(end)
    }
    /// A unit that waited and whose turn has come at `now` or before: its number, and when its last bit will have left.
    #[inline]
    pub fn next(&mut self, now: SimTime) -> Option<(u32, SimTime)> {
        let Queued::RoundRobin(rounds) = &mut self.queued else { return None };
        let start = self.transmitter.free_at();
        if start > now {
            return None;
        }
        let flow = rounds.turns.pop_front()?;
        let waiting = &mut rounds.flows[flow as usize];
        let (came, unit, bytes) = waiting.pop_front().expect("a flow in turn has a unit");
        if !waiting.is_empty() {
            rounds.turns.push_back(flow);
        }
        Some((unit, self.send(came, start, bytes)))
    }

    /// Sends a unit from `start` on, before which the line is busy or nothing waits.
    #[inline(always)] // for each unit on each line
    fn send(&mut self, came: SimTime, start: SimTime, bytes: u32) -> SimTime {
        let bytes = Bytes::new(u64::from(bytes));
        let sent = self.transmitter.send(start, (bytes + self.framing).bits()).expect(LASTS);
        self.counters.bytes += bytes;
        let wait = sent.start - came;
        if wait > self.counters.longest_wait {
            self.counters.longest_wait = wait;
        }
        sent.end
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
    fn port(discipline: Discipline) -> Port {
        Port::new(PortSpec { rate: BitRate::bit_s(8_000_000_000_000), framing: Bytes::new(2), discipline })
    }

    fn at(ps: u64) -> SimTime {
        SimTime::from_ps(ps)
    }

    fn sent(ps: u64) -> Taken {
        Taken::Sent(at(ps))
    }

    #[test]
    fn a_unit_leaves_after_those_before_it_and_an_idle_port_sends_at_once() {
        let mut port = port(Discipline::Fifo(None));
        assert_eq!(port.take(at(100), 0, 0, 10), sent(112));
        assert_eq!(port.take(at(105), 0, 1, 10), sent(124));
        assert_eq!(port.take(at(500), 0, 2, 10), sent(512));
        let counters = port.counters();
        assert_eq!((counters.offered, counters.dropped, counters.bytes), (3, 0, Bytes::new(30)));
        assert_eq!(counters.longest_wait, Span::from_ps(7));
    }

    #[test]
    fn a_queue_of_two_units_holds_the_one_being_sent_and_one_more() {
        let mut port = port(Discipline::Fifo(Some(Queue::Packets(2))));
        assert_eq!(port.take(at(0), 0, 0, 10), sent(12));
        assert_eq!(port.take(at(0), 0, 1, 10), sent(24));
        assert_eq!(port.take(at(11), 0, 2, 10), Taken::Lost);
        assert_eq!(port.take(at(12), 0, 3, 10), sent(36), "one has left");
        assert_eq!(port.counters().dropped, 1);
    }

    #[test]
    fn a_queue_of_bytes_counts_framing_and_what_is_left_of_the_unit_being_sent() {
        let mut port = port(Discipline::Fifo(Some(Queue::Bytes(Bytes::new(24)))));
        assert_eq!(port.take(at(0), 0, 0, 10), sent(12));
        assert_eq!(port.take(at(0), 0, 1, 10), sent(24));
        assert_eq!(port.take(at(0), 0, 2, 1), Taken::Lost);
        assert_eq!(port.take(at(3), 0, 3, 1), sent(27), "three bytes have left");
        assert_eq!(port.take(at(3), 0, 4, 1), Taken::Lost);
    }

    #[test]
    fn a_unit_of_another_flow_does_not_wait_for_a_burst() {
        let mut port = port(Discipline::RoundRobin);
        let (burst, other) = (port.flow(), port.flow());
        assert_eq!(port.take(at(0), burst, 0, 10), sent(12));
        for unit in 1..4 {
            assert_eq!(port.take(at(0), burst, unit, 10), Taken::Waits);
        }
        // Looked at late, the turns are those of the time at which the line was free.
        assert_eq!(port.next(at(13)), Some((1, at(24))));
        assert_eq!(port.next(at(13)), None);
        assert_eq!(port.take(at(13), other, 9, 0), Taken::Waits);
        let left: Vec<_> = std::iter::from_fn(|| port.next(at(1_000))).collect();
        assert_eq!(left, [(2, at(36)), (9, at(38)), (3, at(50))]);
        let counters = port.counters();
        assert_eq!((counters.offered, counters.bytes), (5, Bytes::new(40)));
        assert_eq!(counters.longest_wait, Span::from_ps(38));
        assert_eq!(port.take(at(60), other, 1, 10), sent(72), "an idle line takes what comes");
    }
}
