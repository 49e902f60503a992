//! Groups: the calls of a member, which ask the group server.
//!
//! `pvmgsu_core.c`. The server is looked for in the mailbox at the first call and started where there is
//! none. One call of a group at a time, as in a program that waits for each.

use alloc::string::String;
use alloc::vec::Vec;

use wiretwin_units::SimTime;

use super::request::number;
use super::{Body, CallId, Notice, Pending, SpawnRequest, Task, Value, Where};
use crate::pvm::pack::{Packed, Signature};
use crate::pvm::system::{CONTEXT_GROUPS, Get, MOST_TAG, Put, tag};
use crate::pvm::{Head, Message, PvmError, Tid};

/// What a call of a group asks.
#[derive(Clone, Debug)]
struct Wanted {
    tag: u32,
    group: String,
    argument: Option<i32>,
}

/// A call that waits.
#[derive(Debug)]
struct Waiting<B> {
    call: CallId,
    wanted: Wanted,
    /// It has been sent.
    asked: bool,
    /// What is to be sent to all of the group.
    broadcast: Option<Message<B>>,
}

/// What a task knows of groups.
#[derive(Debug)]
pub(super) struct Client<B> {
    server: Option<Tid>,
    waiting: Option<Waiting<B>>,
}

impl<B> Default for Client<B> {
    fn default() -> Self {
        Self { server: None, waiting: None }
    }
}

impl<B> Client<B> {
    /// Whether a message is what is waited for.
    pub(super) fn wants(&self, message: &Message<B>) -> bool {
        message.head.context == CONTEXT_GROUPS
            && self.waiting.as_ref().is_some_and(|waiting| {
                waiting.asked && waiting.wanted.tag == message.head.tag && self.server == Some(message.from)
            })
    }

    /// Nobody will answer.
    pub(super) fn lose(&mut self) -> Option<CallId> {
        self.waiting.take().map(|waiting| waiting.call)
    }
}

impl<B: Body> Task<B> {
    /// Joins a group (`pvm_joingroup`): [`Value::Number`], the lowest instance that is free.
    ///
    /// # Errors
    /// [`PvmError::NullGroup`] without a name; [`PvmError::Already`] while another call of a group waits;
    /// [`PvmError::SysErr`] outside the virtual machine. So for all.
    pub fn joingroup(&mut self, now: SimTime, group: &str) -> Result<CallId, PvmError> {
        self.of_group(now, tag::GS_JOIN, group, None)
    }

    /// Leaves a group (`pvm_lvgroup`): [`Value::Number`], 0.
    ///
    /// # Errors
    /// As [`Task::joingroup`].
    pub fn lvgroup(&mut self, now: SimTime, group: &str) -> Result<CallId, PvmError> {
        self.of_group(now, tag::GS_LEAVE, group, None)
    }

    /// How many are in a group (`pvm_gsize`): [`Value::Number`].
    ///
    /// # Errors
    /// As [`Task::joingroup`].
    pub fn gsize(&mut self, now: SimTime, group: &str) -> Result<CallId, PvmError> {
        self.of_group(now, tag::GS_GSIZE, group, None)
    }

    /// A task's instance (`pvm_getinst`): [`Value::Number`].
    ///
    /// # Errors
    /// As [`Task::joingroup`].
    pub fn getinst(&mut self, now: SimTime, group: &str, tid: Tid) -> Result<CallId, PvmError> {
        self.of_group(now, tag::GS_GETINST, group, Some(tid.0 as i32))
    }

    /// An instance's task (`pvm_gettid`): [`Value::Number`].
    ///
    /// # Errors
    /// As [`Task::joingroup`].
    pub fn gettid(&mut self, now: SimTime, group: &str, instance: i32) -> Result<CallId, PvmError> {
        self.of_group(now, tag::GS_GETTID, group, Some(instance))
    }

    /// Waits until so many members are here (`pvm_barrier`), or all for `None`: [`Value::Number`], how many.
    ///
    /// # Errors
    /// As [`Task::joingroup`].
    pub fn barrier(&mut self, now: SimTime, group: &str, count: Option<u32>) -> Result<CallId, PvmError> {
        let count = count.map_or(Ok(-1), |count| i32::try_from(count).map_err(|_| PvmError::BadParam))?;
        self.of_group(now, tag::GS_BARRIER, group, Some(count))
    }

    /// Sends a message to all in a group but this task (`pvm_bcast`): [`Value::Number`], how many they are.
    ///
    /// # Errors
    /// As [`Task::joingroup`]; [`PvmError::BadParam`] for a tag of 2^31 and more.
    pub fn bcast(
        &mut self,
        now: SimTime,
        group: &str,
        tag: u32,
        packed: Packed<B>,
    ) -> Result<CallId, PvmError> {
        if tag > MOST_TAG {
            return Err(PvmError::BadParam);
        }
        let message = self.user_message(Tid(0), tag, packed);
        let call = self.of_group(now, tag::GS_BCAST, group, None)?;
        if let Some(waiting) = &mut self.groups.waiting {
            waiting.broadcast = Some(message);
        }
        Ok(call)
    }

