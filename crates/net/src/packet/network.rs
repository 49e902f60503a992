//! Lines with their ports, connections over them, and the events that move packets.

use std::collections::VecDeque;
use std::sync::Arc;

use wiretwin_engine::EventSink;
use wiretwin_plan::{Below, ByPackets, Graph, LLC, LineId, NetworkPlan, NodeId, NodeKind, PlanError, Router};
use wiretwin_proto::Output;
use wiretwin_proto::tcp::Config;
use wiretwin_units::{Bytes, SimTime, Span};

use super::cells::CellNetwork;
use super::connection::{ConnectionId, End, EndId, Making, StreamReport};
use super::costs::{Costs, Processor};
use super::echo::Echoing;
use super::loss::Losses;
use super::reader::Reader;
use super::slab::{Load, Packet, Slab, Unit};
use super::tcp::TcpEnd;
use crate::direct::DirectEnd;
use crate::fabric::{CircuitId, Fabric, Plan};
use crate::port::{Discipline, Port, PortCounters, PortSpec, Room, Scheduler, Taken};

/// Something that happens in a network of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// What it is.
    pub kind: Kind,
    /// The number of what it happens to.
    pub number: u32,
}

/// The kinds of what happens in a network of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A packet is at the end of a line that a switch sends on.
    Arrive,
    /// A packet is at the end of its first line, on which its host sends.
    Leave,
    /// A timer of an end may have run out.
    Timer,
    /// A piece of a message is made that an end is to send.
    Made,
    /// The processor of a host takes the next packet that waits.
    Take,
    /// A connection is opened.
    Open,
    /// A packet leaves its host for a network of cells.
    Offer,
    /// The last cell of a packet is in the memory of its host.
    Received,
    /// Something happens among the cells.
    Cells,
    /// An echo sends its next datagram.
    Ask,
    /// An echo gives up a datagram that has not come back.
    GiveUp,
    /// An end of the direct transport may have something to do.
    Due,
    /// A process may look at what waits for its ends of the direct transport.
    Read,
}

impl Kind {
    pub(super) const fn of(self, number: u32) -> Event {
        Event { kind: self, number }
    }
}

/// A port and the line behind it.
#[derive(Clone, Debug)]
struct Line {
    port: Port,
    /// From the last bit sent to the packet being passed on at the line's end.
    delay: Span,
    /// Packets that were marked at the port.
    marked: u64,
}

/// What a line has counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineReport {
    /// What its port has counted.
    pub port: PortCounters,
    /// Packets that wait at the port or are on the line.
    pub held: u64,
    /// Packets that were marked at the port (ECN).
    pub marked: u64,
}

/// A network of packets. See the [module's description](super).
#[derive(Clone)]
pub struct Network {
    router: Router,
    lines: Vec<Line>,
    /// The lines of every connection's ways, each way ended by [`HERE`].
    paths: Vec<u32>,
    pub(super) packets: Slab,
    pub(super) ends: Vec<End>,
    /// Of connections of the direct transport, their ends in place of TCP's; else empty.
    pub(super) directs: Vec<DirectEnd>,
    /// By host; empty where hosts take no time.
    pub(super) processors: Vec<Processor>,
    pub(super) echoes: Vec<Echoing>,
    /// In place of `lines`, where the network is one of cells.
    cells: Option<Box<CellNetwork>>,
    /// What lines lose; nothing if it is empty.
    losses: Losses,
    /// Nothing is lost: messages cross as they are, without TCP.
    keeps_all: bool,
    mtu: u16,
    /// While a message is being made, it is handed to its connection in pieces of this many bytes.
    piece: u64,
    /// Processes that have ends of the direct transport.
    pub(super) readers: Vec<Reader>,
    /// Clients of messages that have come, and when.
    pub(super) complete: VecDeque<(u32, SimTime)>,
    hops: u64,
}

/// No line: a packet that has come here is for this host.
const HERE: u32 = u32::MAX;

/// Of a path, all but the numbers of lines: [`HERE`], and behind the number of a line that loses packets the place of
/// that line among them.
const NO_LINE: u32 = 1 << 31;

/// An IP header without options (RFC 791), and one of UDP (RFC 768).
pub(super) const IP_BYTES: u32 = 20;
pub(super) const UDP_BYTES: u32 = 8;

/// The piece of a message that is handed to TCP at once.
const PIECE: u64 = 16 << 10;

