//! Stream sockets: what processes, interrupt handlers and timers do to TCP's ends.
//!
//! Where programs use sockets themselves, a pair of ranks has one connection, open from the start. A message is so many octets of its stream,
//! without a header: programs know how long what they wait for is, and so do the ends here. A write goes
//! to TCP in the pieces that `sosend` makes; a piece with the segments that it lets go keeps interrupts
//! waiting (`splnet`), so that segments leave in their order.

use std::collections::VecDeque;

use wiretwin_msg::library::{Address, ConnectionId, Content};
use wiretwin_proto::ip;
use wiretwin_proto::tcp::{Endpoint, Event, Phases, Read, Segment, SeqNumber, Setup};
use wiretwin_proto::{MessageId, Output, Payload, Work, WorkKind};
use wiretwin_units::{Bytes, SimTime, Span};

use std::sync::Arc;

use super::activity::{Activity, activity_of};
use super::config::{Prices, SocketConfig};
use super::core::LanEvent;
use super::cpu::Step;
use super::datagram::DatagramId;
use super::host::{Action, ThreadAt};
use super::load::LOAD_PACKET;
use super::medium::Came;
use super::rank_udp::Sent;
use super::trail::SegmentId;
use super::{Kind, Lan, RequestId, State};
use crate::gige::Stamps;

/// One end of a connection.
pub(super) struct End {
    pub(super) machine: Endpoint,
    /// Whose it is; nobody's yet where it waits to be accepted.
    pub(super) process: u32,
    /// The other end.
    pub(super) other: u32,
    pub(super) host: u32,
    /// Its socket's address, and its name in its process; of a library's only.
    pub(super) at: Address,
    pub(super) name: ConnectionId,
    /// What was written and has not been read; of a library's only.
    pub(super) content: Content,
    /// A writer that does not wait found no room.
    pub(super) full: bool,
    /// Messages that go this way, from the first on; not of a library's.
    messages: Option<Box<Messages>>,
    /// Octets that its process has read; not of a library's.
    read: u64,
    /// What brought the last octets, and what the machine was last called for.
    pub(super) came: SegmentId,
    called: SegmentId,
    deadline: SimTime,
    scheduled: SimTime,
}

/// Messages of a stream of its own.
#[derive(Default)]
struct Messages {
    /// Those not read whole: with the place in the stream where each ends.
    written: VecDeque<(RequestId, u64)>,
    /// Where the last one ends.
    end: u64,
}

impl End {
    /// The first message that is not read whole, and where it ends.
    fn first_written(&self) -> Option<(RequestId, u64)> {
        self.messages.as_ref().and_then(|messages| messages.written.front().copied())
    }
}

/// A send that its process has not finished.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) request: RequestId,
    left: Bytes,
    begun: bool,
}

/// A packet on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    pub(super) carried: Carried,
    pub(super) trail: SegmentId,
}

/// What a packet carries.
#[derive(Clone, Copy, Debug)]
pub(super) enum Carried {
    /// A segment, to this end.
    Segment { segment: Segment, end: u32 },
    /// A datagram of a library, or a fragment of one.
    Piece(ip::Packet<DatagramId>),
    /// A datagram between ranks, or a fragment of one.
    Ip(ip::Packet<Sent>),
    /// This packet of VIs, so long with its frame.
    Vi { packet: u32, octets: Bytes },
    /// So many octets of mapped memory, to this end.
    Mapped { end: u32, octets: u64 },
    /// A PDU of a library, which has nothing of IP's.
    Pdu(u32),
    /// A message of signalling.
    Signal(u32),
}

/// IP's header, without options.
pub(super) const IP_OCTETS: u64 = 20;

impl Lan {
    /// Makes the rules of TCP of each host: its timers run on grids of their own.
    pub(super) fn rules_of_hosts(&mut self, config: &SocketConfig) {
        for host in 0..self.size() {
            let mut grid = self.stream(&format!("host {host}/timers"));
            let phases = Phases {
                slow: Span::from_ps(grid.below(500_000_000_000)),
                fast: Span::from_ps(grid.below(200_000_000_000)),
            };
            self.rules.push(Arc::new(wiretwin_proto::tcp::Config { phases, ..config.tcp.clone() }));
        }
    }

