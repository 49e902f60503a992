//! The user-level layer that a program needs on the Fore interface: segmentation and retransmission.
//!
//! The interface hands over PDUs of at most 4 KB and loses some without a word. [`Reliable`] stands between a
//! message layer that wants connections ([`Library`]) and the circuits of a process: what the layer above writes
//! is cut into PDUs, kept until the other end has it, and read there in order; its system calls become calls of
//! the interface. The work (a copy of each octet at either end, a head for each PDU) is the process's own.
//!
//! Circuits are permanent, and given from the start, or set up by calls of the interface; then there are trees too,
//! on which one message goes to several processes. What is sent on a tree and what is sent to one process keep an
//! order each, and none together.
//!
//! Left out: data of two writes never shares a PDU, so small writes are not gathered.
//!
//! | file | idea |
//! |---|---|
//! | `pdu` | what is on a circuit |
//! | `channel` | numbering, losses, polls, between two processes |
//! | `root` | the same from one process to several |
//! | `dial` | how circuits come to be |
//! | `topology` | which are there from the start |

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use wiretwin_proto::Output;
use wiretwin_units::{Bytes, SimTime};

use crate::library::{
    Call, CallError, CircuitId, ConnectionId, Content, Control, Done, Event, Failure, Library, LibraryOutput,
    NO_MULTICAST, Outcome, Ready, Refusal, Request,
};

pub mod channel;
mod dial;
pub mod pdu;
pub mod root;
pub mod topology;

use channel::{Channel, ChannelOutput, Config, Passed};
pub use dial::{Circuits, MEETING_POINT};
use dial::{Dial, Incoming};
use root::Root;

/// A channel to a rank and back, and its name above.
#[derive(Debug)]
struct Line {
    rank: u32,
    connection: ConnectionId,
    channel: Channel,
    /// What is sent goes on this; what waits for it, and whether it was asked for.
    out: Option<CircuitId>,
    held: VecDeque<Content>,
    wanted: bool,
    /// Why there is none and will not be.
    refused: Option<&'static str>,
    closed: bool,
    /// The layer above knows that it is lost.
    told: bool,
}

/// What goes to several ranks at once.
#[derive(Debug)]
struct Tree {
    to: Vec<u32>,
    root: Root,
    /// The access point that its circuit comes from, and how many ranks have joined it.
    asap: u32,
    joined: usize,
    out: Option<CircuitId>,
    held: VecDeque<Content>,
    refused: Option<&'static str>,
}

/// Where a rank's tree ends here.
#[derive(Debug)]
struct Branch {
    rank: u32,
    asap: u32,
    channel: Channel,
}

/// What a connection is, by its name above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seat {
    Line(usize),
    Tree(usize),
    Branch(usize),
}

/// A message layer over circuits that lose.
#[derive(Debug)]
pub struct Reliable<L> {
    inner: L,
    config: Config,
    lines: Vec<Line>,
    trees: Vec<Tree>,
    branches: Vec<Branch>,
    /// By name of the connection.
    seats: Vec<Seat>,
    dial: Dial,
    /// Calls of the layer above, in order, that have no outcome; the first is the one it is in.
    asked: VecDeque<Call>,
    /// Calls of this layer that have no outcome.
    busy: u32,
    /// Calls of the layer above that were looked at.
    served: u64,
    /// The process has ended.
    left: bool,
    content: Content,
    ready: Vec<Ready>,
    outputs: VecDeque<LibraryOutput>,
}

impl<L: Library> Reliable<L> {
    /// The same layer over circuits.
    pub fn new(inner: L, config: Config) -> Self {
        Self {
            inner,
            config,
            lines: Vec::new(),
            trees: Vec::new(),
            branches: Vec::new(),
            seats: Vec::new(),
            dial: Dial::default(),
            asked: VecDeque::new(),
            busy: 0,
            served: 0,
            left: false,
            content: Content::new(),
            ready: Vec::new(),
            outputs: VecDeque::new(),
        }
    }

    /// The same, which sets its circuits up itself.
    pub fn switched(inner: L, config: Config, circuits: Circuits) -> Self {
        let mut layer = Self::new(inner, config);
        for rank in (0..circuits.size).filter(|&rank| rank != circuits.rank) {
            layer.add_line(SimTime::ZERO, rank, None);
        }
        layer.begin(circuits);
        layer
    }

