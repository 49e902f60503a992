//! The daemon: one on each host, for all its tasks.
//!
//! `pvmd.c`, `ddpro.c`, `tdpro.c` of PVM 3.4. Tasks speak to it over streams, other daemons over UDP. It
//! hands pieces of messages on without putting them together, unless they are for a daemon. The hosts are
//! there from the start; one may leave. Choice: whoever runs a daemon starts it and its fellows, as
//! `pvm_addhosts` needs a remote shell; that request is answered with `PvmNotImpl`, and so are those of
//! schedulers, tracers and the console. Left out: contexts that daemons give out; output of tasks.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use wiretwin_proto::{Output, Work, WorkKind};
use wiretwin_units::{Bytes, SimTime};

use super::message::{Assembly, headers};
use super::pack::Signature;
use super::system::tag;
use super::{Body, Fragment, Head, Message, Packet, PvmError, Tid};

mod between;
mod mailbox;
pub mod peer;
mod request;
mod route;
mod spawn;
mod wait;

use mailbox::Mailbox;
use peer::Peer;
pub use peer::{DATAGRAM_OCTETS, Timing};
use spawn::Plan;
use wait::Wait;

/// A host of the virtual machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostEntry {
    /// Its number, 1 to 4095.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// What kind of machine it is.
    pub architecture: String,
}

/// What a daemon is told when it is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The number of its host, one of `hosts`.
    pub host: u32,
    /// That of the master, which keeps the mailbox: one of `hosts`.
    pub master: u32,
    /// The hosts, by number.
    pub hosts: Vec<HostEntry>,
    /// Times and counts between daemons.
    pub timing: Timing,
    /// Octets of the longest datagram. [`DATAGRAM_OCTETS`]; 4096 before 3.4.
    pub datagram: Bytes,
    /// Its address as it tells tasks: eight hexadecimal digits, a colon and four.
    pub address: String,
}

/// A task's connection; the driver gives the numbers out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamId(pub u32);

/// A start of a task that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpawnId(pub u32);

/// What goes to the layer below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transmit<B> {
    /// This datagram, to the daemon of a host.
    Datagram {
        /// The host's number.
        host: u32,
        /// The packet.
        packet: Packet<B>,
    },
    /// This fragment, to a task.
    Write(StreamId, Fragment<B>),
    /// Write one octet into this file, to show the task that this is its user's daemon.
    Prove(String),
    /// Close a connection, after all that was written.
    Close(StreamId),
}

/// What the driver is to do for the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Demand {
    /// Start a task; then [`Daemon::handle_spawned`].
    Spawn {
        /// Names it.
        id: SpawnId,
        /// The number that it will have.
        tid: Tid,
        /// The program.
        file: String,
        /// Its arguments.
        arguments: Vec<String>,
    },
    /// Send a task this signal.
    Signal {
        /// The task.
        tid: Tid,
        /// Number of the signal.
        signal: i32,
    },
    /// End: the virtual machine was halted, the host was removed, or the master is lost.
    Halt,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A packet was sent again to a host.
    SentAgain {
        /// The host's number.
        host: u32,
    },
    /// A packet came again from a host.
    Repeated {
        /// The host's number.
        host: u32,
    },
    /// A host is lost, with its tasks.
    HostLost {
        /// The host's number.
        host: u32,
    },
    /// A task has ended.
    TaskEnded(Tid),
    /// A piece was dropped: there is nobody whom it is for.
    NobodyThere(Tid),
    /// A piece was dropped that belongs to no message.
    Stray(Tid),
    /// A message was dropped that is none of a daemon's, or could not be read.
    Garbage {
        /// Who sent it.
        from: Tid,
        /// Its tag.
        tag: u32,
    },
}

/// Outputs of a daemon.
pub type DaemonOutput<B> = Output<Transmit<B>, Demand, Event>;

/// The sender of a message to many, and where it goes.
#[derive(Clone, Debug)]
struct Multicast {
    group: Tid,
    to: Vec<Tid>,
}

#[derive(Debug)]
struct Task<B> {
    parent: i32,
    stream: Option<StreamId>,
    name: String,
    pid: i32,
    /// It is being started.
    spawn: Option<SpawnId>,
    /// What came for it before it was connected.
    early: Vec<Fragment<B>>,
    multicast: Option<Multicast>,
}

