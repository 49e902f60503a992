//! Ranks that share the cores of their node.
//!
//! A node with no more ranks than cores gives each its own, and nothing here concerns it, unless messages that come take
//! cores from their ranks ([interrupts]). On another node, all that its ranks do (computing, sending, taking messages in) is served in time slices,
//! round robin, in the order in which ranks became ready. A rank that waits does one of three things.
//! It polls, and keeps its core until the slice ends. Or it sleeps: it gives the core up at once and queues
//! again when something concerns it. Or it yields: it looks for messages by [turns] with the others
//! on its core. Ranks that sleep take whichever core is free; ranks that yield are always ready to run, and a
//! kernel leaves them on the cores that they were dealt to. A rank whose program sleeps wants no core until it wakes.
//!
//! Choice: a rank that becomes ready queues at the tail and preempts nobody; a slice that ends while
//! nobody queues is renewed, but where ranks that wait are owed the core. Switching costs nothing but where ranks
//! yield, where it is part of a turn.
//!
//! [turns]: super::turns
//! [interrupts]: super::interrupts

use std::collections::VecDeque;

use wiretwin_msg::protocol::TransferState;
use wiretwin_record::timeline::Kind;

use super::progress::Step;
use super::state::{NONE, State};
use super::turns::Turns;
use super::{Effect, WaitMode, World};
use crate::model::{Idle, Model};
use crate::queue::{Epoch, Event};

/// The shared cores of a world.
#[derive(Clone, Debug)]
pub(super) struct Cores {
    /// By node, its run queues; `None` where ranks have cores of their own that nothing takes from them.
    nodes: Vec<Option<Queues>>,
    queues: Vec<RunQueue>,
    /// Of all run queues, one after the other.
    cores: Vec<Core>,
    sharers: Vec<Sharer>,
    /// Sharers whose client has had its turn.
    kicked: Vec<u32>,
}

/// The run queues of a node.
#[derive(Clone, Copy, Debug)]
struct Queues {
    first: u32,
    /// Each is of one core with one rank.
    alone: bool,
    /// The ranks that have come.
    ranks: u32,
}

/// Ranks that wait for the same cores: all of a node, or one where its ranks yield.
#[derive(Clone, Debug)]
struct RunQueue {
    /// Its cores: a range of [`Cores::cores`].
    first_core: u32,
    end_core: u32,
    /// Those without a rank.
    free: Vec<u32>,
    /// An [`Event::Slice`] is to come.
    timed: bool,
    /// Sharers that want a core, in order.
    queue: VecDeque<u32>,
    quantum: u64,
    idle: Idle,
    /// A rank offers its core in each wait, even for what has come.
    offers: bool,
    /// Its kernel is fair, and picks anew whose core it is when it is done with what has come.
    picks_anew: bool,
    /// Where its ranks yield: whose turn it is.
    turns: Option<Turns>,
    /// The sharer whose turn is awaited, and when it begins.
    next: Option<(u32, u64)>,
}

#[derive(Clone, Copy, Debug)]
struct Core {
    queue: u32,
    sharer: u32,
    slice_end: u64,
    epoch: u32,
    /// So long the kernel has it.
    kernel_until: u64,
    /// For how long ranks have computed on it, in all.
    computed: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Off,
    Queued,
    On(u32),
}

#[derive(Clone, Debug)]
struct Sharer {
    rank: u32,
    queue: u32,
    /// It has its core for itself.
    alone: bool,
    /// Its number among those that take turns on its core.
    member: u32,
    place: Place,
    /// When it had its core for the first time.
    begun: Option<u64>,
    /// Since when its program sleeps.
    asleep: Option<u64>,
    actions: VecDeque<Action>,
    burn: Option<Burn>,
    kicked: bool,
    /// `World::run_core` is deciding for it.
    deciding: bool,
    /// Has got to the suspending call that its client posted.
    entered: bool,
    /// Has looked for messages in that call.
    looks: bool,
    /// When it last went on from a call in which it had looked.
    looked: u64,
    /// For how long ranks had computed on its core when it was in the library there for the last time.
    warm_at: u64,
}