    /// Opens a connection between each two ranks, in no time.
    pub(super) fn connect_all(&mut self, config: &SocketConfig) {
        let size = self.size();
        for rank in 0..size {
            for peer in (0..size).filter(|&peer| peer != rank) {
                let other = self.circuit_between(peer, rank);
                self.add_end(rank, rank, other, config.mtu);
            }
        }
        for rank in 0..size {
            for peer in rank + 1..size {
                let both = [self.circuit_between(rank, peer), self.circuit_between(peer, rank)];
                self.open_connection(both, config.nodelay);
            }
        }
    }

    /// An end that is closed; its stream has its number.
    pub(super) fn add_end(&mut self, process: u32, host: u32, other: u32, mtu: u16) -> u32 {
        let number = self.ends.len() as u32;
        let setup = Setup {
            iss: SeqNumber::ZERO,
            stream: MessageId(number.into()),
            peer_stream: MessageId(other.into()),
            mtu,
        };
        self.ends.push(End {
            machine: Endpoint::new(Arc::clone(&self.rules[host as usize]), setup),
            process,
            other,
            host,
            at: Address { host, port: 0 },
            name: ConnectionId(u32::MAX),
            content: Content::new(),
            full: false,
            messages: None,
            read: 0,
            came: SegmentId::NONE,
            called: SegmentId::NONE,
            deadline: SimTime::MAX,
            scheduled: SimTime::MAX,
        });
        number
    }

    /// Opens the connection of two ends, in no time.
    pub(super) fn open_connection(&mut self, both: [u32; 2], nodelay: bool) {
        let now = self.core.now();
        let opened = self.ends[both[1] as usize].machine.listen(now);
        let asked = self.ends[both[0] as usize].machine.connect(now);
        debug_assert!(opened.is_ok() && asked.is_ok(), "both are new");
        let mut quiet = 0;
        while quiet < 2 {
            quiet = 0;
            for side in 0..2 {
                let mut sent = Vec::new();
                let due = loop {
                    match self.ends[both[side] as usize].machine.poll_output() {
                        Output::Transmit(segment) => sent.push(segment),
                        Output::Timeout(due) => break due,
                        _ => {}
                    }
                };
                self.set_timer(both[side], due);
                quiet += u32::from(sent.is_empty());
                for segment in sent {
                    self.capture_segment(both[side], &segment);
                    self.ends[both[1 - side] as usize].machine.handle_segment(now, &segment);
                }
            }
        }
        for end in both {
            self.ends[end as usize].machine.set_nodelay(nodelay);
        }
    }

    fn set_timer(&mut self, number: u32, due: Option<SimTime>) {
        let now = self.core.now();
        let end = &mut self.ends[number as usize];
        end.deadline = due.unwrap_or(SimTime::MAX);
        if end.deadline < end.scheduled {
            end.scheduled = end.deadline.max(now);
            let time = end.scheduled;
            self.core.at(time, LanEvent::Timer(number));
        }
    }

    /// A timer of an end may be due.
    pub(super) fn timer_due(&mut self, number: u32) {
        let now = self.core.now();
        let end = &mut self.ends[number as usize];
        if now != end.scheduled {
            return;
        }
        end.scheduled = SimTime::MAX;
        if end.deadline > now {
            let due = (end.deadline < SimTime::MAX).then_some(end.deadline);
            return self.set_timer(number, due);
        }
        let (host, called) = (end.host, end.called);
        let timer = self.hosts[host as usize].timer;
        self.wake(timer, &[Step::After(called), Step::Do(Action::Expire { end: number })]);
    }

    /// A send is posted: the process turns to it when it has done those before.
    pub(super) fn post_socket_send(&mut self, rank: u32, request: RequestId, to: u32, bytes: Bytes) {
        let number = self.circuit_between(rank, to);
        let end = &mut self.ends[number as usize];
        let messages = end.messages.get_or_insert_default();
        messages.end += bytes.get();
        messages.written.push_back((request, messages.end));
        let process = &mut self.processes[rank as usize];
        process.sends.push_back(Pending { request, left: bytes, begun: false });
        self.give(rank, Action::Progress { rank });
    }

