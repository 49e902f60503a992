//! The smallest message layer over streams: a head of 16 octets before each message, a connection between
//! every two ranks, open from the start.
//!
//! No library of its time; it is what a program writes for itself when it wants messages with tags and
//! wildcards of stream sockets, and the pattern for other [`Library`]s.
//!
//! | octets | head, big endian |
//! |---|---|
//! | 0 to 7 | length of what follows |
//! | 8 to 11 | tag |
//! | 12 to 15 | the sender's rank |
//!
//! A message goes at once; while its connection takes no more, the process reads what comes (or two ranks
//! that send long messages to each other would wait for ever). A message that nobody waits for is kept, and
//! copied when somebody does. One to the rank itself is copied and touches no socket.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use wiretwin_proto::{MessageId, Output, Payload, Work, WorkKind};
use wiretwin_units::{Bytes, SimTime};

use crate::library::{
    Call, ConnectionId, Content, Done, Event, Failure, Library, LibraryOutput, Outcome, Ready, Refusal,
    Request,
};
use crate::waiting::Waiting;

/// Octets of a head.
pub const HEAD_OCTETS: usize = 16;

/// What is asked of one read.
const READ_OCTETS: Bytes = Bytes::new(65_536);

/// A connection.
#[derive(Debug)]
struct Line {
    rank: u32,
    ended: bool,
    inbox: Content,
    /// The message that is being read: its tag, and how much of it is still to come.
    message: Option<(u32, Bytes, Bytes)>,
}

#[derive(Debug)]
struct Sending {
    request: Request,
    /// A rank, or the tree of this number.
    to: To,
    content: Content,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum To {
    Rank(u32),
    Tree(usize),
}

/// The library of one rank.
#[derive(Debug)]
pub struct Framed {
    rank: u32,
    size: u32,
    /// By rank.
    connections: Vec<Option<ConnectionId>>,
    /// By connection.
    lines: Vec<Option<Line>>,
    /// Connections to several ranks.
    trees: Vec<(Vec<u32>, ConnectionId)>,
    sends: VecDeque<Sending>,
    /// The first of them is in a call.
    writing: bool,
    /// The first of them found no room.
    blocked: bool,
    waiting: Waiting,
    spare: Vec<Content>,
    outputs: VecDeque<LibraryOutput>,
}

impl Framed {
    /// The library of this rank, of so many.
    #[must_use]
    pub fn new(rank: u32, size: u32) -> Self {
        Self {
            rank,
            size,
            connections: vec![None; size as usize],
            lines: Vec::new(),
            trees: Vec::new(),
            sends: VecDeque::new(),
            writing: false,
            blocked: false,
            waiting: Waiting::default(),
            spare: Vec::new(),
            outputs: VecDeque::new(),
        }
    }

    fn work(&mut self, kind: WorkKind, bytes: Bytes) {
        self.outputs.push_back(Output::Work(Work { kind, bytes, count: 1 }));
    }

    fn call(&mut self, call: Call) {
        self.outputs.push_back(Output::Transmit(call));
    }

    fn done(&mut self, done: Done) {
        self.outputs.push_back(Output::Deliver(done));
    }

    /// Begins the next write, if none is on its way.
    fn pump(&mut self) {
        while !self.writing && !self.blocked {
            let Some(sending) = self.sends.front_mut() else { return };
            let connection = match sending.to {
                To::Rank(rank) => self.connections[rank as usize].ok_or(rank),
                To::Tree(at) => Ok(self.trees[at].1),
            };
            let connection = match connection {
                Ok(connection) => connection,
                Err(rank) => {
                    let request = sending.request;
                    self.sends.pop_front();
                    self.done(Done::Failed { request, failure: Failure::PeerLost { rank } });
                    continue;
                }
            };
            let content = core::mem::take(&mut sending.content);
            self.writing = true;
            self.call(Call::Write { connection, content, wait: false });
        }
    }

