//! The task library: what a program calls.
//!
//! `lpvm.c`, `lpvmgen.c` of PVM 3.4 and the manual pages of its calls. A call that asks somebody is named by
//! a [`CallId`] and ends in an [`Answer`]; whoever drives the machine makes a program wait for it, as the
//! library does. `pvm_recv` is [`Task::take`], again after each [`Event::Arrived`] until there is something;
//! `pvm_nrecv` is one [`Task::take`], `pvm_probe` one [`Task::probe`].
//!
//! A message goes through the daemons, or, where its sender wants that and its receiver does not reject, over
//! a connection between the two (`PvmRouteDirect`, "advise"), which is asked for when the first message to a
//! task is sent; that message and those behind it wait for the answer.
//!
//! Left out: message handlers, `pvm_recvf`, contexts of users, tracing, output of tasks, `pvm_trecv` (whoever
//! drives has the clock). A call before [`Task::enrol`] is done fails with `PvmSysErr` here, where PVM's
//! enrols first.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use wiretwin_proto::{Output, Work, WorkKind};
use wiretwin_units::{Bytes, SimTime};

use super::message::Assembly;
use super::pack::{Packed, Signature};
use super::system::{CONTEXT_TC, CONTEXT_TM, Get, MOST_TAG, Put, TASK_PROTOCOL, tag};
use super::{Body, Fragment, Head, Message, PvmError, Tid};

mod group;
mod request;
mod route;

pub use group::SERVER;
pub use request::{HostInfo, Notice, SpawnRequest, TaskInfo, Where};
use route::Route;

/// Which way messages go (`PvmRoute`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routing {
    /// Through the daemons; a connection that somebody asks for is rejected (`PvmDontRoute`).
    Never,
    /// Through the daemons, unless there is a connection (`PvmAllowDirect`); the default.
    Allow,
    /// Over a connection (`PvmRouteDirect`).
    Direct,
}

/// What a task is told when it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Which way messages go.
    pub routing: Routing,
    /// Number of the process.
    pub pid: i32,
    /// The number that the daemon knows its start by; 0 for a task that nobody has started.
    pub cookie: i32,
    /// An empty file of this task, into which the daemon writes one octet.
    pub file: String,
    /// The name of the program.
    pub name: String,
    /// Whether it asks the mailbox for a tracer, as from 3.4 on.
    pub tracer: bool,
    /// Whether messages to a task wait while that makes the connection it was offered. PVM's do not, and
    /// those may be overtaken by what goes over the connection later; `true` is a deviation that keeps
    /// them in order.
    pub hold: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            routing: Routing::Allow,
            pid: 1,
            cookie: 0,
            file: String::new(),
            name: String::new(),
            tracer: true,
            hold: true,
        }
    }
}

/// Names a call until it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallId(pub u32);

/// What goes to the layer below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Transmit<B> {
    /// Connect to the daemon of this host; then [`Task::handle_daemon_open`] or
    /// [`Task::handle_daemon_closed`].
    ConnectDaemon,
    /// Write one octet into this file, to show the daemon that this is its user's task.
    Prove(String),
    /// This fragment, to the daemon.
    WriteDaemon(Fragment<B>),
    /// Listen for a task; then [`Task::handle_bound`].
    Listen(Tid),
    /// Connect to where a task listens; then [`Task::handle_route_open`] or [`Task::handle_route_closed`].
    Connect {
        /// The task.
        peer: Tid,
        /// Eight hexadecimal digits of an address, a colon, four of a port.
        address: String,
    },
    /// This fragment, to a task.
    Write {
        /// The task.
        peer: Tid,
        /// The fragment.
        fragment: Fragment<B>,
    },
    /// Close all connections, after all that was written.
    Close,
}

/// What a call came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<B> {
    /// It is done.
    Done,
    /// A number: an index, an instance, a size.
    Number(i32),
    /// The tasks that were started, and an error for each that was not.
    Spawned(Vec<Tid>, Vec<PvmError>),
    /// What came of each of several.
    Each(Vec<Result<(), PvmError>>),
    /// The hosts.
    Hosts(Vec<HostInfo>),
    /// Tasks.
    Tasks(Vec<TaskInfo>),
    /// An entry of the mailbox.
    Entry(Packed<B>),
}

/// The end of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer<B> {
    /// The call that has ended.
    pub call: CallId,
    /// What it came to.
    pub result: Result<Value<B>, PvmError>,
}

