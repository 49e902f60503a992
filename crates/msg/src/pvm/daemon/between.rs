//! What daemons ask of each other.

use alloc::vec::Vec;

use wiretwin_units::SimTime;

use super::mailbox::{Lookup, WAIT};
use super::wait::{Wait, WaitKind};
use super::{Body, Daemon, Event, Multicast};
use crate::pvm::body::gather;
use crate::pvm::system::{DB_DELETE, DB_PUT, Get, Put, TASK_EXIT, tag};
use crate::pvm::{Message, PvmError, Tid};

impl<B: Body> Daemon<B> {
    /// A message of a daemon to this one.
    pub(super) fn between(&mut self, now: SimTime, host: u32, message: Message<B>) {
        if self.between_read(now, host, &message).is_err() {
            self.event(Event::Garbage { from: message.from, tag: message.head.tag });
        }
    }

    fn between_read(&mut self, now: SimTime, host: u32, message: &Message<B>) -> Result<(), PvmError> {
        let mut get = Get::new(message)?;
        let (from, wait) = (message.from, message.head.wait);
        match message.head.tag {
            tag::DM_NULL => {}
            tag::DM_EXEC => self.execute(now, message, &mut get)?,
            tag::DM_EXECACK => {
                let tids = get.list(Get::int)?;
                self.executed(now, wait, host, &tids);
            }
            tag::DM_SENDSIG => {
                let (whom, signal) = (get.tid()?, get.int()?);
                self.signal(whom, signal);
            }
            tag::DM_TASK => {
                let whom = get.tid()?;
                let parts = self.task_list(whom);
                let answer = self.message(from, tag::DM_TASKACK, wait, parts);
                self.send(now, answer);
            }
            tag::DM_TASKACK => {
                let list = gather(&message.parts);
                if let Some(wait) = self.waited(wait, |kind| *kind == WaitKind::Tasks) {
                    self.tasks_told(now, wait, list);
                }
            }
            tag::DM_PSTAT => {
                let whom = get.tid()?;
                let there = whom == self.me || self.tasks.contains_key(&whom);
                let value = if there { 0 } else { PvmError::NoTask.code() };
                let answer = self.message(from, tag::DM_PSTATACK, wait, Put::new().int(value).parts());
                self.send(now, answer);
            }
            tag::DM_PSTATACK => {
                let value = get.int()?;
                if let Some(wait) = self.waited(wait, |kind| *kind == WaitKind::Status) {
                    self.answer_int(now, wait.answer, value);
                }
            }
            tag::DM_MCA => {
                let group = get.tid()?;
                let to = get.list(Get::tid)?;
                if let Some(host) = self.hosts.get_mut(&host) {
                    host.multicasts.push(Multicast { group, to });
                }
            }
            tag::DM_NOTIFY => {
                let (what, whom) = (get.int()?, get.tid()?);
                if what != TASK_EXIT {
                    return Err(PvmError::BadMsg);
                }
                let word = self.message(from, tag::DM_NOTIFYACK, wait, Put::new().tid(whom).parts());
                if self.tasks.contains_key(&whom) {
                    let wait = Wait { kind: WaitKind::TaskEnd, on: whom, whose: from, answer: Some(word) };
                    self.wait(wait);
                } else {
                    self.send(now, word);
                }
            }
            tag::DM_NOTIFYACK => self.task_end_told(now, wait),
            tag::DM_DB => self.database(now, message, &mut get)?,
            tag::DM_DBACK => self.pass_on(now, message, &WaitKind::Database),
            tag::DM_DELHOST => self.remove_hosts(now, message, &get.list(Get::text)?),
            tag::DM_DELHOSTACK => self.pass_on(now, message, &WaitKind::Remove),
            tag::DM_HTDEL if host == self.config.master => {
                get.int()?;
                let mut numbers = Vec::new();
                while let Ok(tid) = get.tid() {
                    numbers.push(tid.host());
                }
                numbers.into_iter().for_each(|number| self.host_lost(now, number));
            }
            tag::DM_HALT => self.halt_all(),
            _ => return Err(PvmError::BadMsg),
        }
        Ok(())
    }

    /// An answer for a task, as it came.
    fn pass_on(&mut self, now: SimTime, message: &Message<B>, kind: &WaitKind) {
        if let Some(Wait { answer: Some(mut answer), .. }) = self.waited(message.head.wait, |is| is == kind) {
            answer.parts.clone_from(&message.parts);
            self.send(now, answer);
        }
    }

    /// The tasks of this host: all, or one.
    fn task_list(&self, whom: Tid) -> Vec<B> {
        let mut put = Put::new();
        for (&tid, task) in self.tasks.iter().filter(|&(&tid, _)| whom.local() == 0 || whom == tid) {
            let connected = if task.stream.is_some() { CONNECTED } else { 0 };
            put = put.tid(tid).int(task.parent).word(self.config.host << 18).int(connected);
            put = put.text(&task.name).int(task.pid);
        }
        put.parts()
    }

    /// Tasks of one host, or none if it is lost, for the answer that waits for all.
    pub(super) fn tasks_told(&mut self, now: SimTime, wait: Wait<B>, list: Option<Vec<u8>>) {
        let Some(mut answer) = wait.answer else { return };
        if let Some(list) = list.filter(|list| !list.is_empty()) {
            answer.parts.push(B::from_octets(list));
        }
        let same = |other: &&mut Wait<B>| {
            other.kind == WaitKind::Tasks
                && other.whose == wait.whose
                && other.answer.as_ref().is_some_and(|other| other.head.wait == answer.head.wait)
        };
        let others = self.waits.values_mut().filter(same);
        let mut last = true;
        for other in others {
            (other.answer, last) = (Some(answer.clone()), false);
        }
        if last {
            self.send(now, answer);
        }
    }

