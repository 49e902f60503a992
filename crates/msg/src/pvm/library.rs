//! The task library and the daemon as processes of a local network: [`Library`]s that make system calls.
//!
//! As `mxfer` of PVM's library does it: before each fragment is written the process looks what is ready and
//! reads that; a fragment is read in two calls, its header and what it announces; and a send ends with one
//! more look. Choice: the virtual machine is there from the start, with its tasks, daemons and
//! connections, as what it takes to get there is left out of what is measured. Ranks send octets
//! (`pvm_pkbyte`).

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use wiretwin_proto::{MessageId, Output, Payload, Work, WorkKind};
use wiretwin_units::{Bytes, SimTime};

use crate::library::{
    Call, ConnectionId, Content, Control, Done, Event, Failure, Library, LibraryOutput, Outcome, Ready,
    Refusal, Request,
};
use crate::matching::{Envelope, Matcher, Pattern, PostOutcome, Posted};

use super::body::Piece;
use super::item::Kind;
use super::message::Assembly;
use super::pack::{Packed, packed_octets};
use super::system::MOST_TAG;
use super::task::{self, CallId, Config, Routing, Task};
use super::{Encoding, Fragment, Head, Message, Signature, Tid};

mod control;
pub mod daemon;
mod line;
pub mod server;

use line::Line;

/// How ranks use PVM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Over connections between tasks ("advise"), which are there from the start; else through daemons.
    pub direct: bool,
    /// How the program's octets are packed.
    pub encoding: Encoding,
}

/// A fragment on its way to a connection.
#[derive(Debug)]
struct Out {
    connection: ConnectionId,
    content: Content,
    /// What this fragment is the last of.
    ends: Option<Ends>,
}

/// What has ended when the last fragment of a message is written.
#[derive(Clone, Copy, Debug)]
enum Ends {
    /// A call of the task.
    Call(CallId),
    /// A send to several at once.
    Request(Request),
    /// A control call, which has come to this.
    Control(Request, u32),
}

/// The library of one rank.
#[derive(Debug)]
pub struct Rank {
    rank: u32,
    size: u32,
    usage: Usage,
    task: Task<Piece>,
    lines: BTreeMap<ConnectionId, Line>,
    /// To the tasks that there is a connection to, and to the daemon.
    connections: BTreeMap<Tid, ConnectionId>,
    /// Connections to several tasks; and what has come of messages over their other ends.
    trees: Vec<(Vec<u32>, ConnectionId)>,
    branches: BTreeMap<ConnectionId, Assembly<Piece>>,
    out: VecDeque<Out>,
    /// Memory for what is written next.
    spare: Vec<Content>,
    /// Sends whose fragments are not all written.
    sends: BTreeMap<CallId, Request>,
    /// What was asked for and is not answered.
    controls: BTreeMap<CallId, Request>,
    /// Calls that have no outcome.
    busy: u32,
    /// Something was written since the last look.
    wrote: bool,
    matcher: Matcher,
    posted: Vec<(Request, Option<u32>, Posted)>,
    /// Messages that no receive has taken: octets to unpack.
    kept: BTreeMap<MessageId, Bytes>,
    outputs: VecDeque<LibraryOutput>,
}

/// The task of a rank: the first of its host.
///
/// # Panics
/// For more than 4095 ranks.
pub fn task_of(rank: u32) -> Tid {
    Tid::task(rank + 1, 1).expect("a virtual machine has at most 4095 hosts")
}

/// Contents that are kept for their memory: fragments are written one by one.
const SPARE: usize = 8;

/// Why a tag is not taken.
const LARGE_TAG: &str = "a tag of 2147483648 and more";

/// Whom a message that goes to several is for: a number as multicasts have it, of no daemon.
const SEVERAL: Tid = Tid(0x4000_0000);

/// The rank of a task.
fn rank_of(tid: Tid) -> u32 {
    tid.host().saturating_sub(1)
}

