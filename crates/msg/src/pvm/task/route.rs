//! Connections between two tasks: asked for, granted or rejected, and what waits meanwhile.

use alloc::collections::VecDeque;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use wiretwin_proto::{Output, Work, WorkKind};
use wiretwin_units::SimTime;

use super::{Body, CallId, Event, Routing, State, Task, Transmit, Value};
use crate::pvm::message::Assembly;
use crate::pvm::pack::Signature;
use crate::pvm::system::{CONTEXT_TC, Get, Put, TASK_EXIT, TASK_PROTOCOL, tag};
use crate::pvm::{Fragment, Head, Message, PvmError, Tid};

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// This task is about to ask: it makes a socket.
    Preparing,
    /// It has asked.
    Asked,
    /// It was told where to, and connects.
    Connecting,
    /// It was asked, and makes a socket.
    Answering,
    /// It has said where.
    Granted,
    /// It is there.
    Open,
    /// The other does not want it.
    Refused,
}

/// A connection, or the want of one.
#[derive(Debug)]
pub(super) struct Route<B> {
    stage: Stage,
    /// Where this task listens.
    address: String,
    pub(super) waiting: VecDeque<(Option<CallId>, Message<B>)>,
    assembly: Assembly<B>,
}

impl<B> Route<B> {
    /// One that is there.
    pub(super) fn open() -> Self {
        Self::new(Stage::Open)
    }

    fn new(stage: Stage) -> Self {
        Self { stage, address: String::new(), waiting: VecDeque::new(), assembly: Assembly::default() }
    }
}

impl<B: Body> Task<B> {
    /// The socket that was wanted for a task is there, at this address.
    pub fn handle_bound(&mut self, _now: SimTime, peer: Tid, address: &str) {
        let Some(route) = self.routes.get_mut(&peer) else { return };
        route.address = address.to_string();
        match route.stage {
            Stage::Preparing => {
                route.stage = Stage::Asked;
                let parts = Put::new().int(TASK_PROTOCOL).text(address).parts();
                self.tell_task(peer, tag::TC_CONREQ, parts);
                // Word of its end, or this task would wait for ever for one that is not there.
                let put = Put::new().int(TASK_EXIT).word(CONTEXT_TC).word(tag::TC_TASKEXIT);
                self.request(tag::TM_NOTIFY, 0, put.int(1).tid(peer).parts());
            }
            Stage::Answering => self.grant(peer),
            _ => {}
        }
    }

    /// A connection to a task is there: one that was made, or one that was accepted.
    pub fn handle_route_open(&mut self, now: SimTime, peer: Tid) {
        let Some(route) = self.routes.get_mut(&peer) else { return };
        if matches!(route.stage, Stage::Connecting | Stage::Granted) {
            route.stage = Stage::Open;
            self.event(Event::RouteOpen(peer));
            self.let_go(now, peer);
        }
    }

    /// A connection to a task has ended, or was not made.
    pub fn handle_route_closed(&mut self, now: SimTime, peer: Tid) {
        let Some(route) = self.routes.get_mut(&peer) else { return };
        if route.stage == Stage::Open {
            self.routes.remove(&peer);
            self.event(Event::RouteLost(peer));
        } else {
            self.refused(now, peer);
        }
    }

    /// A fragment of a task has come over its connection.
    pub fn handle_fragment(&mut self, now: SimTime, peer: Tid, fragment: Fragment<B>) {
        let Some(route) = self.routes.get_mut(&peer) else { return self.event(Event::Garbage(peer)) };
        match route.assembly.handle(fragment) {
            Ok(Some(message)) => self.came(now, message),
            Ok(None) => {}
            Err(_) => self.event(Event::Garbage(peer)),
        }
    }

    /// Whether there is a connection to a task.
    pub fn has_route(&self, peer: Tid) -> bool {
        self.routes.get(&peer).is_some_and(|route| route.stage == Stage::Open)
    }

    /// Sends a message by the way there is, or has it wait for one.
    pub(super) fn send_message(&mut self, _now: SimTime, message: Message<B>, call: Option<CallId>) {
        let to = message.to;
        if self.config.routing == Routing::Direct && to != self.tid && !self.routes.contains_key(&to) {
            self.routes.insert(to, Route::new(Stage::Preparing));
            self.outputs.push_back(Output::Transmit(Transmit::Listen(to)));
        }
        if let Some(route) = self.routes.get_mut(&to) {
            let waits = match route.stage {
                Stage::Preparing | Stage::Asked | Stage::Connecting => true,
                Stage::Answering | Stage::Granted => self.config.hold,
                Stage::Open | Stage::Refused => false,
            };
            if waits || !route.waiting.is_empty() {
                return route.waiting.push_back((call, message));
            }
        }
        self.write(&message, call);
    }

