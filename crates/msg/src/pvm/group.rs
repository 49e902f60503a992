//! The group server: one in a virtual machine, itself a task.
//!
//! `pvmgs_core.c`, `pvmgs_func.c` of PVM 3.4. Left out: groups that do not change (`pvm_freezegroup`) and
//! what collective calls ask of the server (`pvm_reduce`, `pvm_gather`, `pvm_scatter`). As in PVM, a barrier
//! that a member leaves or ends in is not told so.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;

use wiretwin_proto::Output;
use wiretwin_units::SimTime;

use super::pack::{Packed, Signature};
use super::system::{CONTEXT_GROUPS, Get, Put, tag};
use super::task::{Event, Task, TaskOutput};
use super::{Body, Message, PvmError, Tid};

pub use super::task::SERVER;

/// A group.
#[derive(Debug, Default)]
struct Group {
    /// By instance.
    members: Vec<Option<Tid>>,
    barrier: Option<Barrier>,
}

#[derive(Debug)]
struct Barrier {
    count: i32,
    here: Vec<Tid>,
}

impl Group {
    fn instance(&self, tid: Tid) -> Option<usize> {
        self.members.iter().position(|&member| member == Some(tid))
    }

    fn size(&self) -> usize {
        self.members.iter().flatten().count()
    }
}

/// What the server does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Sends these numbers to this task.
    Tell(Tid, Vec<i32>),
    /// Sends them to all of these at once.
    TellAll(Vec<Tid>, Vec<i32>),
    /// Wants word of this task's end.
    Watch(Tid),
}

/// The groups.
#[derive(Debug, Default)]
pub struct Groups {
    groups: BTreeMap<String, Group>,
}

impl Groups {
    /// A request of a task: its tag, its group and what else it says. `None` for a tag that is no request.
    pub fn handle(&mut self, from: Tid, tag: u32, name: &str, argument: i32) -> Option<Vec<Act>> {
        let tell = |result: Result<i32, PvmError>| {
            let value = result.unwrap_or_else(PvmError::code);
            let mut numbers = alloc::vec![value];
            // What is asked about a group that may not change comes with how that is.
            if matches!(tag, tag::GS_GETINST | tag::GS_GETTID | tag::GS_GSIZE) {
                numbers.push(CHANGES);
            }
            Act::Tell(from, numbers)
        };
        if name.is_empty() {
            return Some(alloc::vec![tell(Err(PvmError::NullGroup))]);
        }
        Some(match tag {
            tag::GS_JOIN => alloc::vec![Act::Watch(from), tell(self.join(from, name))],
            tag::GS_LEAVE => alloc::vec![tell(self.leave(from, name).map(|()| 0))],
            tag::GS_BARRIER => match self.barrier(from, name, argument) {
                Err(error) => alloc::vec![tell(Err(error))],
                Ok(None) => Vec::new(),
                Ok(Some(Barrier { count, here })) => alloc::vec![Act::TellAll(here, alloc::vec![count])],
            },
            tag::GS_BCAST => match self.groups.get(name) {
                None => alloc::vec![tell(Err(PvmError::NoGroup))],
                Some(group) => {
                    let mut numbers = alloc::vec![group.size() as i32];
                    numbers.extend(group.members.iter().flatten().map(|tid| tid.0 as i32));
                    numbers.push(CHANGES);
                    alloc::vec![Act::Tell(from, numbers)]
                }
            },
            tag::GS_GETINST => {
                let instance =
                    |group: &Group| group.instance(Tid(argument as u32)).ok_or(PvmError::NotInGroup);
                alloc::vec![tell(self.group(name).and_then(instance).map(|instance| instance as i32))]
            }
            tag::GS_GETTID => {
                let tid = |group: &Group| {
                    let at = usize::try_from(argument).ok();
                    at.and_then(|at| *group.members.get(at)?).ok_or(PvmError::NoInst)
                };
                alloc::vec![tell(self.group(name).and_then(tid).map(|tid| tid.0 as i32))]
            }
            tag::GS_GSIZE => alloc::vec![tell(self.group(name).map(|group| group.size() as i32))],
            _ => return None,
        })
    }