/// What a rank does with its core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decision {
    /// Keeps it.
    Keeps,
    /// Gives it up until something concerns it.
    Waits,
    /// Offers it to the others, and wants it back.
    Offers,
}

#[derive(Clone, Copy, Debug)]
struct Action {
    cost: u64,
    kind: Kind,
    effect: Effect,
}

/// Work on a core, begun at `started` for the last time.
#[derive(Clone, Copy, Debug)]
struct Burn {
    remaining: u64,
    started: u64,
    kind: Kind,
    then: Then,
    peer: i32,
    bytes: u64,
    /// Of what remains, what the kernel has taken from it.
    interrupted: u64,
}

#[derive(Clone, Copy, Debug)]
enum Then {
    Effect(Effect),
    Message(u32),
}

impl Cores {
    /// With `interrupts`, the kernel takes cores from their ranks.
    pub(super) fn new(model: &Model, ranks_on: &[u32], interrupts: bool) -> Self {
        let mut cores: Vec<Core> = Vec::new();
        let mut queues: Vec<RunQueue> = Vec::new();
        let mut nodes = Vec::new();
        for (node, ranks) in model.nodes.iter().zip(ranks_on) {
            let alone = *ranks <= node.cores;
            if alone && !interrupts {
                nodes.push(None);
                continue;
            }
            nodes.push(Some(Queues { first: queues.len() as u32, alone, ranks: 0 }));
            let yields = node.idle == Idle::Yield && !alone;
            let (count, each) = match (alone, yields) {
                (true, _) => (*ranks, 1),
                (_, true) => (node.cores, 1),
                _ => (1, node.cores),
            };
            for _ in 0..count {
                let (first_core, queue) = (cores.len() as u32, queues.len() as u32);
                let core = Core { queue, sharer: NONE, slice_end: 0, epoch: 0, kernel_until: 0, computed: 0 };
                cores.extend((0..each).map(|_| core));
                queues.push(RunQueue {
                    first_core,
                    end_core: cores.len() as u32,
                    free: (first_core..cores.len() as u32).rev().collect(),
                    timed: false,
                    queue: VecDeque::new(),
                    quantum: node.quantum.as_ps(),
                    idle: if alone { Idle::Sleep } else { node.idle },
                    offers: node.offers && !alone,
                    picks_anew: node.picks_anew && node.fair && yields,
                    turns: yields
                        .then(|| Turns::new(node.turn.as_ps(), node.quantum.as_ps(), node.ticks, node.fair)),
                    next: None,
                });
            }
        }
        Self { nodes, queues, cores, sharers: Vec::new(), kicked: Vec::new() }
    }

    /// The sharer number of a rank of this node, `NONE` if it has a core of its own; where ranks yield, it is
    /// dealt to that core of the node.
    pub(super) fn admit(&mut self, rank: u32, node: u32, core: u32) -> u32 {
        let Some(Queues { first, alone, ranks }) = &mut self.nodes[node as usize] else { return NONE };
        let (number, alone) = (*ranks, *alone);
        *ranks += 1;
        let yields = self.queues[*first as usize].turns.is_some();
        let queue = *first
            + match (alone, yields) {
                (true, _) => number,
                (_, true) => core,
                _ => 0,
            };
        let turns = self.queues[queue as usize].turns.as_mut();
        self.sharers.push(Sharer {
            rank,
            queue,
            alone,
            member: turns.map_or(0, Turns::join),
            place: Place::Off,
            begun: None,
            asleep: None,
            actions: VecDeque::new(),
            burn: None,
            kicked: false,
            deciding: false,
            entered: false,
            looks: false,
            looked: 0,
            warm_at: 0,
        });
        (self.sharers.len() - 1) as u32
    }

    /// When a sharer had its core for the first time: 0 for one that never had it.
    pub(super) fn begun(&self, number: u32) -> u64 {
        self.sharers[number as usize].begun.unwrap_or(0)
    }

    fn queue(&mut self, queue: u32) -> &mut RunQueue {
        &mut self.queues[queue as usize]
    }