    /// Sends copies of a message to several tasks.
    pub(super) fn send_to_many(&mut self, now: SimTime, to: &[Tid], message: &Message<B>) {
        let mut to: Vec<Tid> = to.iter().copied().filter(|&to| to != self.tid).collect();
        to.sort_unstable();
        to.dedup();
        let (direct, rest): (Vec<Tid>, Vec<Tid>) = to.into_iter().partition(|to| {
            self.routes.get(to).is_some_and(|route| route.stage == Stage::Open || !route.waiting.is_empty())
        });
        for to in direct {
            self.send_message(now, Message { to, ..message.clone() }, None);
        }
        if rest.is_empty() {
            return;
        }
        let words: Vec<i32> = rest.iter().map(|tid| tid.0 as i32).collect();
        self.request(tag::TM_MCA, 0, Put::new().int(words.len() as i32).ints(&words).parts());
        let many = Message { to: Tid(MULTICAST | self.tid.0), ..message.clone() };
        self.charge(&many);
        self.write_daemon(&many);
    }

    fn charge(&mut self, message: &Message<B>) {
        let (kind, count) = (WorkKind::LibrarySend, message.parts.len().max(1) as u32);
        self.outputs.push_back(Output::Work(Work { kind, bytes: message.length(), count }));
    }

    fn write(&mut self, message: &Message<B>, call: Option<CallId>) {
        self.charge(message);
        let peer = message.to;
        if self.has_route(peer) {
            for fragment in message.fragments() {
                self.outputs.push_back(Output::Transmit(Transmit::Write { peer, fragment }));
            }
        } else {
            self.write_daemon(message);
        }
        call.into_iter().for_each(|call| self.answer(call, Ok(Value::Done)));
    }

    /// What has waited goes.
    fn let_go(&mut self, _now: SimTime, peer: Tid) {
        while let Some((call, message)) =
            self.routes.get_mut(&peer).and_then(|route| route.waiting.pop_front())
        {
            self.write(&message, call);
        }
    }

    fn refused(&mut self, now: SimTime, peer: Tid) {
        if let Some(route) = self.routes.get_mut(&peer) {
            route.stage = Stage::Refused;
            self.event(Event::RouteRefused(peer));
            self.let_go(now, peer);
        }
    }

    /// A message of the system of another task.
    pub(super) fn of_task(&mut self, now: SimTime, message: &Message<B>) -> Result<(), PvmError> {
        let mut get = Get::new(message)?;
        let peer = message.from;
        match message.head.tag {
            tag::TC_CONREQ => {
                let (protocol, _address) = (get.int()?, get.text()?);
                self.asked(peer, protocol == TASK_PROTOCOL);
            }
            tag::TC_CONACK => {
                let (protocol, refusal, address) = (get.int()?, get.int()?, get.text()?);
                let Some(route) = self.routes.get_mut(&peer) else { return Err(PvmError::BadMsg) };
                if route.stage != Stage::Asked {
                    return Err(PvmError::BadMsg);
                }
                if protocol != TASK_PROTOCOL || refusal != 0 {
                    self.refused(now, peer);
                } else {
                    route.stage = Stage::Connecting;
                    self.outputs.push_back(Output::Transmit(Transmit::Connect { peer, address }));
                }
            }
            tag::TC_TASKEXIT => {
                let ended = get.tid()?;
                // What was sent over a connection before its end is still to be read from it.
                if !self.has_route(ended) && self.routes.contains_key(&ended) {
                    self.refused(now, ended);
                    self.routes.remove(&ended);
                }
            }
            tag::TC_SIBLINGS => self.siblings = get.list(Get::tid)?,
            _ => return Err(PvmError::BadMsg),
        }
        Ok(())
    }

    /// A task wants a connection.
    fn asked(&mut self, peer: Tid, agreed: bool) {
        match self.routes.get_mut(&peer) {
            None if agreed && self.config.routing != Routing::Never => {
                self.routes.insert(peer, Route::new(Stage::Answering));
                self.outputs.push_back(Output::Transmit(Transmit::Listen(peer)));
            }
            // Both have asked: the one with the higher number answers, the other waits for that.
            Some(route) if matches!(route.stage, Stage::Preparing | Stage::Asked) => {
                if self.tid > peer {
                    let bound = route.stage == Stage::Asked;
                    route.stage = Stage::Answering;
                    if bound {
                        self.grant(peer);
                    }
                }
            }
            // A connection that is over on the other side, or whose end is not yet known here.
            Some(route) if matches!(route.stage, Stage::Refused) && agreed => {
                route.stage = Stage::Answering;
                self.outputs.push_back(Output::Transmit(Transmit::Listen(peer)));
            }
            _ => {
                let parts = Put::new().int(TASK_PROTOCOL).int(1).text("").parts();
                self.tell_task(peer, tag::TC_CONACK, parts);
            }
        }
    }

    fn grant(&mut self, peer: Tid) {
        if let Some(route) = self.routes.get_mut(&peer) {
            route.stage = Stage::Granted;
            let parts = Put::new().int(TASK_PROTOCOL).int(0).text(&route.address).parts();
            self.tell_task(peer, tag::TC_CONACK, parts);
        }
    }

    /// A message of the system to a task, through the daemons.
    fn tell_task(&mut self, to: Tid, tag: u32, parts: Vec<B>) {
        if self.state != State::Gone {
            let head = Head { encoding: Signature::XDR, tag, context: CONTEXT_TC, wait: 0 };
            self.write_daemon(&Message { to, from: self.tid, head, parts });
        }
    }
}

/// The bit of messages to many.
const MULTICAST: u32 = 0x4000_0000;
