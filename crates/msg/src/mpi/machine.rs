//! One rank's library: requests in, packets out, packets in, requests done.

mod lost;
mod short;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::fmt;

use wiretwin_proto::{Output, Payload, Work, WorkKind};
use wiretwin_units::{Bytes, SimTime};

use super::credit::Credits;
use super::packet::{Kind, Packet};
use super::policy::{Data, Mismatch, Policy, SynchronousSend};
use crate::library::Request;
use crate::matching::{Envelope, Matcher, Pattern, PostOutcome, Posted};
use crate::protocol::{Mode, Protocol};

/// The rank's own place in the matcher.
const HERE: u32 = 0;

/// A send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// The receiver.
    pub to: u32,
    /// The communicator's context.
    pub context: u32,
    /// The tag.
    pub tag: u32,
    /// Octets.
    pub bytes: Bytes,
    /// The mode.
    pub mode: Mode,
    /// Which memory: what it is called does not matter, only whether it is the same again.
    pub buffer: u64,
}

/// A receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// Whose, and with which tag, in which context.
    pub pattern: Pattern,
    /// Octets that there is room for.
    pub capacity: Bytes,
    /// Which memory.
    pub buffer: u64,
}

/// Why an operation is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misuse {
    /// The rank is not in the world.
    NoSuchRank {
        /// The rank.
        rank: u32,
        /// How many there are.
        size: u32,
    },
    /// A buffered send finds less room in the attached buffer (`MPI_ERR_BUFFER`).
    NoBuffer {
        /// What it needs.
        needed: Bytes,
        /// What is left.
        left: Bytes,
    },
    /// The request is used already.
    RequestInUse(Request),
    /// The transport's heads have no room for the length (`MPI_ERR_COUNT`).
    TooLong {
        /// The length.
        bytes: Bytes,
        /// The longest.
        most: Bytes,
    },
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchRank { rank, size } => write!(f, "no rank {rank}: ranks are 0 to {}", size - 1),
            Self::NoBuffer { needed, left } => {
                write!(f, "a buffered send of {} octets, {} are attached and free", needed.get(), left.get())
            }
            Self::RequestInUse(Request(number)) => write!(f, "request {number} is not done yet"),
            Self::TooLong { bytes, most } => {
                write!(f, "a message of {} octets: at most {} are carried", bytes.get(), most.get())
            }
        }
    }
}

impl core::error::Error for Misuse {}

/// Why a request came to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The peer has gone.
    PeerLost {
        /// Its rank.
        rank: u32,
    },
    /// The peer's library is set differently.
    Mismatch {
        /// Its rank.
        rank: u32,
        /// What differs.
        mismatch: Mismatch,
    },
}

/// A receive is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Received {
    /// The receive.
    pub request: Request,
    /// Whose and with which tag.
    pub envelope: Envelope,
    /// Octets of the message.
    pub bytes: Bytes,
    /// It was longer than its receive, which has as much as fits (`MPI_ERR_TRUNCATE`).
    pub truncated: bool,
    /// The data, as far as they came.
    pub body: Option<Payload>,
}

/// A request is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// A send: its memory is free.
    Sent(Request),
    /// A receive.
    Received(Received),
    /// What was to be cancelled was, and is done; or it goes on.
    Cancelled {
        /// The request that has ended.
        request: Request,
        /// Whether it was.
        done: bool,
    },
    /// Either: it came to nothing.
    Failed {
        /// The request that has ended.
        request: Request,
        /// The reason of its failure.
        failure: Failure,
    },
}

/// What is nobody's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A message came that no receive waits for.
    Unexpected {
        /// Its envelope.
        envelope: Envelope,
        /// Its octets, if it was eager.
        kept: Bytes,
    },
    /// A packet that fits nothing that this rank knows.
    Garbage {
        /// The rank that sent it.
        from: u32,
        /// What it was.
        kind: Kind,
    },
}

/// What goes to the transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transmit {
    /// A packet. When the memory of an eager message, or of the data of a rendezvous, is free again,
    /// [`Machine::handle_sent`] is called with its number.
    Packet {
        /// To whom.
        to: u32,
        /// The packet that is sent.
        packet: Packet,
    },
    /// The data of a message are fetched from its sender's memory; then [`Machine::handle_fetched`].
    Fetch {
        /// From whom.
        from: u32,
        /// The data that are fetched.
        body: Payload,
        /// For which receive.
        receive: u64,
    },
}

