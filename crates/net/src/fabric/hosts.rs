//! Hosts at the stations of a network: TCP streams and echoes over AAL 5, and processors that take their time.
//!
//! A TCP segment or a datagram is an IP packet behind an LLC/SNAP header in one AAL 5 PDU (RFC 2684). A PDU of
//! which a cell is missing, or into which another's cells have come, is lost, as its CRC would say.

use std::sync::Arc;

use wiretwin_engine::{EventQueue, Stream};
use wiretwin_proto::tcp::{Config, Segment};
use wiretwin_proto::{Work, WorkKind};
use wiretwin_units::{Bytes, Cells, SimTime, Span};

use super::network::Fabric;
use super::plan::CircuitId;
use super::report::Delivery;
use super::under_way::UnderWay;
use crate::packet::{Costs, Processor, Step, TcpEnd};

/// Which host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostId(pub u32);

/// Which session, of those of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionId(pub u32);

/// A stream over TCP whose user writes for ever, and whose reader reads at once (`ttcp`).
#[derive(Clone, Debug)]
pub struct Ttcp {
    /// From and to.
    pub hosts: [HostId; 2],
    /// There and back.
    pub circuits: [CircuitId; 2],
    /// The rules of both ends.
    pub config: Arc<Config>,
    /// The largest IP packet.
    pub mtu: u16,
    /// When it begins.
    pub start: SimTime,
}

/// A datagram that is sent back, again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// From and to.
    pub hosts: [HostId; 2],
    /// There and back.
    pub circuits: [CircuitId; 2],
    /// What the datagram carries.
    pub octets: Bytes,
    /// The mean pause, exponential, before the next; after a datagram that was lost, `timeout`.
    pub pause: Span,
    /// When one that has not come back is given up.
    pub timeout: Span,
    /// When it begins.
    pub start: SimTime,
}

/// What became of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TtcpReport {
    /// Octets read.
    pub read: u64,
    /// Segments with text sent, first or again.
    pub segments: u32,
    /// Of them, those sent again.
    pub again: u32,
    /// Expiries of the retransmission timer.
    pub timeouts: u32,
    /// PDUs of both directions that were lost.
    pub pdus_lost: u64,
}

#[derive(Clone, Copy, Debug)]
enum Load {
    Segment(Segment),
    /// Which turn of its echo.
    Datagram(u8),
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    load: Load,
    /// The session, of those of its kind, and which end it is for.
    session: u32,
    end: u8,
    cells: u32,
    circuit: CircuitId,
}

/// Packets by number; a number is given out again when its packet is gone.
#[derive(Clone, Debug, Default)]
struct Packets {
    packets: Vec<Packet>,
    free: Vec<u32>,
}

impl Packets {
    fn add(&mut self, packet: Packet) -> u32 {
        if let Some(number) = self.free.pop() {
            self.packets[number as usize] = packet;
            return number;
        }
        self.packets.push(packet);
        (self.packets.len() - 1) as u32
    }
}

struct End {
    tcp: TcpEnd,
    host: u32,
    circuit: CircuitId,
}

struct Streaming {
    ends: [End; 2],
    lost: u64,
}

struct Echoing {
    spec: Echo,
    stream: Stream,
    cells: u32,
    /// When the one under way was sent.
    sent: SimTime,
    /// Which one is under way.
    turn: u32,
    waiting: bool,
    round_trips: Vec<Span>,
    lost: u64,
}

#[derive(Clone, Copy)]
enum Event {
    /// A stream begins.
    Start(u32),
    /// A timer of a stream's end may have run out.
    Timer(u32, u8),
    /// A host's processor takes the next packet that waits.
    Take(u32),
    /// A packet has left the host's processor.
    Offer(u32),
    /// An echo sends its next datagram.
    Send(u32),
    /// An echo gives a datagram up: which, by its turn.
    GiveUp(u32, u8),
}