impl Network {
    /// The network that a plan describes, hosts taking no time; `seed` is that of all random choices.
    ///
    /// # Errors
    /// [`PlanError`] for a network that cannot be, and for what does not exist packet by packet.
    pub fn new(plan: &NetworkPlan, seed: u64) -> Result<Self, PlanError> {
        let graph = plan.graph()?;
        let below = plan.below()?;
        if let Below::Cells(cells) = &below {
            Plan::over(&graph, cells).build(seed)?;
        }
        Ok(Self::over(Arc::new(graph), &below, seed))
    }

    /// The network over a graph.
    ///
    /// # Panics
    /// Where there is no such network of cells.
    #[must_use]
    pub fn over(graph: Arc<Graph>, below: &Below, seed: u64) -> Self {
        let empty = Self {
            lines: Vec::new(),
            paths: Vec::new(),
            packets: Slab::default(),
            ends: Vec::new(),
            directs: Vec::new(),
            processors: Vec::new(),
            echoes: Vec::new(),
            cells: None,
            losses: Losses::default(),
            keeps_all: false,
            mtu: 0,
            piece: PIECE,
            readers: Vec::new(),
            complete: VecDeque::new(),
            hops: 0,
            router: Router::new(Arc::clone(&graph)),
        };
        match below {
            Below::Packets(spec) => Self {
                lines: Self::ports(&graph, spec),
                losses: Losses::new(spec.packet_loss, graph.lines().len(), seed),
                mtu: spec.mtu,
                ..empty
            },
            Below::Cells(spec) => Self {
                cells: Some(Box::new(CellNetwork::new(&graph, spec, seed))),
                keeps_all: spec.keeps_all(),
                mtu: spec.mtu,
                piece: if spec.keeps_all() { spec.mtu.into() } else { PIECE },
                ..empty
            },
        }
    }

    /// The lines of a graph with their ports.
    fn ports(graph: &Graph, spec: &ByPackets) -> Vec<Line> {
        let is_host = |node: NodeId| graph.nodes()[node.0 as usize].kind == NodeKind::Host;
        let lines = graph.lines().iter().map(|line| {
            let rate = graph.media()[line.medium.0 as usize].rate;
            // A host keeps what it has to send, and lets its connections send in turns, as operating systems do
            // (fq, fq_codel: RFC 8290).
            let discipline = match is_host(line.from) {
                true => Discipline::Scheduled(Scheduler::RoundRobin, Room::Any),
                false => Discipline::Fifo(spec.queue),
            };
            let switch = if is_host(line.to) { Span::ZERO } else { spec.switch_delay };
            let marks_after = spec.ecn.and_then(|ahead| rate.time_for(ahead.bits())).unwrap_or(Span::MAX);
            let (framing, gap) = (spec.framing, Bytes::ZERO);
            let port = Port::new(PortSpec { rate, framing, gap, discipline, marks_after });
            Line { port, delay: line.delay.saturating_add(switch), marked: 0 }
        });
        lines.collect()
    }

    /// Gives every host a processor that takes its time.
    pub fn set_costs(&mut self, costs: Costs) {
        let processor = Processor { costs: Some(costs), ..Processor::default() };
        self.processors = vec![processor; self.router.graph().hosts().len()];
    }

    /// Adds a connection from one host to another, numbered as the graph's hosts are, with the rules of the one and
    /// of the other end. It is closed.
    ///
    /// # Panics
    /// Where the network has no such hosts, or they are the same.
    pub fn connect(&mut self, hosts: [u32; 2], configs: [&Arc<Config>; 2]) -> ConnectionId {
        assert!(hosts[0] != hosts[1], "a connection joins two hosts");
        let number = (self.ends.len() / 2) as u32;
        for side in 0..2 {
            let way = self.way(hosts[side], hosts[1 - side]);
            let (mut path, mut flow, mut circuit) = (0, 0, CircuitId(0));
            if let Some(cells) = &mut self.cells {
                circuit = cells.connect(&way, self.router.graph());
            } else {
                path = self.paths.len() as u32;
                for line in &way {
                    self.paths.push(line.0);
                    self.paths.extend((!self.losses.is_empty()).then_some(NO_LINE | line.0));
                }
                self.paths.push(HERE);
                flow = self.lines[way[0].0 as usize].port.flow();
            }
            self.ends.push(End {
                tcp: TcpEnd::new(number, side as u32, configs[side].clone(), self.mtu),
                host: hosts[side],
                path,
                flow,
                circuit,
                echo: u32::MAX,
                lost: 0,
                making: VecDeque::new(),
                given: 0,
                expected: VecDeque::new(),
            });
        }
        ConnectionId(number)
    }