    /// What a process does: its sends in order, then, while it waits, what there is to read.
    pub(super) fn socket_progress(&mut self, here: ThreadAt, rank: u32) {
        let entry = self.fee(here.host, Activity::Trap);
        let process = &mut self.processes[rank as usize];
        if let Some(pending) = process.sends.front_mut()
            && !process.write_blocked
        {
            let write = Step::Do(Action::Write { rank });
            if core::mem::replace(&mut pending.begun, true) {
                return self.insert(here, &[write]);
            }
            let begin = Step::Do(Action::Begin { message: pending.request });
            let call = self.fee(here.host, Activity::SocketSend);
            return self.insert(here, &[begin, entry, call, write]);
        }
        // Everything posted before is done, not only what the process named: also what it still writes.
        let done = process.sends.is_empty();
        if process.state != State::Waiting || (done && self.resume_if_done(rank)) {
            return;
        }
        let size = self.size();
        let ready = (0..size).find(|&from| {
            from != rank
                && self.wants_from(rank, from)
                && self.ends[self.circuit_between(rank, from) as usize].machine.readable() > Bytes::new(0)
        });
        let Some(from) = ready else { return self.found_nothing(here, rank, entry) };
        let entered = core::mem::take(&mut self.processes[rank as usize].in_call);
        let came = self.ends[self.circuit_between(rank, from) as usize].came;
        let steps = [
            Step::After(came),
            if entered { Step::Charge(Activity::Trap, Span::ZERO) } else { entry },
            self.fee(here.host, Activity::SocketReceive),
            Step::Do(Action::Read { rank, from }),
        ];
        self.insert(here, &steps);
    }

    /// A process hands TCP the next piece of what it writes, or sleeps for want of room.
    pub(super) fn write(&mut self, here: ThreadAt, rank: u32) {
        let now = self.core.now();
        let Some(&pending) = self.processes[rank as usize].sends.front() else { return };
        let Some(to) = self.message(pending.request).map(|message| message.to) else { return };
        let number = self.circuit_between(rank, to);
        let end = &mut self.ends[number as usize];
        let most = end.machine.piece(pending.left);
        // A connection that is over takes nothing more: its writer sleeps for ever, as the peer is gone.
        let taken = end.machine.send(now, most).unwrap_or(Bytes::new(0));
        let process = &mut self.processes[rank as usize];
        let again = if taken == Bytes::new(0) {
            process.write_blocked = true;
            Step::Do(Action::Progress { rank })
        } else if taken < pending.left {
            if let Some(front) = process.sends.front_mut() {
                front.left -= taken;
            }
            Step::Do(Action::Write { rank })
        } else {
            process.sends.pop_front();
            self.insert(here, &[Step::Do(Action::Progress { rank })]);
            Step::Do(Action::Sent { message: pending.request })
        };
        self.insert(here, &[again]);
        self.drain(here, number, true);
    }

    /// A process reads what has come of the message that is next.
    pub(super) fn read(&mut self, here: ThreadAt, rank: u32, from: u32) {
        let now = self.core.now();
        let (theirs, number) = (self.circuit_between(from, rank), self.circuit_between(rank, from));
        let Some((_, end)) = self.ends[theirs as usize].first_written() else { return };
        let mine = &mut self.ends[number as usize];
        let most = Bytes::new(end - mine.read);
        let octets = match mine.machine.receive(now, most) {
            Read::Octets(octets) => octets,
            Read::Nothing | Read::End => Bytes::new(0),
        };
        self.insert(here, &[Step::Do(Action::Got { rank, from, octets })]);
        self.drain(here, number, true);
    }

    /// The octets are in the process's own memory.
    pub(super) fn got(&mut self, here: ThreadAt, rank: u32, from: u32, octets: Bytes) {
        let (theirs, number) = (self.circuit_between(from, rank), self.circuit_between(rank, from));
        let mine = &mut self.ends[number as usize];
        mine.read += octets.get();
        let read = mine.read;
        if let Some((message, end)) = self.ends[theirs as usize].first_written()
            && end == read
        {
            if let Some(messages) = &mut self.ends[theirs as usize].messages {
                messages.written.pop_front();
            }
            self.message_came(here, rank, message);
        }
        self.insert(here, &[Step::Do(Action::Progress { rank })]);
    }