    fn queue_of(&mut self, core: u32) -> &mut RunQueue {
        self.queue(self.cores[core as usize].queue)
    }
}

impl World {
    /// Appends work of a rank that shares cores.
    pub(super) fn enqueue(&mut self, rank: u32, cost: u64, kind: Kind, effect: Effect) {
        let sharer = self.ranks[rank as usize].sharer;
        self.cores.sharers[sharer as usize].actions.push_back(Action { cost, kind, effect });
        self.kick(rank);
    }

    /// The rank's client has posted, or been handed an outcome: the next step looks at it.
    pub(super) fn kick(&mut self, rank: u32) {
        let number = self.ranks[rank as usize].sharer;
        let sharer = &mut self.cores.sharers[number as usize];
        sharer.entered = false;
        if !sharer.kicked {
            sharer.kicked = true;
            self.cores.kicked.push(number);
        }
    }

    /// Lets the ranks go on whose clients have posted since the last step.
    pub(super) fn start_kicked(&mut self) {
        if self.now == 0 {
            // Who is first has its core first.
            self.cores.kicked.sort_unstable();
        }
        let mut index = 0;
        while index < self.cores.kicked.len() {
            let number = self.cores.kicked[index];
            index += 1;
            self.cores.sharers[number as usize].kicked = false;
            self.wake_sharer(number);
        }
        // Resumptions on the way have kicked ranks that their clients have yet to see.
        self.cores.kicked.drain(..index);
    }

    /// Something concerns a rank that shares cores.
    pub(super) fn wake(&mut self, rank: u32) {
        self.wake_sharer(self.ranks[rank as usize].sharer);
    }

    fn wake_sharer(&mut self, number: u32) {
        let sharer = &self.cores.sharers[number as usize];
        if sharer.asleep.is_some() {
            return;
        }
        let queue = sharer.queue;
        match sharer.place {
            Place::On(core) => {
                if sharer.burn.is_none() && !sharer.deciding {
                    self.run_core(core);
                }
            }
            Place::Queued => {}
            Place::Off => {
                let shared = self.cores.queue(queue);
                if shared.turns.is_none()
                    && let Some(core) = shared.free.pop()
                {
                    self.assign(core, number);
                    return;
                }
                let core = shared.first_core;
                let waits_for_turn = shared.turns.is_some() && !shared.free.is_empty();
                shared.queue.push_back(number);
                self.cores.sharers[number as usize].place = Place::Queued;
                if waits_for_turn {
                    self.await_turn(core);
                } else {
                    self.schedule_slices(queue);
                }
            }
        }
    }

    fn assign(&mut self, core: u32, number: u32) {
        let now = self.now;
        let queue = self.cores.queue_of(core);
        let slice_end = queue.turns.as_ref().map_or(now + queue.quantum, |turns| turns.slice_end(now, 0));
        let state = &mut self.cores.cores[core as usize];
        state.sharer = number;
        state.slice_end = slice_end;
        state.epoch = state.epoch.wrapping_add(1);
        let sharer = &mut self.cores.sharers[number as usize];
        sharer.place = Place::On(core);
        sharer.begun.get_or_insert(now);
        let rank = sharer.rank;
        if let Some(burn) = &mut sharer.burn {
            burn.started = now;
            let (peer, bytes) = (burn.peer, burn.bytes);
            self.wait_until(rank, now, u64::MAX, u64::MAX, peer, bytes);
        }
        self.run_core(core);
    }

    /// Takes the core from its rank and gives it to the next in the queue.
    fn release(&mut self, core: u32, place: Place) {
        let now = self.now;
        let state = &mut self.cores.cores[core as usize];
        state.epoch = state.epoch.wrapping_add(1);
        let number = std::mem::replace(&mut state.sharer, NONE);
        let sharer = &mut self.cores.sharers[number as usize];
        sharer.place = place;
        let (member, rank) = (sharer.member, &self.ranks[sharer.rank as usize]);
        let asleep = sharer.asleep.is_some();
        let waits = place == Place::Off && !asleep;
        let keeps = waits && rank.state != State::Finished && self.keeping[rank.name as usize];
        let queue = self.cores.queue_of(core);
        if place == Place::Queued {
            queue.queue.push_back(number);
        }
        if let Some(turns) = &mut queue.turns {
            if asleep {
                turns.sleep(member);
            }
            turns.leave(member, now, waits, keeps);
            queue.free.push(core);
            self.await_turn(core);
            return;
        }
        match queue.queue.pop_front() {
            Some(next) => self.assign(core, next),
            None => queue.free.push(core),
        }
    }

