//! MPI over stream connections: the heads and the system calls of LAM and of MPICH's p4.
//!
//! | LAM 6.3, client to client | words of 32 bits, big endian |
//! |---|---|
//! | envelope | length, tag, flags, source, context, sequence |
//!
//! | MPICH 1.1.2, `ch_p4` | |
//! |---|---|
//! | p4's head of each message | type, to, from, ack_req, length, id, data_type, imm_from |
//! | a packet behind it | mode, context, rank in the communicator, to, source, sequence, then tag, length, format, id of the send |
//!
//! *Choice*: of MPICH, a leave to send has the first six words, then the ids of send and receive and a
//! handle; data of a rendezvous are a message of p4 whose id is that of the receive. LAM has no message
//! that takes a send back, so none is cancelled there.

mod head;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use wiretwin_proto::{MessageId, Output, Payload};
use wiretwin_units::{Bytes, SimTime};

use super::machine::{self, Found, Machine, Misuse, Outgoing, Transmit};
use super::packet::{Kind, Packet};
use super::policy::{Data, Policy, Terms};
use crate::library::{
    Call, ConnectionId, Content, Event, Library, LibraryOutput, MpiCalls, Outcome, Ready, Refusal, Request,
};
use crate::matching::Pattern;
use crate::protocol::Mode;
use head::{Head, HeadError};
pub use head::{Heads, LAM_HEAD, P4_HEAD};

/// The longest message: lengths are `int` in both libraries.
pub const LONGEST: Bytes = Bytes::new(i32::MAX as u64);

/// Outputs that are kept room for in any case.
const ROOM: usize = 64;

/// What fuzz targets call.
#[doc(hidden)]
pub mod fuzz {
    pub use super::head::round_trip;
}

/// Why a policy cannot be carried by streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamError {
    /// Nobody can write or read another's memory over a stream.
    Memory(Data),
    /// A stream stops its sender by itself.
    Flow,
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(data) => {
                write!(f, "data of a rendezvous cannot be {data:?} over a stream, only Sent")
            }
            Self::Flow => f.write_str("buffers are not counted over a stream, nor is a window"),
        }
    }
}

impl core::error::Error for StreamError {}

/// A message that is being read.
#[derive(Clone, Copy, Debug)]
struct Body {
    packet: Packet,
    message: Option<MessageId>,
    left: Bytes,
}

#[derive(Debug)]
struct Line {
    rank: u32,
    ended: bool,
    inbox: Content,
    body: Option<Box<Body>>,
    /// The head of a message of MPICH whose data come apart.
    announced: Option<Box<Packet>>,
    /// What the read at hand was asked for.
    asked: Bytes,
    /// Reads that were asked for and have not come back. What they bring is not known: no other is asked for meanwhile,
    /// which could run into the message after.
    reads: u8,
    /// p4 looks for the second time whether a message begins here.
    looked: bool,
}

impl Line {
    /// Whether the next octets are the head of a message of the carrier.
    fn at_head(&self) -> bool {
        self.body.is_none() && self.inbox.is_empty()
    }
}

#[derive(Debug)]
struct Write {
    to: u32,
    content: Content,
    /// The send whose memory is free then.
    frees: Option<u64>,
}

/// The library of one rank.
#[derive(Debug)]
pub struct StreamMpi {
    machine: Machine,
    heads: Heads,
    rank: u32,
    size: u32,
    connections: Vec<Option<ConnectionId>>,
    lines: Vec<Option<Line>>,
    writes: VecDeque<Write>,
    writing: bool,
    blocked: bool,
    next_id: u32,
    /// Sends that the other end answers by number.
    sends: BTreeMap<u32, u64>,
    /// Receives whose data are on their way: by whose, and the number that comes with them.
    receives: BTreeMap<(u32, u32), (u64, u64)>,
    spare: Vec<Content>,
    outputs: VecDeque<LibraryOutput>,
}