    /// The way from one host to another.
    fn way(&mut self, from: u32, to: u32) -> Vec<LineId> {
        let graph = self.router.graph();
        let (from, to) = (graph.hosts()[from as usize], graph.hosts()[to as usize]);
        let mut path = Vec::new();
        let is_reached = self.router.path(from, to, &mut path);
        assert!(is_reached, "a checked network joins all its hosts");
        path
    }

    /// Opens a connection that is closed: the three segments of the handshake cross the network.
    pub fn open(&mut self, sink: &mut impl EventSink<Event>, now: SimTime, connection: ConnectionId) {
        let (opens, other) = (connection.end(true).0, connection.end(false).0);
        self.ends[other as usize].tcp.machine.listen(now).expect("an end begins closed");
        self.ends[opens as usize].tcp.machine.connect(now).expect("an end begins closed");
        self.drain(sink, now, opens);
    }

    /// Opens a connection that is closed without a segment on any line, as if that had been done long before; small
    /// segments do not wait for acknowledgments (`TCP_NODELAY`).
    pub fn open_at_once(&mut self, sink: &mut impl EventSink<Event>, now: SimTime, connection: ConnectionId) {
        if self.keeps_all {
            return;
        }
        let ends = [connection.end(true).0, connection.end(false).0];
        for end in ends {
            self.ends[end as usize].tcp.machine.set_nodelay(true);
        }
        self.ends[ends[1] as usize].tcp.machine.listen(now).expect("an end begins closed");
        self.ends[ends[0] as usize].tcp.machine.connect(now).expect("an end begins closed");
        let mut turn = 0;
        let mut quiet = 0;
        while quiet < 2 {
            let end = ends[turn];
            quiet += 1;
            loop {
                match self.ends[end as usize].tcp.machine.poll_output() {
                    Output::Transmit(segment) => {
                        self.ends[ends[1 - turn] as usize].tcp.machine.handle_segment(now, &segment);
                        quiet = 0;
                    }
                    Output::Timeout(_) => break,
                    _ => {}
                }
            }
            turn = 1 - turn;
        }
        ends.into_iter().for_each(|end| self.drain(sink, now, end));
    }

    /// Gives the user of an end `bytes` to write without a word when they are read; with `closes`, nothing follows.
    pub fn write(
        &mut self,
        sink: &mut impl EventSink<Event>,
        now: SimTime,
        end: EndId,
        bytes: Bytes,
        closes: bool,
    ) {
        let state = &mut self.ends[end.0 as usize];
        state.tcp.to_write = state.tcp.to_write.saturating_add(bytes.get());
        state.given = state.given.saturating_add(bytes.get());
        state.tcp.closes |= closes;
        if state.tcp.machine.state().may_send() {
            state.tcp.go_on_writing(now);
            self.drain(sink, now, end.0);
        }
    }

    /// Sends a message of `bytes`, one or more, from an end of an open connection. Its last byte is made at `made`,
    /// those before it evenly from now on. When all have been read at the other end, `client` is in
    /// [`Network::poll_complete`].
    pub fn send(
        &mut self,
        sink: &mut impl EventSink<Event>,
        now: SimTime,
        end: EndId,
        (bytes, made): (Bytes, SimTime),
        client: u32,
    ) {
        let pieces = bytes.get().div_ceil(self.piece).max(1);
        let each = Span::from_ps(made.as_ps().saturating_sub(now.as_ps()) / pieces);
        let state = &mut self.ends[end.0 as usize];
        state.given += bytes.get();
        let given = state.given;
        state.making.push_back(Making { left: bytes.get(), next: now, each });
        let is_first = state.making.len() == 1;
        self.ends[end.peer().0 as usize].expected.push_back((given, client));
        if is_first {
            self.made(sink, now, end.0);
        }
    }

    /// The client of a message that has been read whole, each once, and when its last packet came.
    pub fn poll_complete(&mut self) -> Option<(u32, SimTime)> {
        self.complete.pop_front()
    }