    /// What passed on all channels.
    pub fn passed(&self) -> Passed {
        self.lines.iter().map(|line| line.channel.passed()).fold(Passed::default(), |sum, one| Passed {
            sent: sum.sent + one.sent,
            again: sum.again + one.again,
            came: sum.came + one.came,
            twice: sum.twice + one.twice,
            polls: sum.polls + one.polls,
            statuses: sum.statuses + one.statuses,
        })
    }

    /// The layer above.
    pub const fn inner(&self) -> &L {
        &self.inner
    }

    fn call(&mut self, call: Call) {
        self.busy += 1;
        self.outputs.push_back(Output::Transmit(call));
    }

    /// A name for the layer above.
    fn seat(&mut self, seat: Seat) -> ConnectionId {
        self.seats.push(seat);
        ConnectionId(self.seats.len() as u32 - 1)
    }

    fn add_line(&mut self, now: SimTime, rank: u32, out: Option<CircuitId>) {
        let connection = self.seat(Seat::Line(self.lines.len()));
        self.lines.push(Line {
            rank,
            connection,
            channel: Channel::new(self.config),
            out,
            held: VecDeque::new(),
            wanted: false,
            refused: None,
            closed: false,
            told: false,
        });
        self.inner.handle(now, Outcome::Given { connection, rank });
    }

    fn line(&mut self, connection: ConnectionId) -> Option<&mut Line> {
        self.lines.iter_mut().find(|line| line.connection == connection && !line.closed)
    }

    fn seat_of(&self, connection: ConnectionId) -> Option<Seat> {
        let seat = self.seats.get(connection.0 as usize).copied()?;
        let closed = matches!(seat, Seat::Line(at) if self.lines[at].closed);
        (!closed).then_some(seat)
    }

    /// What a tree is for is there.
    fn tree_stands(&mut self, number: usize, circuit: CircuitId) {
        let tree = &mut self.trees[number];
        tree.out = Some(circuit);
        for content in core::mem::take(&mut tree.held) {
            self.call(Call::SendPdu { circuit, content });
        }
    }

    /// There is a circuit to a rank.
    fn has_circuit(&mut self, rank: u32, circuit: CircuitId) {
        let Some(line) = self.lines.iter_mut().find(|line| line.rank == rank) else { return };
        (line.out, line.wanted) = (Some(circuit), false);
        for content in core::mem::take(&mut line.held) {
            self.call(Call::SendPdu { circuit, content });
        }
    }

    /// Sends a PDU to a rank, on a circuit that may be still to come.
    fn send_to(&mut self, at: usize, content: Content) {
        let line = &mut self.lines[at];
        match line.out {
            Some(circuit) => self.call(Call::SendPdu { circuit, content }),
            None if line.refused.is_some() => {}
            None => {
                line.held.push_back(content);
                let rank = line.rank;
                self.want(rank);
            }
        }
    }

    /// Does what the channels and the layer above ask for, until it waits for something.
    fn settle(&mut self, now: SimTime) {
        loop {
            self.drain_channels();
            match self.inner.poll_output() {
                Output::Work(work) => self.outputs.push_back(Output::Work(work)),
                Output::Deliver(done) => {
                    let done = self.with_reason(done);
                    self.outputs.push_back(Output::Deliver(done));
                }
                Output::Event(event) => self.outputs.push_back(Output::Event(event)),
                Output::Transmit(call) => self.asked.push_back(call),
                Output::Timeout(_) if self.attempt(now) => {}
                Output::Timeout(_) => return,
            }
        }
    }

    /// What has failed because the network has rejected a circuit says so.
    fn with_reason(&self, done: Done) -> Done {
        let Done::Failed { request, failure: Failure::PeerLost { rank } } = done else { return done };
        let to_it = self.lines.iter().find(|line| line.rank == rank).and_then(|line| line.refused);
        let to_all = self.trees.iter().find(|tree| tree.to.contains(&rank) && tree.refused.is_some());
        let why = to_it.or(to_all.and_then(|tree| tree.refused));
        why.map_or(done, |why| Done::Failed { request, failure: Failure::Refused(why) })
    }

