//! One direction of a line: a queue that drops its tail, a transmitter, a delay.

use std::collections::VecDeque;

use wiretwin_units::{BitRate, Bytes, SimTime, Span, Transmitter};

/// What a link is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkSpec {
    /// Bits of packets and of what each is wrapped in, per second.
    pub rate: BitRate,
    /// From the last bit sent to the last bit received.
    pub delay: Span,
    /// The most packets that wait, the one being sent counted in; `None` for any number.
    pub queue_packets: Option<u32>,
    /// Octets on the line for each packet beside its own.
    pub overhead: Bytes,
}

/// What a link has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Packets offered to it.
    pub offered: u64,
    /// Packets that found the queue full.
    pub dropped: u64,
    /// Packets that reached its other end.
    pub delivered: u64,
    /// Octets that reached its other end, IP headers counted and the link's own not.
    pub delivered_octets: u64,
    /// Picoseconds in which the transmitter was busy, up to the last packet taken.
    pub busy_ps: u64,
    /// The most packets that have waited.
    pub longest: u32,
}

#[derive(Clone, Copy, Debug)]
struct Flying {
    sent: SimTime,
    packet: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Link {
    spec: LinkSpec,
    transmitter: Transmitter,
    /// Packets taken and not arrived, in order.
    flying: VecDeque<Flying>,
    /// How many of them, from the first on, were seen to have left the queue.
    gone: usize,
    pub(super) counters: LinkCounters,
}

/// What came of an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Offer {
    /// The queue is full.
    Dropped,
    /// Taken, behind others.
    Queued,
    /// Taken, and the first to arrive: at this time.
    First(SimTime),
}

impl Link {
    pub(super) fn new(spec: LinkSpec) -> Self {
        Self {
            transmitter: Transmitter::new(spec.rate),
            flying: VecDeque::new(),
            gone: 0,
            counters: LinkCounters::default(),
            spec,
        }
    }

    /// Offers a packet of so many octets at `now`; offers come in the order of time.
    pub(super) fn offer(&mut self, now: SimTime, packet: u32, octets: u32) -> Offer {
        self.counters.offered += 1;
        while self.flying.get(self.gone).is_some_and(|flying| flying.sent <= now) {
            self.gone += 1;
        }
        let waiting = (self.flying.len() - self.gone) as u32;
        if self.spec.queue_packets.is_some_and(|most| waiting >= most) {
            self.counters.dropped += 1;
            return Offer::Dropped;
        }
        self.counters.longest = self.counters.longest.max(waiting + 1);
        let bits = (Bytes::new(u64::from(octets)) + self.spec.overhead).bits();
        let sent = self.transmitter.send(now, bits).expect("a packet takes less than 213 days");
        self.counters.busy_ps += (sent.end - sent.start).as_ps();
        let first = self.flying.is_empty();
        self.flying.push_back(Flying { sent: sent.end, packet });
        if first { Offer::First(sent.end + self.spec.delay) } else { Offer::Queued }
    }

    /// Takes the packet that arrives now, and says when the next does.
    pub(super) fn arrive(&mut self) -> Option<(u32, Option<SimTime>)> {
        let Flying { packet, .. } = self.flying.pop_front()?;
        self.gone = self.gone.saturating_sub(1);
        let next = self.flying.front().map(|flying| flying.sent + self.spec.delay);
        Some((packet, next))
    }

    /// Packets taken and not arrived.
    pub(super) fn held(&self) -> u64 {
        self.flying.len() as u64
    }
}