/// A network with hosts.
pub struct Hosts {
    fabric: Fabric,
    events: EventQueue<Event>,
    now: SimTime,
    processors: Vec<Processor>,
    streams: Vec<Streaming>,
    echoes: Vec<Echoing>,
    packets: Packets,
    under_way: UnderWay,
    delivered: Vec<Delivery>,
    seed: u64,
}

impl Hosts {
    /// A network without hosts, whose circuits are all to be those of sessions; `seed` is that of all random
    /// choices of the sessions.
    pub fn new(fabric: Fabric, seed: u64) -> Self {
        let circuits = fabric.circuits.len();
        Self {
            fabric,
            events: EventQueue::new(),
            now: SimTime::ZERO,
            processors: Vec::new(),
            streams: Vec::new(),
            echoes: Vec::new(),
            packets: Packets::default(),
            under_way: UnderWay::new(circuits),
            delivered: Vec::new(),
            seed,
        }
    }

    /// Adds a host; what its processor takes for a packet that goes out or comes in.
    pub fn host(&mut self, costs: Costs) -> HostId {
        self.processors.push(Processor { costs: Some(costs), ..Processor::default() });
        HostId((self.processors.len() - 1) as u32)
    }

    /// Adds a stream.
    ///
    /// # Panics
    /// Where a circuit is not one of the network.
    pub fn ttcp(&mut self, spec: &Ttcp) -> SessionId {
        let number = self.streams.len() as u32;
        let end = |side: usize| End {
            tcp: TcpEnd::new(number, side as u32, spec.config.clone(), spec.mtu),
            host: spec.hosts[side].0,
            circuit: spec.circuits[side],
        };
        let mut ends = [end(0), end(1)];
        ends[0].tcp.to_write = u64::MAX;
        self.streams.push(Streaming { ends, lost: 0 });
        self.told(spec.circuits);
        self.push(spec.start, Event::Start(number));
        SessionId(number)
    }

    /// Adds an echo.
    ///
    /// # Panics
    /// Where a circuit is not one of the network.
    pub fn echo(&mut self, spec: Echo) -> SessionId {
        let number = self.echoes.len() as u32;
        let stream = Stream::derive(self.seed, &format!("hosts/echo {number}"));
        let cells = pdu_cells(spec.octets.get() as u32 + UDP_OCTETS);
        self.echoes.push(Echoing {
            spec,
            stream,
            cells,
            sent: SimTime::ZERO,
            turn: 0,
            waiting: false,
            round_trips: Vec::new(),
            lost: 0,
        });
        self.told(spec.circuits);
        self.push(spec.start, Event::Send(number));
        SessionId(number)
    }

    fn told(&mut self, circuits: [CircuitId; 2]) {
        for circuit in circuits {
            self.fabric.tell(circuit, true).expect("sessions have circuits of their network");
        }
    }

    /// The network below.
    pub const fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// What has become of a stream so far.
    ///
    /// # Panics
    /// Where there is no such stream.
    pub fn stream(&self, session: SessionId) -> TtcpReport {
        let stream = &self.streams[session.0 as usize];
        let counters = stream.ends[0].tcp.machine.counters();
        TtcpReport {
            read: stream.ends[1].tcp.read,
            segments: counters.sent_data,
            again: counters.retransmitted,
            timeouts: counters.timeouts,
            pdus_lost: stream.lost,
        }
    }

    /// The round trips of an echo so far, and how many were given up.
    ///
    /// # Panics
    /// Where there is no such echo.
    pub fn round_trips(&self, session: SessionId) -> (&[Span], u64) {
        let echo = &self.echoes[session.0 as usize];
        (&echo.round_trips, echo.lost)
    }