/// What is no call's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The task is part of the virtual machine.
    Enrolled(Tid),
    /// It is not, or no longer: the daemon does not answer, or rejects.
    Lost(PvmError),
    /// A message has come.
    Arrived,
    /// There is a connection to a task.
    RouteOpen(Tid),
    /// A task rejects one: messages to it go through the daemons from now on.
    RouteRefused(Tid),
    /// A connection has ended.
    RouteLost(Tid),
    /// A piece of a message was dropped, or a message of the system that cannot be read.
    Garbage(Tid),
}

/// Outputs of a task.
pub type TaskOutput<B> = Output<Transmit<B>, Answer<B>, Event>;

/// Where a task stands with its daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It has not begun.
    Apart,
    /// It waits for the connection.
    Connecting,
    /// It has asked to be let in.
    Asking,
    /// It has proved itself.
    Proving,
    /// It looks whether somebody traces.
    Tracing,
    /// It is part of the virtual machine.
    Enrolled,
    /// It has said that it ends.
    Leaving,
    /// It has ended, or the daemon has.
    Gone,
}

/// What is to become of an answer of the system.
#[derive(Debug)]
enum Pending {
    Tracer,
    Done,
    Signal,
    Number,
    Spawn,
    Each,
    Hosts,
    Tasks,
    Entry,
    Exit,
    /// The group server is looked for, and then started.
    FindServer,
    StartServer,
}

/// The library of one task.
#[derive(Debug)]
pub struct Task<B> {
    config: Config,
    state: State,
    tid: Tid,
    parent: Tid,
    siblings: Vec<Tid>,
    next_call: u32,
    next_wait: u32,
    pending: BTreeMap<u32, (CallId, Pending)>,
    routes: BTreeMap<Tid, Route<B>>,
    from_daemon: Assembly<B>,
    inbox: VecDeque<Message<B>>,
    groups: group::Client<B>,
    outputs: VecDeque<TaskOutput<B>>,
}

