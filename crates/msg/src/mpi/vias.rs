//! MPI over VIs, as MVICH does it: eager messages through counted buffers that are posted beforehand, data
//! of a rendezvous by RDMA write.
//!
//! Everything but those data goes in buffers of one size, each with a head:
//!
//! | octets | head, big endian |
//! |---|---|
//! | 0 | kind |
//! | 1 | 1 where a message is synchronous, or a cancelled one was had back |
//! | 2 to 3 | buffers returned |
//! | 4 to 15 | context, source, tag |
//! | 16 to 23 | octets of the message, or that are wanted |
//! | 24 to 39 | the sender's number of the message, the receiver's of the receive |
//! | 40 to 47 | where in the message the octets behind the head begin, and how many they are |
//!
//! Where memory has addresses, a reply has that of its receive at 40, and the handle in place of the context.
//!
//! *Choice*: no layout of MVICH 0.02 is public; the fields are those of its descendants, the octets ours. An
//! eager message is copied into buffers at its sender and out of them at its receiver.

mod head;
#[cfg(test)]
mod tests;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;

use wiretwin_proto::{MessageId, Output, Payload, Work, WorkKind};
use wiretwin_units::{Bytes, SimTime};

use super::credit::Flow;
use super::machine::{self, Found, Machine, Misuse, Outgoing, Transmit};
use super::packet::{HEAD, Kind, Packet};
use super::policy::{Data, Policy};
use super::stream::LONGEST;
use crate::library::{
    Call, ConnectionId, Content, Event, Library, LibraryOutput, MpiCalls, Outcome, Ready, Refusal, Request,
    Way,
};
use crate::matching::Pattern;
use crate::protocol::Mode;
pub use head::{HEAD_OCTETS, Head, HeadError};

/// What fuzz targets call.
#[doc(hidden)]
pub mod fuzz {
    pub use super::head::round_trip;
}

/// Why a policy cannot be carried by VIs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViaError {
    /// Buffers of receives are counted, or messages are lost.
    NotCounted,
    /// Nobody fetches another's memory: not every provider has RDMA read.
    Fetched,
}

impl fmt::Display for ViaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotCounted => "over VIs buffers are counted: the policy has no flow",
            Self::Fetched => "data of a rendezvous cannot be Get over VIs, only Put",
        })
    }
}

impl core::error::Error for ViaError {}

#[derive(Debug)]
struct Peer {
    connection: Option<ConnectionId>,
    /// The message that is coming, and how much of it is still to come.
    coming: Option<(Packet, Bytes)>,
}

/// The library of one rank.
#[derive(Debug)]
pub struct ViaMpi {
    machine: Machine,
    flow: Flow,
    transfer: Bytes,
    peers: Vec<Peer>,
    /// By connection: whose.
    ranks: Vec<u32>,
    /// Descriptors that are being posted: the send whose memory is free then.
    posts: VecDeque<Option<u64>>,
    outputs: VecDeque<LibraryOutput>,
}

impl ViaMpi {
    /// The library of this rank, of so many; a descriptor moves at most `transfer` octets.
    ///
    /// # Errors
    /// [`ViaError`] for a policy that VIs cannot carry.
    ///
    /// # Panics
    /// If the policy cannot be: see [`Policy::check`].
    pub fn new(rank: u32, size: u32, policy: Policy, transfer: Bytes) -> Result<Self, ViaError> {
        let flow = policy.flow.ok_or(ViaError::NotCounted)?;
        if policy.data != Data::Put {
            return Err(ViaError::Fetched);
        }
        Ok(Self {
            machine: Machine::new(rank, size, policy),
            flow,
            transfer,
            peers: (0..size).map(|_| Peer { connection: None, coming: None }).collect(),
            ranks: Vec::new(),
            posts: VecDeque::new(),
            outputs: VecDeque::new(),
        })
    }

