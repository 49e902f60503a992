//! Starting tasks: a plan at the daemon of whoever asks, and starts at the hosts.

use alloc::string::String;
use alloc::vec::Vec;

use wiretwin_units::SimTime;

use super::wait::{Wait, WaitKind};
use super::{Body, Daemon, Demand, SpawnId, Task};
use crate::pvm::system::{Get, Put, tag};
use crate::pvm::{Message, PvmError, Tid};

/// On the host that is named (`PvmTaskHost`).
const ON_HOST: i32 = 1;
/// On hosts of the kind that is named (`PvmTaskArch`).
const ON_ARCHITECTURE: i32 = 2;
/// On all others instead (`PvmHostCompl`).
const ON_OTHERS: i32 = 32;

/// What is being started, and where.
#[derive(Debug)]
pub(super) enum Plan<B> {
    /// Whoever asked for it is served here.
    Wanted {
        order: Order,
        /// Hosts that may be used.
        hosts: Vec<u32>,
        /// For each task: its number, an error, or the host that it is to be started on; 0 for none yet.
        slots: Vec<Slot>,
        answer: Message<B>,
    },
    /// Another daemon has asked for it.
    Ordered {
        /// For each task: its number or an error, when it is known.
        results: Vec<Option<i32>>,
        starts: Vec<SpawnId>,
        answer: Message<B>,
    },
}

/// What became of one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    Open,
    At(u32),
    Done(i32),
}

/// What to start.
#[derive(Clone, Debug)]
pub(super) struct Order {
    parent: Tid,
    file: String,
    flags: i32,
    arguments: Vec<String>,
    /// Output and trace.
    sinks: [i32; 6],
    environment: Vec<String>,
}

impl Order {
    fn read(get: &mut Get, parent: Tid, file: String, flags: i32) -> Result<Self, PvmError> {
        let arguments = get.list(Get::text)?;
        let mut sinks = [0; 6];
        for sink in &mut sinks {
            *sink = get.int()?;
        }
        let environment = get.list(Get::text)?;
        Ok(Self { parent, file, flags, arguments, sinks, environment })
    }

    /// The request to a daemon: so many of them, from this place of so many on.
    fn parts<B: Body>(&self, count: i32, place: i32, total: i32) -> Vec<B> {
        let mut put = Put::new().tid(self.parent).text(&self.file).int(self.flags).int(count);
        put = put.int(self.arguments.len() as i32);
        for argument in &self.arguments {
            put = put.text(argument);
        }
        put = put.ints(&self.sinks).int(self.environment.len() as i32);
        for variable in &self.environment {
            put = put.text(variable);
        }
        put.int(place).int(total).parts()
    }
}

impl<B: Body> Daemon<B> {
    /// A task wants others started.
    pub(super) fn spawn(
        &mut self,
        now: SimTime,
        tid: Tid,
        message: &Message<B>,
        get: &mut Get,
    ) -> Result<(), PvmError> {
        let (file, flags, place, count) = (get.text()?, get.int()?, get.text()?, get.int()?);
        let order = Order::read(get, tid, file, flags)?;
        if !(1..=MOST_AT_ONCE).contains(&count) {
            return Err(PvmError::BadParam);
        }
        // What follows a colon is a directory.
        let place = place.split(':').next().unwrap_or_default();
        let chosen = |number: &u32| {
            let entry = &self.hosts[number].entry;
            let fits = match flags & (ON_HOST | ON_ARCHITECTURE) {
                0 => true,
                kind if kind & ON_HOST != 0 => entry.name == place,
                _ => entry.architecture == place,
            };
            fits != (flags & ON_OTHERS != 0)
        };
        let hosts: Vec<u32> = self.hosts.keys().copied().filter(chosen).collect();
        let (slots, answer) = (alloc::vec![Slot::Open; count as usize], self.reply(message));
        let number = self.next_spawn;
        self.next_spawn = self.next_spawn.wrapping_add(1);
        self.plans.insert(number, Plan::Wanted { order, hosts, slots, answer });
        self.carry_out(now, number);
        Ok(())
    }

    /// Gives the tasks that have no host one, or answers where there are none.
    fn carry_out(&mut self, now: SimTime, number: u32) {
        let Some(Plan::Wanted { order, hosts, slots, answer }) = self.plans.get_mut(&number) else { return };
        if hosts.is_empty() {
            for slot in slots.iter_mut().filter(|slot| **slot == Slot::Open) {
                *slot = Slot::Done(PvmError::NoHost.code());
            }
        }
        let open: Vec<usize> = (0..slots.len()).filter(|&at| slots[at] == Slot::Open).collect();
        if open.is_empty() {
            let waits = slots.iter().any(|slot| matches!(slot, Slot::At(_)));
            if !waits {
                let mut put = Put::new().int(slots.len() as i32);
                for slot in slots.iter() {
                    put = put.int(if let Slot::Done(value) = slot { *value } else { 0 });
                }
                let mut answer = answer.clone();
                answer.parts = put.parts();
                self.plans.remove(&number);
                self.send(now, answer);
            }
            return;
        }
        // In turn from the host after the last one used, next to each other where a host gets several.
        let (wanted, used) = (open.len(), hosts.len().min(open.len()));
        let mut at = hosts.iter().position(|&host| host >= self.next_host).unwrap_or(0);
        let (mut orders, mut first, mut share) = (Vec::new(), 0, 0);
        for (index, &slot) in open.iter().enumerate() {
            slots[slot] = Slot::At(hosts[at]);
            share += used;
            if share >= wanted {
                share -= wanted;
                let count = index + 1 - first;
                orders.push((
                    hosts[at],
                    order.parts(count as i32, slot as i32 + 1 - count as i32, wanted as i32),
                ));
                first = index + 1;
                self.next_host = hosts[at] + 1;
                at = (at + 1) % hosts.len();
            }
        }
        let whose = answer.to;
        let wait = |&(host, _): &(u32, _)| Wait {
            kind: WaitKind::Spawn(number),
            on: Tid(host << 18),
            whose,
            answer: None,
        };
        let waits: Vec<Wait<B>> = orders.iter().map(wait).collect();
        let numbers: Vec<u32> = waits.into_iter().map(|wait| self.wait(wait)).collect();
        for ((host, parts), number) in orders.into_iter().zip(numbers) {
            self.tell(now, host, tag::DM_EXEC, number, parts);
        }
    }