impl Rank {
    /// The library of this rank, of so many.
    pub fn new(rank: u32, size: u32, usage: Usage) -> Self {
        let routing = if usage.direct { Routing::Direct } else { Routing::Never };
        let config = Config { routing, tracer: false, ..Config::default() };
        let peers: Vec<Tid> = match usage.direct {
            true => (0..size).filter(|&peer| peer != rank).map(task_of).collect(),
            false => Vec::new(),
        };
        Self {
            rank,
            size,
            usage,
            task: Task::joined(config, task_of(rank), peers),
            lines: BTreeMap::new(),
            connections: BTreeMap::new(),
            trees: Vec::new(),
            branches: BTreeMap::new(),
            out: VecDeque::new(),
            spare: Vec::new(),
            sends: BTreeMap::new(),
            controls: BTreeMap::new(),
            busy: 0,
            wrote: false,
            matcher: Matcher::new(),
            posted: Vec::new(),
            kept: BTreeMap::new(),
            outputs: VecDeque::new(),
        }
    }

    fn call(&mut self, call: Call) {
        self.busy += 1;
        self.outputs.push_back(Output::Transmit(call));
    }

    fn work(&mut self, kind: WorkKind, bytes: Bytes) {
        self.outputs.push_back(Output::Work(Work { kind, bytes, count: 1 }));
    }

    fn done(&mut self, done: Done) {
        self.outputs.push_back(Output::Deliver(done));
    }

    /// Does what the task asks for since it was called.
    fn drain(&mut self, now: SimTime) {
        loop {
            match self.task.poll_output() {
                Output::Work(work) => self.outputs.push_back(Output::Work(work)),
                Output::Transmit(task::Transmit::Write { peer, fragment }) => self.put(peer, &fragment),
                Output::Transmit(task::Transmit::WriteDaemon(fragment)) => {
                    self.put(Tid::MY_DAEMON, &fragment)
                }
                // A task that there is no connection to from the start is reached through the daemons.
                Output::Transmit(task::Transmit::Listen(peer)) => self.task.handle_route_closed(now, peer),
                // What is there from the start is not made again.
                Output::Transmit(_) => {}
                Output::Deliver(answer) if self.controls.contains_key(&answer.call) => {
                    if let Some(request) = self.controls.remove(&answer.call) {
                        self.fulfilled(request, answer);
                    }
                }
                Output::Deliver(answer) => match self.out.back_mut().filter(|out| out.ends.is_none()) {
                    Some(last) => last.ends = Some(Ends::Call(answer.call)),
                    None => self.ended(answer.call),
                },
                Output::Event(task::Event::Arrived) => {
                    while let Some(message) = self.task.take(None, None) {
                        self.came(&message);
                    }
                }
                Output::Event(task::Event::Garbage(_)) => self.garbage(),
                Output::Event(_) => {}
                Output::Timeout(_) => break,
            }
        }
        self.pump(now);
    }

    fn garbage(&mut self) {
        self.outputs.push_back(Output::Event(Event::Garbage { what: "a fragment of PVM" }));
    }

    /// The last fragment of something is written.
    fn written(&mut self, ends: Ends) {
        match ends {
            Ends::Call(call) => self.ended(call),
            Ends::Request(request) => self.done(Done::Sent(request)),
            Ends::Control(request, number) => self.done(Done::Answered { request, number }),
        }
    }

    /// A call of the task has ended, and all that it wrote is written.
    fn ended(&mut self, call: CallId) {
        if let Some(request) = self.sends.remove(&call) {
            self.done(Done::Sent(request));
        }
    }

    fn put(&mut self, to: Tid, fragment: &Fragment<Piece>) {
        if let Some(&connection) = self.connections.get(&to) {
            let content = line::content(fragment, self.spare.pop().unwrap_or_default());
            self.out.push_back(Out { connection, content, ends: None });
        }
    }

