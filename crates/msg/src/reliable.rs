//! The user-level layer that a program needs on the Fore interface: segmentation and retransmission.
//!
//! The interface hands over PDUs of at most 4 KB and loses some without a word. [`Reliable`] stands between a
//! message layer that wants connections ([`Library`]) and the circuits of a process: what the layer above writes
//! is cut into PDUs, kept until the other end has it, and read there in order; its system calls become calls of
//! the interface. The work (a copy of each octet at either end, a head for each PDU) is the process's own.
//!
//! Left out: data of two writes never shares a PDU, so small writes are not gathered.
//!
//! | file | idea |
//! |---|---|
//! | `pdu` | what is on a circuit |
//! | `channel` | numbering, losses, polls, between two processes |

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use wiretwin_proto::Output;
use wiretwin_units::{Bytes, SimTime};

use crate::library::{
    Call, CallError, CircuitId, ConnectionId, Content, Event, Library, LibraryOutput, Outcome, Ready,
    Refusal, Request,
};

pub mod channel;
pub mod pdu;

use channel::{Channel, Config, Passed};

/// A channel over a pair of circuits, and its name above.
#[derive(Debug)]
struct Line {
    circuit: CircuitId,
    connection: ConnectionId,
    channel: Channel,
    closed: bool,
    /// The layer above knows that it is lost.
    told: bool,
}

/// A message layer over circuits that lose.
#[derive(Debug)]
pub struct Reliable<L> {
    inner: L,
    config: Config,
    lines: Vec<Line>,
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
            asked: VecDeque::new(),
            busy: 0,
            served: 0,
            left: false,
            content: Content::new(),
            ready: Vec::new(),
            outputs: VecDeque::new(),
        }
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

    fn line(&mut self, connection: ConnectionId) -> Option<&mut Line> {
        self.lines.iter_mut().find(|line| line.connection == connection && !line.closed)
    }

    /// Does what the channels and the layer above ask for, until it waits for something.
    fn settle(&mut self, now: SimTime) {
        loop {
            self.drain_channels();
            match self.inner.poll_output() {
                Output::Work(work) => self.outputs.push_back(Output::Work(work)),
                Output::Deliver(done) => self.outputs.push_back(Output::Deliver(done)),
                Output::Event(event) => self.outputs.push_back(Output::Event(event)),
                Output::Transmit(call) => self.asked.push_back(call),
                Output::Timeout(_) if self.attempt(now) => {}
                Output::Timeout(_) => return,
            }
        }
    }

    fn drain_channels(&mut self) {
        for at in 0..self.lines.len() {
            loop {
                let circuit = self.lines[at].circuit;
                match self.lines[at].channel.poll_output() {
                    Output::Work(work) => self.outputs.push_back(Output::Work(work)),
                    Output::Transmit(content) => self.call(Call::SendPdu { circuit, content }),
                    Output::Event(channel::Event::SentAgain) => {
                        self.outputs.push_back(Output::Event(Event::SentAgain));
                    }
                    Output::Event(channel::Event::Garbage) => {
                        let what = "a PDU of the user-level layer";
                        self.outputs.push_back(Output::Event(Event::Garbage { what }));
                    }
                    Output::Deliver(()) | Output::Event(channel::Event::Lost) => {}
                    Output::Timeout(_) => break,
                }
            }
        }
    }

    /// Goes on with the call that the layer above is in; whether that has come to something.
    fn attempt(&mut self, now: SimTime) -> bool {
        let Some(call) = self.asked.pop_front() else { return false };
        self.served += 1;
        match call {
            Call::Write { connection, mut content, wait } => {
                let Some(line) = self.line(connection).filter(|line| !line.channel.is_lost()) else {
                    self.ended(now, connection);
                    return true;
                };
                line.channel.write(now, &mut content);
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
                let Some(line) = self.line(connection) else {
                    self.ended(now, connection);
                    return true;
                };
                line.channel.inbox().move_to(most, &mut content);
                if content.is_empty() && line.channel.is_lost() {
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
    }

    /// Sleeps until a PDU comes, somebody is to be polled, or the time of the layer above has come.
    fn look(&mut self, until: Option<SimTime>, idle: bool) {
        if self.busy > 0 {
            return;
        }
        let polls = self.lines.iter().filter_map(|line| line.channel.deadline()).min();
        // Nothing hangs on a process that has ended and whose messages have all come.
        let idle = polls.is_none() && (idle || self.left);
        let until = polls.into_iter().chain(until).min();
        self.call(Call::Select { write: None, until, idle });
    }

    fn has_come(&mut self, now: SimTime, circuit: CircuitId, content: &mut Content) {
        let line = self.lines.iter_mut().find(|line| line.circuit == circuit);
        match line {
            Some(line) => line.channel.handle_pdu(now, content),
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

    fn leave(&mut self, now: SimTime) {
        self.left = true;
        self.inner.leave(now);
        for line in &mut self.lines {
            line.channel.tell();
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
                let connection = ConnectionId(self.lines.len() as u32);
                let channel = Channel::new(self.config);
                self.lines.push(Line { circuit, connection, channel, closed: false, told: false });
                self.inner.handle(now, Outcome::Given { connection, rank });
                return self.settle(now);
            }
            Outcome::Ready(ready) => {
                self.busy = self.busy.saturating_sub(1);
                let mut some = false;
                for ready in ready {
                    if let Ready::Pdu(circuit) = *ready {
                        some = true;
                        self.call(Call::ReceivePdu { circuit, wait: false });
                    }
                }
                if !some {
                    self.lines.iter_mut().for_each(|line| line.channel.handle_timeout(now));
                }
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