    fn drain_channels(&mut self) {
        for at in 0..self.lines.len() {
            loop {
                let output = self.lines[at].channel.poll_output();
                match self.noted(output) {
                    Some(Some(content)) => self.send_to(at, content),
                    Some(None) => {}
                    None => break,
                }
            }
        }
        for at in 0..self.trees.len() {
            loop {
                let output = self.trees[at].root.poll_output();
                match (self.noted(output), self.trees[at].out) {
                    (Some(Some(content)), Some(circuit)) => self.call(Call::SendPdu { circuit, content }),
                    (Some(Some(content)), None) => self.trees[at].held.push_back(content),
                    (Some(None), _) => {}
                    (None, _) => break,
                }
            }
        }
        for at in 0..self.branches.len() {
            loop {
                let output = self.branches[at].channel.poll_output();
                let Some(content) = self.noted(output) else { break };
                let Some(mut content) = content else { continue };
                // What a leaf says goes to the root on the circuit to its rank, which may be still to come.
                let Branch { rank, asap, .. } = self.branches[at];
                let Some(line) = self.lines.iter().position(|line| line.rank == rank) else { continue };
                let length = content.length().get() as u16;
                let (kind, asks) = (pdu::Kind::OfTree, false);
                let head = pdu::Head { kind, asks, length, number: asap, expected: 0, stamp: 0 };
                let mut pdu = Content::new();
                pdu.push_octets(&head.octets());
                content.move_to(Bytes::MAX, &mut pdu);
                self.send_to(line, pdu);
            }
        }
    }

    /// Passes on what a channel has to tell; a PDU that it sends, and `None` where that is all.
    fn noted(&mut self, output: ChannelOutput) -> Option<Option<Content>> {
        match output {
            Output::Transmit(content) => return Some(Some(content)),
            Output::Work(work) => self.outputs.push_back(Output::Work(work)),
            Output::Event(channel::Event::SentAgain) => {
                self.outputs.push_back(Output::Event(Event::SentAgain));
            }
            Output::Event(channel::Event::Garbage) => {
                let what = "a PDU of the user-level layer";
                self.outputs.push_back(Output::Event(Event::Garbage { what }));
            }
            Output::Deliver(()) | Output::Event(channel::Event::Lost) => {}
            Output::Timeout(_) => return None,
        }
        Some(None)
    }

    /// Goes on with the call that the layer above is in; whether that has come to something.
    fn attempt(&mut self, now: SimTime) -> bool {
        let Some(call) = self.asked.pop_front() else { return false };
        self.served += 1;
        match call {
            Call::Write { connection, mut content, wait } => {
                match self.seat_of(connection) {
                    Some(Seat::Line(at)) if !self.lines[at].channel.is_lost() => {
                        self.lines[at].channel.write(now, &mut content);
                    }
                    Some(Seat::Tree(at)) if self.trees[at].root.lost().is_none() => {
                        self.trees[at].root.write(now, &mut content);
                    }
                    _ => {
                        self.ended(now, connection);
                        return true;
                    }
                }
                self.drain_channels();
                if wait && !content.is_empty() {
                    self.asked.push_front(Call::Write { connection, content, wait });
                    self.look(None, false);
                    return false;
                }
                self.inner.handle(now, Outcome::Wrote { connection, rest: content });
            }
            Call::Read { connection, most, wait } => {
                let mut content = core::mem::take(&mut self.content);
                content.clear();
                let channel = match self.seat_of(connection) {
                    Some(Seat::Line(at)) => &mut self.lines[at].channel,
                    Some(Seat::Branch(at)) => &mut self.branches[at].channel,
                    _ => {
                        self.ended(now, connection);
                        return true;
                    }
                };
                channel.inbox().move_to(most, &mut content);
                if content.is_empty() && channel.is_lost() {
                    self.ended(now, connection);
                } else if content.is_empty() && wait {
                    self.asked.push_front(Call::Read { connection, most, wait });
                    self.look(None, false);
                    return false;
                } else {
                    self.inner.handle(now, Outcome::Read { connection, content: &mut content });
                }
                self.content = content;
            }
            Call::Select { write, until, idle } => {
                let mut ready = core::mem::take(&mut self.ready);
                self.find_ready(write, &mut ready);
                let over = until.is_some_and(|until| until <= now);
                if ready.is_empty() && !over {
                    self.ready = ready;
                    self.asked.push_front(Call::Select { write, until, idle });
                    self.look(until, idle);
                    return false;
                }
                self.inner.handle(now, Outcome::Ready(&ready));
                self.ready = ready;
            }
            Call::Close { connection } => {
                if let Some(line) = self.line(connection) {
                    line.closed = true;
                }
                self.inner.handle(now, Outcome::Closed { connection });
            }
            Call::Nodelay { connection, .. } => self.inner.handle(now, Outcome::Changed { connection }),
            Call::SendTo { .. }
            | Call::ReceiveFrom { .. }
            | Call::Bind { .. }
            | Call::Listen { .. }
            | Call::Accept { .. }
            | Call::Connect { .. }
            | Call::Post { .. }
            | Call::SendPdu { .. }
            | Call::Fore(_)
            | Call::Start { .. }
            | Call::ReceivePdu { .. } => self.inner.handle(now, Outcome::Failed(CallError::NoSuchCall)),
        }
        true
    }