    /// On a core whose ranks all wait, sees to it that the first turn of one that is ready begins.
    fn await_turn(&mut self, core: u32) {
        let now = self.now;
        let Cores { queues, sharers, cores, .. } = &mut self.cores;
        let state = &mut cores[core as usize];
        let queue = &mut queues[state.queue as usize];
        let Some(turns) = &mut queue.turns else { return };
        let member = |number: &u32| sharers[*number as usize].member;
        let Some((at, first)) = turns.first(queue.queue.iter().map(member), now) else {
            queue.next = None;
            return;
        };
        let number =
            queue.queue.iter().copied().find(|number| member(number) == first).expect("it wants the core");
        if at > now && queue.next == Some((number, at)) {
            return;
        }
        queue.next = Some((number, at));
        state.epoch = state.epoch.wrapping_add(1);
        if at > now {
            let event = Event::Core { core, epoch: Epoch::of(state.epoch) };
            self.queue.push(at, event);
        } else {
            self.begin_turn(core);
        }
    }

    /// The turn has come that a core whose ranks all wait was waiting for.
    fn begin_turn(&mut self, core: u32) {
        let queue = self.cores.queue_of(core);
        let Some((number, at)) = queue.next.take() else { return };
        queue.queue.retain(|one| *one != number);
        queue.free.pop();
        if let Some(turns) = &mut queue.turns {
            turns.begin(at);
        }
        self.assign(core, number);
    }

    /// Schedules the end of the work on a core, if it works, or that of its slice where its ranks yield.
    fn schedule_core(&mut self, core: u32) {
        let state = &mut self.cores.cores[core as usize];
        if let Some(burn) = self.cores.sharers[state.sharer as usize].burn {
            state.epoch = state.epoch.wrapping_add(1);
            let event = Event::Core { core, epoch: Epoch::of(state.epoch) };
            let end = burn.started + burn.remaining;
            let by_turns = self.cores.queues[state.queue as usize].turns.is_some();
            let last = if by_turns { state.slice_end.max(burn.started) } else { u64::MAX };
            self.queue.push(end.min(last), event);
        }
    }

    /// The slice of a rank that works has ended, on a core whose ranks yield.
    fn end_slice(&mut self, core: u32) {
        let Cores { queues, sharers, cores, .. } = &mut self.cores;
        let state = &mut cores[core as usize];
        let queue = &queues[state.queue as usize];
        let member = sharers[state.sharer as usize].member;
        if queue.turns.as_ref().is_some_and(|turns| turns.goes_on(member, !queue.queue.is_empty())) {
            state.slice_end = self.now + queue.quantum;
            self.schedule_core(core);
        } else {
            self.release(core, Place::Queued);
        }
    }

    /// While ranks queue, sees to it that the next slice to end on their cores is noticed. All
    /// slices are alike, so one that begins later ends later.
    fn schedule_slices(&mut self, queue: u32) {
        let now = self.now;
        let shared = self.cores.queue(queue);
        if shared.timed || shared.queue.is_empty() || shared.turns.is_some() {
            return;
        }
        shared.timed = true;
        let (quantum, range) = (shared.quantum, shared.first_core as usize..shared.end_core as usize);
        let mut first = u64::MAX;
        for core in &mut self.cores.cores[range] {
            if core.slice_end <= now {
                // Nobody queued when it ended.
                core.slice_end += ((now - core.slice_end) / quantum + 1) * quantum;
            }
            first = first.min(core.slice_end);
        }
        self.queue.push(first, Event::Slice { queue });
    }

