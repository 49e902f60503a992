//! What tasks ask of their daemon.

use alloc::vec::Vec;

use wiretwin_proto::Output;
use wiretwin_units::SimTime;

use super::mailbox::Lookup;
use super::wait::{Wait, WaitKind};
use super::{Body, Daemon, Event, Multicast, StreamId, Task, Transmit};
use crate::pvm::pack::Signature;
use crate::pvm::system::{DB_DELETE, DB_GET, DB_PUT, Get, HOST_DELETE, Put, TASK_EXIT, TASK_PROTOCOL, tag};
use crate::pvm::{Message, PvmError, Tid};

impl<B: Body> Daemon<B> {
    /// A message of a task to this daemon.
    pub(super) fn request(&mut self, now: SimTime, stream: StreamId, message: Message<B>) {
        let (from, tag) = (message.from, message.head.tag);
        let Some(open) = self.streams.get(&stream) else { return };
        let done = match (tag, open.tid) {
            (tag::TM_CONNECT, None) => self.connect(stream, &message),
            (tag::TM_CONN2, None) if open.asked => self.connect_again(stream, &message),
            (_, None) => {
                self.outputs.push_back(Output::Transmit(Transmit::Close(stream)));
                Err(PvmError::BadMsg)
            }
            (_, Some(tid)) => self.request_of(now, tid, stream, &message),
        };
        if done.is_err() {
            self.event(Event::Garbage { from, tag });
        }
    }

    fn request_of(
        &mut self,
        now: SimTime,
        tid: Tid,
        stream: StreamId,
        message: &Message<B>,
    ) -> Result<(), PvmError> {
        let mut get = Get::new(message)?;
        match message.head.tag {
            tag::TM_EXIT => {
                let reply = self.reply(message);
                self.send(now, reply);
                self.outputs.push_back(Output::Transmit(Transmit::Close(stream)));
                self.streams.remove(&stream);
                self.task_ended(now, tid);
            }
            tag::TM_CONFIG => self.configuration(now, message),
            tag::TM_SPAWN => self.spawn(now, tid, message, &mut get)?,
            tag::TM_PSTAT => {
                let whom = get.tid()?;
                self.status(now, message, whom, Some(whom.host()), PvmError::NoTask);
            }
            tag::TM_MSTAT => {
                let name = get.text()?;
                let host =
                    self.hosts.values().find(|host| host.entry.name == name).map(|host| host.entry.number);
                let whom = host.and_then(Tid::daemon).unwrap_or(Tid(0));
                self.status(now, message, whom, host, PvmError::NoHost);
            }
            tag::TM_TASK => self.tasks_of(now, message, get.tid()?),
            tag::TM_SENDSIG => {
                let (whom, signal) = (get.tid()?, get.int()?);
                let reply = self.reply(message);
                self.send(now, reply);
                let parts = Put::new().tid(whom).int(signal).parts();
                self.tell(now, whom.host(), tag::DM_SENDSIG, 0, parts);
            }
            tag::TM_MCA => self.announce(now, tid, get.list(Get::tid)?),
            tag::TM_NOTIFY => self.notify(now, tid, message, &mut get)?,
            tag::TM_DB => {
                // Looked at here, so that what the master cannot read never waits for its answer.
                Lookup::read(&mut get)?;
                self.ask_master(now, tid, message, tag::DM_DB, WaitKind::Database);
            }
            tag::TM_DELHOST => {
                get.list(Get::text)?;
                self.ask_master(now, tid, message, tag::DM_DELHOST, WaitKind::Remove);
            }
            tag::TM_HALT => {
                let master = self.config.master;
                self.tell(now, master, tag::DM_HALT, 0, Vec::new());
            }
            _ => {
                let reply = self.reply(message);
                self.answer_int(now, Some(reply), PvmError::NotImpl.code());
            }
        }
        Ok(())
    }

    /// The first step of connecting: both show that they are of one user.
    fn connect(&mut self, stream: StreamId, message: &Message<B>) -> Result<(), PvmError> {
        let mut get = Get::new(message)?;
        let (protocol, file) = (get.int()?, get.text()?);
        let agreed = protocol == TASK_PROTOCOL;
        if agreed {
            self.outputs.push_back(Output::Transmit(Transmit::Prove(file)));
        }
        let mut reply = self.reply(message);
        reply.to = Tid(0);
        // Choice: the task's connection is proof enough for this daemon, so there is no file to write.
        reply.parts = Put::new().int(TASK_PROTOCOL).int(agreed.into()).text("").parts();
        self.write_to(stream, &reply);
        if agreed {
            if let Some(open) = self.streams.get_mut(&stream) {
                open.asked = true;
            }
        } else {
            self.outputs.push_back(Output::Transmit(Transmit::Close(stream)));
        }
        Ok(())
    }

