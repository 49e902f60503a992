//! Messages with tags straight over VIs: what a program does that is written to VIPL.
//!
//! A VI to each other rank, and receives posted on it before anything else. A message is one descriptor: its
//! data from where they are to where they come, its tag as immediate data. It is used in the buffer that it
//! came to, so nothing is copied here; the buffer is posted again when a receive has got it or it is kept.
//!
//! *Choice*: as the architecture has it, nobody counts buffers. A sender that is more messages ahead than
//! receives are posted loses them on an unreliable connection, and the connection on a reliable one.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use wiretwin_proto::{Output, Payload};
use wiretwin_units::{Bytes, SimTime};

use crate::library::{
    Call, ConnectionId, Content, Done, Event, Failure, Library, LibraryOutput, Outcome, Ready, Refusal,
    Request, Way,
};
use crate::waiting::Waiting;

/// The consumer of one rank.
#[derive(Debug)]
pub struct Messages {
    rank: u32,
    most: Bytes,
    /// By rank.
    connections: Vec<Option<ConnectionId>>,
    /// By connection: whose.
    ranks: Vec<u32>,
    /// Sends that are being posted.
    sends: VecDeque<Request>,
    waiting: Waiting,
    outputs: VecDeque<LibraryOutput>,
}

impl Messages {
    /// That of this rank, of so many; a message is at most so long.
    pub fn new(rank: u32, size: u32, most: Bytes) -> Self {
        Self {
            rank,
            most,
            connections: vec![None; size as usize],
            ranks: Vec::new(),
            sends: VecDeque::new(),
            waiting: Waiting::default(),
            outputs: VecDeque::new(),
        }
    }

    fn done(&mut self, done: Done) {
        self.outputs.push_back(Output::Deliver(done));
    }

    fn failed(&mut self, request: Request, rank: u32) {
        self.done(Done::Failed { request, failure: Failure::PeerLost { rank } });
    }

    fn lost(&mut self, connection: ConnectionId) {
        let Some(&rank) = self.ranks.get(connection.0 as usize) else { return };
        self.connections[rank as usize] = None;
        while let Some(request) = self.waiting.withdraw(|from| from == rank) {
            self.failed(request, rank);
        }
    }
}

impl Library for Messages {
    fn admit(&self, to: u32, _tag: u32, bytes: Bytes) -> Result<(), Refusal> {
        if to == self.rank {
            Err(Refusal::ToItself)
        } else if to as usize >= self.connections.len() {
            Err(Refusal::Unsupported("a rank that is not there"))
        } else if bytes > self.most {
            Err(Refusal::TooLong { most: self.most })
        } else {
            Ok(())
        }
    }

    fn send(&mut self, _now: SimTime, request: Request, to: u32, tag: u32, bytes: Bytes) {
        let Some(connection) = self.connections[to as usize] else { return self.failed(request, to) };
        let mut content = Content::new();
        content.push_octets(&tag.to_be_bytes());
        content.push_body(Payload::whole(request.message(), bytes));
        self.sends.push_back(request);
        self.outputs.push_back(Output::Transmit(Call::Post { connection, content, way: Way::Immediate }));
    }

    fn receive(
        &mut self,
        _now: SimTime,
        request: Request,
        from: Option<u32>,
        tag: Option<u32>,
        _capacity: Bytes,
    ) {
        if let Some((message, _)) = self.waiting.receive(request, from, tag) {
            self.done(Done::Received { request, message });
        }
    }

    fn progress(&mut self, _now: SimTime) {
        let gone =
            |rank: u32| rank != self.rank && self.connections.get(rank as usize).is_none_or(Option::is_none);
        if let Some(request) = self.waiting.withdraw(gone) {
            let failure = Failure::Refused("a receive from a rank that there is no connection to");
            return self.done(Done::Failed { request, failure });
        }
        if self.connections.iter().any(Option::is_some) {
            self.outputs.push_back(Output::Transmit(Call::Select { write: None, until: None, idle: false }));
        }
    }

    fn handle(&mut self, _now: SimTime, outcome: Outcome<'_>) {
        match outcome {
            Outcome::Given { connection, rank } => {
                debug_assert_eq!(connection.0 as usize, self.ranks.len(), "connections come in order");
                self.ranks.push(rank);
                self.connections[rank as usize] = Some(connection);
            }
            Outcome::Wrote { .. } => {
                if let Some(request) = self.sends.pop_front() {
                    self.done(Done::Sent(request));
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
            Outcome::Read { connection, content } => {
                let Some(&source) = self.ranks.get(connection.0 as usize) else { return };
                let mut tag = [0; 4];
                if content.is_empty() {
                    return;
                }
                let (true, Some(body)) = (content.take_octets(&mut tag), content.take_body(Bytes::MAX))
                else {
                    let what = "a message without immediate data";
                    return self.outputs.push_back(Output::Event(Event::Garbage { what }));
                };
                let message = body.message;
                match self.waiting.came(source, u32::from_be_bytes(tag), message, body.length) {
                    Some(request) => self.done(Done::Received { request, message }),
                    None => self.outputs.push_back(Output::Event(Event::Unexpected { message })),
                }
            }
            Outcome::Ended { connection } | Outcome::Closed { connection } => {
                self.lost(connection);
                // Only a post and a read end so, and a post is in front of its queue.
                if let Some(request) = self.sends.pop_front()
                    && let Some(&rank) = self.ranks.get(connection.0 as usize)
                {
                    self.failed(request, rank);
                }
            }
            // Of calls that it does not make.
            _ => {}
        }
    }

    fn poll_output(&mut self) -> LibraryOutput {
        self.outputs.pop_front().unwrap_or(Output::Timeout(None))
    }
}