impl<B: Body> Task<B> {
    /// A task that is apart.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            state: State::Apart,
            tid: Tid(0),
            parent: Tid(0),
            siblings: Vec::new(),
            next_call: 1,
            next_wait: 1,
            pending: BTreeMap::new(),
            routes: BTreeMap::new(),
            from_daemon: Assembly::default(),
            inbox: VecDeque::new(),
            groups: group::Client::default(),
            outputs: VecDeque::new(),
        }
    }

    /// A task that is part of the virtual machine from the start, with connections to these tasks.
    pub fn joined(config: Config, tid: Tid, peers: impl IntoIterator<Item = Tid>) -> Self {
        let mut task = Self::new(config);
        (task.state, task.tid) = (State::Enrolled, tid);
        task.routes = peers.into_iter().map(|peer| (peer, Route::open())).collect();
        task
    }

    /// The daemon's connection is there.
    pub fn handle_daemon_open(&mut self, _now: SimTime) {
        if self.state == State::Connecting {
            self.state = State::Asking;
            let parts = Put::new().int(TASK_PROTOCOL).text(&self.config.file).parts();
            self.request(tag::TM_CONNECT, 0, parts);
        }
    }

    /// The daemon's connection is gone, or was not made: all that waits for it has failed.
    pub fn handle_daemon_closed(&mut self, _now: SimTime) {
        let leaving = self.state == State::Leaving;
        if self.state == State::Apart || self.state == State::Gone {
            return;
        }
        self.lose(PvmError::SysErr, leaving);
    }

    /// A fragment of the daemon has come.
    pub fn handle_daemon_fragment(&mut self, now: SimTime, fragment: Fragment<B>) {
        let from = fragment.from;
        match self.from_daemon.handle(fragment) {
            Ok(Some(message)) => self.came(now, message),
            Ok(None) => {}
            Err(_) => self.event(Event::Garbage(from)),
        }
    }

    /// What is next.
    pub fn poll_output(&mut self) -> TaskOutput<B> {
        self.outputs.pop_front().unwrap_or(Output::Timeout(None))
    }

    /// Becomes part of the virtual machine (`pvm_mytid`): [`Event::Enrolled`] or [`Event::Lost`].
    pub fn enrol(&mut self, _now: SimTime) {
        if self.state == State::Apart {
            self.state = State::Connecting;
            self.outputs.push_back(Output::Transmit(Transmit::ConnectDaemon));
        }
    }

    /// Sends a message (`pvm_send`). Its answer says that its memory may be used again, and not that it
    /// has come.
    ///
    /// # Errors
    /// [`PvmError::BadParam`] for whom is no task, or a tag of 2^31 and more; [`PvmError::SysErr`] outside the
    /// virtual machine.
    pub fn send(&mut self, now: SimTime, to: Tid, tag: u32, packed: Packed<B>) -> Result<CallId, PvmError> {
        if !to.is_task() || tag > MOST_TAG {
            return Err(PvmError::BadParam);
        }
        self.is_enrolled()?;
        let call = self.new_call();
        let message = self.user_message(to, tag, packed);
        self.send_message(now, message, Some(call));
        Ok(call)
    }

    /// Sends one message to several (`pvm_mcast`): each once, and not to this task itself. Over the
    /// connections that there are, and to all others through the daemons.
    ///
    /// # Errors
    /// As [`Task::send`].
    pub fn mcast(
        &mut self,
        now: SimTime,
        to: &[Tid],
        tag: u32,
        packed: Packed<B>,
    ) -> Result<CallId, PvmError> {
        if to.iter().any(|to| !to.is_task()) || tag > MOST_TAG {
            return Err(PvmError::BadParam);
        }
        self.is_enrolled()?;
        let message = self.user_message(Tid(0), tag, packed);
        self.send_to_many(now, to, &message);
        let call = self.new_call();
        self.answer(call, Ok(Value::Done));
        Ok(call)
    }

    /// The first message that has come and that this accepts, taken; `None` where there is none
    /// (`pvm_nrecv`). `None` as sender or tag is any (-1).
    pub fn take(&mut self, from: Option<Tid>, tag: Option<u32>) -> Option<Message<B>> {
        let at = self.find(0, from, tag)?;
        self.inbox.remove(at)
    }

    /// The same, left where it is (`pvm_probe`).
    pub fn probe(&self, from: Option<Tid>, tag: Option<u32>) -> Option<&Message<B>> {
        self.inbox.get(self.find(0, from, tag)?)
    }

    /// The same as [`Task::take`], of a context of the system.
    pub(crate) fn take_of(&mut self, context: u32) -> Option<Message<B>> {
        let at = self.find(context, None, None)?;
        self.inbox.remove(at)
    }

    /// Its number; `None` outside the virtual machine.
    pub fn tid(&self) -> Option<Tid> {
        self.is_enrolled().ok().map(|()| self.tid)
    }

    /// Who has started it (`pvm_parent`).
    ///
    /// # Errors
    /// [`PvmError::NoParent`] where nobody of the virtual machine has.
    pub fn parent(&self) -> Result<Tid, PvmError> {
        if self.parent.is_task() { Ok(self.parent) } else { Err(PvmError::NoParent) }
    }

    /// The tasks that were started with it, itself among them (`pvm_siblings`).
    pub fn siblings(&self) -> &[Tid] {
        &self.siblings
    }

    /// Where it stands.
    pub const fn state(&self) -> State {
        self.state
    }

    fn find(&self, context: u32, from: Option<Tid>, tag: Option<u32>) -> Option<usize> {
        self.inbox.iter().position(|message| {
            message.head.context == context
                && from.is_none_or(|from| from == message.from)
                && tag.is_none_or(|tag| tag == message.head.tag)
        })
    }

    fn is_enrolled(&self) -> Result<(), PvmError> {
        if matches!(self.state, State::Enrolled) { Ok(()) } else { Err(PvmError::SysErr) }
    }

    fn event(&mut self, event: Event) {
        self.outputs.push_back(Output::Event(event));
    }

    fn answer(&mut self, call: CallId, result: Result<Value<B>, PvmError>) {
        self.outputs.push_back(Output::Deliver(Answer { call, result }));
    }

    fn new_call(&mut self) -> CallId {
        let call = CallId(self.next_call);
        self.next_call = self.next_call.wrapping_add(1).max(1);
        call
    }

    fn user_message(&self, to: Tid, tag: u32, packed: Packed<B>) -> Message<B> {
        let head = Head { encoding: packed.encoding, tag, context: 0, wait: 0 };
        Message { to, from: self.tid, head, parts: packed.parts }
    }

    /// Writes a message of the system to the daemon.
    fn request(&mut self, tag: u32, wait: u32, parts: Vec<B>) {
        let head = Head { encoding: Signature::XDR, tag, context: CONTEXT_TM, wait };
        self.write_daemon(&Message { to: Tid::MY_DAEMON, from: self.tid, head, parts });
    }

    /// The same, and waits for what comes back.
    fn ask(&mut self, tag: u32, parts: Vec<B>, pending: Pending) -> CallId {
        let call = self.new_call();
        self.ask_for(call, tag, parts, pending);
        call
    }

    fn ask_for(&mut self, call: CallId, tag: u32, parts: Vec<B>, pending: Pending) {
        let wait = self.next_wait;
        self.next_wait = self.next_wait.wrapping_add(1).max(1);
        self.pending.insert(wait, (call, pending));
        self.request(tag, wait, parts);
    }

    fn write_daemon(&mut self, message: &Message<B>) {
        for fragment in message.fragments() {
            self.outputs.push_back(Output::Transmit(Transmit::WriteDaemon(fragment)));
        }
    }

    /// A whole message has come, whichever way.
    fn came(&mut self, now: SimTime, message: Message<B>) {
        let from = message.from;
        let done = match (message.head.context, self.state) {
            (CONTEXT_TM, _) => self.system(now, &message),
            (CONTEXT_TC, State::Enrolled | State::Tracing) => self.of_task(now, &message),
            (_, State::Enrolled | State::Tracing) => {
                let count = message.parts.len().max(1) as u32;
                let bytes = message.length();
                let kind = WorkKind::LibraryReceive;
                self.outputs.push_back(Output::Work(Work { kind, bytes, count }));
                if self.groups.wants(&message) {
                    self.group_answered(now, &message);
                } else {
                    self.inbox.push_back(message);
                    self.event(Event::Arrived);
                }
                Ok(())
            }
            _ => Err(PvmError::BadMsg),
        };
        if done.is_err() {
            self.event(Event::Garbage(from));
        }
    }

    /// A message of the daemon.
    fn system(&mut self, now: SimTime, message: &Message<B>) -> Result<(), PvmError> {
        let mut get = Get::new(message)?;
        match (message.head.tag, self.state) {
            (tag::TM_CONNECT, State::Asking) => {
                let (protocol, agreed, file) = (get.int()?, get.int()?, get.text()?);
                if protocol != TASK_PROTOCOL || agreed == 0 {
                    self.lose(PvmError::BadVersion, false);
                    return Ok(());
                }
                self.state = State::Proving;
                self.outputs.push_back(Output::Transmit(Transmit::Prove(file)));
                let Config { pid, cookie, name, .. } = &self.config;
                let mut put = Put::new().int(*pid).int(*cookie);
                if !name.is_empty() {
                    put = put.text(name);
                }
                self.request(tag::TM_CONN2, 0, put.parts());
            }
            (tag::TM_CONN2, State::Proving) => {
                if get.int()? == 0 {
                    self.lose(PvmError::SysErr, false);
                    return Ok(());
                }
                (self.tid, self.parent) = (get.tid()?, get.tid()?);
                if self.config.tracer {
                    self.state = State::Tracing;
                    let parts = self.entry_wanted(TRACER, 0, 0).parts();
                    self.ask(tag::TM_DB, parts, Pending::Tracer);
                } else {
                    self.enrolled();
                }
            }
            _ => self.answered(now, message, &mut get)?,
        }
        Ok(())
    }

    fn enrolled(&mut self) {
        self.state = State::Enrolled;
        self.event(Event::Enrolled(self.tid));
    }

    /// No daemon any more.
    fn lose(&mut self, error: PvmError, leaving: bool) {
        self.state = State::Gone;
        self.outputs.push_back(Output::Transmit(Transmit::Close));
        for (_, (call, pending)) in core::mem::take(&mut self.pending) {
            match pending {
                Pending::Tracer => {}
                Pending::Exit => self.answer(call, Ok(Value::Done)),
                _ => self.answer(call, Err(error)),
            }
        }
        for (_, route) in core::mem::take(&mut self.routes) {
            for (call, _) in route.waiting {
                call.into_iter().for_each(|call| self.answer(call, Err(error)));
            }
        }
        if let Some(call) = self.groups.lose() {
            self.answer(call, Err(error));
        }
        if !leaving {
            self.event(Event::Lost(error));
        }
    }

    /// Octets of messages that have come and were not taken.
    pub fn waiting(&self) -> Bytes {
        self.inbox.iter().map(Message::length).sum()
    }
}

/// The entry that names a tracer.
const TRACER: &str = "###_PVM_TRACER_###";