    /// Does what an end asks for since it was called: everything as of that call, in its order.
    pub(super) fn drain(&mut self, here: ThreadAt, number: u32, mask: bool) {
        let encapsulation = self.config.socket.as_ref().map_or(Bytes::new(0), |socket| socket.encapsulation);
        let mut steps = core::mem::take(&mut self.scratch);
        let end = &mut self.ends[number as usize];
        let (process, other) = (end.process, end.other);
        end.called = self.hosts[here.host as usize].cpu.trail(here.thread);
        let (to, peer) = (self.ends[other as usize].host, self.ends[other as usize].process);
        if mask {
            steps.push(Step::Mask(true));
        }
        loop {
            match self.ends[number as usize].machine.poll_output() {
                Output::Work(work) => self.charge(here.host, &work, &mut steps),
                Output::Transmit(segment) => {
                    let octets = Bytes::new(u64::from(segment.octets()) + IP_OCTETS) + encapsulation;
                    let packet = self.add_packet(Carried::Segment { segment, end: other });
                    // Within a here.host IP gives the packet back, and no driver sees it.
                    if to != here.host {
                        steps.push(self.price(here.host, Activity::PacketOut, octets, octets));
                    }
                    steps.push(Step::Do(Action::Transmit { packet, to, octets }));
                }
                Output::Deliver(_) => steps.push(Step::Do(Action::Readable { end: number })),
                Output::Event(Event::Writable) => steps.push(Step::Do(Action::Writable { end: number })),
                Output::Event(Event::Closed(reason)) => {
                    self.over.push((process, peer, reason));
                    steps.push(Step::Do(Action::Changed { end: number }));
                }
                Output::Event(Event::Established | Event::EndOfStream) => {
                    steps.push(Step::Do(Action::Changed { end: number }));
                }
                Output::Event(Event::Urgent { .. }) => {}
                Output::Timeout(due) => {
                    self.set_timer(number, due);
                    break;
                }
            }
        }
        if mask {
            steps.push(Step::Mask(false));
        }
        self.insert_all(here, steps);
    }

    /// What the work of a machine is to a host's processor.
    pub(super) fn charge(&self, host: u32, work: &Work, steps: &mut Vec<Step<Action>>) {
        charge(&self.hosts[host as usize].config.prices, work, steps);
    }

    pub(super) fn add_packet(&mut self, carried: Carried) -> u32 {
        self.packets.insert(Packet { carried, trail: SegmentId::NONE })
    }

    /// A packet is lost on its way.
    pub(super) fn lose_packet(&mut self, packet: u32) {
        if let Carried::Pdu(number) = self.packets[packet].carried
            && self.forget_pdu(number)
        {
            return;
        }
        match self.packets.remove(packet).carried {
            Carried::Piece(piece) => self.piece_lost(piece),
            Carried::Vi { packet, .. } => self.vi_lost(packet),
            Carried::Signal(number) => self.forget_signal(number),
            Carried::Pdu(_) => {}
            Carried::Segment { .. } | Carried::Ip(_) | Carried::Mapped { .. } => {}
        }
    }

    /// A packet leaves its host's processor.
    pub(super) fn send_packet(&mut self, here: ThreadAt, packet: u32, to: u32, octets: Bytes) {
        let trail = self.trail_of(here);
        if to == here.host {
            let timer = self.hosts[here.host as usize].timer;
            return self.wake(timer, &[Step::After(trail), Step::Do(Action::Input { packet })]);
        }
        if self.capture.as_ref().is_some_and(|capture| capture.host == here.host) {
            match self.packets[packet].carried {
                Carried::Segment { segment, end } => {
                    self.capture_segment(self.ends[end as usize].other, &segment);
                }
                Carried::Ip(piece) => self.capture_piece(&piece),
                Carried::Piece(_)
                | Carried::Vi { .. }
                | Carried::Mapped { .. }
                | Carried::Pdu(_)
                | Carried::Signal(_) => {}
            }
        }
        if self.config.network.has_cells() {
            let circuit = self.circuit_between(here.host, to);
            let payload = Payload::whole(MessageId(packet.into()), octets);
            self.circuits[circuit as usize].packets.push_back(packet);
            return self.hand(here, circuit, payload);
        }
        if self.waits_for_ring(here, packet, to, octets) {
            return;
        }
        self.transmit_frame(here.host, packet, to, octets, trail);
    }