    /// The second step: the task gets its number, that of its start if it was started by this daemon.
    fn connect_again(&mut self, stream: StreamId, message: &Message<B>) -> Result<(), PvmError> {
        let mut get = Get::new(message)?;
        let (pid, cookie) = (get.int()?, get.int()?);
        let wanted = if cookie == 0 { pid } else { cookie };
        let started = |(_, task): &(&Tid, &Task<B>)| task.stream.is_none() && task.pid == wanted;
        let tid = match self.tasks.iter().find(started).map(|(&tid, _)| tid) {
            Some(tid) => tid,
            None => {
                let name = get.text().unwrap_or_default();
                let task = Task {
                    parent: 0,
                    stream: None,
                    name,
                    pid,
                    spawn: None,
                    early: Vec::new(),
                    multicast: None,
                };
                let Some(tid) = self.new_tid() else {
                    let mut reply = self.reply(message);
                    reply.parts = Put::new().int(0).parts();
                    self.write_to(stream, &reply);
                    self.outputs.push_back(Output::Transmit(Transmit::Close(stream)));
                    return Ok(());
                };
                self.tasks.insert(tid, task);
                tid
            }
        };
        if let Some(open) = self.streams.get_mut(&stream) {
            open.tid = Some(tid);
        }
        let (datagram, address) = (self.config.datagram.get() as i32, self.config.address.clone());
        let Some(task) = self.tasks.get_mut(&tid) else { return Ok(()) };
        (task.stream, task.pid) = (Some(stream), pid);
        let (parent, early) = (task.parent, core::mem::take(&mut task.early));
        let mut reply = self.reply(message);
        reply.to = tid;
        let body = Put::new().int(1).tid(tid).int(parent).ints(&[0; 6]);
        let body = body.int(datagram).word(Signature::LITTLE_64.0).text(&address).int(0);
        reply.parts = body.parts();
        // Before all that came for it.
        self.write_to(stream, &reply);
        early.into_iter().for_each(|fragment| self.hand_over(fragment));
        Ok(())
    }

    fn write_to(&mut self, stream: StreamId, message: &Message<B>) {
        for fragment in message.fragments() {
            self.outputs.push_back(Output::Transmit(Transmit::Write(stream, fragment)));
        }
    }

    /// The lowest number of a task that is not in use, after the last one given out; `None` for none.
    pub(super) fn new_tid(&mut self) -> Option<Tid> {
        for _ in 0..MOST_TASKS {
            let local = self.next_local;
            self.next_local = local % MOST_TASKS + 1;
            let tid = Tid::task(self.config.host, local)?;
            if !self.tasks.contains_key(&tid) {
                return Some(tid);
            }
        }
        None
    }

    /// A task is gone.
    pub(super) fn task_ended(&mut self, now: SimTime, tid: Tid) {
        let Some(task) = self.tasks.remove(&tid) else { return };
        self.event(Event::TaskEnded(tid));
        if let Some(id) = task.spawn {
            self.spawned(now, id, Err(PvmError::NoTask));
        }
        self.waits_of_task(now, tid);
    }

    fn configuration(&mut self, now: SimTime, message: &Message<B>) {
        let mut architectures: Vec<&str> =
            self.hosts.values().map(|host| &host.entry.architecture[..]).collect();
        architectures.sort_unstable();
        architectures.dedup();
        let mut put = Put::new().int(self.hosts.len() as i32).int(architectures.len() as i32);
        for host in self.hosts.values() {
            let entry = &host.entry;
            put = put.word(entry.number << 18).text(&entry.name).text(&entry.architecture);
            put = put.int(SPEED).word(Signature::LITTLE_64.0);
        }
        let mut reply = self.reply(message);
        reply.parts = put.parts();
        self.send(now, reply);
    }

    /// Asks the daemon of a host whether somebody is there; `missing` where there is no such host.
    fn status(
        &mut self,
        now: SimTime,
        message: &Message<B>,
        whom: Tid,
        host: Option<u32>,
        missing: PvmError,
    ) {
        let reply = self.reply(message);
        let Some(host) = host.filter(|host| self.hosts.contains_key(host)) else {
            return self.answer_int(now, Some(reply), missing.code());
        };
        let wait =
            Wait { kind: WaitKind::Status, on: Tid(host << 18), whose: message.from, answer: Some(reply) };
        let number = self.wait(wait);
        self.tell(now, host, tag::DM_PSTAT, number, Put::new().tid(whom).parts());
    }