    /// Looks what is ready before the next fragment is written, or once more when all is.
    fn pump(&mut self, now: SimTime) {
        if self.busy > 0 {
            return;
        }
        if let Some(out) = self.out.front() {
            let write = Some(out.connection);
            self.call(Call::Select { write, until: None, idle: false });
        } else if core::mem::take(&mut self.wrote) {
            self.call(Call::Select { write: None, until: Some(now), idle: true });
        }
    }

    /// A whole message is here.
    fn came(&mut self, message: &Message<Piece>) {
        let Some(Piece::Message { range, .. }) = message.parts.first() else { return self.garbage() };
        let (source, tag, id) = (rank_of(message.from), message.head.tag, range.message);
        let length = message.length();
        match self.matcher.arrive(0, Envelope { context: 0, source, tag }, id.0) {
            Some(request) => self.received(Request(request), id, length),
            None => {
                self.kept.insert(id, length);
                self.outputs.push_back(Output::Event(Event::Unexpected { message: id }));
            }
        }
    }

    /// A whole message that went to several is here: the library takes it in as any other.
    fn came_to_all(&mut self, message: &Message<Piece>) {
        let (bytes, count) = (message.length(), message.parts.len().max(1) as u32);
        self.outputs.push_back(Output::Work(Work { kind: WorkKind::LibraryReceive, bytes, count }));
        self.came(message);
    }

    /// A connection to several is gone: what waits to be written there comes to nothing.
    fn tree_lost(&mut self, connection: ConnectionId) {
        let Some(at) = self.trees.iter().position(|tree| tree.1 == connection) else { return };
        let rank = self.trees.remove(at).0.first().copied().unwrap_or(self.rank);
        let (gone, rest): (Vec<Out>, Vec<Out>) =
            self.out.drain(..).partition(|out| out.connection == connection);
        self.out = rest.into();
        for ends in gone.into_iter().filter_map(|out| out.ends) {
            if let Ends::Request(request) = ends {
                self.done(Done::Failed { request, failure: Failure::PeerLost { rank } });
            }
        }
    }

    /// A receive gets its message, which is unpacked.
    fn received(&mut self, request: Request, message: MessageId, packed: Bytes) {
        self.posted.retain(|(posted, ..)| *posted != request);
        self.work(WorkKind::XdrOpaqueIn, packed);
        self.done(Done::Received { request, message });
    }

    /// Fragments that are whole go to the task.
    fn take_in(&mut self, now: SimTime, connection: ConnectionId) {
        while let Some(line) = self.lines.get_mut(&connection) {
            match line.take() {
                Ok(Some(fragment)) if line.is_daemon() => self.task.handle_daemon_fragment(now, fragment),
                Ok(Some(fragment)) => match self.branches.get_mut(&connection) {
                    None => {
                        let peer = line.peer;
                        self.task.handle_fragment(now, peer, fragment);
                    }
                    Some(assembly) => match assembly.handle(fragment) {
                        Ok(Some(message)) => self.came_to_all(&message),
                        Ok(None) => {}
                        Err(_) => self.garbage(),
                    },
                },
                Ok(None) => break,
                Err(_) => {
                    self.garbage();
                    return self.lost(connection);
                }
            }
        }
        self.drain(now);
    }

    /// A connection is gone, and with it what hangs on it.
    fn lost(&mut self, connection: ConnectionId) {
        let Some(line) = self.lines.remove(&connection) else { return };
        self.connections.remove(&line.peer);
        // Without the daemon nobody can be reached; without a task's connection, that task.
        let lost = |rank: u32| line.is_daemon() || rank == rank_of(line.peer);
        let (gone, rest): (Vec<Out>, Vec<Out>) =
            self.out.drain(..).partition(|out| out.connection == connection);
        self.out = rest.into();
        for ends in gone.into_iter().filter_map(|out| out.ends) {
            let request = match ends {
                Ends::Call(call) => self.sends.remove(&call),
                Ends::Request(request) | Ends::Control(request, _) => Some(request),
            };
            if let Some(request) = request {
                let failure = Failure::PeerLost { rank: rank_of(line.peer) };
                self.outputs.push_back(Output::Deliver(Done::Failed { request, failure }));
            }
        }
        for at in (0..self.posted.len()).rev() {
            let (request, from, posted) = self.posted[at];
            if let Some(rank) = from.filter(|&rank| rank != self.rank && lost(rank))
                && self.matcher.cancel(posted, request.0)
            {
                self.posted.remove(at);
                self.done(Done::Failed { request, failure: Failure::PeerLost { rank } });
            }
        }
    }