impl StreamMpi {
    /// The library of this rank, of so many.
    ///
    /// # Errors
    /// [`StreamError`] for a policy that streams cannot carry.
    pub fn new(rank: u32, size: u32, policy: Policy, heads: Heads) -> Result<Self, StreamError> {
        if policy.data != Data::Sent {
            return Err(StreamError::Memory(policy.data));
        }
        if policy.flow.is_some() || policy.window.is_some() {
            return Err(StreamError::Flow);
        }
        Ok(Self {
            machine: Machine::new(rank, size, policy),
            heads,
            rank,
            size,
            connections: vec![None; size as usize],
            lines: Vec::new(),
            writes: VecDeque::new(),
            writing: false,
            blocked: false,
            next_id: 0,
            sends: BTreeMap::new(),
            receives: BTreeMap::new(),
            spare: Vec::new(),
            outputs: VecDeque::new(),
        })
    }

    /// LAM with this threshold.
    ///
    /// # Panics
    /// Never: its policy is one for streams.
    pub fn lam(rank: u32, size: u32, threshold: Bytes) -> Self {
        Self::new(rank, size, Policy::lam(threshold), Heads::Lam).expect("a policy for streams")
    }

    /// MPICH on p4.
    ///
    /// # Panics
    /// Never: its policy is one for streams.
    pub fn mpich(rank: u32, size: u32) -> Self {
        Self::new(rank, size, Policy::mpich(), Heads::P4).expect("a policy for streams")
    }

    /// The machine behind it.
    pub const fn machine(&self) -> &Machine {
        &self.machine
    }

    /// What a peer is set to, which is told when all begin: see [`Machine::handle_terms`].
    pub fn handle_terms(&mut self, now: SimTime, rank: u32, terms: &Terms) {
        self.machine.handle_terms(now, rank, terms);
        self.drain(now);
    }

    /// A send in any mode.
    ///
    /// # Errors
    /// As for [`Machine::send`], and [`Misuse::TooLong`].
    pub fn send_in_mode(&mut self, now: SimTime, request: Request, outgoing: Outgoing) -> Result<(), Misuse> {
        if outgoing.bytes > LONGEST {
            return Err(Misuse::TooLong { bytes: outgoing.bytes, most: LONGEST });
        }
        self.machine.send(now, request, outgoing)?;
        self.drain(now);
        Ok(())
    }

    /// What the machine asks for, done or queued.
    fn drain(&mut self, now: SimTime) {
        loop {
            match self.machine.poll_output() {
                Output::Work(work) => self.outputs.push_back(Output::Work(work)),
                Output::Transmit(Transmit::Packet { to, packet }) => self.put(now, to, packet),
                Output::Transmit(Transmit::Fetch { .. }) => unreachable!("not a policy for streams"),
                Output::Deliver(done) => self.outputs.extend(super::told(done).map(Output::Deliver)),
                Output::Event(machine::Event::Unexpected { .. }) => {}
                Output::Event(machine::Event::Garbage { .. }) => self.garbage("a packet of MPI"),
                Output::Timeout(_) => break,
            }
        }
        self.pump(now);
    }

    fn garbage(&mut self, what: &'static str) {
        self.outputs.push_back(Output::Event(Event::Garbage { what }));
    }

    fn put(&mut self, now: SimTime, to: u32, packet: Packet) {
        let number = match packet.kind {
            Kind::Eager { .. } | Kind::Request => {
                self.next_id = self.next_id.wrapping_add(1);
                if packet.kind != (Kind::Eager { synchronous: false }) {
                    self.sends.insert(self.next_id, packet.send);
                }
                self.next_id
            }
            // The other end's number of the message came with its envelope.
            Kind::Reply | Kind::Matched => packet.send as u32,
            Kind::Data => packet.receive as u32,
            Kind::Cancel if self.heads == Heads::Lam => {
                let mut reply = Packet::of(Kind::Cancelled { done: false });
                reply.send = packet.send;
                return self.machine.handle_packet(now, to, reply);
            }
            Kind::Cancel => {
                let known = self.sends.iter().find(|(_, send)| **send == packet.send);
                known.map_or(0, |(number, _)| *number)
            }
            Kind::Cancelled { .. } => packet.send as u32,
            // Policies for streams have none of these.
            Kind::Fetched | Kind::Credit => return,
        };
        if packet.kind == Kind::Reply {
            // What comes back with the data: LAM's sequence, or the number of this receive.
            let key = match self.heads {
                Heads::Lam => packet.send as u32,
                Heads::P4 => packet.receive as u32,
            };
            self.receives.insert((to, key), (packet.receive, packet.send));
        }
        let frees = matches!(packet.kind, Kind::Eager { .. } | Kind::Data).then_some(packet.send);
        let head = Head { packet, number, from: self.rank, to };
        let apart = self.machine.policy().apart_from;
        let mut first = self.spare.pop().unwrap_or_default();
        first.clear();
        let second = head.emit(self.heads, apart, &mut first);
        let whole = second.is_none();
        self.queue(to, first, frees.filter(|_| whole));
        if let Some(content) = second {
            self.queue(to, content, frees);
        }
    }