/// A connection, at first nobody's.
#[derive(Debug)]
struct Stream<B> {
    tid: Option<Tid>,
    /// It has asked to connect and is to prove itself.
    asked: bool,
    assembly: Assembly<B>,
}

#[derive(Debug)]
struct Host<B> {
    entry: HostEntry,
    /// `None` for this host.
    peer: Option<Peer<B>>,
    assembly: Assembly<B>,
    multicasts: Vec<Multicast>,
}

/// The daemon.
#[derive(Debug)]
pub struct Daemon<B> {
    config: Config,
    me: Tid,
    hosts: BTreeMap<u32, Host<B>>,
    tasks: BTreeMap<Tid, Task<B>>,
    streams: BTreeMap<StreamId, Stream<B>>,
    waits: BTreeMap<u32, Wait<B>>,
    plans: BTreeMap<u32, Plan<B>>,
    mailbox: Mailbox,
    next_local: u32,
    next_wait: u32,
    next_spawn: u32,
    /// The host that the next task goes to.
    next_host: u32,
    ping: Option<SimTime>,
    halted: bool,
    outputs: VecDeque<DaemonOutput<B>>,
}

impl<B: Body> Daemon<B> {
    /// A daemon that knows its fellows and has no task; `None` unless its host and the master are among
    /// the hosts, and those have numbers from 1 to 4095, each one.
    pub fn new(config: Config, now: SimTime) -> Option<Self> {
        let me = Tid::daemon(config.host)?;
        let mut hosts = BTreeMap::new();
        for entry in &config.hosts {
            let it = Tid::daemon(entry.number).filter(|_| entry.number > 0)?;
            let peer = (it != me).then(|| Peer::new(config.timing, me, it));
            let host =
                Host { entry: entry.clone(), peer, assembly: Assembly::default(), multicasts: Vec::new() };
            if hosts.insert(entry.number, host).is_some() {
                return None;
            }
        }
        if !hosts.contains_key(&config.host) || !hosts.contains_key(&config.master) {
            return None;
        }
        Some(Self {
            me,
            hosts,
            tasks: BTreeMap::new(),
            streams: BTreeMap::new(),
            waits: BTreeMap::new(),
            plans: BTreeMap::new(),
            mailbox: Mailbox::default(),
            next_local: 1,
            next_wait: 1,
            next_spawn: 1,
            next_host: config.host + 1,
            ping: config.timing.ping.map(|ping| now.saturating_add(ping)),
            halted: false,
            outputs: VecDeque::new(),
            config,
        })
    }

    /// A task that is part of the virtual machine from the start; `None` where the host has no number left.
    pub fn attach(&mut self, stream: StreamId) -> Option<Tid> {
        let tid = self.new_tid()?;
        let name = String::new();
        let task = Task {
            parent: 0,
            stream: Some(stream),
            name,
            pid: 0,
            spawn: None,
            early: Vec::new(),
            multicast: None,
        };
        self.tasks.insert(tid, task);
        let open = Stream { tid: Some(tid), asked: true, assembly: Assembly::default() };
        self.streams.insert(stream, open);
        Some(tid)
    }

    /// A task has connected.
    pub fn handle_connected(&mut self, _now: SimTime, stream: StreamId) {
        let open = Stream { tid: None, asked: false, assembly: Assembly::default() };
        self.streams.insert(stream, open);
    }

    /// A connection has ended: its task is gone, unless it has said so before.
    pub fn handle_closed(&mut self, now: SimTime, stream: StreamId) {
        if let Some(Stream { tid: Some(tid), .. }) = self.streams.remove(&stream) {
            self.task_ended(now, tid);
        }
    }

    /// A task writes a fragment.
    pub fn handle_fragment(&mut self, now: SimTime, stream: StreamId, fragment: Fragment<B>) {
        self.piece_came(now, stream, fragment);
    }

    /// A datagram has come from the daemon of a host.
    pub fn handle_datagram(&mut self, now: SimTime, host: u32, packet: Packet<B>) {
        // Only the source's host is believed, and only if the datagram comes from there.
        let known = self.hosts.get_mut(&host).and_then(|host| host.peer.as_mut());
        match known {
            Some(peer) if packet.header.source.host() == host => peer.handle_packet(now, packet),
            _ => return self.event(Event::Stray(packet.header.source)),
        }
        self.drain_peer(now, host);
    }