/// Outputs of a machine.
pub type MachineOutput = Output<Transmit, Done, Event>;

/// A message that a probe found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its envelope.
    pub envelope: Envelope,
    /// Its octets.
    pub bytes: Bytes,
}

/// What a send waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaits {
    /// That its memory is free.
    Sent,
    /// That, and that it has matched.
    SentAndMatched,
    /// That it has matched.
    Matched,
    /// Leave to send its data.
    Reply,
    /// That its data were fetched.
    Fetched,
}

#[derive(Clone, Copy, Debug)]
struct Sending {
    outgoing: Outgoing,
    awaits: Awaits,
    /// The program was told already: it was buffered.
    told: bool,
    cancelling: bool,
}

#[derive(Clone, Debug)]
struct Receiving {
    incoming: Incoming,
    posted: Option<Posted>,
    /// The rendezvous that it has matched: whose, envelope, octets, the sender's number.
    matched: Option<Box<(u32, Envelope, Bytes, u64)>>,
}

#[derive(Clone, Copy, Debug)]
struct Arrived {
    from: u32,
    packet: Packet,
}

#[derive(Clone, Debug)]
struct Peer {
    refused: Option<Box<Failure>>,
    /// Eager octets that may still be sent.
    window: Bytes,
    /// Eager octets matched here, and not yet told.
    matched: Bytes,
    credits: Option<Box<Credits>>,
}

/// The library of one rank.
#[derive(Debug)]
pub struct Machine {
    rank: u32,
    policy: Policy,
    peers: Vec<Peer>,
    matcher: Matcher,
    sends: BTreeMap<u64, Sending>,
    receives: BTreeMap<u64, Receiving>,
    arrived: BTreeMap<u64, Arrived>,
    next_arrived: u64,
    kept: Bytes,
    most_kept: Bytes,
    attached: Bytes,
    buffered: Bytes,
    /// Memory that is registered, the one used last behind.
    registered: VecDeque<(u64, Bytes)>,
    /// Packets to this rank itself.
    own: VecDeque<Packet>,
    /// Why there is nothing to come of any other rank.
    alone: Option<Failure>,
    outputs: VecDeque<MachineOutput>,
}

impl Machine {
    /// The library of this rank, of so many.
    ///
    /// # Panics
    /// If the policy cannot be: see [`Policy::check`].
    pub fn new(rank: u32, size: u32, policy: Policy) -> Self {
        policy.check().expect("a policy that can be");
        let peer = Peer {
            refused: None,
            window: policy.window.unwrap_or(Bytes::MAX),
            matched: Bytes::new(0),
            credits: policy.flow.map(Credits::new).map(Box::new),
        };
        Self {
            rank,
            peers: alloc::vec![peer; size as usize],
            policy,
            matcher: Matcher::new(),
            sends: BTreeMap::new(),
            receives: BTreeMap::new(),
            arrived: BTreeMap::new(),
            next_arrived: 0,
            kept: Bytes::new(0),
            most_kept: Bytes::new(0),
            attached: Bytes::new(0),
            buffered: Bytes::new(0),
            registered: VecDeque::new(),
            own: VecDeque::new(),
            alone: None,
            outputs: VecDeque::new(),
        }
    }

    /// Its policy.
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Octets of eager messages that are kept for receives not yet posted: now, and at most so far.
    pub const fn kept(&self) -> (Bytes, Bytes) {
        (self.kept, self.most_kept)
    }

    /// Messages and requests to send that no receive has taken yet.
    pub fn unexpected(&self) -> usize {
        self.arrived.len()
    }

    /// Requests that are not done.
    pub fn open(&self) -> usize {
        self.sends.len() + self.receives.len()
    }

    /// `MPI_Buffer_attach`: so many octets for buffered sends, instead of those before.
    pub fn attach(&mut self, bytes: Bytes) {
        self.attached = bytes;
    }