    fn is_lost(&self, to: u32) -> bool {
        let way = if self.usage.direct { task_of(to) } else { Tid::MY_DAEMON };
        to != self.rank && !self.connections.contains_key(&way)
    }
}

impl Library for Rank {
    fn admit(&self, to: u32, tag: u32, bytes: Bytes) -> Result<(), Refusal> {
        if to >= self.size {
            return Err(Refusal::Unsupported("a rank that is not there"));
        }
        if tag > MOST_TAG {
            return Err(Refusal::Unsupported(LARGE_TAG));
        }
        // `pvm_pkbyte` counts in an int.
        let most = Bytes::new((1 << 31) - 4);
        if bytes > most { Err(Refusal::TooLong { most }) } else { Ok(()) }
    }

    fn send(&mut self, now: SimTime, request: Request, to: u32, tag: u32, bytes: Bytes) {
        let length = packed_octets(self.usage.encoding, Kind::Byte, bytes.get());
        let range = Payload::whole(request.message(), bytes);
        let whole = Piece::Message { range, fill: (length - bytes).get() as u8 };
        if self.usage.encoding != Encoding::InPlace {
            self.work(WorkKind::XdrOpaqueOut, length);
        }
        if self.is_lost(to) {
            return self.done(Done::Failed { request, failure: Failure::PeerLost { rank: to } });
        }
        if to == self.rank && self.usage.direct {
            // PVM would send it to the daemon and back, which is not there without the normal route.
            self.work(WorkKind::LibrarySend, length);
            self.done(Done::Sent(request));
            let head = Head { encoding: Signature::XDR, tag, context: 0, wait: 0 };
            let (to, from) = (task_of(to), task_of(to));
            return self.came(&Message { to, from, head, parts: alloc::vec![whole] });
        }
        let mut packed = Packed::cut(self.usage.encoding, Kind::Byte, &whole);
        if packed.parts.is_empty() {
            packed.parts.push(whole);
        }
        match self.task.send(now, task_of(to), tag, packed) {
            Ok(call) => drop(self.sends.insert(call, request)),
            Err(_) => self.done(Done::Failed { request, failure: Failure::PeerLost { rank: to } }),
        }
        self.drain(now);
    }

    /// `pvm_mcast`, over a connection to all of them: packed once, written once. Whatever is below has made the
    /// connection; by itself a task has none, and admits none.
    fn multicast(&mut self, now: SimTime, request: Request, to: &[u32], tag: u32, bytes: Bytes) {
        let packed = self.packed(request, bytes);
        let Some(connection) = self.trees.iter().find(|tree| tree.0 == to).map(|tree| tree.1) else {
            let rank = to.first().copied().unwrap_or(self.rank);
            return self.done(Done::Failed { request, failure: Failure::PeerLost { rank } });
        };
        let head = Head { encoding: packed.encoding, tag, context: 0, wait: 0 };
        let message = Message { to: SEVERAL, from: task_of(self.rank), head, parts: packed.parts };
        let (kind, count) = (WorkKind::LibrarySend, message.parts.len() as u32);
        let bytes = message.length();
        self.outputs.push_back(Output::Work(Work { kind, bytes, count }));
        for fragment in message.fragments() {
            let ends = fragment.last.then_some(Ends::Request(request));
            let content = line::content(&fragment, self.spare.pop().unwrap_or_default());
            self.out.push_back(Out { connection, content, ends });
        }
        self.pump(now);
    }

    fn admit_control(&self, control: &Control) -> Result<(), Refusal> {
        Self::admits_control(control)
    }