    /// Runs until nothing happens up to `until`, which the clock then shows.
    pub fn run_until(&mut self, until: SimTime) {
        loop {
            let event = self.events.next_time().unwrap_or(SimTime::MAX);
            let cells = self.fabric.next_time().unwrap_or(SimTime::MAX);
            if event.min(cells) > until || event.min(cells) == SimTime::MAX {
                break;
            }
            // Of one instant, hosts come first: what they send is there when the slot begins.
            if event <= cells {
                let event = self.events.pop().expect("it was looked at");
                self.now = event.time;
                self.happen(event.what);
            } else {
                self.fabric.step();
                self.now = self.fabric.now();
                if self.fabric.has_delivered() {
                    self.deliveries();
                }
            }
        }
        self.fabric.run_until(until);
        self.now = until;
    }

    fn push(&mut self, time: SimTime, event: Event) {
        self.events.push(time.max(self.now), event);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Start(number) => {
                let ends = &mut self.streams[number as usize].ends;
                ends[1].tcp.machine.listen(self.now).expect("an end begins closed");
                ends[0].tcp.machine.connect(self.now).expect("an end begins closed");
                self.drain(number, 0);
            }
            Event::Timer(number, end) => {
                match self.streams[number as usize].ends[usize::from(end)].tcp.is_due(self.now) {
                    Ok(()) => self.drain(number, end),
                    Err(Some(later)) => self.push(later, Event::Timer(number, end)),
                    Err(None) => {}
                }
            }
            Event::Take(host) => self.take(host),
            Event::Offer(number) => {
                let Packet { circuit, cells, .. } = self.packets.packets[number as usize];
                self.under_way.given(circuit, number, cells);
                let offered = self.fabric.offer(self.now, circuit, Cells::new(u64::from(cells)), number);
                offered.expect("a packet has a circuit and cells");
            }
            Event::Send(number) => self.ask(number),
            Event::GiveUp(number, turn) => {
                let echo = &mut self.echoes[number as usize];
                if echo.waiting && echo.turn as u8 == turn {
                    echo.waiting = false;
                    echo.lost += 1;
                    self.ask(number);
                }
            }
        }
    }

    /// Cells have come to the end of a PDU.
    fn deliveries(&mut self) {
        let mut delivered = std::mem::take(&mut self.delivered);
        self.fabric.take_delivered(&mut delivered);
        for delivery in &delivered {
            let mut said = false;
            while let Some((number, whole)) = self.under_way.next(delivery, &mut said) {
                let packet = self.packets.packets[number as usize];
                if whole {
                    self.arrive(number, packet, delivery.time);
                } else {
                    self.lose(number, packet);
                }
            }
        }
        self.delivered = delivered;
    }

    fn lose(&mut self, number: u32, packet: Packet) {
        self.packets.free.push(number);
        if matches!(packet.load, Load::Segment(_)) {
            self.streams[packet.session as usize].lost += 1;
        }
    }

    fn host_of(&self, packet: Packet) -> u32 {
        let end = usize::from(packet.end);
        match packet.load {
            Load::Segment(_) => self.streams[packet.session as usize].ends[end].host,
            Load::Datagram(_) => self.echoes[packet.session as usize].spec.hosts[end].0,
        }
    }

    /// A packet is in host memory: the processor takes it when it has nothing else to do.
    fn arrive(&mut self, number: u32, packet: Packet, time: SimTime) {
        let host = self.host_of(packet);
        let processor = &mut self.processors[host as usize];
        let first = processor.waiting.is_empty();
        processor.waiting.push_back(number);
        if first {
            let free_at = processor.free_at.max(time);
            self.push(free_at, Event::Take(host));
        }
    }

    fn take(&mut self, host: u32) {
        let processor = &mut self.processors[host as usize];
        if processor.free_at > self.now {
            let free_at = processor.free_at;
            self.push(free_at, Event::Take(host));
            return;
        }
        let Some(number) = processor.waiting.pop_front() else { return };
        let Packet { load, session, end, .. } = self.packets.packets[number as usize];
        self.packets.free.push(number);
        match load {
            Load::Segment(segment) => {
                let machine = &mut self.streams[session as usize].ends[usize::from(end)].tcp.machine;
                machine.handle_segment(self.now, &segment);
                self.drain(session, end);
            }
            Load::Datagram(turn) => self.datagram(session, end, turn),
        }
        let processor = &self.processors[host as usize];
        if !processor.waiting.is_empty() {
            let done = processor.done(self.now);
            self.push(done, Event::Take(host));
        }
    }

    /// Takes the outputs of an end and lets its user go on.
    fn drain(&mut self, number: u32, end: u8) {
        let now = self.now;
        loop {
            let side = &mut self.streams[number as usize].ends[usize::from(end)];
            match side.tcp.step(now) {
                Step::Work(work) => self.processors[side.host as usize].pay(now, work),
                Step::Transmit(segment) => {
                    let (host, circuit) = (side.host, side.circuit);
                    let cells = pdu_cells(segment.octets() + IP_OCTETS);
                    let load = Load::Segment(segment);
                    let packet = Packet { load, session: number, end: 1 - end, cells, circuit };
                    self.transmit(host, packet);
                }
                Step::Read => {}
                Step::Rest(timer) => {
                    if let Some(timer) = timer {
                        self.push(timer, Event::Timer(number, end));
                    }
                    return;
                }
            }
        }
    }

    fn transmit(&mut self, host: u32, packet: Packet) {
        let number = self.packets.add(packet);
        let done = self.processors[host as usize].done(self.now);
        self.push(done, Event::Offer(number));
    }

    fn ask(&mut self, number: u32) {
        let echo = &mut self.echoes[number as usize];
        echo.turn = echo.turn.wrapping_add(1);
        (echo.sent, echo.waiting) = (self.now, true);
        let (turn, timeout) = (echo.turn as u8, echo.spec.timeout);
        self.speak(number, 0, turn);
        let give_up = self.now + timeout;
        self.push(give_up, Event::GiveUp(number, turn));
    }

    /// Sends a datagram from one end to the other.
    fn speak(&mut self, number: u32, end: u8, turn: u8) {
        let echo = &self.echoes[number as usize];
        let (host, circuit) = (echo.spec.hosts[usize::from(end)].0, echo.spec.circuits[usize::from(end)]);
        let packet =
            Packet { load: Load::Datagram(turn), session: number, end: 1 - end, cells: echo.cells, circuit };
        let bytes = echo.spec.octets;
        self.processors[host as usize].pay(self.now, Work { kind: WorkKind::SegmentOut, bytes, count: 1 });
        self.transmit(host, packet);
    }

    /// A datagram is at the processor of an end.
    fn datagram(&mut self, number: u32, end: u8, turn: u8) {
        let now = self.now;
        let echo = &mut self.echoes[number as usize];
        let (host, bytes) = (echo.spec.hosts[usize::from(end)].0, echo.spec.octets);
        let processor = &mut self.processors[host as usize];
        processor.pay(now, Work { kind: WorkKind::SegmentIn, bytes, count: 1 });
        if end == 1 {
            self.speak(number, 1, turn);
        } else if echo.waiting && echo.turn as u8 == turn {
            let done = processor.done(now);
            echo.waiting = false;
            echo.round_trips.push(done - echo.sent);
            let next = done + echo.stream.exponential(echo.spec.pause);
            self.push(next, Event::Send(number));
        }
    }
}

/// Cells of the AAL 5 PDU of an IP packet of so many octets behind an LLC/SNAP header (I.363.5; RFC 2684 §5.1).
fn pdu_cells(octets: u32) -> u32 {
    (octets + LLC_OCTETS + TRAILER_OCTETS).div_ceil(48)
}

const LLC_OCTETS: u32 = 8;
const TRAILER_OCTETS: u32 = 8;
/// An IP header without options, and one with that of UDP.
const IP_OCTETS: u32 = 20;
const UDP_OCTETS: u32 = 28;