    /// Word of a task's end is wanted by the server.
    pub(in crate::pvm) fn watch(&mut self, tid: Tid) {
        self.want_word(Notice::TaskExit, CONTEXT_GROUPS, tag::GS_DEADTID, &[tid]);
    }

    /// A message of the server, to one by itself or to `many` at once.
    pub(in crate::pvm) fn tell_in_groups(
        &mut self,
        now: SimTime,
        to: &[Tid],
        tag: u32,
        parts: Vec<B>,
        many: bool,
    ) {
        let head = Head { context: CONTEXT_GROUPS, ..head(tag) };
        let message = Message { to: to.first().copied().unwrap_or(Tid(0)), from: self.tid, head, parts };
        if many {
            self.send_to_many(now, to, &message);
        } else {
            self.send_message(now, message, None);
        }
    }

    fn of_group(
        &mut self,
        now: SimTime,
        tag: u32,
        group: &str,
        argument: Option<i32>,
    ) -> Result<CallId, PvmError> {
        if group.is_empty() {
            return Err(PvmError::NullGroup);
        }
        self.is_enrolled()?;
        if self.groups.waiting.is_some() {
            return Err(PvmError::Already);
        }
        let call = self.new_call();
        let wanted = Wanted { tag, group: group.into(), argument };
        self.groups.waiting = Some(Waiting { call, wanted, asked: false, broadcast: None });
        if self.groups.server.is_some() {
            self.ask_server(now);
        } else {
            self.find_server(call, 0);
        }
        Ok(call)
    }

    fn find_server(&mut self, call: CallId, flags: u32) {
        let parts = self.entry_wanted(SERVER, 0, flags).parts();
        self.ask_for(call, tag::TM_DB, parts, Pending::FindServer);
    }

    /// The mailbox has answered, or the server was started.
    pub(super) fn server_told(
        &mut self,
        now: SimTime,
        call: CallId,
        found: bool,
        result: Result<Value<B>, PvmError>,
    ) {
        match result {
            Ok(Value::Entry(packed)) => {
                let message = Message { to: self.tid, from: self.tid, head: head(0), parts: packed.parts };
                match Get::new(&message).and_then(|mut get| get.tid()) {
                    Ok(server) => {
                        self.groups.server = Some(server);
                        self.ask_server(now);
                    }
                    Err(error) => self.group_failed(error),
                }
            }
            Err(PvmError::NotFound) if found => {
                let wanted = SpawnRequest {
                    file: SERVER.into(),
                    arguments: Vec::new(),
                    place: Where::Anywhere,
                    count: 1,
                };
                if let Ok(asked) = self.spawn(now, &wanted)
                    && let Some((_, (_, pending))) = self.pending.iter_mut().find(|(_, (id, _))| *id == asked)
                {
                    *pending = Pending::StartServer;
                }
            }
            // It waits for the entry: the server makes it once it runs.
            Ok(Value::Spawned(tids, _)) if !tids.is_empty() => self.find_server(call, WAIT),
            // PVM says no more than this, whatever the reason.
            _ => self.group_failed(PvmError::SysErr),
        }
    }

    fn group_failed(&mut self, error: PvmError) {
        if let Some(Waiting { call, .. }) = self.groups.waiting.take() {
            self.answer(call, Err(error));
        }
    }

    fn ask_server(&mut self, now: SimTime) {
        let (Some(to), Some(waiting)) = (self.groups.server, &mut self.groups.waiting) else { return };
        waiting.asked = true;
        let Wanted { tag, group, argument } = waiting.wanted.clone();
        let mut put = Put::new().text(&group);
        if let Some(argument) = argument {
            put = put.int(argument);
        }
        let head = Head { context: CONTEXT_GROUPS, ..head(tag) };
        self.send_message(now, Message { to, from: self.tid, head, parts: put.parts() }, None);
    }

    /// The server has answered.
    pub(super) fn group_answered(&mut self, now: SimTime, message: &Message<B>) {
        let Some(Waiting { call, broadcast, .. }) = self.groups.waiting.take() else { return };
        let read = Get::new(message).and_then(|mut get| {
            let value = number(get.int()?)?;
            let mut tids = Vec::new();
            if broadcast.is_some() {
                for _ in 0..value {
                    tids.push(get.tid()?);
                }
            }
            Ok((value, tids))
        });
        let result = match (read, broadcast) {
            (Err(error), _) => Err(error),
            (Ok((value, _)), None) => Ok(Value::Number(value)),
            (Ok((_, tids)), Some(_)) if tids.iter().all(|&tid| tid == self.tid) => Err(PvmError::NoInst),
            (Ok((_, tids)), Some(message)) => {
                self.send_to_many(now, &tids, &message);
                Ok(Value::Number(tids.iter().filter(|&&tid| tid != self.tid).count() as i32))
            }
        };
        self.answer(call, result);
    }
}

const fn head(tag: u32) -> Head {
    Head { encoding: Signature::XDR, tag, context: 0, wait: 0 }
}

/// The name of the server, in the mailbox and as a program.
pub const SERVER: &str = "pvmgs";
/// The flag of the mailbox that waits for an entry.
const WAIT: u32 = 32;