    /// A packet goes to the adapter of a network of frames.
    pub(super) fn transmit_frame(
        &mut self,
        host: u32,
        packet: u32,
        to: u32,
        octets: Bytes,
        trail: SegmentId,
    ) {
        let now = self.core.now();
        self.packets[packet].trail = trail;
        let Some(medium) = &mut self.medium else { return };
        medium.advance(now);
        let taken = medium.offer(now, host, to, packet, octets);
        if !taken {
            self.lose_packet(packet);
        }
        self.medium_due();
    }

    /// Something happened on the medium, or may have.
    pub(super) fn medium_due(&mut self) {
        let now = self.core.now();
        let Some(mut medium) = self.medium.take() else { return };
        medium.advance(now);
        let mut at_adapters = Vec::new();
        loop {
            match medium.poll(now) {
                Came::Frame { host, packet, sent, through, stamps } => {
                    self.core.observe(super::FRAME_CAME, host.into(), sent.as_ps());
                    if packet == LOAD_PACKET {
                        continue;
                    }
                    let before = self.packets[packet].trail;
                    let trail = match stamps {
                        None => {
                            let last = now - sent;
                            let trail = match through {
                                Span::ZERO => before,
                                delay => {
                                    self.core.trail.push(before, Activity::SwitchDelay, 0, last - delay, last)
                                }
                            };
                            self.core.trail.push(trail, Activity::Serialize, 0, last, now)
                        }
                        Some(stamps) => self.through_adapters(before, host, stamps),
                    };
                    if self.is_for_adapter(packet) {
                        at_adapters.push((host, packet, trail));
                        medium.taken(now, host);
                        continue;
                    }
                    self.adapters[host as usize].frame_came(packet, trail);
                    let adapter = &self.adapters[host as usize];
                    if let Some(handler) = adapter.call_handler() {
                        self.adapters[host as usize].is_called();
                        self.raise(handler, trail, host);
                    }
                }
                Came::Left { end } => self.mapped_left(end),
                Came::Lost { packet: LOAD_PACKET } => {}
                Came::Lost { packet } => self.lose_packet(packet),
                Came::Until(time) => {
                    if let Some(time) =
                        time.filter(|&time| time < medium.scheduled || medium.scheduled <= now)
                    {
                        medium.scheduled = time.max(now);
                        self.core.at(medium.scheduled, LanEvent::Medium);
                    }
                    break;
                }
            }
        }
        self.medium = Some(medium);
        for (host, packet, trail) in at_adapters {
            let carried = self.packets.remove(packet).carried;
            self.take_vi(host, None, carried, trail);
        }
    }

    /// The way of a packet from one host's memory to the other's, and until its handler is called.
    fn through_adapters(&mut self, mut trail: SegmentId, host: u32, stamps: Stamps) -> SegmentId {
        let now = self.core.now();
        let place = host as u16;
        let stages = [
            (Activity::Dma, stamps.fetched, stamps.there),
            (Activity::Serialize, stamps.sent, stamps.gone),
            (Activity::Propagate, stamps.gone, stamps.came),
            (Activity::Dma, stamps.stored, stamps.taken),
            (Activity::InterruptDelay, stamps.taken, now),
        ];
        for (activity, from, to) in stages {
            let place = if matches!(activity, Activity::Serialize | Activity::Propagate) { 0 } else { place };
            trail = self.core.trail.push(trail, activity, place, from, to);
        }
        trail
    }

    /// The steps of a handler to which a packet has come.
    pub(super) fn packet_steps(&self, host: u32, packet: u32, octets: Bytes) -> [Step<Action>; 2] {
        if matches!(self.packets[packet].carried, Carried::Vi { .. }) {
            // The emulation says what it does with it, as its driver's part.
            return [Step::Charge(Activity::ViaPacketIn, Span::ZERO), Step::Do(Action::Input { packet })];
        }
        [self.price(host, Activity::PacketIn, octets, octets), Step::Do(Action::Input { packet })]
    }

    /// How long the frame or PDU of a packet is.
    pub(super) fn packet_octets(&self, packet: u32) -> Bytes {
        let encapsulation = self.config.socket.as_ref().map_or(Bytes::new(0), |socket| socket.encapsulation);
        let octets = match self.packets[packet].carried {
            Carried::Segment { segment, .. } => u64::from(segment.octets()),
            Carried::Piece(piece) => piece.length.into(),
            Carried::Ip(piece) => piece.length.into(),
            Carried::Vi { octets, .. } => return octets,
            Carried::Mapped { octets, .. } => return Bytes::new(octets),
            Carried::Pdu(_) | Carried::Signal(_) => return Bytes::new(0),
        };
        Bytes::new(octets + IP_OCTETS) + encapsulation
    }

