//! A daemon's other daemon: packets in order and repeated until acknowledged.
//!
//! `ddpro.c`, `pvmd.c` of PVM 3.4. One packet at a time is on its way; each with data is acknowledged by a
//! packet of its own. Deviation: the field of an acknowledgement that PVM leaves as it was in other packets
//! is 0 here. Left out: the wait of 0.3 s after a system call that sends has failed, as none fails here.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use wiretwin_proto::Output;
use wiretwin_units::{Bytes, Seq, SimTime, Span};
use wiretwin_wire::pvm as wire;

use crate::pvm::{Body, Packet, Tid};

/// Times and counts of the protocol between daemons (`pvmproto.h`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Packets that may be on their way at once. 1.
    pub window: u32,
    /// The round trip that is assumed before one was measured. 1 s.
    pub first_round_trip: Span,
    /// The longest round trip that is believed; a wait that has reached it does not double. 9 s.
    pub longest: Span,
    /// A host has failed after at least so many sends of one packet... 10.
    pub tries: u32,
    /// ...and at least this time. 180 s.
    pub patience: Span,
    /// A host to which nothing was sent for so long is asked whether it is there; `None` for never. 60 s.
    pub ping: Option<Span>,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            window: 1,
            first_round_trip: Span::from_s(1),
            longest: Span::from_s(9),
            tries: 10,
            patience: Span::from_s(180),
            ping: Some(Span::from_s(60)),
        }
    }
}

/// What happened to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A packet was sent again.
    SentAgain(Seq<16>),
    /// A packet came that had come before.
    Repeated(Seq<16>),
    /// It does not answer.
    Failed,
    /// It says that it ends.
    Finished,
    /// It has heard that it is to end.
    Dismissed,
}

/// Outputs: packets to it, and its packets with data in order.
pub type PeerOutput<B> = Output<Packet<B>, Packet<B>, Event>;

#[derive(Clone, Debug)]
struct Flight<B> {
    packet: Packet<B>,
    due: SimTime,
    /// From the next send on.
    wait: Span,
    waited: Span,
    first: SimTime,
    sent: u32,
}

/// The other daemon.
#[derive(Debug)]
pub struct Peer<B> {
    timing: Timing,
    me: Tid,
    it: Tid,
    round_trip: Span,
    next: Seq<16>,
    queue: VecDeque<Packet<B>>,
    flight: VecDeque<Flight<B>>,
    expected: Seq<16>,
    /// Packets that came before their turn, in order.
    early: Vec<Packet<B>>,
    outputs: VecDeque<PeerOutput<B>>,
}

impl<B: Body> Peer<B> {
    /// A peer to which nothing was sent, and from which nothing came.
    pub fn new(timing: Timing, me: Tid, it: Tid) -> Self {
        Self {
            timing,
            me,
            it,
            round_trip: timing.first_round_trip,
            next: Seq::wrapping(1),
            queue: VecDeque::new(),
            flight: VecDeque::new(),
            expected: Seq::wrapping(1),
            early: Vec::new(),
            outputs: VecDeque::new(),
        }
    }

    /// A packet of it has come.
    pub fn handle_packet(&mut self, now: SimTime, packet: Packet<B>) {
        let wire::Packet { finish, acknowledges, acknowledged, data, sequence, .. } = packet.header;
        if finish && acknowledges {
            return self.outputs.push_back(Output::Event(Event::Finished));
        }
        if acknowledges {
            self.acknowledged(now, acknowledged);
        }
        self.pump(now);
        if !data && !finish {
            return;
        }
        let acknowledgement = wire::Packet {
            sequence: Seq::wrapping(0),
            acknowledged: sequence,
            acknowledges: true,
            ..self.bare()
        };
        self.transmit(acknowledgement);
        if data {
            self.order(packet);
        }
    }

    /// The time that was asked for has come.
    pub fn handle_timeout(&mut self, now: SimTime) {
        for at in 0..self.flight.len() {
            let flight = &self.flight[at];
            if flight.due > now {
                continue;
            }
            if flight.sent >= self.timing.tries && flight.waited >= self.timing.patience {
                self.forget();
                return self.outputs.push_back(Output::Event(Event::Failed));
            }
            let sequence = flight.packet.header.sequence;
            self.outputs.push_back(Output::Event(Event::SentAgain(sequence)));
            self.put_out(now, at);
        }
    }

    /// Sends a packet with data, behind those that wait.
    pub fn send(&mut self, now: SimTime, packet: Packet<B>) {
        self.queue.push_back(packet);
        self.pump(now);
    }