    /// The kernel takes the core of a rank for so long, a message for which has come from another one, and has done with it
    /// when this says: for `next` where it is at work on another message. Where ranks have any of several cores, it takes
    /// that on which the rank is, or none.
    pub(super) fn take_core(&mut self, source: u32, number: u32, takes: u64, next: u64) -> u64 {
        let now = self.now;
        let Cores { queues, sharers, cores, .. } = &mut self.cores;
        let sharer = &sharers[number as usize];
        let shared = sharers[source as usize].queue == sharer.queue;
        let place = if shared { (sharer.queue as usize + 1) % queues.len() } else { sharer.queue as usize };
        let queue = &queues[place];
        let core = match sharer.place {
            Place::On(core) if !shared => core,
            _ if queue.end_core - queue.first_core > 1 => return now + takes,
            _ => queue.first_core,
        };
        let state = &mut cores[core as usize];
        let takes = if state.kernel_until > now { next } else { takes };
        state.kernel_until = state.kernel_until.max(now).saturating_add(takes);
        let until = state.kernel_until;
        if queue.picks_anew {
            self.queue.push(until, Event::InterruptsEnd { core });
        }
        let of_another = state.sharer != number;
        let burn = sharers.get_mut(state.sharer as usize).and_then(|sharer| sharer.burn.as_mut());
        if let Some(burn) = burn.filter(|burn| of_another || burn.kind == Kind::Compute) {
            burn.remaining += takes;
            burn.interrupted += takes;
            self.schedule_core(core);
        }
        until
    }

    /// If the kernel is done with the messages that have come to a core, it picks anew whose the core is: a rank that has
    /// had more than its share loses it to one that is owed some, whether it works or waits in a call that keeps its core.
    pub(super) fn pick_anew(&mut self, core: u32) {
        let now = self.now;
        let state = self.cores.cores[core as usize];
        if state.kernel_until > now {
            return;
        }
        if state.sharer == NONE {
            if let Some(turns) = &mut self.cores.queue_of(core).turns {
                turns.pick_anew(now);
                self.await_turn(core);
            }
            return;
        }
        self.stop_work(core);
        if self.cores.sharers[state.sharer as usize].burn.is_none() {
            self.run_core(core);
            return;
        }
        let member = self.cores.sharers[state.sharer as usize].member;
        if self.cores.queue_of(core).turns.as_ref().is_some_and(|turns| turns.is_owed(member)) {
            self.schedule_core(core);
        } else {
            self.release(core, Place::Queued);
        }
    }

    /// Decides what the rank on a core does now.
    fn run_core(&mut self, core: u32) {
        let number = self.cores.cores[core as usize].sharer;
        self.cores.sharers[number as usize].deciding = true;
        let decision = self.decide(number);
        self.cores.sharers[number as usize].deciding = false;
        match decision {
            Decision::Keeps => self.schedule_core(core),
            Decision::Waits => self.release(core, Place::Off),
            Decision::Offers => self.release(core, Place::Queued),
        }
    }

    /// Whether a rank that has entered the library is to offer its core before it takes in what has come since it
    /// last looked: its library looks, yields, and only then sees that it need not wait.
    fn offers_first(&self, number: u32) -> bool {
        let sharer = &self.cores.sharers[number as usize];
        let state = &self.ranks[sharer.rank as usize];
        self.cores.queues[sharer.queue as usize].offers
            && matches!(state.state, State::Wait(mode) if mode != WaitMode::Test)
            && state.work_tail != NONE
            && self.messages[state.work_tail as usize].arrival > sharer.looked
            && !self.is_satisfied(sharer.rank)
    }

    /// What the library's next work takes more on a rank's core for what ranks have computed there since its last.
    fn cold_on_core(&mut self, number: u32) -> u64 {
        let Cores { sharers, cores, .. } = &mut self.cores;
        let sharer = &mut sharers[number as usize];
        let Place::On(core) = sharer.place else { return 0 };
        let computed = cores[core as usize].computed;
        let since = computed.saturating_sub(std::mem::replace(&mut sharer.warm_at, computed));
        self.model.cold_ps(since)
    }