    /// A send begins.
    ///
    /// # Errors
    /// [`Misuse`]; nothing has begun then.
    pub fn send(&mut self, now: SimTime, request: Request, outgoing: Outgoing) -> Result<(), Misuse> {
        let Outgoing { to, context, tag, bytes, mode, buffer } = outgoing;
        let size = self.peers.len() as u32;
        let Some(peer) = self.peers.get_mut(to as usize) else {
            return Err(Misuse::NoSuchRank { rank: to, size });
        };
        if self.sends.contains_key(&request.0) || self.receives.contains_key(&request.0) {
            return Err(Misuse::RequestInUse(request));
        }
        if mode == Mode::Buffered {
            let left = self.attached.saturating_sub(self.buffered);
            if bytes > left {
                return Err(Misuse::NoBuffer { needed: bytes, left });
            }
        }
        if let Some(failure) = peer.refused.as_deref().copied() {
            self.done(Done::Failed { request, failure });
            return Ok(());
        }
        let synchronous = mode == Mode::Synchronous;
        let may_push = !synchronous || self.policy.synchronous == SynchronousSend::Acknowledged;
        let from = self.policy.rendezvous_from.map(Bytes::get);
        let held = self.policy.held(bytes);
        let pushes = may_push && Protocol::choose(mode, bytes.get(), from).pushes_at_once();
        let eager = pushes && held <= peer.window;
        if eager && self.policy.window.is_some() {
            peer.window -= held;
        }
        self.work(WorkKind::LibrarySend, bytes);
        let awaits = match (eager, synchronous) {
            (true, false) => Awaits::Sent,
            (true, true) => Awaits::SentAndMatched,
            (false, _) if self.policy.data == Data::Get => Awaits::Fetched,
            (false, _) => Awaits::Reply,
        };
        let told = mode == Mode::Buffered;
        self.sends.insert(request.0, Sending { outgoing, awaits, told, cancelling: false });
        if told {
            self.buffered += bytes;
            self.work(WorkKind::UserCopy, bytes);
            self.done(Done::Sent(request));
        }
        let mut packet = Packet::of(if eager { Kind::Eager { synchronous } } else { Kind::Request });
        packet.envelope = Envelope { context, source: self.rank, tag };
        packet.bytes = bytes;
        packet.send = request.0;
        if eager || self.policy.data == Data::Get {
            packet.body = Some(Payload::whole(request.message(), bytes));
        }
        if !eager && self.policy.data == Data::Get {
            self.register(buffer, bytes);
        }
        self.put(to, packet);
        self.turn(now);
        Ok(())
    }

    /// A receive is posted.
    ///
    /// # Errors
    /// [`Misuse`]; nothing has begun then.
    pub fn receive(&mut self, now: SimTime, request: Request, incoming: Incoming) -> Result<(), Misuse> {
        if self.sends.contains_key(&request.0) || self.receives.contains_key(&request.0) {
            return Err(Misuse::RequestInUse(request));
        }
        let (source, size) = (incoming.pattern.source, self.peers.len() as u32);
        if let Some(rank) = source.filter(|&rank| rank >= size) {
            return Err(Misuse::NoSuchRank { rank, size });
        }
        // What came before the peer was lost may still be taken.
        if let Some(failure) = self.hopeless(source)
            && self.probe(&incoming.pattern).is_none()
        {
            self.done(Done::Failed { request, failure });
            return Ok(());
        }
        self.receives.insert(request.0, Receiving { incoming, posted: None, matched: None });
        match self.matcher.post(HERE, incoming.pattern, request.0) {
            PostOutcome::Took { message, .. } => {
                let arrived = self.arrived.remove(&message).expect("what the matcher has, arrived");
                if let Kind::Eager { .. } = arrived.packet.kind {
                    self.kept -= arrived.packet.bytes;
                }
                self.matched(request.0, arrived.from, arrived.packet, true);
            }
            PostOutcome::Waits(posted) => {
                if let Some(receive) = self.receives.get_mut(&request.0) {
                    receive.posted = Some(posted);
                }
            }
        }
        self.turn(now);
        Ok(())
    }

    /// `MPI_Iprobe`: the message that a receive would take.
    pub fn probe(&self, pattern: &Pattern) -> Option<Found> {
        let (envelope, message) = self.matcher.probe(HERE, pattern)?;
        let arrived = self.arrived.get(&message).expect("what the matcher has, arrived");
        Some(Found { envelope, bytes: arrived.packet.bytes })
    }

