//! What a daemon waits for, and for whom.

use alloc::vec::Vec;

use wiretwin_units::SimTime;

use super::mailbox::Lookup;
use super::{Body, Daemon};
use crate::pvm::system::Put;
use crate::pvm::{Message, PvmError, Tid};

/// What is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WaitKind {
    /// The start of tasks: the plan's number.
    Spawn(u32),
    /// A list of tasks.
    Tasks,
    /// Whether a task or host is there.
    Status,
    /// What hosts were removed.
    Remove,
    /// The mailbox.
    Database,
    /// An entry that is not there yet.
    Entry(Lookup),
    /// The end of a task.
    TaskEnd,
    /// The end of a host.
    HostEnd,
}

/// Something that is waited for.
#[derive(Clone, Debug)]
pub(super) struct Wait<B> {
    pub(super) kind: WaitKind,
    /// The task or host that it hangs on.
    pub(super) on: Tid,
    /// Who waits: a task here, or a daemon.
    pub(super) whose: Tid,
    /// What is sent when it is over.
    pub(super) answer: Option<Message<B>>,
}

impl<B: Body> Daemon<B> {
    /// Waits; returns the number to be named in the answer.
    pub(super) fn wait(&mut self, wait: Wait<B>) -> u32 {
        let mask = (1 << 18) - 1;
        let number = loop {
            let number = self.config.host << 18 | self.next_wait;
            self.next_wait = (self.next_wait & mask) % mask + 1;
            if !self.waits.contains_key(&number) {
                break number;
            }
        };
        self.waits.insert(number, wait);
        number
    }

    /// Ends a wait of this kind: the one that an answer names.
    pub(super) fn waited(&mut self, number: u32, is: impl Fn(&WaitKind) -> bool) -> Option<Wait<B>> {
        if self.waits.get(&number).is_none_or(|wait| !is(&wait.kind)) {
            return None;
        }
        self.waits.remove(&number)
    }

    /// Sends what was promised, with a number in it.
    pub(super) fn answer_int(&mut self, now: SimTime, answer: Option<Message<B>>, value: i32) {
        if let Some(mut answer) = answer {
            answer.parts = Put::new().int(value).parts();
            self.send(now, answer);
        }
    }

    /// A task here has ended: its waits are nobody's, and whoever waits for its end hears so.
    pub(super) fn waits_of_task(&mut self, now: SimTime, tid: Tid) {
        let numbers: Vec<u32> = self.waits.keys().copied().collect();
        for number in numbers {
            let Some(wait) = self.waits.get(&number) else { continue };
            if wait.on == tid && wait.kind == WaitKind::TaskEnd {
                self.task_end_told(now, number);
            } else if wait.whose == tid {
                // What another daemon will answer stays, for the answer to find; it goes to nobody.
                match wait.kind {
                    WaitKind::TaskEnd | WaitKind::HostEnd | WaitKind::Entry(_) => {
                        drop(self.waits.remove(&number))
                    }
                    _ => {
                        if let Some(wait) = self.waits.get_mut(&number) {
                            wait.answer = None;
                        }
                    }
                }
            }
        }
    }

    /// The end of a task that somebody waits for.
    pub(super) fn task_end_told(&mut self, now: SimTime, number: u32) {
        let Some(wait) = self.waited(number, |kind| *kind == WaitKind::TaskEnd) else { return };
        match wait.answer {
            Some(answer) => self.send(now, answer),
            // The mailbox waited.
            None => self.mailbox.tidy(wait.on),
        }
    }

    /// A host is lost.
    pub(super) fn waits_of_host(&mut self, now: SimTime, host: u32) {
        let numbers: Vec<u32> = self.waits.keys().copied().collect();
        for number in numbers {
            if self.waits.get(&number).is_none_or(|wait| wait.on.host() != host) {
                continue;
            }
            let Some(wait) = self.waits.remove(&number) else { continue };
            match wait.kind {
                WaitKind::Spawn(plan) => self.host_lost_in_plan(now, plan, host),
                WaitKind::Tasks => self.tasks_told(now, wait, None),
                WaitKind::Status => self.answer_int(now, wait.answer, PvmError::HostFail.code()),
                WaitKind::Remove | WaitKind::Database => {
                    self.answer_int(now, wait.answer, PvmError::DSysErr.code());
                }
                WaitKind::TaskEnd | WaitKind::HostEnd => {
                    if let Some(answer) = wait.answer {
                        self.send(now, answer);
                    } else {
                        self.mailbox.tidy(wait.on);
                    }
                }
                WaitKind::Entry(_) => {}
            }
        }
    }
}