    fn put(&mut self, request: Request, to: To, tag: u32, bytes: Bytes) {
        let mut content = self.spare.pop().unwrap_or_default();
        content.clear();
        content.push_octets(&bytes.get().to_be_bytes());
        content.push_octets(&tag.to_be_bytes());
        content.push_octets(&self.rank.to_be_bytes());
        content.push_body(Payload::whole(request.message(), bytes));
        self.sends.push_back(Sending { request, to, content });
        self.pump();
    }

    /// A line over which messages of a rank come.
    fn add_line(&mut self, connection: ConnectionId, rank: u32) {
        let at = connection.0 as usize;
        if self.lines.len() <= at {
            self.lines.resize_with(at + 1, || None);
        }
        self.lines[at] = Some(Line { rank, ended: false, inbox: Content::new(), message: None });
    }

    /// A tree is gone: what waits to be written on it comes to nothing.
    fn tree_lost(&mut self, connection: ConnectionId) {
        let Some(at) = self.trees.iter().position(|tree| tree.1 == connection) else { return };
        if let Some(first) = self.sends.front().filter(|first| first.to == To::Tree(at)) {
            let (request, rank) = (first.request, self.trees[at].0.first().copied().unwrap_or(self.rank));
            self.sends.pop_front();
            (self.blocked, self.writing) = (false, false);
            self.done(Done::Failed { request, failure: Failure::PeerLost { rank } });
        }
    }

    /// The whole of a message is here.
    fn came(&mut self, source: u32, tag: u32, message: MessageId, length: Bytes) {
        self.work(WorkKind::LibraryReceive, length);
        match self.waiting.came(source, tag, message, length) {
            Some(request) => self.done(Done::Received { request, message }),
            None => self.outputs.push_back(Output::Event(Event::Unexpected { message })),
        }
    }

    /// Reads what messages there are off what has come over a connection.
    fn take_in(&mut self, connection: ConnectionId) {
        loop {
            let Some(Some(line)) = self.lines.get_mut(connection.0 as usize) else { return };
            let Some((tag, length, left)) = line.message else {
                let mut head = [0; HEAD_OCTETS];
                if !line.inbox.take_octets(&mut head) {
                    return;
                }
                let [length @ .., _, _, _, _, _, _, _, _] = head;
                let [_, _, _, _, _, _, _, _, tag @ .., _, _, _, _] = head;
                let length = Bytes::new(u64::from_be_bytes(length));
                line.message = Some((u32::from_be_bytes(tag), length, length));
                continue;
            };
            let Some(body) = line.inbox.take_body(left) else { return };
            let left = left - body.length;
            if left > Bytes::new(0) {
                line.message = Some((tag, length, left));
                continue;
            }
            line.message = None;
            let rank = line.rank;
            self.came(rank, tag, body.message, length);
        }
    }

    /// A connection is gone, and with it what hangs on it.
    fn lost(&mut self, connection: ConnectionId) {
        let Some(Some(line)) = self.lines.get_mut(connection.0 as usize) else { return };
        if core::mem::replace(&mut line.ended, true) {
            return;
        }
        let rank = line.rank;
        self.connections[rank as usize] = None;
        while let Some(request) = self.waiting.withdraw(|from| from == rank) {
            self.done(Done::Failed { request, failure: Failure::PeerLost { rank } });
        }
        if self.sends.front().is_some_and(|first| first.to == To::Rank(rank)) {
            (self.blocked, self.writing) = (false, false);
        }
    }
}

impl Library for Framed {
    fn admit(&self, to: u32, _tag: u32, _bytes: Bytes) -> Result<(), Refusal> {
        if to < self.size { Ok(()) } else { Err(Refusal::Unsupported("a rank that is not there")) }
    }