    /// `MPI_Cancel`: a receive that nothing has matched; a send whose data have not gone, if its receive
    /// has not matched either. [`Done::Cancelled`] tells.
    pub fn cancel(&mut self, now: SimTime, request: Request) {
        if let Some(receive) = self.receives.get(&request.0) {
            let done = receive.posted.is_some_and(|posted| self.matcher.cancel(posted, request.0));
            if done {
                self.receives.remove(&request.0);
            }
            return self.done(Done::Cancelled { request, done });
        }
        match self.sends.get_mut(&request.0) {
            Some(send) if matches!(send.awaits, Awaits::Reply | Awaits::Fetched) && !send.cancelling => {
                send.cancelling = true;
                let to = send.outgoing.to;
                let mut packet = Packet::of(Kind::Cancel);
                packet.send = request.0;
                self.put(to, packet);
                self.turn(now);
            }
            _ => self.done(Done::Cancelled { request, done: false }),
        }
    }

    /// The transport has taken an eager message, or the data of a rendezvous.
    pub fn handle_sent(&mut self, now: SimTime, send: u64) {
        match self.sends.get_mut(&send) {
            Some(sending) if sending.awaits == Awaits::SentAndMatched => sending.awaits = Awaits::Matched,
            Some(sending) if sending.awaits == Awaits::Sent => self.sent(send),
            _ => {}
        }
        self.turn(now);
    }

    /// The data of a rendezvous were fetched.
    pub fn handle_fetched(&mut self, now: SimTime, receive: u64, body: Payload) {
        let Some((from, envelope, bytes, send)) =
            self.receives.get(&receive).and_then(|one| one.matched.as_deref().copied())
        else {
            return;
        };
        let mut packet = Packet::of(Kind::Fetched);
        packet.send = send;
        self.put(from, packet);
        self.received(receive, envelope, bytes, Some(body));
        self.turn(now);
    }

    /// A packet comes from a rank.
    pub fn handle_packet(&mut self, now: SimTime, from: u32, packet: Packet) {
        self.take(from, packet);
        self.turn(now);
    }

    /// What is to be done next; the machine has no timers.
    pub fn poll_output(&mut self) -> MachineOutput {
        self.outputs.pop_front().unwrap_or(Output::Timeout(None))
    }

    fn work(&mut self, kind: WorkKind, bytes: Bytes) {
        self.outputs.push_back(Output::Work(Work { kind, bytes, count: 1 }));
    }

    fn done(&mut self, done: Done) {
        self.outputs.push_back(Output::Deliver(done));
    }

    /// Memory that the adapter is to reach is registered, unless it still is.
    fn register(&mut self, buffer: u64, bytes: Bytes) {
        let Some(most) = self.policy.registrations else { return };
        if let Some(at) = self.registered.iter().position(|(known, _)| *known == buffer) {
            let (_, length) = self.registered.remove(at).expect("it was found");
            if length >= bytes {
                return self.registered.push_back((buffer, length));
            }
            self.work(WorkKind::DeregisterMemory, length);
        } else if self.registered.len() >= most as usize
            && let Some((_, length)) = self.registered.pop_front()
        {
            self.work(WorkKind::DeregisterMemory, length);
        }
        self.registered.push_back((buffer, bytes));
        self.work(WorkKind::RegisterMemory, bytes);
    }

    fn put(&mut self, to: u32, packet: Packet) {
        if to == self.rank {
            return self.own.push_back(packet);
        }
        let Some(peer) = self.peers.get_mut(to as usize) else { return };
        match &mut peer.credits {
            Some(credits) => credits.push(packet),
            None => self.transmit(to, packet),
        }
    }

    fn transmit(&mut self, to: u32, mut packet: Packet) {
        if let Some(peer) = self.peers.get_mut(to as usize) {
            packet.matched = core::mem::replace(&mut peer.matched, Bytes::new(0));
        }
        self.outputs.push_back(Output::Transmit(Transmit::Packet { to, packet }));
    }