    /// A task has ended: it is in no group.
    pub fn handle_end(&mut self, tid: Tid) {
        let names: Vec<String> = self.groups.keys().cloned().collect();
        for name in names {
            // It may not be in this one.
            let _outside = self.leave(tid, &name);
        }
    }

    fn group(&self, name: &str) -> Result<&Group, PvmError> {
        self.groups.get(name).ok_or(PvmError::NoGroup)
    }

    fn join(&mut self, tid: Tid, name: &str) -> Result<i32, PvmError> {
        let group = self.groups.entry(name.into()).or_default();
        if group.instance(tid).is_some() {
            return Err(PvmError::DupGroup);
        }
        let free = group.members.iter().position(Option::is_none);
        let at = free.unwrap_or_else(|| {
            group.members.push(None);
            group.members.len() - 1
        });
        group.members[at] = Some(tid);
        Ok(at as i32)
    }

    fn leave(&mut self, tid: Tid, name: &str) -> Result<(), PvmError> {
        let group = self.groups.get_mut(name).ok_or(PvmError::NoGroup)?;
        let at = group.instance(tid).ok_or(PvmError::NotInGroup)?;
        group.members[at] = None;
        if group.size() == 0 {
            self.groups.remove(name);
        }
        Ok(())
    }

    fn barrier(&mut self, tid: Tid, name: &str, count: i32) -> Result<Option<Barrier>, PvmError> {
        let group = self.groups.get_mut(name).ok_or(PvmError::NoGroup)?;
        group.instance(tid).ok_or(PvmError::NotInGroup)?;
        let count = if count == -1 { group.size() as i32 } else { count };
        let barrier = group.barrier.get_or_insert_with(|| Barrier { count, here: Vec::new() });
        if barrier.count != count {
            return Err(PvmError::Mismatch);
        }
        barrier.here.push(tid);
        match (barrier.here.len() as i32).cmp(&count) {
            core::cmp::Ordering::Less => Ok(None),
            core::cmp::Ordering::Equal => Ok(group.barrier.take()),
            // A count of 0. PVM keeps such a barrier for ever; here the next one is a new one.
            core::cmp::Ordering::Greater => {
                group.barrier = None;
                Err(PvmError::Mismatch)
            }
        }
    }
}

/// The task that the server is: it enrols, puts its number into the mailbox and serves.
#[derive(Debug)]
pub struct Server<B> {
    /// The library that it calls; whoever drives a task drives this one.
    pub task: Task<B>,
    groups: Groups,
    outputs: VecDeque<TaskOutput<B>>,
}

impl<B: Body> Server<B> {
    /// A server that has not begun.
    pub fn new(task: Task<B>) -> Self {
        Self { task, groups: Groups::default(), outputs: VecDeque::new() }
    }

    /// What is next, as of [`Task::poll_output`]; what comes for the server is served on the way.
    pub fn poll_output(&mut self, now: SimTime) -> TaskOutput<B> {
        if let Some(output) = self.outputs.pop_front() {
            return output;
        }
        let output = self.task.poll_output();
        match output {
            Output::Event(Event::Enrolled(tid)) => {
                let packed = Packed { encoding: Signature::XDR, parts: Put::new().tid(tid).parts() };
                // The name is one, and the task has just enrolled.
                let _call = self.task.putinfo(now, SERVER, &packed, 0);
            }
            Output::Event(Event::Arrived) => self.serve(now),
            _ => {}
        }
        output
    }

    fn serve(&mut self, now: SimTime) {
        while let Some(message) = self.task.take_of(CONTEXT_GROUPS) {
            if self.serve_one(now, &message).is_err() {
                self.outputs.push_back(Output::Event(Event::Garbage(message.from)));
            }
        }
    }

    fn serve_one(&mut self, now: SimTime, message: &Message<B>) -> Result<(), PvmError> {
        let (from, tag) = (message.from, message.head.tag);
        let mut get = Get::new(message)?;
        if tag == tag::GS_DEADTID {
            self.groups.handle_end(get.tid()?);
            return Ok(());
        }
        let name = get.text()?;
        let with_more = matches!(tag, tag::GS_BARRIER | tag::GS_GETINST | tag::GS_GETTID);
        let argument = if with_more { get.int()? } else { 0 };
        for act in self.groups.handle(from, tag, &name, argument).ok_or(PvmError::BadMsg)? {
            match act {
                Act::Watch(tid) => self.task.watch(tid),
                Act::Tell(to, numbers) => {
                    self.task.tell_in_groups(now, &[to], tag, Put::new().ints(&numbers).parts(), false);
                }
                Act::TellAll(to, numbers) => {
                    self.task.tell_in_groups(now, &to, tag, Put::new().ints(&numbers).parts(), true);
                }
            }
        }
        Ok(())
    }
}