    /// The machine behind it.
    pub const fn machine(&self) -> &Machine {
        &self.machine
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

    fn drain(&mut self, now: SimTime) {
        loop {
            match self.machine.poll_output() {
                Output::Work(work) => self.outputs.push_back(Output::Work(work)),
                Output::Transmit(Transmit::Packet { to, packet }) => self.put(now, to, packet),
                Output::Transmit(Transmit::Fetch { .. }) => unreachable!("not a policy for VIs"),
                Output::Deliver(done) => self.outputs.extend(super::told(done).map(Output::Deliver)),
                Output::Event(machine::Event::Unexpected { .. }) => {}
                Output::Event(machine::Event::Garbage { .. }) => self.garbage("a packet of MPI"),
                Output::Timeout(_) => return,
            }
        }
    }

    fn garbage(&mut self, what: &'static str) {
        self.outputs.push_back(Output::Event(Event::Garbage { what }));
    }

    fn post(&mut self, connection: ConnectionId, content: Content, way: Way, frees: Option<u64>) {
        self.posts.push_back(frees);
        self.outputs.push_back(Output::Transmit(Call::Post { connection, content, way }));
    }

    /// A packet goes: its data first where they are written, then what stands in buffers.
    fn put(&mut self, now: SimTime, to: u32, packet: Packet) {
        let Some(connection) = self.peers[to as usize].connection else {
            // The machine knows that the peer is lost.
            if matches!(packet.kind, Kind::Eager { .. } | Kind::Data) {
                self.machine.handle_sent(now, packet.send);
            }
            return;
        };
        let room = self.flow.buffer - Bytes::new(HEAD);
        let whole = packet.body.map_or(Bytes::new(0), |body| body.length);
        let message = packet.body.map_or(MessageId(0), |body| body.message);
        let mut start = Bytes::new(0);
        if packet.kind == Kind::Data {
            while start < whole {
                let length = self.transfer.min(whole - start);
                let mut content = Content::new();
                content.push_body(Payload { message, start, length });
                self.post(connection, content, Way::Write, None);
                start += length;
            }
            let content = Head { packet, start: 0, length: 0 }.emit();
            return self.post(connection, content, Way::Send, Some(packet.send));
        }
        if !matches!(packet.kind, Kind::Eager { .. }) {
            let content = Head { packet, start: 0, length: 0 }.emit();
            return self.post(connection, content, Way::Send, None);
        }
        self.outputs.push_back(Output::Work(Work { kind: WorkKind::UserCopy, bytes: whole, count: 1 }));
        let mut part = packet;
        loop {
            let length = room.min(whole - start);
            let head = Head { packet: part, start: start.get() as u32, length: length.get() as u32 };
            let mut content = head.emit();
            content.push_body(Payload { message, start, length });
            start += length;
            let last = start == whole;
            self.post(connection, content, Way::Send, last.then_some(packet.send));
            // What is returned is returned once.
            part.credit = 0;
            if last {
                return;
            }
        }
    }

    /// A buffer has come.
    fn take_in(&mut self, now: SimTime, from: u32, content: &mut Content) {
        let Head { mut packet, start, length } = match Head::parse(content) {
            Ok(head) => head,
            Err(error) => return self.garbage(error.field),
        };
        let peer = &mut self.peers[from as usize];
        match packet.kind {
            Kind::Eager { .. } => {
                let body = content.take_body(Bytes::MAX);
                let fits = body.is_some_and(|body| body.length == Bytes::new(length.into()));
                let (mut whole, left) = match peer.coming.take() {
                    None if start == 0 => (packet, packet.bytes),
                    Some((whole, left)) if Bytes::new(start.into()) == whole.bytes.saturating_sub(left) => {
                        (whole, left)
                    }
                    _ => return self.garbage("part of a message"),
                };
                let (Some(body), true, true) = (body, fits, u64::from(length) <= left.get()) else {
                    return self.garbage("part of a message");
                };
                let left = left - body.length;
                if !left.is_zero() {
                    peer.coming = Some((whole, left));
                    return;
                }
                whole.body = Some(Payload::whole(body.message, whole.bytes));
                packet = whole;
            }
            // They are in the memory of the receive already.
            Kind::Data => packet.body = Some(Payload::whole(Request(packet.send).message(), packet.bytes)),
            _ => {}
        }
        self.machine.handle_packet(now, from, packet);
    }

    fn lost(&mut self, now: SimTime, connection: ConnectionId) {
        let Some(&rank) = self.ranks.get(connection.0 as usize) else { return };
        if self.peers[rank as usize].connection.take().is_some() {
            self.machine.handle_lost(now, rank);
        }
    }
}

impl MpiCalls for ViaMpi {
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

impl Library for ViaMpi {
    fn admit(&self, to: u32, _tag: u32, bytes: Bytes) -> Result<(), Refusal> {
        if to as usize >= self.peers.len() {
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
        self.send_in_mode(now, request, outgoing).expect("it was admitted");
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

    fn progress(&mut self, _now: SimTime) {
        if self.peers.iter().any(|peer| peer.connection.is_some()) {
            self.outputs.push_back(Output::Transmit(Call::Select { write: None, until: None, idle: false }));
        }
    }

    fn handle(&mut self, now: SimTime, outcome: Outcome<'_>) {
        match outcome {
            Outcome::Given { connection, rank } => {
                debug_assert_eq!(connection.0 as usize, self.ranks.len(), "connections come in order");
                self.ranks.push(rank);
                self.peers[rank as usize].connection = Some(connection);
            }
            Outcome::Wrote { .. } => {
                if let Some(send) = self.posts.pop_front().flatten() {
                    self.machine.handle_sent(now, send);
                }
            }
            Outcome::Ready(ready) => {
                for ready in ready {
                    if let Ready::Readable(connection) = *ready {
                        let call = Call::Read { connection, most: Bytes::MAX, wait: false };
                        self.outputs.push_back(Output::Transmit(call));
                    }
                }
            }
            Outcome::Read { connection, content } if !content.is_empty() => {
                if let Some(&from) = self.ranks.get(connection.0 as usize) {
                    self.take_in(now, from, content);
                }
            }
            Outcome::Ended { connection } | Outcome::Closed { connection } => {
                self.lost(now, connection);
                self.posts.pop_front();
            }
            // Of calls that it does not make.
            _ => {}
        }
        self.drain(now);
    }

    fn poll_output(&mut self) -> LibraryOutput {
        self.outputs.pop_front().unwrap_or(Output::Timeout(None))
    }
}