    /// What is left to do after a call: packets to itself, packets that buffers have come for, and what
    /// is owed and has nothing to go with.
    fn turn(&mut self, _now: SimTime) {
        while let Some(packet) = self.own.pop_front() {
            let send = packet.send;
            let frees = matches!(packet.kind, Kind::Eager { .. } | Kind::Data);
            self.take(self.rank, packet);
            if frees {
                match self.sends.get_mut(&send) {
                    Some(sending) if sending.awaits == Awaits::SentAndMatched => {
                        sending.awaits = Awaits::Matched
                    }
                    Some(sending) if sending.awaits == Awaits::Sent => self.sent(send),
                    _ => {}
                }
            }
        }
        if self.policy.flow.is_none() && self.policy.window.is_none() {
            return;
        }
        for rank in 0..self.peers.len() {
            while let Some(packet) = self.peers[rank].credits.as_mut().and_then(|credits| credits.pop()) {
                self.transmit(rank as u32, packet);
            }
            let half = self.policy.window.map(|window| Bytes::new(window.get() / 2));
            if half.is_some_and(|half| self.peers[rank].matched > half) {
                self.transmit(rank as u32, Packet::of(Kind::Credit));
            }
        }
    }

    /// A send is done.
    fn sent(&mut self, id: u64) {
        let Some(send) = self.sends.remove(&id) else { return };
        if send.told {
            self.buffered -= send.outgoing.bytes;
        } else {
            if send.cancelling {
                self.done(Done::Cancelled { request: Request(id), done: false });
            }
            self.done(Done::Sent(Request(id)));
        }
    }

    fn garbage(&mut self, from: u32, kind: Kind) {
        self.outputs.push_back(Output::Event(Event::Garbage { from, kind }));
    }

    fn take(&mut self, from: u32, packet: Packet) {
        let Some(peer) = self.peers.get_mut(from as usize) else { return self.garbage(from, packet.kind) };
        if peer.refused.is_some() {
            return;
        }
        peer.window =
            peer.window.saturating_add(packet.matched).min(self.policy.window.unwrap_or(Bytes::MAX));
        if from != self.rank
            && let Some(credits) = &mut peer.credits
        {
            credits.came(&packet);
        }
        let theirs = |send: &Sending| send.outgoing.to == from;
        match packet.kind {
            Kind::Eager { .. } | Kind::Request => self.arrive(from, packet),
            Kind::Reply => match self.sends.get_mut(&packet.send).filter(|send| theirs(send)) {
                Some(send) if send.awaits == Awaits::Reply => {
                    send.awaits = Awaits::Sent;
                    let Outgoing { to, bytes, buffer, .. } = send.outgoing;
                    let wanted = packet.bytes.min(bytes);
                    let mut data = Packet::of(Kind::Data);
                    data.envelope = Envelope { source: self.rank, ..packet.envelope };
                    data.bytes = wanted;
                    (data.send, data.receive) = (packet.send, packet.receive);
                    data.body = Some(Payload::whole(Request(packet.send).message(), wanted));
                    if self.policy.data == Data::Put {
                        self.register(buffer, bytes);
                    }
                    self.put(to, data);
                }
                _ => self.garbage(from, packet.kind),
            },
            Kind::Data => {
                let matched = self
                    .receives
                    .get(&packet.receive)
                    .and_then(|receive| receive.matched.as_deref().copied());
                match matched.filter(|(whose, _, _, send)| *whose == from && *send == packet.send) {
                    Some((_, envelope, bytes, _)) => {
                        if self.policy.always_buffered && self.policy.data == Data::Sent {
                            self.work(WorkKind::UserCopy, packet.bytes);
                        }
                        self.received(packet.receive, envelope, bytes, packet.body);
                    }
                    None => self.garbage(from, packet.kind),
                }
            }
            Kind::Fetched | Kind::Matched => {
                let awaited =
                    self.sends.get(&packet.send).filter(|send| theirs(send)).map(|send| send.awaits);
                match (packet.kind, awaited) {
                    (Kind::Fetched, Some(Awaits::Fetched)) | (Kind::Matched, Some(Awaits::Matched)) => {
                        self.sent(packet.send);
                    }
                    // It has matched before the transport said that the memory is free.
                    (Kind::Matched, Some(Awaits::SentAndMatched)) => {
                        if let Some(send) = self.sends.get_mut(&packet.send) {
                            send.awaits = Awaits::Sent;
                        }
                    }
                    _ => self.garbage(from, packet.kind),
                }
            }
            Kind::Cancel => {
                let waiting = self.arrived.iter().find(|(_, arrived)| {
                    arrived.from == from
                        && arrived.packet.send == packet.send
                        && arrived.packet.kind == Kind::Request
                });
                let done = waiting.map(|(id, arrived)| (*id, arrived.packet.envelope));
                if let Some((id, envelope)) = done {
                    self.arrived.remove(&id);
                    self.matcher.withdraw(HERE, &envelope, id);
                }
                let done = done.is_some();
                let mut reply = Packet::of(Kind::Cancelled { done });
                reply.send = packet.send;
                self.put(from, reply);
            }
            Kind::Cancelled { done } => match self.sends.get_mut(&packet.send) {
                Some(send) if theirs(send) && send.cancelling => {
                    send.cancelling = false;
                    let told = send.told;
                    let bytes = send.outgoing.bytes;
                    if done {
                        self.sends.remove(&packet.send);
                        if told {
                            self.buffered -= bytes;
                        }
                    }
                    self.done(Done::Cancelled { request: Request(packet.send), done });
                }
                // It was done before the answer came, and that was told then.
                _ if !done => {}
                _ => self.garbage(from, packet.kind),
            },
            Kind::Credit => {}
        }
    }