    /// An event of this network is due.
    #[inline]
    pub fn handle(&mut self, sink: &mut impl EventSink<Event>, now: SimTime, event: Event) {
        let Event { kind, number } = event;
        match kind {
            Kind::Arrive | Kind::Leave => {
                if kind == Kind::Leave {
                    // The packets that follow it on its line have no events before.
                    let place = self.packets.packets[number as usize].place;
                    self.take_turns(sink, now, self.paths[place as usize - 1]);
                }
                self.arrive(sink, now, number);
            }
            Kind::Timer => self.timer(sink, now, number),
            Kind::Made => self.made(sink, now, number),
            Kind::Take => self.take(sink, now, number),
            Kind::Open => self.open(sink, now, ConnectionId(number)),
            Kind::Offer => self.offer_cells(sink, now, number),
            Kind::Received => self.receive(sink, now, number),
            Kind::Cells => self.step_cells(sink, now),
            Kind::Ask => self.ask(sink, now, number),
            Kind::GiveUp => self.give_up(sink, now, number),
            Kind::Due => self.is_due(sink, now, number),
            Kind::Read => self.read(sink, now, number),
        }
    }

    /// A packet leaves its host for a network of cells.
    fn offer_cells(&mut self, sink: &mut impl EventSink<Event>, now: SimTime, number: u32) {
        let Load { end, unit } = self.packets.load(number);
        let circuit = self.ends[EndId(*end).peer().0 as usize].circuit;
        let wrapping = if matches!(unit, Unit::Piece) { Bytes::ZERO } else { LLC };
        let bytes = Bytes::new(self.packets.packets[number as usize].bytes.into()) + wrapping;
        if let Some(cells) = &mut self.cells {
            cells.offer(sink, now, circuit, (number, bytes));
        }
    }

    /// Something happens among the cells: packets may have come.
    fn step_cells(&mut self, sink: &mut impl EventSink<Event>, now: SimTime) {
        let Some(cells) = &mut self.cells else { return };
        cells.step(sink, now);
        while let Some((number, time)) = cells.arrived.pop_front() {
            if let Some(time) = time {
                sink.put(time, Kind::Received.of(number));
            } else {
                let sender = EndId(self.packets.load(number).end).peer();
                self.ends[sender.0 as usize].lost += 1;
                self.packets.remove(number);
            }
        }
    }

    /// Packets, or cells, that have reached the end of a line so far.
    #[must_use]
    pub fn hops(&self) -> u64 {
        self.fabric().map_or(self.hops, Fabric::hops)
    }

    /// The network of cells, where it is one.
    #[must_use]
    pub fn fabric(&self) -> Option<&Fabric> {
        self.cells.as_ref().map(|cells| cells.fabric())
    }

    /// Packets that are under way or wait.
    #[must_use]
    pub fn under_way(&self) -> usize {
        self.packets.len()
    }