    /// A daemon has started what it was asked to.
    pub(super) fn executed(&mut self, now: SimTime, wait: u32, host: u32, tids: &[i32]) {
        let Some(wait) = self.waited(wait, |kind| matches!(kind, WaitKind::Spawn(_))) else { return };
        let WaitKind::Spawn(number) = wait.kind else { return };
        if let Some(Plan::Wanted { hosts, slots, .. }) = self.plans.get_mut(&number) {
            let mine = slots.iter_mut().filter(|slot| **slot == Slot::At(host));
            // Fewer answers than tasks: those that are missing were not started.
            let told = tids.iter().copied().chain(core::iter::repeat(PvmError::DSysErr.code()));
            mine.zip(told).for_each(|(slot, value)| *slot = Slot::Done(value));
            if tids.iter().any(|&tid| tid < 0) {
                hosts.retain(|&other| other != host);
            }
        }
        self.carry_out(now, number);
    }

    /// A host is lost that was asked to start tasks: others do it, unless a place was named.
    pub(super) fn host_lost_in_plan(&mut self, now: SimTime, number: u32, host: u32) {
        if let Some(Plan::Wanted { order, hosts, slots, .. }) = self.plans.get_mut(&number) {
            hosts.retain(|&other| other != host);
            let again = order.flags & (ON_HOST | ON_ARCHITECTURE) == 0;
            for slot in slots.iter_mut().filter(|slot| **slot == Slot::At(host)) {
                *slot = if again { Slot::Open } else { Slot::Done(PvmError::HostFail.code()) };
            }
        }
        self.carry_out(now, number);
    }

    /// Another daemon wants tasks started here.
    pub(super) fn execute(
        &mut self,
        now: SimTime,
        message: &Message<B>,
        get: &mut Get,
    ) -> Result<(), PvmError> {
        let (parent, file, flags, count) = (get.tid()?, get.text()?, get.int()?, get.int()?);
        let order = Order::read(get, parent, file, flags)?;
        if !(1..=MOST_AT_ONCE).contains(&count) {
            return Err(PvmError::BadParam);
        }
        let mut answer = self.message(message.from, tag::DM_EXECACK, message.head.wait, Vec::new());
        answer.head.context = message.head.context;
        let mut starts = Vec::new();
        let mut results = Vec::new();
        let mut demands = Vec::new();
        for _ in 0..count {
            let id = SpawnId(self.next_spawn);
            self.next_spawn = self.next_spawn.wrapping_add(1);
            starts.push(id);
            let Some(tid) = self.new_tid() else {
                results.push(Some(PvmError::OutOfRes.code()));
                continue;
            };
            results.push(None);
            let (name, parent) = (order.file.clone(), order.parent.0 as i32);
            let (early, spawn) = (Vec::new(), Some(id));
            let task = Task { parent, stream: None, name, pid: NO_PROCESS, spawn, early, multicast: None };
            self.tasks.insert(tid, task);
            let (file, arguments) = (order.file.clone(), order.arguments.clone());
            demands.push(Demand::Spawn { id, tid, file, arguments });
        }
        let number = self.next_spawn;
        self.next_spawn = self.next_spawn.wrapping_add(1);
        self.plans.insert(number, Plan::Ordered { results, starts, answer });
        demands.into_iter().for_each(|demand| self.demand(demand));
        self.ordered_is_done(now, number);
        Ok(())
    }

    /// What came of one start.
    pub(super) fn spawned(&mut self, now: SimTime, id: SpawnId, result: Result<i32, PvmError>) {
        let Some((&tid, _)) = self.tasks.iter().find(|(_, task)| task.spawn == Some(id)) else { return };
        let value = match result {
            Ok(pid) => {
                if let Some(task) = self.tasks.get_mut(&tid) {
                    (task.pid, task.spawn) = (pid, None);
                }
                tid.0 as i32
            }
            Err(error) => {
                self.tasks.remove(&tid);
                error.code()
            }
        };
        let mut of_plan = None;
        for (&number, plan) in &mut self.plans {
            if let Plan::Ordered { results, starts, .. } = plan
                && let Some(at) = starts.iter().position(|&start| start == id)
            {
                results[at] = Some(value);
                of_plan = Some(number);
            }
        }
        if let Some(number) = of_plan {
            self.ordered_is_done(now, number);
        }
    }

    fn ordered_is_done(&mut self, now: SimTime, number: u32) {
        let Some(Plan::Ordered { results, .. }) = self.plans.get(&number) else { return };
        let Some(values) = results.iter().copied().collect::<Option<Vec<i32>>>() else { return };
        let Some(Plan::Ordered { mut answer, .. }) = self.plans.remove(&number) else { return };
        answer.parts = Put::new().int(values.len() as i32).ints(&values).parts();
        self.send(now, answer);
    }
}

/// Tasks that one request may start.
const MOST_AT_ONCE: i32 = 4096;
/// The number of a process that is not there yet.
const NO_PROCESS: i32 = -1;