    /// What came of a start: the number of the process, or [`PvmError::NoFile`] or
    /// [`PvmError::OutOfRes`]. The task names that number when it connects.
    pub fn handle_spawned(&mut self, now: SimTime, id: SpawnId, result: Result<i32, PvmError>) {
        self.spawned(now, id, result);
    }

    /// A process that a start made has ended before it connected.
    pub fn handle_process_ended(&mut self, now: SimTime, tid: Tid) {
        if self.tasks.get(&tid).is_some_and(|task| task.stream.is_none()) {
            self.task_ended(now, tid);
        }
    }

    /// The time that was asked for has come.
    pub fn handle_timeout(&mut self, now: SimTime) {
        let numbers: Vec<u32> = self.hosts.keys().copied().collect();
        let ping = self.ping.is_some_and(|ping| ping <= now);
        for &number in &numbers {
            let Some(peer) = self.hosts.get_mut(&number).and_then(|host| host.peer.as_mut()) else {
                continue;
            };
            if peer.due().is_some_and(|due| due <= now) {
                peer.handle_timeout(now);
                self.work(WorkKind::TimerExpiry, Bytes::new(0));
                self.drain_peer(now, number);
            } else if ping && peer.is_idle() {
                self.tell(now, number, tag::DM_NULL, 0, Vec::new());
            }
        }
        if ping {
            self.ping = self.config.timing.ping.map(|ping| now.saturating_add(ping));
        }
    }

    /// What is next; the time of the next [`Daemon::handle_timeout`] when that is all.
    pub fn poll_output(&mut self) -> DaemonOutput<B> {
        self.outputs.pop_front().unwrap_or_else(|| Output::Timeout(self.due()))
    }

    /// When something is to be sent again; until then nothing hangs on the time that is asked for.
    pub fn repeats_at(&self) -> Option<SimTime> {
        self.hosts.values().filter_map(|host| host.peer.as_ref()?.due()).min()
    }

    /// The tasks that there are on this host, connected or being started.
    pub fn tasks(&self) -> impl Iterator<Item = Tid> {
        self.tasks.keys().copied()
    }

    /// The hosts that there are.
    pub fn hosts(&self) -> impl Iterator<Item = &HostEntry> {
        self.hosts.values().map(|host| &host.entry)
    }

    /// Its own number.
    pub const fn tid(&self) -> Tid {
        self.me
    }

    /// Requests of tasks and daemons that are not answered.
    pub fn waiting(&self) -> usize {
        self.waits.len()
    }

    fn due(&self) -> Option<SimTime> {
        if self.halted {
            return None;
        }
        let ping = self.ping.filter(|_| self.hosts.len() > 1);
        self.repeats_at().into_iter().chain(ping).min()
    }

    fn event(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }

    fn work(&mut self, kind: WorkKind, bytes: Bytes) {
        self.outputs.push_back(Output::Work(Work { kind, bytes, count: 1 }));
    }

    fn demand(&mut self, demand: Demand) {
        self.outputs.push_back(Output::Deliver(demand));
    }

    /// A message of this daemon in XDR, without a context.
    fn message(&self, to: Tid, tag: u32, wait: u32, parts: Vec<B>) -> Message<B> {
        let head = Head { encoding: Signature::XDR, tag, context: 0, wait };
        Message { to, from: self.me, head, parts }
    }

    /// Sends another daemon, or this one, a message.
    fn tell(&mut self, now: SimTime, host: u32, tag: u32, wait: u32, parts: Vec<B>) {
        if let Some(to) = Tid::daemon(host) {
            let message = self.message(to, tag, wait, parts);
            self.send(now, message);
        }
    }

    /// An answer to a request of a task: its tag, context and number.
    fn reply(&self, request: &Message<B>) -> Message<B> {
        let parts = Vec::new();
        Message {
            to: request.from,
            from: Tid::MY_DAEMON,
            head: Head { encoding: Signature::XDR, ..request.head },
            parts,
        }
    }

    fn halt(&mut self) {
        if !core::mem::replace(&mut self.halted, true) {
            let streams: Vec<StreamId> = self.streams.keys().copied().collect();
            for stream in streams {
                self.outputs.push_back(Output::Transmit(Transmit::Close(stream)));
            }
            self.demand(Demand::Halt);
        }
    }
}

/// The longest piece that a datagram of so many octets carries.
const fn room(datagram: Bytes, first: bool) -> Bytes {
    Bytes::new(datagram.get() - headers(first).get())
}