    fn ended(&mut self, now: SimTime, connection: ConnectionId) {
        if let Some(line) = self.line(connection) {
            line.told = true;
        }
        self.inner.handle(now, Outcome::Ended { connection });
    }

    fn find_ready(&mut self, write: Option<ConnectionId>, ready: &mut Vec<Ready>) {
        ready.clear();
        for line in self.lines.iter_mut().filter(|line| !line.closed) {
            let lost = line.channel.is_lost() && !line.told;
            if lost || !line.channel.inbox().is_empty() {
                ready.push(Ready::Readable(line.connection));
            }
            if write == Some(line.connection) && (line.channel.has_room() || line.channel.is_lost()) {
                ready.push(Ready::Writable(line.connection));
            }
        }
        for (at, seat) in (0..).zip(&self.seats) {
            let connection = ConnectionId(at);
            match *seat {
                Seat::Line(_) => {}
                Seat::Tree(at) => {
                    let root = &self.trees[at].root;
                    if write == Some(connection) && (root.has_room() || root.lost().is_some()) {
                        ready.push(Ready::Writable(connection));
                    }
                }
                Seat::Branch(at) => {
                    if !self.branches[at].channel.inbox().is_empty() {
                        ready.push(Ready::Readable(connection));
                    }
                }
            }
        }
    }

    /// Sleeps until a PDU comes, somebody is to be polled, or the time of the layer above has come.
    fn look(&mut self, until: Option<SimTime>, idle: bool) {
        if self.busy > 0 {
            return;
        }
        let lines = self.lines.iter().filter_map(|line| line.channel.deadline());
        let trees = self.trees.iter().filter_map(|tree| tree.root.deadline());
        let polls = lines.chain(trees).chain(self.dial.deadline()).min();
        // Nothing hangs on a process that has ended and whose messages have all come.
        let idle = polls.is_none() && (idle || self.left);
        let until = polls.into_iter().chain(until).min();
        self.call(Call::Select { write: None, until, idle });
    }

    fn has_come(&mut self, now: SimTime, circuit: CircuitId, content: &mut Content) {
        match self.dial.incoming.get(&circuit) {
            Some(&Incoming::Line(at)) if content.first_octet() == Some(pdu::OF_TREE) => {
                let rank = self.lines[at].rank;
                let Ok(head) = pdu::Head::take(content) else { return };
                if let Some(tree) = self.trees.iter_mut().find(|tree| tree.asap == head.number) {
                    tree.root.handle_pdu(now, rank, content);
                }
            }
            Some(&Incoming::Line(at)) => self.lines[at].channel.handle_pdu(now, content),
            Some(&Incoming::Branch(at)) => self.branches[at].channel.handle_pdu(now, content),
            None => {
                let what = "a PDU on a circuit that nobody gave";
                self.outputs.push_back(Output::Event(Event::Garbage { what }));
            }
        }
    }
}

impl<L: Library> Library for Reliable<L> {
    fn admit(&self, to: u32, tag: u32, bytes: Bytes) -> Result<(), Refusal> {
        self.inner.admit(to, tag, bytes)
    }

    fn send(&mut self, now: SimTime, request: Request, to: u32, tag: u32, bytes: Bytes) {
        self.inner.send(now, request, to, tag, bytes);
        self.settle(now);
    }

    fn admit_multicast(&self, to: &[u32], tag: u32, bytes: Bytes) -> Result<(), Refusal> {
        if !self.is_switched() {
            return Err(Refusal::Unsupported(NO_MULTICAST));
        }
        to.iter().try_for_each(|&to| self.inner.admit(to, tag, bytes))
    }