    /// A packet has come to its end.
    pub(super) fn input(&mut self, here: ThreadAt, packet: u32) {
        let now = self.core.now();
        let (segment, end) = match self.packets.remove(packet).carried {
            carried @ Carried::Vi { .. } => {
                let trail = self.trail_of(here);
                return self.take_vi(here.host, Some(here), carried, trail);
            }
            Carried::Segment { segment, end } => (segment, end),
            Carried::Piece(piece) => return self.piece_came(here, piece),
            Carried::Mapped { end, .. } => return self.mapped_came(here, end),
            Carried::Ip(piece) => {
                if self.capture.as_ref().is_some_and(|capture| capture.host == here.host) {
                    self.capture_piece(&piece);
                }
                return self.take_ip(here, piece);
            }
            Carried::Pdu(_) | Carried::Signal(_) => return,
        };
        if self.capture.as_ref().is_some_and(|capture| capture.host == here.host) {
            self.capture_segment(self.ends[end as usize].other, &segment);
        }
        self.ends[end as usize].machine.handle_segment(now, &segment);
        self.drain(here, end, false);
    }

    /// A timer of an end has run out.
    pub(super) fn expire(&mut self, here: ThreadAt, number: u32) {
        let now = self.core.now();
        if self.ends[number as usize].deadline <= now {
            self.ends[number as usize].machine.handle_timeout(now);
            self.drain(here, number, false);
        }
    }

    /// Octets have come for a process.
    pub(super) fn is_readable(&mut self, here: ThreadAt, number: u32) {
        let trail = self.trail_of(here);
        let end = &mut self.ends[number as usize];
        end.came = trail;
        let process = end.process;
        if self.config.stack.message.is_library() {
            self.stir(number);
            return self.rouse_library(process, trail);
        }
        self.rouse(here.host, process, trail);
    }

    /// A writer has room.
    pub(super) fn is_writable(&mut self, here: ThreadAt, number: u32) {
        let trail = self.trail_of(here);
        let end = &mut self.ends[number as usize];
        end.full = false;
        let rank = end.process;
        if self.config.stack.message.is_library() {
            return self.rouse_library(rank, trail);
        }
        if core::mem::take(&mut self.processes[rank as usize].write_blocked) {
            self.rouse(here.host, rank, trail);
        }
    }

    /// Segments with text that all ends have sent, and those of them that they sent again.
    #[must_use]
    pub fn segments(&self) -> (u64, u64) {
        self.ends.iter().fold((0, 0), |(sent, again), end| {
            let counters = end.machine.counters();
            (sent + u64::from(counters.sent_data), again + u64::from(counters.retransmitted))
        })
    }

    /// Whether a rank has a receive posted for another's message.
    pub(super) fn wants_from(&self, rank: u32, from: u32) -> bool {
        self.processes[rank as usize].posted.iter().any(|receive| {
            self.find(*receive).is_some_and(|slot| match self.requests[slot].kind {
                Kind::Recv { pattern, .. } => pattern.source.is_none_or(|source| source == from),
                _ => false,
            })
        })
    }
}

/// What the work of a machine takes of a processor with these prices.
pub(super) fn charge(prices: &Prices, work: &Work, steps: &mut Vec<Step<Action>>) {
    if let Some(activity) = activity_of(work.kind) {
        // What is converted or marked one by one costs its call as often.
        let again = match activity {
            Activity::XdrItem | Activity::RecordMark => u64::from(work.count.saturating_sub(1)),
            _ => 0,
        };
        let once = prices.of(activity, work.bytes, work.bytes);
        let call = prices.of(activity, Bytes::new(0), work.bytes);
        steps.push(Step::Charge(activity, once + call * again));
    }
    if matches!(work.kind, WorkKind::CopyIn | WorkKind::CopyOut) {
        let mbuf = prices.of(Activity::Mbuf, Bytes::new(0), work.bytes);
        steps.push(Step::Charge(Activity::Mbuf, mbuf * u64::from(work.count)));
    }
}