    /// The graph of the network.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        self.router.graph()
    }

    /// What a line of the graph has counted; looks at every packet that is under way.
    ///
    /// # Panics
    /// Where the graph has no such line, and where the network is one of cells.
    #[must_use]
    pub fn line(&self, line: LineId) -> LineReport {
        let here = |packet: &&Packet| self.paths[packet.place as usize - 1] == line.0;
        let held = self.packets.iter().filter(here).count() as u64;
        let Line { port, marked, .. } = &self.lines[line.0 as usize];
        LineReport { port: port.counters(), held, marked: *marked }
    }

    /// What has been lost and marked (ECN) on all lines, by name, and how often losses or marks have made a sender
    /// reduce its window; a network of cells has only what it lost.
    #[must_use]
    pub fn congestion(&self) -> Vec<(&'static str, u64)> {
        if let Some(cells) = &self.cells {
            return vec![("lost_cells", cells.fabric().lost())];
        }
        let dropped: u64 = self.lines.iter().map(|line| line.port.counters().dropped).sum();
        let dropped = dropped + self.losses.lost();
        let marked = self.lines.iter().map(|line| line.marked).sum();
        let reductions = |end: &End| {
            let told = end.tcp.machine.counters();
            u64::from(told.timeouts) + u64::from(told.fast_retransmits) + u64::from(told.marks)
        };
        let events = self.ends.iter().map(reductions).sum();
        vec![("lost_packets", dropped), ("marked_packets", marked), ("congestion_events", events)]
    }

    /// What has become of what an end writes.
    #[must_use]
    pub fn stream(&self, from: EndId) -> StreamReport {
        let (sender, receiver) = (&self.ends[from.0 as usize], &self.ends[from.peer().0 as usize]);
        StreamReport {
            packets_lost: sender.lost + receiver.lost,
            read: Bytes::new(receiver.tcp.read),
            last_read: receiver.tcp.last_read,
            sender: sender.tcp.machine.counters(),
            receiver: receiver.tcp.machine.counters(),
            ended: sender.tcp.ended,
        }
    }

    /// A packet is at the end of a line.
    #[inline]
    fn arrive(&mut self, sink: &mut impl EventSink<Event>, now: SimTime, number: u32) {
        self.hops += 1;
        let packet = &mut self.packets.packets[number as usize];
        let line = self.paths[packet.place as usize];
        packet.place += 1;
        if line < NO_LINE {
            let bytes = packet.bytes;
            self.offer(sink, now, number, bytes, Way { line, flow: 0, kind: Kind::Arrive });
            return;
        }
        if line != HERE {
            return self.survive(sink, now, number, line ^ NO_LINE);
        }
        self.receive(sink, now, number);
    }

    /// A packet is at the end of a line that loses packets: it goes on, or does not.
    #[cold]
    fn survive(&mut self, sink: &mut impl EventSink<Event>, now: SimTime, number: u32, line: u32) {
        if self.losses.loses(line) {
            return self.packets.remove(number);
        }
        // Not by `arrive`, which would not be one with its callers if it called itself.
        let packet = &mut self.packets.packets[number as usize];
        let (line, bytes) = (self.paths[packet.place as usize], packet.bytes);
        packet.place += 1;
        if line == HERE {
            return self.receive(sink, now, number);
        }
        self.offer(sink, now, number, bytes, Way { line, flow: 0, kind: Kind::Arrive });
    }

    /// A packet is at its host.
    #[inline(always)] // as what follows, for each packet
    fn receive(&mut self, sink: &mut impl EventSink<Event>, now: SimTime, number: u32) {
        let host = self.ends[self.packets.load(number).end as usize].host;
        if let Some(processor) = self.processors.get_mut(host as usize)
            && (processor.free_at > now || !processor.waiting.is_empty())
        {
            let first = processor.waiting.is_empty();
            processor.waiting.push_back(number);
            if first {
                sink.put(processor.free_at, Kind::Take.of(host));
            }
            return;
        }
        self.deliver(sink, now, number);
    }

    fn take(&mut self, sink: &mut impl EventSink<Event>, now: SimTime, host: u32) {
        let processor = &mut self.processors[host as usize];
        if processor.free_at > now {
            sink.put(processor.free_at, Kind::Take.of(host));
            return;
        }
        let Some(number) = processor.waiting.pop_front() else { return };
        self.deliver(sink, now, number);
        let processor = &self.processors[host as usize];
        if !processor.waiting.is_empty() {
            sink.put(processor.done(now), Kind::Take.of(host));
        }
    }

    #[inline(always)]
    fn deliver(&mut self, sink: &mut impl EventSink<Event>, now: SimTime, number: u32) {
        let Load { end, unit } = self.packets.load(number);
        let end = *end;
        let Unit::Segment(segment) = unit else { return self.deliver_whole(sink, now, number) };
        self.ends[end as usize].tcp.machine.handle_segment(now, segment);
        self.packets.remove(number);
        self.drain(sink, now, end);
    }

    /// What is not TCP's is at its host: a datagram, or a piece of a message.
    #[cold]
    fn deliver_whole(&mut self, sink: &mut impl EventSink<Event>, now: SimTime, number: u32) {
        let Load { end, unit } = self.packets.load(number);
        let (end, unit) = (*end, *unit);
        if matches!(unit, Unit::Frame) {
            return self.has_come(sink, now, number, end);
        }
        let bytes = self.packets.packets[number as usize].bytes;
        self.packets.remove(number);
        if let Unit::Datagram(turn) = unit {
            return self.datagram(sink, now, EndId(end), turn);
        }
        let state = &mut self.ends[end as usize];
        state.tcp.read += u64::from(bytes);
        while let Some(client) = state.whole() {
            self.complete.push_back((client, now));
        }
    }

    fn timer(&mut self, sink: &mut impl EventSink<Event>, now: SimTime, end: u32) {
        match self.ends[end as usize].tcp.is_due(now) {
            Ok(()) => self.drain(sink, now, end),
            Err(Some(later)) => sink.put(later, Kind::Timer.of(end)),
            Err(None) => {}
        }
    }

    /// The next piece of the first message is there, and what else is due.
    fn made(&mut self, sink: &mut impl EventSink<Event>, now: SimTime, end: u32) {
        loop {
            let state = &mut self.ends[end as usize];
            match state.piece(now, self.piece) {
                Ok(bytes) if self.keeps_all => {
                    let load = Load { end: end ^ 1, unit: Unit::Piece };
                    // A piece is no longer than a PDU.
                    let number = self.packets.insert(Packet { place: 0, bytes: bytes as u32 }, load);
                    self.offer_cells(sink, now, number);
                }
                Ok(bytes) => state.tcp.to_write += bytes,
                Err(next) => {
                    if let Some(next) = next {
                        sink.put(next, Kind::Made.of(end));
                    }
                    break;
                }
            }
        }
        if !self.keeps_all {
            self.ends[end as usize].tcp.go_on_writing(now);
            self.drain(sink, now, end);
        }
    }

    /// Takes the outputs of an end and lets its user go on.
    fn drain(&mut self, sink: &mut impl EventSink<Event>, now: SimTime, end: u32) {
        loop {
            let state = &mut self.ends[end as usize];
            match state.tcp.step(now) {
                Output::Work(work) => {
                    if let Some(processor) = self.processors.get_mut(state.host as usize) {
                        processor.pay(now, work);
                    }
                }
                Output::Transmit(segment) => {
                    let at = self.processors.get(state.host as usize).map_or(now, |host| host.done(now));
                    self.transmit(sink, at, end, (segment.octets() + IP_BYTES, Unit::Segment(segment)));
                }
                Output::Deliver(_) => {
                    while let Some(client) = state.whole() {
                        self.complete.push_back((client, now));
                    }
                }
                Output::Event(_) => {}
                Output::Timeout(timer) => {
                    if let Some(timer) = timer {
                        sink.put(timer, Kind::Timer.of(end));
                    }
                    return;
                }
            }
        }
    }

    #[inline(always)] // so that a segment is written once, where it lies while it is under way
    pub(super) fn transmit(
        &mut self,
        sink: &mut impl EventSink<Event>,
        at: SimTime,
        end: u32,
        (bytes, unit): (u32, Unit),
    ) {
        let number = self.insert(end, bytes, unit);
        self.leave(sink, at, end, number, bytes);
    }

    /// A packet from an end to its peer.
    #[inline(always)]
    pub(super) fn insert(&mut self, end: u32, bytes: u32, unit: Unit) -> u32 {
        let place = self.ends[end as usize].path + 1;
        self.packets.insert(Packet { place, bytes }, Load { end: end ^ 1, unit })
    }

    /// A packet leaves its end.
    #[inline(always)]
    pub(super) fn leave(
        &mut self,
        sink: &mut impl EventSink<Event>,
        at: SimTime,
        end: u32,
        number: u32,
        bytes: u32,
    ) {
        let End { path, flow, .. } = self.ends[end as usize];
        if self.cells.is_some() {
            return sink.put(at, Kind::Offer.of(number));
        }
        let line = self.paths[path as usize];
        self.take_turns(sink, at, line);
        self.offer(sink, at, number, bytes, Way { line, flow, kind: Kind::Leave });
    }

    /// Packets that wait in a host are sent as long as its line is free for them up to `now`.
    #[inline]
    fn take_turns(&mut self, sink: &mut impl EventSink<Event>, now: SimTime, line: u32) {
        let line = &mut self.lines[line as usize];
        while let Some((number, sent)) = line.port.next(now) {
            sink.put(sent + line.delay, Kind::Leave.of(number));
        }
    }

    /// A packet is at the port of a line.
    #[inline(always)] // for each packet on each line
    fn offer(&mut self, sink: &mut impl EventSink<Event>, at: SimTime, number: u32, bytes: u32, way: Way) {
        let line = &mut self.lines[way.line as usize];
        match line.port.take(at, way.flow, number, bytes) {
            Taken::Sent(sent) => sink.put(sent + line.delay, way.kind.of(number)),
            Taken::Marked(sent) => {
                sink.put(sent + line.delay, way.kind.of(number));
                line.marked += u64::from(self.packets.mark(number));
            }
            Taken::Waits => {}
            Taken::Instead(other) => self.packets.remove(other),
            Taken::Lost => self.packets.remove(number),
        }
    }
}

/// Which line a packet takes, as which flow of its port, and what happens at its end.
struct Way {
    line: u32,
    flow: u32,
    kind: Kind,
}