    /// The first message to these ranks has a tree made for it, which stays.
    fn multicast(&mut self, now: SimTime, request: Request, to: &[u32], tag: u32, bytes: Bytes) {
        if !self.trees.iter().any(|tree| tree.to == to) {
            let number = self.trees.len();
            let connection = self.seat(Seat::Tree(number));
            self.trees.push(Tree {
                to: to.to_vec(),
                root: Root::new(self.config, to),
                asap: 0,
                joined: 0,
                out: None,
                held: VecDeque::new(),
                refused: None,
            });
            self.inner.handle(now, Outcome::Tree { connection, to });
            self.want_tree(number);
        }
        self.inner.multicast(now, request, to, tag, bytes);
        self.settle(now);
    }

    fn receive(
        &mut self,
        now: SimTime,
        request: Request,
        from: Option<u32>,
        tag: Option<u32>,
        capacity: Bytes,
    ) {
        self.inner.receive(now, request, from, tag, capacity);
        self.settle(now);
    }

    fn admit_control(&self, control: &Control) -> Result<(), Refusal> {
        match control {
            Control::HangUp { .. } if self.is_switched() => Ok(()),
            _ => Err(Refusal::Unsupported(control.unsupported())),
        }
    }

    fn control(&mut self, _now: SimTime, request: Request, control: Control) {
        let answered = match control {
            Control::HangUp { rank } => self.hang_up(rank),
            _ => Err(control.unsupported()),
        };
        self.outputs.push_back(Output::Deliver(match answered {
            Ok(number) => Done::Answered { request, number },
            Err(why) => Done::Failed { request, failure: Failure::Refused(why) },
        }));
    }

    fn leave(&mut self, now: SimTime) {
        self.left = true;
        self.inner.leave(now);
        for line in &mut self.lines {
            line.channel.tell();
        }
        for branch in &mut self.branches {
            branch.channel.tell();
        }
        self.settle(now);
    }

    /// Who has ended goes on answering: another may still ask for what it has sent.
    fn is_busy(&self) -> bool {
        true
    }

    fn progress(&mut self, now: SimTime) {
        loop {
            let served = self.served;
            if self.busy == 0 && self.asked.is_empty() {
                self.inner.progress(now);
            }
            self.settle(now);
            // What the layer above asked for may all have been here: it goes on until it waits, or has done
            // something that its process wants to know.
            let idle = self.busy == 0 && self.asked.is_empty() && self.served > served;
            let done = self.outputs.iter().any(|one| matches!(one, Output::Deliver(_)));
            if !idle || done {
                break;
            }
        }
        if self.left && self.busy == 0 {
            self.look(None, true);
        }
    }

    fn handle(&mut self, now: SimTime, outcome: Outcome<'_>) {
        match outcome {
            Outcome::GivenCircuit { circuit, rank } => {
                self.dial.incoming.insert(circuit, Incoming::Line(self.lines.len()));
                self.add_line(now, rank, Some(circuit));
                return self.settle(now);
            }
            Outcome::Ready(ready) => {
                self.busy = self.busy.saturating_sub(1);
                let mut some = false;
                for ready in ready {
                    match *ready {
                        Ready::Pdu(circuit) => {
                            some = true;
                            self.call(Call::ReceivePdu { circuit, wait: false });
                        }
                        Ready::Circuit(circuit, sign) => {
                            some = true;
                            self.sign(now, circuit, sign);
                        }
                        _ => {}
                    }
                }
                if !some {
                    self.lines.iter_mut().for_each(|line| line.channel.handle_timeout(now));
                    self.trees.iter_mut().for_each(|tree| tree.root.handle_timeout(now));
                    self.dial_again(now);
                }
            }
            Outcome::Fore(answer) => {
                self.busy = self.busy.saturating_sub(1);
                self.answered(now, answer);
            }
            Outcome::Pdu { circuit, content } => {
                self.busy = self.busy.saturating_sub(1);
                self.has_come(now, circuit, content);
            }
            // Sent, nothing there, or refused: no more is to be done about it.
            _ => self.busy = self.busy.saturating_sub(1),
        }
        if self.busy == 0 {
            self.settle(now);
        } else {
            self.drain_channels();
        }
    }

    fn poll_output(&mut self) -> LibraryOutput {
        self.outputs.pop_front().unwrap_or(Output::Timeout(None))
    }
}

#[cfg(test)]
mod tests;