    /// Tells it to end: [`Event::Dismissed`] once it has heard.
    pub fn dismiss(&mut self, now: SimTime) {
        let header = wire::Packet { sequence: self.next, finish: true, ..self.bare() };
        self.next = self.next.next();
        self.fly(now, Packet { header, head: None, body: B::from_octets(Vec::new()) });
    }

    /// Tells it that this daemon ends, or that it has ended: once, and without an acknowledgement.
    pub fn part(&mut self) {
        self.transmit(wire::Packet { finish: true, acknowledges: true, ..self.bare() });
        self.forget();
    }

    /// What is next; the time of the next [`Peer::handle_timeout`] when that is all.
    pub fn poll_output(&mut self) -> PeerOutput<B> {
        self.outputs.pop_front().unwrap_or_else(|| Output::Timeout(self.due()))
    }

    /// Whether nothing waits or is on its way.
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.flight.is_empty()
    }

    /// The round trip that is believed.
    pub const fn round_trip(&self) -> Span {
        self.round_trip
    }

    /// When the next packet is to be sent again.
    pub fn due(&self) -> Option<SimTime> {
        self.flight.iter().map(|flight| flight.due).min()
    }

    fn forget(&mut self) {
        self.queue.clear();
        self.flight.clear();
        self.early.clear();
    }

    fn acknowledged(&mut self, now: SimTime, sequence: Seq<16>) {
        let Some(at) = self.flight.iter().position(|flight| flight.packet.header.sequence == sequence) else {
            return;
        };
        let Some(flight) = self.flight.remove(at) else { return };
        if flight.packet.header.finish {
            self.part();
            return self.outputs.push_back(Output::Event(Event::Dismissed));
        }
        // Only of what was sent once is it known which send the acknowledgement is for.
        if flight.sent == 1 {
            let sample = (now - flight.first).clamp(Span::from_us(1), self.timing.longest);
            self.round_trip = (self.round_trip * 3 + sample) / 4;
        }
    }

    /// Puts what waits on its way, as the window allows.
    fn pump(&mut self, now: SimTime) {
        while self.flight.len() < self.timing.window as usize
            && let Some(mut packet) = self.queue.pop_front()
        {
            packet.header.sequence = self.next;
            self.next = self.next.next();
            self.fly(now, packet);
        }
    }

    fn fly(&mut self, now: SimTime, packet: Packet<B>) {
        let (wait, waited) = (self.round_trip * 2, Span::ZERO);
        self.flight.push_back(Flight { packet, due: now, wait, waited, first: now, sent: 0 });
        self.put_out(now, self.flight.len() - 1);
    }

    fn put_out(&mut self, now: SimTime, at: usize) {
        let flight = &mut self.flight[at];
        flight.due = now.saturating_add(flight.wait);
        flight.waited += flight.wait;
        flight.sent += 1;
        if flight.wait < self.timing.longest {
            flight.wait = flight.wait * 2;
        }
        self.outputs.push_back(Output::Transmit(flight.packet.clone()));
    }

    /// Hands packets on in order, each once.
    fn order(&mut self, packet: Packet<B>) {
        let sequence = packet.header.sequence;
        let at = self.early.partition_point(|early| early.header.sequence.precedes(sequence));
        let known = self.early.get(at).is_some_and(|early| early.header.sequence == sequence);
        if known || sequence.precedes(self.expected) {
            return self.outputs.push_back(Output::Event(Event::Repeated(sequence)));
        }
        self.early.insert(at, packet);
        while self.early.first().is_some_and(|first| first.header.sequence == self.expected) {
            self.expected = self.expected.next();
            self.outputs.push_back(Output::Deliver(self.early.remove(0)));
        }
    }

    const fn bare(&self) -> wire::Packet {
        wire::Packet {
            destination: self.it,
            source: self.me,
            sequence: Seq::ZERO,
            acknowledged: Seq::ZERO,
            first: false,
            last: false,
            data: false,
            finish: false,
            acknowledges: false,
        }
    }

    fn transmit(&mut self, header: wire::Packet) {
        let body = B::from_octets(Vec::new());
        self.outputs.push_back(Output::Transmit(Packet { header, head: None, body }));
    }
}

/// Octets of the longest datagram of PVM 3.4 (`UDPMAXLEN`).
pub const DATAGRAM_OCTETS: Bytes = Bytes::new(4080);

#[cfg(test)]
mod tests;