    /// Queues a message of the carrier, in as many writes as it takes.
    fn queue(&mut self, to: u32, mut content: Content, frees: Option<u64>) {
        if self.heads == Heads::P4 && self.machine.policy().head_apart {
            let mut head = self.spare.pop().unwrap_or_default();
            head.clear();
            content.move_to(Bytes::new(P4_HEAD as u64), &mut head);
            self.writes.push_back(Write { to, content: head, frees: None });
        }
        self.writes.push_back(Write { to, content, frees });
    }

    /// Begins the next write, if none is on its way.
    fn pump(&mut self, now: SimTime) {
        while !self.writing && !self.blocked {
            let Some(write) = self.writes.front_mut() else { return };
            let Some(connection) = self.connections[write.to as usize] else {
                // The machine knows that the peer is lost.
                let frees = self.writes.pop_front().and_then(|write| write.frees);
                if let Some(send) = frees {
                    self.machine.handle_sent(now, send);
                }
                continue;
            };
            let content = core::mem::take(&mut write.content);
            self.writing = true;
            self.outputs.push_back(Output::Transmit(Call::Write { connection, content, wait: false }));
        }
    }

    /// Octets that are needed next of a connection.
    fn needed(&self, line: &Line) -> Bytes {
        match &line.body {
            Some(body) => body.left,
            None => self.heads.octets(&line.inbox).saturating_sub(line.inbox.length()).max(Bytes::new(1)),
        }
    }

    /// Whether what is ready is looked at once more: `socket_recv` of p4 before MPICH 1.2 asks
    /// `sock_msg_avail_on_fd`, a `select` and a `recv` of one octet that stays, before it reads a head.
    fn looks_twice(&self) -> bool {
        self.heads == Heads::P4 && self.machine.policy().head_apart
    }

    /// Reads what is ready; `false` where it is looked at once more before.
    fn begin_reading(&mut self, connection: ConnectionId) -> bool {
        let looks_twice = self.looks_twice();
        let Some(Some(line)) = self.lines.get_mut(connection.0 as usize) else { return true };
        if line.reads > 0 {
            return true;
        }
        if looks_twice && line.at_head() {
            line.looked = !line.looked;
            if line.looked {
                return false;
            }
            line.reads += 1;
            let peek = Call::Read { connection, most: Bytes::new(0), wait: false };
            self.outputs.push_back(Output::Transmit(peek));
        }
        self.read(connection);
        true
    }

    fn read(&mut self, connection: ConnectionId) {
        let Some(Some(line)) = self.lines.get(connection.0 as usize) else { return };
        let most = self.needed(line);
        if let Some(Some(line)) = self.lines.get_mut(connection.0 as usize) {
            line.asked = most;
            line.reads += 1;
        }
        self.outputs.push_back(Output::Transmit(Call::Read { connection, most, wait: false }));
    }