    fn control(&mut self, now: SimTime, request: Request, control: Control) {
        self.controls(now, request, control);
    }

    fn receive(
        &mut self,
        _now: SimTime,
        request: Request,
        from: Option<u32>,
        tag: Option<u32>,
        _capacity: Bytes,
    ) {
        match self.matcher.post(0, Pattern { context: 0, source: from, tag }, request.0) {
            PostOutcome::Took { message, .. } => {
                let message = MessageId(message);
                let packed = self.kept.remove(&message).unwrap_or(Bytes::new(0));
                self.received(request, message, packed);
            }
            PostOutcome::Waits(posted) => self.posted.push((request, from, posted)),
        }
    }

    fn progress(&mut self, now: SimTime) {
        if self.busy > 0 {
            return;
        }
        for at in 0..self.posted.len() {
            let (request, from, posted) = self.posted[at];
            if let Some(rank) = from.filter(|&rank| self.is_lost(rank))
                && self.matcher.cancel(posted, request.0)
            {
                self.posted.remove(at);
                return self.done(Done::Failed { request, failure: Failure::PeerLost { rank } });
            }
        }
        if !self.out.is_empty() || self.wrote {
            self.pump(now);
        } else if !self.lines.is_empty() {
            self.call(Call::Select { write: None, until: None, idle: false });
        }
    }

    fn handle(&mut self, now: SimTime, outcome: Outcome<'_>) {
        if let Outcome::Given { connection, rank } = outcome {
            // What is no rank is the daemon.
            let peer = if rank < self.size { task_of(rank) } else { Tid::MY_DAEMON };
            self.lines.insert(connection, Line::new(peer));
            self.connections.insert(peer, connection);
            return;
        }
        match outcome {
            Outcome::Tree { connection, to } => return self.trees.push((to.to_vec(), connection)),
            Outcome::Branch { connection, rank } => {
                self.lines.insert(connection, Line::new(task_of(rank)));
                self.branches.insert(connection, Assembly::default());
                return;
            }
            _ => {}
        }
        self.busy -= 1;
        match outcome {
            Outcome::Ready(ready) => {
                let mut writable = false;
                for ready in ready {
                    match *ready {
                        Ready::Readable(connection) => {
                            if let Some(line) = self.lines.get(&connection) {
                                let most = line.wanted();
                                self.call(Call::Read { connection, most, wait: false });
                            }
                        }
                        Ready::Writable(_) => writable = true,
                        Ready::Acceptable(_) | Ready::Datagram(_) | Ready::Pdu(_) | Ready::Circuit(..) => {}
                    }
                }
                if writable && let Some(out) = self.out.front_mut() {
                    let (connection, content) = (out.connection, core::mem::take(&mut out.content));
                    self.call(Call::Write { connection, content, wait: false });
                }
                self.pump(now);
            }
            Outcome::Read { connection, content } => {
                if let Some(line) = self.lines.get_mut(&connection) {
                    content.move_to(Bytes::MAX, &mut line.inbox);
                }
                self.take_in(now, connection);
            }
            Outcome::Wrote { connection, rest } => {
                self.wrote = true;
                let mine = self.out.front_mut().filter(|out| out.connection == connection);
                match mine {
                    Some(out) if !rest.is_empty() => out.content = rest,
                    Some(_) => {
                        if rest.has_memory() && self.spare.len() < SPARE {
                            self.spare.push(rest);
                        }
                        if let Some(ends) = self.out.pop_front().and_then(|out| out.ends) {
                            self.written(ends);
                        }
                    }
                    None => {}
                }
                self.pump(now);
            }
            Outcome::Ended { connection } => {
                // What is over would be ready at every look.
                self.call(Call::Close { connection });
                self.tree_lost(connection);
                self.lost(connection);
                self.pump(now);
            }
            // Of calls that it does not make.
            _ => self.pump(now),
        }
    }

    fn poll_output(&mut self) -> LibraryOutput {
        self.outputs.pop_front().unwrap_or(Output::Timeout(None))
    }
}