    fn send(&mut self, _now: SimTime, request: Request, to: u32, tag: u32, bytes: Bytes) {
        self.work(WorkKind::LibrarySend, bytes);
        if to == self.rank {
            self.work(WorkKind::UserCopy, bytes);
            self.done(Done::Sent(request));
            self.came(to, tag, request.message(), bytes);
            return;
        }
        self.put(request, To::Rank(to), tag, bytes);
    }

    /// Over trees that whatever is below has made: by itself it has none, and admits none.
    fn multicast(&mut self, _now: SimTime, request: Request, to: &[u32], tag: u32, bytes: Bytes) {
        let Some(at) = self.trees.iter().position(|tree| tree.0 == to) else {
            let rank = to.first().copied().unwrap_or(self.rank);
            return self.done(Done::Failed { request, failure: Failure::PeerLost { rank } });
        };
        self.work(WorkKind::LibrarySend, bytes);
        self.put(request, To::Tree(at), tag, bytes);
    }

    fn receive(
        &mut self,
        _now: SimTime,
        request: Request,
        from: Option<u32>,
        tag: Option<u32>,
        _capacity: Bytes,
    ) {
        if let Some((message, length)) = self.waiting.receive(request, from, tag) {
            self.work(WorkKind::UserCopy, length);
            self.done(Done::Received { request, message });
        }
    }

    fn progress(&mut self, _now: SimTime) {
        if !self.blocked && !self.sends.is_empty() {
            return self.pump();
        }
        for rank in (0..self.size).filter(|&rank| rank != self.rank) {
            if self.connections[rank as usize].is_none()
                && let Some(request) = self.waiting.withdraw(|from| from == rank)
            {
                return self.done(Done::Failed { request, failure: Failure::PeerLost { rank } });
            }
        }
        if self.connections.iter().any(Option::is_some) {
            let write = match self.sends.front().filter(|_| self.blocked).map(|first| first.to) {
                Some(To::Rank(rank)) => self.connections[rank as usize],
                Some(To::Tree(at)) => Some(self.trees[at].1),
                None => None,
            };
            self.call(Call::Select { write, until: None, idle: false });
        }
    }

    fn handle(&mut self, _now: SimTime, outcome: Outcome<'_>) {
        match outcome {
            Outcome::Given { connection, rank } => {
                self.add_line(connection, rank);
                self.connections[rank as usize] = Some(connection);
            }
            Outcome::Branch { connection, rank } => self.add_line(connection, rank),
            Outcome::Tree { connection, to } => self.trees.push((to.to_vec(), connection)),
            Outcome::Wrote { rest, .. } => {
                self.writing = false;
                if rest.is_empty() {
                    self.spare.push(rest);
                    if let Some(sending) = self.sends.pop_front() {
                        self.done(Done::Sent(sending.request));
                    }
                    self.pump();
                } else if let Some(first) = self.sends.front_mut() {
                    first.content = rest;
                    self.blocked = true;
                }
            }
            Outcome::Ready(ready) => {
                for ready in ready {
                    match *ready {
                        Ready::Readable(connection) => {
                            self.call(Call::Read { connection, most: READ_OCTETS, wait: false });
                        }
                        Ready::Writable(_) => self.blocked = false,
                        Ready::Acceptable(_) | Ready::Datagram(_) | Ready::Pdu(_) | Ready::Circuit(..) => {}
                    }
                }
                self.pump();
            }
            Outcome::Read { connection, content } => {
                if let Some(Some(line)) = self.lines.get_mut(connection.0 as usize) {
                    content.move_to(Bytes::MAX, &mut line.inbox);
                }
                self.take_in(connection);
            }
            Outcome::Ended { connection } | Outcome::Closed { connection } => {
                self.tree_lost(connection);
                self.lost(connection);
                self.pump();
            }
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
            | Outcome::Failed(_) => {}
        }
    }

    fn poll_output(&mut self) -> LibraryOutput {
        self.outputs.pop_front().unwrap_or(Output::Timeout(None))
    }
}

#[cfg(test)]
mod tests;