    /// Takes in what has come; whether a message goes on.
    fn take_in(&mut self, now: SimTime, connection: ConnectionId) -> bool {
        loop {
            let Some(Some(line)) = self.lines.get_mut(connection.0 as usize) else { return false };
            if let Some(body) = &mut line.body {
                match line.inbox.take_body(body.left) {
                    Some(part) => {
                        body.message = body.message.or(Some(part.message));
                        body.left -= part.length;
                        if !body.left.is_zero() {
                            continue;
                        }
                    }
                    None if body.left.is_zero() => {}
                    None => return true,
                }
                let Body { mut packet, message, .. } = **body;
                line.body = None;
                let rank = line.rank;
                packet.body = message.map(|message| Payload::whole(message, packet.bytes));
                if packet.kind == Kind::Data {
                    let key = (rank, packet.receive as u32);
                    let Some((receive, send)) = self.receives.remove(&key) else {
                        self.garbage("data that no receive waits for");
                        return false;
                    };
                    (packet.receive, packet.send) = (receive, send);
                }
                self.machine.handle_packet(now, rank, packet);
                return false;
            }
            let (rank, announced) = (line.rank, line.announced.as_deref().copied());
            match Head::parse(self.heads, announced, &mut line.inbox) {
                Ok(None) => return !line.inbox.is_empty() || announced.is_some(),
                Ok(Some(Head { packet, number, .. })) if announced.is_none() && head::is_apart(&packet) => {
                    line.announced = Some(Box::new(Packet { send: number.into(), ..packet }));
                }
                Ok(Some(Head { mut packet, number, .. })) => {
                    line.announced = None;
                    if matches!(packet.kind, Kind::Eager { .. } | Kind::Data) {
                        packet.send = number.into();
                        packet.receive = number.into();
                        line.body = Some(Box::new(Body { packet, message: None, left: packet.bytes }));
                        continue;
                    }
                    self.short(now, rank, packet, number);
                    return false;
                }
                Err(HeadError { field, .. }) => {
                    self.garbage(field);
                    return false;
                }
            }
        }
    }

    /// A packet without data has come.
    fn short(&mut self, now: SimTime, rank: u32, mut packet: Packet, number: u32) {
        packet.send = match packet.kind {
            // Numbers of the other end: kept as they are, and sent back.
            Kind::Request | Kind::Cancel => number.into(),
            Kind::Reply | Kind::Matched | Kind::Cancelled { .. } => match self.sends.get(&number) {
                Some(send) => *send,
                None => return self.garbage("an answer to nothing"),
            },
            _ => return self.garbage("a packet of no kind"),
        };
        if !matches!(packet.kind, Kind::Request | Kind::Cancel | Kind::Cancelled { done: false }) {
            self.sends.remove(&number);
        }
        if packet.kind == Kind::Reply && self.heads == Heads::Lam {
            // The data go under the sequence of their message.
            packet.receive = number.into();
        }
        self.machine.handle_packet(now, rank, packet);
    }

    fn lost(&mut self, now: SimTime, connection: ConnectionId) {
        let Some(Some(line)) = self.lines.get_mut(connection.0 as usize) else { return };
        if core::mem::replace(&mut line.ended, true) {
            return;
        }
        let rank = line.rank;
        self.connections[rank as usize] = None;
        if self.writes.front().is_some_and(|first| first.to == rank) {
            (self.blocked, self.writing) = (false, false);
        }
        self.machine.handle_lost(now, rank);
    }
}

impl MpiCalls for StreamMpi {
    fn send_in_mode(&mut self, now: SimTime, request: Request, outgoing: Outgoing) -> Result<(), Misuse> {
        self.machine.attach(Bytes::MAX);
        Self::send_in_mode(self, now, request, outgoing)
    }

    fn receive_in_context(&mut self, now: SimTime, request: Request, pattern: Pattern, capacity: Bytes) {
        let refused = super::post_receive(&mut self.machine, now, request, pattern, capacity);
        self.outputs.extend(refused);
        self.drain(now);
    }

    fn probe(&self, pattern: &Pattern) -> Option<Found> {
        self.machine.probe(pattern)
    }

    fn cancel(&mut self, now: SimTime, request: Request) {
        self.machine.cancel(now, request);
        self.drain(now);
    }
}

impl Library for StreamMpi {
    fn admit(&self, to: u32, _tag: u32, bytes: Bytes) -> Result<(), Refusal> {
        if to >= self.size {
            Err(Refusal::Unsupported("a rank that is not there"))
        } else if bytes > LONGEST {
            Err(Refusal::TooLong { most: LONGEST })
        } else {
            Ok(())
        }
    }

    fn send(&mut self, now: SimTime, request: Request, to: u32, tag: u32, bytes: Bytes) {
        let outgoing = Outgoing { to, context: 0, tag, bytes, mode: Mode::Standard, buffer: 0 };
        // `admit` has looked at the rank, and requests are used once.
        self.machine.send(now, request, outgoing).expect("it was admitted");
        self.drain(now);
    }

    fn receive(
        &mut self,
        now: SimTime,
        request: Request,
        from: Option<u32>,
        tag: Option<u32>,
        capacity: Bytes,
    ) {
        self.receive_in_context(now, request, Pattern { context: 0, source: from, tag }, capacity);
    }