    /// The mailbox, which the master keeps.
    fn database(&mut self, now: SimTime, message: &Message<B>, get: &mut Get) -> Result<(), PvmError> {
        let (operation, lookup) = Lookup::read(get)?;
        let mut answer = self.message(message.from, tag::DM_DBACK, message.head.wait, Vec::new());
        match operation {
            DB_PUT => {
                let (owner, name) = (lookup.owner, lookup.name.clone());
                let put = kept(get.rest()).and_then(|message| self.mailbox.put(lookup, message));
                if put.is_ok() {
                    self.entry_is_there(now, &name);
                    self.tidy_at_end(now, owner);
                }
                let value = put.unwrap_or_else(PvmError::code);
                answer.parts = Put::new().int(value).parts();
            }
            DB_DELETE => {
                let value = self.mailbox.delete(&lookup).unwrap_or_else(PvmError::code);
                answer.parts = Put::new().int(value).parts();
            }
            _ => match self.mailbox.get(&lookup) {
                Ok((index, octets)) => answer.parts = Put::new().int(index).octets(&octets).parts(),
                Err(PvmError::NotFound) if lookup.flags & WAIT != 0 => {
                    let (on, kind) = (lookup.owner, WaitKind::Entry(lookup));
                    self.wait(Wait { kind, on, whose: on, answer: Some(answer) });
                    return Ok(());
                }
                Err(error) => answer.parts = Put::new().int(error.code()).parts(),
            },
        }
        self.send(now, answer);
        Ok(())
    }

    /// Whoever waits for an entry of this name may have it now.
    fn entry_is_there(&mut self, now: SimTime, name: &str) {
        let numbers: Vec<u32> = self.waits.keys().copied().collect();
        for number in numbers {
            let Some(WaitKind::Entry(lookup)) = self.waits.get(&number).map(|wait| &wait.kind) else {
                continue;
            };
            if lookup.name != name {
                continue;
            }
            let body = match self.mailbox.get(&lookup.clone()) {
                Ok((index, octets)) => Put::new().int(index).octets(&octets),
                Err(PvmError::NotFound) => continue,
                Err(error) => Put::new().int(error.code()),
            };
            if let Some(Wait { answer: Some(mut answer), .. }) = self.waits.remove(&number) {
                answer.parts = body.parts();
                self.send(now, answer);
            }
        }
    }

    /// Hears of the end of a task with an entry, once.
    fn tidy_at_end(&mut self, now: SimTime, owner: Tid) {
        let me = self.me;
        let known = |wait: &Wait<B>| wait.kind == WaitKind::TaskEnd && wait.on == owner && wait.whose == me;
        if self.waits.values().any(known) {
            return;
        }
        let wait = Wait { kind: WaitKind::TaskEnd, on: owner, whose: self.me, answer: None };
        let number = self.wait(wait);
        let host = owner.host();
        if host != self.config.host && self.hosts.contains_key(&host) {
            let parts = Put::new().int(TASK_EXIT).tid(owner).parts();
            self.tell(now, host, tag::DM_NOTIFY, number, parts);
        }
    }

    /// Removes hosts by name, as the master.
    fn remove_hosts(&mut self, now: SimTime, message: &Message<B>, names: &[alloc::string::String]) {
        let mut put = Put::new().int(names.len() as i32);
        let mut gone = Vec::new();
        for name in names {
            let found =
                self.hosts.values().find(|host| host.entry.name == *name).map(|host| host.entry.number);
            let value = match found {
                None => PvmError::NoHost.code(),
                Some(number) if number == self.config.host => PvmError::BadParam.code(),
                Some(number) if gone.contains(&number) => PvmError::DupHost.code(),
                Some(number) => {
                    gone.push(number);
                    0
                }
            };
            put = put.int(value);
        }
        for &number in &gone {
            if let Some(peer) = self.hosts.get_mut(&number).and_then(|host| host.peer.as_mut()) {
                peer.dismiss(now);
            }
            self.drain_peer(now, number);
        }
        self.tell_of_losses(now, &gone);
        let answer = self.message(message.from, tag::DM_DELHOSTACK, message.head.wait, put.parts());
        self.send(now, answer);
    }

    /// Tells all others that hosts have left.
    fn tell_of_losses(&mut self, now: SimTime, gone: &[u32]) {
        if gone.is_empty() {
            return;
        }
        let others = |number: &u32| *number != self.config.host && !gone.contains(number);
        let others: Vec<u32> = self.hosts.keys().copied().filter(others).collect();
        let mut put = Put::new().int(SERIAL);
        for number in gone {
            put = put.word(number << 18);
        }
        let parts: Vec<B> = put.parts();
        for number in others {
            self.tell(now, number, tag::DM_HTDEL, 0, parts.clone());
        }
    }

    /// The same of one.
    pub(super) fn tell_all_of_loss(&mut self, now: SimTime, number: u32) {
        self.tell_of_losses(now, &[number]);
    }
}

/// A message as the mailbox keeps it: a daemon's messages begin with an empty piece.
fn kept(mut message: Vec<u8>) -> Result<Vec<u8>, PvmError> {
    if message.len() < HEAD_OCTETS {
        return Err(PvmError::BadMsg);
    }
    message.splice(HEAD_OCTETS..HEAD_OCTETS, [0; 4]);
    Ok(message)
}

/// Octets in front of the pieces of a packed message: eight words.
const HEAD_OCTETS: usize = 32;
/// Number of the table of hosts, which never grows here.
const SERIAL: i32 = 1;
/// A task is connected, in the flags of a list of tasks (`TF_CONN`).
const CONNECTED: i32 = 2;