    /// Asks the daemons for their tasks: all, one, or that of one task.
    fn tasks_of(&mut self, now: SimTime, message: &Message<B>, whom: Tid) {
        let mut reply = self.reply(message);
        reply.parts = Put::new().int(0).parts();
        let hosts: Vec<u32> = match whom.0 {
            0 => self.hosts.keys().rev().copied().collect(),
            _ => self.hosts.keys().copied().filter(|&host| host == whom.host()).collect(),
        };
        if hosts.is_empty() {
            return self.answer_int(now, Some(reply), PvmError::NoHost.code());
        }
        // All waits first: an answer may come at once.
        let whose = message.from;
        let wait = |host: &u32| Wait {
            kind: WaitKind::Tasks,
            on: Tid(host << 18),
            whose,
            answer: Some(reply.clone()),
        };
        let waits: Vec<Wait<B>> = hosts.iter().map(wait).collect();
        let numbers: Vec<u32> = waits.into_iter().map(|wait| self.wait(wait)).collect();
        for (host, number) in hosts.into_iter().zip(numbers) {
            self.tell(now, host, tag::DM_TASK, number, Put::new().tid(whom).parts());
        }
    }

    /// Whom the next message to many is for: sorted, so that those of a host are next to each other.
    fn announce(&mut self, now: SimTime, tid: Tid, mut tids: Vec<Tid>) {
        let group = Tid(MULTICAST | tid.0);
        tids.retain(|tid| self.hosts.contains_key(&tid.host()));
        let mut daemons = Vec::new();
        for there in tids.chunk_by(|one, next| one.host() == next.host()) {
            let Some(daemon) = Tid::daemon(there[0].host()) else { continue };
            let words: Vec<i32> = there.iter().map(|tid| tid.0 as i32).collect();
            let parts = Put::new().tid(group).int(words.len() as i32).ints(&words).parts();
            self.tell(now, daemon.host(), tag::DM_MCA, 0, parts);
            daemons.push(daemon);
        }
        if let Some(task) = self.tasks.get_mut(&tid) {
            task.multicast = Some(Multicast { group, to: daemons });
        }
    }

    /// A task wants word of ends.
    fn notify(
        &mut self,
        now: SimTime,
        tid: Tid,
        message: &Message<B>,
        get: &mut Get,
    ) -> Result<(), PvmError> {
        let (what, context, tag) = (get.int()?, get.word()?, get.word()?);
        for whom in get.list(Get::tid)? {
            let mut word = self.message(tid, tag, message.head.wait, Put::new().tid(whom).parts());
            word.from = Tid::MY_DAEMON;
            word.head.context = context;
            let host = whom.host();
            let there = self.hosts.contains_key(&host);
            let here = host == self.config.host;
            let kind = match what {
                TASK_EXIT if there && (!here || self.tasks.contains_key(&whom)) => WaitKind::TaskEnd,
                HOST_DELETE if there => WaitKind::HostEnd,
                TASK_EXIT | HOST_DELETE => {
                    self.send(now, word);
                    continue;
                }
                _ => return Err(PvmError::BadMsg),
            };
            let task = kind == WaitKind::TaskEnd;
            let on = if task { whom } else { Tid(host << 18) };
            let number = self.wait(Wait { kind, on, whose: tid, answer: Some(word) });
            if task && !here {
                let parts = Put::new().int(TASK_EXIT).tid(whom).parts();
                self.tell(now, host, tag::DM_NOTIFY, number, parts);
            }
        }
        Ok(())
    }

    /// Hands a request on to the master, as it is.
    fn ask_master(&mut self, now: SimTime, tid: Tid, message: &Message<B>, tag: u32, kind: WaitKind) {
        let master = self.config.master;
        let answer = Some(self.reply(message));
        let number = self.wait(Wait { kind, on: Tid(master << 18), whose: tid, answer });
        // A message that a daemon has put together begins with an empty piece.
        let mut parts = alloc::vec![B::from_octets(Vec::new())];
        parts.extend(message.parts.iter().cloned());
        if let Some(to) = Tid::daemon(master) {
            let mut on = self.message(to, tag, number, parts);
            on.head.context = message.head.context;
            self.send(now, on);
        }
    }
}

impl Lookup {
    /// Reads the head of a request of the mailbox: what is asked, and of what.
    pub(super) fn read(get: &mut Get) -> Result<(i32, Self), PvmError> {
        let operation = get.int()?;
        let (owner, name, index, flags) = (get.tid()?, get.text()?, get.int()?, get.word()?);
        if !matches!(operation, DB_PUT | DB_DELETE | DB_GET) {
            return Err(PvmError::BadMsg);
        }
        Ok((operation, Self { owner, name, index, flags }))
    }
}

/// Tasks that a host can have.
const MOST_TASKS: u32 = (1 << 18) - 1;
/// The bit of messages to many.
const MULTICAST: u32 = 0x4000_0000;
/// The speed of every host, in PVM's own unit.
const SPEED: i32 = 1000;