    fn mpi(&mut self) -> Option<&mut dyn MpiCalls> {
        Some(self)
    }

    fn progress(&mut self, now: SimTime) {
        if !self.blocked && !self.writes.is_empty() {
            return self.pump(now);
        }
        if self.connections.iter().any(Option::is_some) {
            let write = match self.writes.front() {
                Some(first) if self.blocked => self.connections[first.to as usize],
                _ => None,
            };
            self.outputs.push_back(Output::Transmit(Call::Select { write, until: None, idle: false }));
        }
    }

    fn handle(&mut self, now: SimTime, outcome: Outcome<'_>) {
        match outcome {
            Outcome::Given { connection, rank } => {
                let at = connection.0 as usize;
                if self.lines.len() <= at {
                    self.lines.resize_with(at + 1, || None);
                }
                self.lines[at] = Some(Line {
                    rank,
                    ended: false,
                    inbox: Content::new(),
                    body: None,
                    announced: None,
                    asked: Bytes::new(0),
                    reads: 0,
                    looked: false,
                });
                self.connections[rank as usize] = Some(connection);
            }
            Outcome::Wrote { rest, .. } => {
                self.writing = false;
                if rest.is_empty() {
                    if rest.has_memory() {
                        self.spare.push(rest);
                    }
                    if let Some(send) = self.writes.pop_front().and_then(|write| write.frees) {
                        self.machine.handle_sent(now, send);
                    }
                } else if let Some(first) = self.writes.front_mut() {
                    first.content = rest;
                    self.blocked = true;
                }
            }
            Outcome::Ready(ready) => {
                let mut again = false;
                for ready in ready {
                    match *ready {
                        Ready::Readable(connection) => again |= !self.begin_reading(connection),
                        Ready::Writable(_) => self.blocked = false,
                        Ready::Acceptable(_) | Ready::Datagram(_) | Ready::Pdu(_) | Ready::Circuit(..) => {}
                    }
                }
                if again {
                    let look = Call::Select { write: None, until: Some(now), idle: false };
                    self.outputs.push_back(Output::Transmit(look));
                }
            }
            Outcome::Read { connection, content } => {
                let came = content.length();
                let mut asked = Bytes::new(0);
                if let Some(Some(line)) = self.lines.get_mut(connection.0 as usize) {
                    content.move_to(Bytes::MAX, &mut line.inbox);
                    asked = line.asked;
                    line.reads = line.reads.saturating_sub(1);
                }
                let more = self.take_in(now, connection);
                // Connections are many: one from which nothing waits gives its memory back.
                if let Some(Some(line)) = self.lines.get_mut(connection.0 as usize)
                    && line.inbox.is_empty()
                    && line.inbox.has_memory()
                {
                    core::mem::swap(&mut line.inbox, content);
                    line.inbox = Content::new();
                }
                // What was asked for is all there: there may be more of the message. p4 looks before each of its own.
                let is_next = self.looks_twice()
                    && matches!(self.lines.get(connection.0 as usize), Some(Some(line)) if line.at_head());
                if more && came >= asked && !is_next {
                    self.read(connection);
                }
            }
            Outcome::Ended { connection } | Outcome::Closed { connection } => self.lost(now, connection),
            // Of calls that it does not make.
            Outcome::Listening { .. }
            | Outcome::Accepted { .. }
            | Outcome::Connected { .. }
            | Outcome::Changed { .. }
            | Outcome::Bound { .. }
            | Outcome::Sent { .. }
            | Outcome::Datagram { .. }
            | Outcome::Empty { .. }
            | Outcome::GivenCircuit { .. }
            | Outcome::SentPdu { .. }
            | Outcome::Pdu { .. }
            | Outcome::NoPdu { .. }
            | Outcome::Fore(_)
            | Outcome::Started { .. }
            | Outcome::Tree { .. }
            | Outcome::Branch { .. }
            | Outcome::Failed(_) => {}
        }
        self.drain(now);
    }

    fn poll_output(&mut self) -> LibraryOutput {
        if let Some(output) = self.outputs.pop_front() {
            return output;
        }
        // Once for each of many connections at most: that memory is not kept.
        self.outputs.shrink_to(ROOM);
        Output::Timeout(None)
    }
}
