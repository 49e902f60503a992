//! Datagrams that are sent back, again and again.

use wiretwin_engine::{EventSink, Stream};
use wiretwin_proto::{Work, WorkKind};
use wiretwin_units::{Bytes, SimTime, Span};

use super::connection::{ConnectionId, EndId};
use super::network::{Event, IP_BYTES, Kind, Network, UDP_BYTES};
use super::slab::Unit;

/// An echo that has been added to a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EchoId(pub(super) u32);

/// A datagram that is sent back, again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// From and to.
    pub hosts: [u32; 2],
    /// What the datagram carries, 65507 B at most.
    pub bytes: Bytes,
    /// The mean pause, exponential, before the next; after a datagram that was lost, `timeout`.
    pub pause: Span,
    /// When one that has not come back is given up; above 0.
    pub timeout: Span,
    /// When it begins.
    pub start: SimTime,
}

#[derive(Clone, Debug)]
pub(super) struct Echoing {
    pub spec: Echo,
    connection: ConnectionId,
    stream: Stream,
    /// When the datagram under way was sent; `None` where none is.
    sent: Option<SimTime>,
    /// Which one is, or was last, under way.
    turn: u32,
    round_trips: Vec<Span>,
    lost: u64,
}

impl Network {
    pub(super) fn add_echo(&mut self, connection: ConnectionId, spec: Echo, seed: u64) -> EchoId {
        let number = self.echoes.len() as u32;
        let stream = Stream::derive(seed, &format!("hosts/echo {number}"));
        for opens in [true, false] {
            self.ends[connection.end(opens).index()].echo = number;
        }
        let (sent, round_trips) = (None, Vec::new());
        self.echoes.push(Echoing { spec, connection, stream, sent, turn: 0, round_trips, lost: 0 });
        EchoId(number)
    }

    /// The round trips of an echo so far, and how many datagrams were given up.
    ///
    /// # Panics
    /// Where there is no such echo.
    #[must_use]
    pub fn round_trips(&self, echo: EchoId) -> (&[Span], u64) {
        let echo = &self.echoes[echo.0 as usize];
        (&echo.round_trips, echo.lost)
    }

    /// An echo sends its next datagram.
    pub(super) fn ask(&mut self, sink: &mut impl EventSink<Event>, now: SimTime, number: u32) {
        let echo = &mut self.echoes[number as usize];
        echo.turn = echo.turn.wrapping_add(1);
        echo.sent = Some(now);
        let (end, turn, give_up) = (echo.connection.end(true), echo.turn, now + echo.spec.timeout);
        self.speak(sink, now, end, turn);
        sink.put(give_up, Kind::GiveUp.of(number));
    }

    /// A datagram that was sent a time-out ago is given up, if it has not come back.
    pub(super) fn give_up(&mut self, sink: &mut impl EventSink<Event>, now: SimTime, number: u32) {
        let echo = &mut self.echoes[number as usize];
        if echo.sent.is_some_and(|sent| sent + echo.spec.timeout == now) {
            echo.lost += 1;
            self.ask(sink, now, number);
        }
    }

    fn pay(&mut self, now: SimTime, end: EndId, kind: WorkKind, bytes: Bytes) -> SimTime {
        let Some(processor) = self.processors.get_mut(self.ends[end.index()].host as usize) else {
            return now;
        };
        processor.pay(now, Work { kind, bytes, count: 1 });
        processor.done(now)
    }

    fn speak(&mut self, sink: &mut impl EventSink<Event>, now: SimTime, end: EndId, turn: u32) {
        let bytes = self.echoes[self.ends[end.index()].echo as usize].spec.bytes;
        let at = self.pay(now, end, WorkKind::SegmentOut, bytes);
        let packet = bytes.get() as u32 + IP_BYTES + UDP_BYTES;
        self.transmit(sink, at, end.index() as u32, (packet, Unit::Datagram(turn)));
    }

    /// A datagram is at the processor of an end.
    pub(super) fn datagram(&mut self, sink: &mut impl EventSink<Event>, now: SimTime, end: EndId, turn: u32) {
        let number = self.ends[end.index()].echo;
        let bytes = self.echoes[number as usize].spec.bytes;
        let done = self.pay(now, end, WorkKind::SegmentIn, bytes);
        let echo = &mut self.echoes[number as usize];
        if end == echo.connection.end(false) {
            return self.speak(sink, now, end, turn);
        }
        if let Some(sent) = echo.sent.filter(|_| echo.turn == turn) {
            echo.sent = None;
            echo.round_trips.push(done - sent);
            let next = done + echo.stream.exponential(echo.spec.pause);
            sink.put(next, Kind::Ask.of(number));
        }
    }
}