    /// What the rank on a core does with it.
    fn decide(&mut self, number: u32) -> Decision {
        loop {
            let sharer = &mut self.cores.sharers[number as usize];
            let rank = sharer.rank;
            if sharer.burn.is_some() {
                return Decision::Keeps;
            }
            if let Some(Action { cost, kind, effect }) = sharer.actions.pop_front() {
                self.wait_until(rank, self.now, u64::MAX, u64::MAX, -1, 0);
                if cost > 0 && matches!(effect, Effect::Sleep) {
                    self.cores.sharers[number as usize].asleep = Some(self.now);
                    self.queue.push(self.now + cost, Event::Awake { sharer: number });
                    return Decision::Waits;
                }
                if cost == 0 {
                    self.apply(rank, self.now, self.now, effect);
                    continue;
                }
                let cost = if kind == Kind::Endpoint { cost + self.cold_on_core(number) } else { cost };
                let (peer, bytes) = match effect {
                    Effect::Send { message } => {
                        let message = &self.messages[message as usize];
                        (message.destination as i32, message.bytes)
                    }
                    _ => (-1, 0),
                };
                let is_alone = self.cores.sharers[number as usize].alone;
                let then = match effect {
                    Effect::Send { message } if is_alone => {
                        // Its first packet leaves while it works on the others.
                        self.leave(message, self.now + cost, self.now);
                        Then::Effect(Effect::Sent { message })
                    }
                    effect => Then::Effect(effect),
                };
                let burn =
                    Burn { remaining: cost, started: self.now, kind, then, peer, bytes, interrupted: 0 };
                self.cores.sharers[number as usize].burn = Some(burn);
                return Decision::Keeps;
            }
            let state = &mut self.ranks[rank as usize];
            if state.state == State::Running {
                // Its client has it, and virtual time stands still.
                return if sharer.kicked { Decision::Keeps } else { Decision::Waits };
            }
            if !sharer.entered && state.state != State::Finished {
                sharer.entered = true;
                state.in_library_since = self.now;
                self.rank_reads(rank, self.now);
                if self.offers_first(number) {
                    self.cores.sharers[number as usize].looks = true;
                    return Decision::Offers;
                }
            }
            match self.next_step(rank) {
                Step::Handle { message, cost } => {
                    let cost = cost + self.cold_on_core(number);
                    let handled = &self.messages[message as usize];
                    let bytes = handled.bytes;
                    let peer =
                        if handled.source == rank { handled.destination } else { handled.source } as i32;
                    let pushes = handled.transfer.state() == TransferState::DataUnderWay;
                    let then = if pushes && self.cores.sharers[number as usize].alone {
                        self.leave(message, self.now + cost, self.now);
                        Then::Effect(Effect::None)
                    } else {
                        Then::Message(message)
                    };
                    let burn = Burn {
                        remaining: cost,
                        started: self.now,
                        kind: Kind::Endpoint,
                        then,
                        peer,
                        bytes,
                        interrupted: 0,
                    };
                    self.cores.sharers[number as usize].burn = Some(burn);
                    return Decision::Keeps;
                }
                Step::Resumed => {
                    let sharer = &mut self.cores.sharers[number as usize];
                    if std::mem::take(&mut sharer.looks) {
                        sharer.looked = self.now;
                    }
                    self.kick(rank);
                    return Decision::Keeps;
                }
                Step::Idle => {
                    self.cores.sharers[number as usize].looks = true;
                    let queue = self.cores.sharers[number as usize].queue;
                    let polls = self.cores.queue(queue).idle == Idle::Spin;
                    let keeps = polls && self.ranks[rank as usize].state != State::Finished;
                    return if keeps { Decision::Keeps } else { Decision::Waits };
                }
            }
        }
    }