/// A group's members may change (`DYNAMIC`).
const CHANGES: i32 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    fn one(groups: &mut Groups, from: u32, tag: u32, name: &str, argument: i32) -> i32 {
        let acts = groups.handle(Tid(from), tag, name, argument).expect("a request");
        let told = acts.iter().find_map(|act| match act {
            Act::Tell(to, numbers) if *to == Tid(from) => Some(numbers[0]),
            _ => None,
        });
        told.expect("an answer to whoever asked")
    }

    #[test]
    fn the_lowest_free_instance_is_given_and_an_empty_group_is_none() {
        let mut groups = Groups::default();
        for (tid, instance) in [(5, 0), (6, 1), (7, 2)] {
            assert_eq!(one(&mut groups, tid, tag::GS_JOIN, "g", 0), instance);
        }
        assert_eq!(one(&mut groups, 6, tag::GS_JOIN, "g", 0), PvmError::DupGroup.code());
        assert_eq!(one(&mut groups, 6, tag::GS_LEAVE, "g", 0), 0);
        assert_eq!(one(&mut groups, 6, tag::GS_LEAVE, "g", 0), PvmError::NotInGroup.code());
        assert_eq!(one(&mut groups, 9, tag::GS_GETTID, "g", 1), PvmError::NoInst.code());
        assert_eq!(one(&mut groups, 9, tag::GS_GETTID, "g", -1), PvmError::NoInst.code());
        assert_eq!(one(&mut groups, 9, tag::GS_GETTID, "g", 2), 7);
        assert_eq!(one(&mut groups, 9, tag::GS_GETINST, "g", 7), 2);
        assert_eq!(one(&mut groups, 9, tag::GS_GSIZE, "g", 0), 2);
        assert_eq!(one(&mut groups, 8, tag::GS_JOIN, "g", 0), 1);
        for tid in [5, 7, 8] {
            groups.handle_end(Tid(tid));
        }
        for request in [tag::GS_GSIZE, tag::GS_LEAVE, tag::GS_BARRIER, tag::GS_BCAST, tag::GS_GETINST] {
            assert_eq!(one(&mut groups, 9, request, "g", 0), PvmError::NoGroup.code());
            assert_eq!(one(&mut groups, 9, request, "", 0), PvmError::NullGroup.code());
        }
        assert_eq!(groups.handle(Tid(1), 77, "g", 0), None);
    }

    #[test]
    fn a_barrier_lets_all_go_when_the_last_has_come() {
        let mut groups = Groups::default();
        for tid in [5, 6, 7] {
            one(&mut groups, tid, tag::GS_JOIN, "g", 0);
        }
        let mut barrier = |from: u32, count| groups.handle(Tid(from), tag::GS_BARRIER, "g", count);
        for _ in 0..2 {
            assert_eq!(barrier(5, -1), Some(Vec::new()));
            assert_eq!(barrier(6, 3), Some(Vec::new()), "as many as there are");
            assert_eq!(
                barrier(9, 3),
                Some(alloc::vec![Act::Tell(Tid(9), alloc::vec![PvmError::NotInGroup.code()])])
            );
            assert_eq!(
                barrier(7, 2),
                Some(alloc::vec![Act::Tell(Tid(7), alloc::vec![PvmError::Mismatch.code()])])
            );
            let all = Act::TellAll(alloc::vec![Tid(5), Tid(6), Tid(7)], alloc::vec![3]);
            assert_eq!(barrier(7, 3), Some(alloc::vec![all]));
        }
        assert_eq!(
            barrier(5, 0),
            Some(alloc::vec![Act::Tell(Tid(5), alloc::vec![PvmError::Mismatch.code()])])
        );
        assert_eq!(barrier(5, 1), Some(alloc::vec![Act::TellAll(alloc::vec![Tid(5)], alloc::vec![1])]));
    }
}