    /// An envelope comes.
    fn arrive(&mut self, from: u32, packet: Packet) {
        self.work(WorkKind::LibraryReceive, packet.bytes);
        let envelope = Envelope { source: from, ..packet.envelope };
        let packet = Packet { envelope, ..packet };
        let id = self.next_arrived;
        if let Some(receive) = self.matcher.arrive(HERE, envelope, id) {
            return self.matched(receive, from, packet, false);
        }
        self.next_arrived += 1;
        self.arrived.insert(id, Arrived { from, packet });
        let kept = if packet.kind == Kind::Request { Bytes::new(0) } else { packet.bytes };
        self.kept += kept;
        self.most_kept = self.most_kept.max(self.kept);
        self.outputs.push_back(Output::Event(Event::Unexpected { envelope, kept }));
    }

    /// A receive has its message; `late` if that was kept for it.
    fn matched(&mut self, receive: u64, from: u32, packet: Packet, late: bool) {
        let Some(receiving) = self.receives.get_mut(&receive) else { return };
        receiving.posted = None;
        let Incoming { capacity, buffer, .. } = receiving.incoming;
        let wanted = packet.bytes.min(capacity);
        match packet.kind {
            Kind::Eager { synchronous } => {
                if late || self.policy.always_buffered {
                    self.work(WorkKind::UserCopy, wanted);
                }
                if synchronous {
                    let mut reply = Packet::of(Kind::Matched);
                    reply.send = packet.send;
                    self.put(from, reply);
                }
                if self.policy.window.is_some()
                    && let Some(peer) = self.peers.get_mut(from as usize)
                {
                    let held = self.policy.held(packet.bytes);
                    if from == self.rank {
                        peer.window += held;
                    } else {
                        peer.matched += held;
                    }
                }
                self.received(receive, packet.envelope, packet.bytes, packet.body);
            }
            _ => {
                receiving.matched = Some(Box::new((from, packet.envelope, packet.bytes, packet.send)));
                if self.policy.data != Data::Sent {
                    self.register(buffer, wanted);
                }
                if let (Data::Get, Some(body)) = (self.policy.data, packet.body) {
                    let body = Payload { length: wanted.min(body.length), ..body };
                    self.outputs.push_back(Output::Transmit(Transmit::Fetch { from, body, receive }));
                } else {
                    let mut reply = Packet::of(Kind::Reply);
                    reply.envelope = packet.envelope;
                    reply.bytes = wanted;
                    (reply.send, reply.receive) = (packet.send, receive);
                    self.put(from, reply);
                }
            }
        }
    }

    /// A receive is done.
    fn received(&mut self, receive: u64, envelope: Envelope, bytes: Bytes, body: Option<Payload>) {
        let Some(receiving) = self.receives.remove(&receive) else { return };
        let capacity = receiving.incoming.capacity;
        let body = body.map(|body| Payload { length: body.length.min(capacity), ..body });
        self.done(Done::Received(Received {
            request: Request(receive),
            envelope,
            bytes,
            truncated: bytes > capacity,
            body,
        }));
    }
}