    /// A rank's program has slept enough: it wants a core again.
    pub(super) fn awake(&mut self, number: u32) {
        let now = self.now;
        let sharer = &mut self.cores.sharers[number as usize];
        let Some(since) = sharer.asleep.take() else { return };
        let (rank, queue, member) = (sharer.rank, sharer.queue, sharer.member);
        self.spend(rank, now - since, Kind::Compute, -1, 0);
        let shared = self.cores.queue(queue);
        let is_free = !shared.free.is_empty();
        if let Some(turns) = &mut shared.turns {
            turns.wake(member, now, is_free);
        }
        self.wake_sharer(number);
    }

    /// Work has ended on a core.
    pub(super) fn core_event(&mut self, core: u32, epoch: Epoch) {
        let state = self.cores.cores[core as usize];
        if Epoch::of(state.epoch) != epoch {
            return;
        }
        if state.sharer == NONE {
            self.begin_turn(core);
        } else {
            self.stop_work(core);
            if self.cores.sharers[state.sharer as usize].burn.is_some() {
                self.end_slice(core);
            } else {
                self.run_core(core);
            }
        }
    }

    /// Slices have ended on the cores of a run queue: `false` if all that is left is idle polling.
    pub(super) fn slice_event(&mut self, number: u32) -> bool {
        let shared = self.cores.queue(number);
        shared.timed = false;
        let range = shared.first_core..shared.end_core;
        if shared.queue.is_empty() {
            return true;
        }
        if !self.anything_left() {
            // For when a rank is roused.
            self.schedule_slices(number);
            return false;
        }
        for core in range {
            let state = self.cores.cores[core as usize];
            let waited_for = !self.cores.queue(number).queue.is_empty();
            if state.sharer != NONE && state.slice_end <= self.now && waited_for {
                self.stop_work(core);
                self.release(core, Place::Queued);
            }
        }
        self.schedule_slices(number);
        true
    }

    /// Accounts for the work on a core up to now, and does what it was for if it is done.
    fn stop_work(&mut self, core: u32) {
        let now = self.now;
        let number = self.cores.cores[core as usize].sharer as usize;
        let rank = self.cores.sharers[number].rank;
        let Some(burn) = self.cores.sharers[number].burn else { return };
        let elapsed = now - burn.started;
        let interrupted = burn.interrupted.min(elapsed);
        self.spend(rank, elapsed - interrupted, burn.kind, burn.peer, burn.bytes);
        self.spend(rank, interrupted, Kind::Endpoint, -1, 0);
        let member = self.cores.sharers[number].member;
        if burn.kind == Kind::Compute {
            self.cores.cores[core as usize].computed += elapsed - interrupted;
        }
        if let Some(turns) = &mut self.cores.queue_of(core).turns {
            turns.work(member, elapsed - interrupted);
        }
        let remaining = burn.remaining - elapsed;
        if remaining > 0 {
            let interrupted = burn.interrupted - interrupted;
            self.cores.sharers[number].burn = Some(Burn { remaining, started: now, interrupted, ..burn });
            return;
        }
        self.cores.sharers[number].burn = None;
        self.cores.sharers[number].deciding = true;
        match burn.then {
            Then::Effect(effect) => self.apply(rank, now, now, effect),
            Then::Message(index) => {
                if self.messages[index as usize].transfer.state() == TransferState::DataUnderWay {
                    self.leave(index, now, now);
                }
                self.finish_work(rank, index);
            }
        }
        self.cores.sharers[number].deciding = false;
    }

    /// Whether anything but polling for messages that nobody will send can still happen.
    fn anything_left(&self) -> bool {
        self.queue.has_more_than_slices()
            || self.cores.sharers.iter().any(|sharer| {
                let state = &self.ranks[sharer.rank as usize];
                sharer.burn.is_some()
                    || sharer.kicked
                    || !sharer.actions.is_empty()
                    || (state.state != State::Running && state.work_head != NONE)
                    || match state.state {
                        State::Running | State::Finished => false,
                        State::Yield | State::ProbeNow | State::Wait(WaitMode::Test) => true,
                        State::Wait(_) => self.is_satisfied(sharer.rank),
                        State::Probe => self.found(sharer.rank).is_some(),
                        State::Watch => self.is_satisfied(sharer.rank) || self.found(sharer.rank).is_some(),
                    }
            })
    }
}
