//! The simulator of real processes: what each rank asks for becomes operations of a simulated world, and the rank
//! whose time comes next is given the turn.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use wiretwin_host::sim::{Answer, Arena, Ask, AskKind, Given, TOLD, Turn};
use wiretwin_msg::matching::Pattern;
use wiretwin_msg::protocol::Mode;
use wiretwin_net::ranks::{Blocked, NameId, Op, OpError, Outcome, Ranks, RequestId, WaitMode};
use wiretwin_units::{Bytes, Span};

/// So often is it looked, while ranks sleep outside their library and nothing else happens, whether they go on, before
/// those that only look are roused.
const RESTS: u32 = 8;
/// Turns after which it is asked whether anybody still waits for the run.
const LOOK_TURNS: u32 = 1024;
/// Rounds after which ranks that look at memory alone, and find nothing changed there, wait for ever.
const MEMORY_ROUNDS: u64 = 32;
/// More processes than this are not asked for, whatever a program spawns.
const MOST_SPAWNED: u64 = 1 << 16;
/// In place of a token or a place: none.
const NONE: u64 = u64::MAX;
/// What no message is: a rank waits for what another does in memory.
const NO_MESSAGE: Pattern = Pattern { context: u32::MAX, source: None, tag: None };
/// The context of messages without a tag.
const UNTAGGED: u64 = u64::MAX;

/// How a run is simulated.
#[derive(Clone, Copy, Debug)]
pub struct SimulatorOptions {
    /// What ranks are told.
    pub given: Given,
    /// Bytes that messages under way may take.
    pub memory: Bytes,
}

/// Why a run did not come to its end.
#[derive(Debug)]
pub enum SimulatorError {
    /// The memory of the run cannot be had.
    Memory(io::Error),
    /// The world has hosts of its own, whose libraries are modelled.
    Local,
    /// Some ranks never came, and the run has been ended.
    Absent {
        /// How many came.
        come: u32,
    },
    /// A rank has gone before its end, or the run has been ended while it worked.
    Gone {
        /// The rank that has gone.
        rank: u32,
        /// What ranks looked or waited for, where nothing else happened any more.
        vain: Vec<Blocked>,
        /// Ranks that slept outside the library, and where in the kernel.
        outside: Vec<(u32, String)>,
    },
    /// The program spawns more processes than there is room for: the run has to be made anew with room for them.
    Spawned {
        /// How many it has spawned so far, with those that it was about to.
        processes: u32,
    },
    /// Nothing will happen any more, and these ranks wait.
    Deadlock(Vec<Blocked>),
    /// A rank asked for what there is not.
    Asked {
        /// The rank that asked.
        rank: u32,
        /// Why it cannot be had.
        reason: String,
    },
}

impl fmt::Display for SimulatorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory(error) => write!(f, "the memory of the run: {error}"),
            Self::Local => f.write_str("a network with hosts of its own has libraries of its own"),
            Self::Absent { come } => write!(f, "{come} ranks came, and no more"),
            Self::Gone { rank, .. } => write!(f, "rank {rank} ended before the library was finalized"),
            Self::Spawned { processes } => write!(f, "{processes} processes are spawned, at least"),
            Self::Deadlock(blocked) => write!(f, "{} ranks wait for what will not come", blocked.len()),
            Self::Asked { rank, reason } => write!(f, "rank {rank}: {reason}"),
        }
    }
}

impl std::error::Error for SimulatorError {}

/// What a rank's program took, from the library's beginning to its end, but for what the library does in these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marked {
    /// The rank's time.
    pub span: Span,
    /// The same by kind, in the order of [`Kind::ALL`](wiretwin_record::timeline::Kind::ALL).
    pub totals: [Span; 4],
    /// Messages that it has sent.
    pub sent: u64,
    /// How often it has been given the turn.
    pub turns: u64,
}

/// What a rank is suspended in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Awaits {
    /// A wait for what it has begun.
    Ended,
    /// The same, or a message.
    Either(Pattern),
    /// What has ended by now; then, whether there is such a message.
    EndedNow(Option<Pattern>),
    /// A message.
    Message,
    /// The time.
    Time,
    /// The time, to be noted.
    Mark,
}

#[derive(Debug, Default)]
struct Rank {
    /// Requests of the world that the rank waits for, and its own numbers of them.
    requests: Vec<(RequestId, u64)>,
    /// What it has not been told.
    answers: VecDeque<Answer>,
    awaits: Option<Awaits>,
    /// Whether it is suspended in a call that only looks.
    looks: bool,
    /// Whether it is suspended, and another rank may do in memory what it waits for.
    watches_memory: bool,
    /// That another has, after how many other such words.
    told: Option<u64>,
    sent: u64,
    turns: u64,
    begun: Option<Marked>,
    took: Option<Marked>,
    has_finished: bool,
}

/// A simulated world and the processes that are its ranks.
pub struct Simulator<'a> {
    world: &'a mut Ranks,
    arena: Arena,
    given: Given,
    ranks: Vec<Rank>,
    /// Where the bytes of messages are that have been sent and not received.
    places: BTreeMap<u64, u64>,
    /// Contexts by the bits of tags that are the library's own.
    contexts: BTreeMap<u64, u32>,
    names: BTreeMap<[u64; 6], NameId>,
    waits: Vec<RequestId>,
    turns: u32,
    /// Ranks that are to have the turn.
    next: VecDeque<u32>,
    /// How many ranks have been started.
    started: u32,
    /// How many processes each of these ranks spawns in its next turn.
    spawning: BTreeMap<u32, u32>,
    vain: Vain,
    /// Ranks that sleep outside their library while others go on, the first that fell asleep first.
    outside: Vec<Outside>,
}

/// A rank that sleeps outside its library.
#[derive(Clone, Copy, Debug)]
struct Outside {
    rank: u32,
    /// How long of that nothing happened in the world, and so its own work, or a child's, was waited for.
    alone: Duration,
}

/// How often ranks have looked in vain with nothing else left to happen.
#[derive(Debug, Default)]
struct Vain {
    rounds: u64,
    /// What was waited and looked for in one of the last rounds.
    blocked: Vec<Blocked>,
}

impl<'a> Simulator<'a> {
    /// Makes the memory of the run at a path where nothing is.
    ///
    /// # Errors
    /// [`SimulatorError::Memory`].
    pub fn new(
        world: &'a mut Ranks,
        path: &Path,
        options: &SimulatorOptions,
    ) -> Result<Self, SimulatorError> {
        let Ranks::Costs(costs) = &*world else { return Err(SimulatorError::Local) };
        let model = costs.model();
        let layers = || [Some(&model.intra), model.inter.as_ref()].into_iter().flatten();
        // The least of them: a send of less is complete at once on both ways.
        let longer = layers().flat_map(|layer| [layer.rendezvous_from, layer.acknowledged_from]).flatten();
        let eager_below = longer.map(Bytes::get).min().unwrap_or(u64::MAX);
        let call_ps = model.intra.call.as_ps();
        let is_behind = (0..world.size()).any(|rank| world.is_behind(rank));
        let started = options.given.launched;
        let given = Given {
            ranks: world.size(),
            is_behind: u32::from(is_behind),
            eager_below,
            call_ps,
            ..options.given
        };
        let mut arena = Arena::make(path, given, options.memory.get()).map_err(SimulatorError::Memory)?;
        for (rank, &node) in (0..).zip(&model.placement) {
            arena.place(rank, model.nodes[node as usize].cores_of.unwrap_or(node));
        }
        let ranks = (0..given.ranks).map(|_| Rank::default()).collect();
        let contexts = BTreeMap::from([(UNTAGGED, 0)]);
        let (places, names, waits) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        let next = (0..started).collect();
        let (turns, spawning, vain, outside) = (0, BTreeMap::new(), Vain::default(), Vec::new());
        Ok(Self {
            world,
            arena,
            given,
            ranks,
            places,
            contexts,
            names,
            waits,
            turns,
            next,
            started,
            spawning,
            vain,
            outside,
        })
    }

    /// Lets the ranks run to their end; `goes_on` is asked now and then whether anybody waits for it.
    ///
    /// # Errors
    /// [`SimulatorError`].
    pub fn run(&mut self, mut goes_on: impl FnMut() -> bool) -> Result<Vec<Marked>, SimulatorError> {
        self.gather(0..self.started, &mut goes_on)?;
        let mut resumed = Vec::new();
        loop {
            while let Some(rank) = self.next.pop_front() {
                self.serve(rank, &mut goes_on)?;
                self.see_outside(Some(rank), &mut goes_on)?;
            }
            if self.ranks[..self.started as usize].iter().all(|rank| rank.has_finished) {
                let end =
                    |rank: u32| self.ranks[rank as usize].took.map_or_else(|| self.since_begun(rank), Ok);
                return (0..self.started).map(end).collect();
            }
            if !self.world.step() {
                self.go_on_without(&mut goes_on)?;
                continue;
            }
            resumed.clear();
            resumed.extend(self.world.resumed().map(|(rank, _)| rank));
            for &rank in &resumed {
                if self.told(rank)? {
                    self.next.push_back(rank);
                }
            }
        }
    }

    /// Takes up what ranks ask for that were outside their library, and have gone on: whether there were any. What
    /// another rank has just done may have let them.
    fn see_outside(
        &mut self,
        worked: Option<u32>,
        goes_on: &mut impl FnMut() -> bool,
    ) -> Result<bool, SimulatorError> {
        let (mut at, mut is_any, mut last) = (0, false, worked);
        while let Some(&Outside { rank, alone }) = self.outside.get(at) {
            if !self.arena.is_back(rank) {
                at += 1;
                continue;
            }
            match self.arena.await_rank(rank, &mut *goes_on) {
                Turn::Outside => at += 1,
                Turn::Gone => return Err(self.gone(rank)),
                Turn::Asked => {
                    self.outside.remove(at);
                    self.take_up_late(rank, alone, last)?;
                    // It may have let others, too.
                    (at, is_any, last) = (0, true, Some(rank));
                }
            }
        }
        Ok(is_any)
    }

    /// Takes up what a rank asks for that was outside its library, which a rank may have let go on that worked last.
    fn take_up_late(&mut self, rank: u32, alone: Duration, last: Option<u32>) -> Result<(), SimulatorError> {
        let wrong = |error: OpError| SimulatorError::Asked { rank, reason: error.to_string() };
        if let Some(last) = last {
            let now = self.world.rank_now(last).map_err(wrong)?;
            self.world.let_pass(rank, now).map_err(wrong)?;
        }
        if self.given.compute_ps == u64::MAX && !alone.is_zero() {
            let own = Span::from_ns(u64::try_from(alone.as_nanos()).unwrap_or(u64::MAX));
            self.post(rank, Op::Compute(own), None)?;
        }
        if self.take_up(rank)? {
            self.next.push_back(rank);
        }
        Ok(())
    }

    /// Nothing will happen in the world by itself: what is left are ranks outside their library, and those that only
    /// look.
    fn go_on_without(&mut self, goes_on: &mut impl FnMut() -> bool) -> Result<(), SimulatorError> {
        if !self.outside.is_empty() {
            for _ in 0..RESTS {
                if self.see_outside(None, goes_on)? {
                    return Ok(());
                }
                let rested = self.arena.rest();
                for outside in &mut self.outside {
                    outside.alone += rested;
                }
            }
            if !goes_on() {
                return Err(self.gone(self.outside[0].rank));
            }
        }
        self.rouse()
    }

    /// Ranks that only look go on without anything.
    fn rouse(&mut self) -> Result<(), SimulatorError> {
        self.vain.rounds += 1;
        if self.vain.rounds.is_power_of_two() {
            self.vain.blocked = self.world.blocked();
        }
        let lookers = |state: &&Rank| state.looks && state.awaits.is_some();
        let are_none = self.outside.is_empty() && !self.ranks.iter().any(|state| lookers(&state));
        if are_none && self.vain.rounds > MEMORY_ROUNDS {
            return Err(SimulatorError::Deadlock(std::mem::take(&mut self.vain.blocked)));
        }
        let mut is_any = false;
        for rank in 0..self.started {
            let state = &self.ranks[rank as usize];
            if (state.looks || state.watches_memory) && state.awaits.is_some() {
                is_any = true;
                self.world
                    .rouse(rank)
                    .map_err(|error| SimulatorError::Asked { rank, reason: error.to_string() })?;
            }
        }
        if is_any || !self.outside.is_empty() {
            return Ok(());
        }
        Err(SimulatorError::Deadlock(std::mem::take(&mut self.vain.blocked)))
    }

    fn gone(&mut self, rank: u32) -> SimulatorError {
        let outside = self.outside.iter().map(|outside| outside.rank);
        let outside = outside.map(|rank| (rank, self.arena.sleeps_in(rank).unwrap_or_default())).collect();
        SimulatorError::Gone { rank, vain: std::mem::take(&mut self.vain.blocked), outside }
    }

    /// Waits until processes have come.
    fn gather(
        &mut self,
        ranks: Range<u32>,
        goes_on: &mut impl FnMut() -> bool,
    ) -> Result<(), SimulatorError> {
        if self.arena.gather(ranks, goes_on) {
            Ok(())
        } else {
            Err(SimulatorError::Absent { come: self.arena.come() })
        }
    }

    /// Takes in what a rank was resumed with: whether it is to have the turn.
    fn told(&mut self, rank: u32) -> Result<bool, SimulatorError> {
        let number = rank as usize;
        let awaits = self.ranks[number].awaits.take();
        let outcome = self.world.resumed().find(|(resumed, _)| *resumed == rank).map(|(_, outcome)| outcome);
        let mut found = None;
        match outcome {
            Some(Outcome::Completed(completions)) => {
                let state = &mut self.ranks[number];
                for done in completions {
                    let Some(at) = state.requests.iter().position(|(request, _)| *request == done.request)
                    else {
                        continue;
                    };
                    let (_, token) = state.requests.remove(at);
                    let is_send = done.message == done.request;
                    let place =
                        if is_send || done.cancelled { None } else { self.places.remove(&done.message.0) };
                    let place = place.unwrap_or(NONE);
                    state.answers.push_back(Answer { token, place });
                }
            }
            Some(Outcome::Probed(Some(message))) => found = self.places.get(&message.message.0).copied(),
            _ => {}
        }
        let state = &mut self.ranks[number];
        match awaits {
            Some(Awaits::Either(pattern)) if state.answers.is_empty() => {
                self.post(rank, Op::ProbeNow(pattern), Some(Awaits::Message))?;
                return Ok(false);
            }
            Some(Awaits::EndedNow(Some(pattern))) => {
                self.post(rank, Op::ProbeNow(pattern), Some(Awaits::Message))?;
                return Ok(false);
            }
            Some(Awaits::Message) => {
                if let Some(place) = found {
                    state.answers.push_back(Answer { token: NONE, place });
                }
            }
            Some(Awaits::Mark) => {
                let so_far = self.since_begun(rank)?;
                let state = &mut self.ranks[number];
                if state.begun.is_none() { state.begun = Some(so_far) } else { state.took = Some(so_far) }
            }
            _ => {}
        }
        let state = &mut self.ranks[number];
        if let Some(place) = state.told.take() {
            state.answers.push_back(Answer { token: TOLD, place });
        }
        Ok(true)
    }

    /// What a rank has taken since its library has begun, or from the beginning of time.
    fn since_begun(&self, rank: u32) -> Result<Marked, SimulatorError> {
        let wrong = |error: OpError| SimulatorError::Asked { rank, reason: error.to_string() };
        let state = &self.ranks[rank as usize];
        let begun = state.begun.unwrap_or_default();
        let mut totals = self.world.totals(rank).map_err(wrong)?;
        for (total, before) in totals.iter_mut().zip(begun.totals) {
            *total = Span::from_ps(total.as_ps() - before.as_ps());
        }
        let span = Span::from_ps(totals.iter().map(|total| total.as_ps()).sum());
        Ok(Marked { span, totals, sent: state.sent - begun.sent, turns: state.turns - begun.turns })
    }

    /// Gives a rank the turn, and does what it asks for until the world has to go on.
    fn serve(&mut self, rank: u32, goes_on: &mut impl FnMut() -> bool) -> Result<(), SimulatorError> {
        loop {
            self.turns = self.turns.wrapping_add(1);
            if self.turns.is_multiple_of(LOOK_TURNS) && !goes_on() {
                return Err(self.gone(rank));
            }
            let from = self.started;
            self.started += self.spawning.remove(&rank).unwrap_or(0);
            let spawned = from..self.started;
            if !spawned.is_empty() {
                self.arena.spawn_from(from);
            }
            let state = &mut self.ranks[rank as usize];
            state.turns += 1;
            let count = state.answers.len().min(Arena::ANSWERS);
            let answers: Vec<Answer> = state.answers.drain(..count).collect();
            let now = self.world.rank_now(rank).map_or(0, |now| now.as_ps());
            let mut turn = self.arena.turn(rank, now, &answers, &mut *goes_on);
            while turn == Turn::Outside && !spawned.is_empty() {
                // It waits for the launcher, which starts them; nobody else goes on meanwhile.
                turn = self.arena.await_rank(rank, &mut *goes_on);
            }
            match turn {
                Turn::Gone => return Err(self.gone(rank)),
                Turn::Outside => {
                    self.outside.push(Outside { rank, alone: Duration::ZERO });
                    return Ok(());
                }
                Turn::Asked => {}
            }
            if !spawned.is_empty() {
                // The launcher has done its part, and they begin without messages.
                self.gather(spawned.clone(), goes_on)?;
                self.next.extend(spawned);
            }
            if !self.take_up(rank)? {
                return Ok(());
            }
        }
    }

    /// Does what a rank has asked for that has given its turn back: whether it needs another at once.
    fn take_up(&mut self, rank: u32) -> Result<bool, SimulatorError> {
        for at in 0..self.arena.asked().len() {
            let ask = self.arena.asked()[at];
            self.act(rank, &ask)?;
        }
        let state = &self.ranks[rank as usize];
        Ok(state.awaits.is_none() && !state.has_finished)
    }

    fn act(&mut self, rank: u32, ask: &Ask) -> Result<(), SimulatorError> {
        let number = rank as usize;
        let length = Bytes::new(ask.length);
        self.ranks[number].looks = ask.kind == AskKind::Seek;
        self.ranks[number].watches_memory =
            matches!(ask.kind, AskKind::Watch | AskKind::Seek) && ask.length != 0;
        match ask.kind {
            AskKind::Compute => self.post(rank, Op::Compute(Span::from_ps(ask.length)), None).map(drop),
            AskKind::Enter => {
                let fields = [ask.peer, ask.token, ask.tag, ask.ignore, ask.length, ask.place];
                let name = match self.names.get(&fields) {
                    Some(&name) => name,
                    None => {
                        let name = self.world.name_id(&ask.name());
                        self.names.insert(fields, name);
                        name
                    }
                };
                self.post(rank, Op::Enter { name, site: -1 }, None).map(drop)
            }
            AskKind::Exit => self.post(rank, Op::Exit, None).map(drop),
            AskKind::Send => {
                let (context, tag) = self.split(ask);
                let (to, mode) = (ask.peer as u32, Mode::Standard);
                self.vain = Vain::default();
                let request = self.post(rank, Op::Send { context, to, tag, bytes: length, mode }, None)?;
                let request = request.expect("a send has a request");
                self.places.insert(request.0, ask.place);
                self.ranks[number].sent += 1;
                if ask.token != NONE {
                    self.ranks[number].requests.push((request, ask.token));
                    return Ok(());
                }
                self.world
                    .let_go(rank, request)
                    .map_err(|error| SimulatorError::Asked { rank, reason: error.to_string() })
            }
            AskKind::Receive => {
                let pattern = self.pattern(rank, ask)?;
                let request = self.post(rank, Op::Recv { pattern, capacity: length }, None)?;
                self.ranks[number].requests.push((request.expect("a receive has a request"), ask.token));
                Ok(())
            }
            AskKind::Cancel => {
                let found = self.ranks[number].requests.iter().find(|(_, token)| *token == ask.token);
                let Some(&(request, _)) = found else { return Ok(()) };
                self.post(rank, Op::Cancel(request), None).map(drop)
            }
            AskKind::Watch | AskKind::Seek | AskKind::Look if !self.ranks[number].answers.is_empty() => {
                Ok(())
            }
            AskKind::Watch | AskKind::Seek if ask.place == NONE => self.wait(rank, Awaits::Ended),
            AskKind::Watch | AskKind::Seek => {
                let pattern = self.pattern(rank, ask)?;
                self.wait(rank, Awaits::Either(pattern))
            }
            AskKind::Look => {
                let pattern = if ask.place == NONE { None } else { Some(self.pattern(rank, ask)?) };
                self.wait(rank, Awaits::EndedNow(pattern))
            }
            AskKind::Tell => self.tell(rank, ask.length),
            AskKind::Now => self.ask_time(rank, Awaits::Time),
            AskKind::Mark => self.ask_time(rank, Awaits::Mark),
            AskKind::Spawn => {
                let about = self.spawning.values().sum::<u32>() + self.started - self.given.launched;
                let processes = ask.length.saturating_add(u64::from(about)).min(MOST_SPAWNED) as u32;
                if processes > self.given.ranks - self.given.launched {
                    return Err(SimulatorError::Spawned { processes });
                }
                self.spawning.insert(rank, ask.length as u32);
                self.ask_time(rank, Awaits::Time)
            }
            AskKind::Finish => {
                self.ranks[number].has_finished = true;
                self.post(rank, Op::Finish, None).map(drop)
            }
        }
    }

    /// Has ranks that watch memory look again, at the time of one that has done something there.
    fn tell(&mut self, rank: u32, after: u64) -> Result<(), SimulatorError> {
        let wrong = |error: OpError| SimulatorError::Asked { rank, reason: error.to_string() };
        if after == 0 {
            self.vain = Vain::default();
        }
        let now = self.world.rank_now(rank).map_err(wrong)?;
        for other in (0..self.started).filter(|&other| other != rank) {
            let state = &mut self.ranks[other as usize];
            if state.watches_memory && state.awaits.is_some() {
                state.told = Some(state.told.map_or(after, |before| before.min(after)));
                self.world.rouse_at(other, now).map_err(wrong)?;
            }
        }
        Ok(())
    }

    /// Suspends a rank until its clock shows all that it has posted.
    fn ask_time(&mut self, rank: u32, awaits: Awaits) -> Result<(), SimulatorError> {
        self.post(rank, Op::Yield, Some(awaits)).map(drop)
    }

    /// Suspends a rank for what it has begun.
    fn wait(&mut self, rank: u32, awaits: Awaits) -> Result<(), SimulatorError> {
        let mut requests = std::mem::take(&mut self.waits);
        requests.clear();
        requests.extend(self.ranks[rank as usize].requests.iter().map(|(request, _)| *request));
        let op = match awaits {
            Awaits::Either(pattern) => Op::Watch { requests: &requests, pattern },
            // A wait for nothing is over when it begins.
            Awaits::Ended if self.ranks[rank as usize].watches_memory => {
                Op::Watch { requests: &requests, pattern: NO_MESSAGE }
            }
            Awaits::EndedNow(_) => Op::Wait { requests: &requests, mode: WaitMode::Test },
            _ => Op::Wait { requests: &requests, mode: WaitMode::Some },
        };
        let posted = self.post(rank, op, Some(awaits));
        self.waits = requests;
        posted.map(drop)
    }

    fn post(
        &mut self,
        rank: u32,
        op: Op<'_>,
        awaits: Option<Awaits>,
    ) -> Result<Option<RequestId>, SimulatorError> {
        self.ranks[rank as usize].awaits = awaits;
        self.world.post(rank, op).map_err(|error| SimulatorError::Asked { rank, reason: error.to_string() })
    }

    /// The context and the program's part of a tag.
    fn split(&mut self, ask: &Ask) -> (u32, u32) {
        if ask.tagged == 0 {
            return (0, 0);
        }
        let own = low_bits(self.given.tag_bits);
        let library = (ask.tag & !own) & !self.given.ignored;
        let next = self.contexts.len() as u32;
        (*self.contexts.entry(library).or_insert(next), (ask.tag & own) as u32)
    }

    fn pattern(&mut self, rank: u32, ask: &Ask) -> Result<Pattern, SimulatorError> {
        let own = low_bits(self.given.tag_bits);
        let (context, tag) = self.split(ask);
        let source = (ask.peer != NONE).then_some(ask.peer as u32);
        let of_library = ask.ignore & !own & !self.given.apart;
        let any = ask.ignore & own;
        if ask.tagged != 0 && (any != 0 && any != own || of_library & !self.given.ignored != 0) {
            let reason = format!(
                "a receive ignores the bits {:#x} of its tag: the library is not known here",
                ask.ignore
            );
            return Err(SimulatorError::Asked { rank, reason });
        }
        Ok(Pattern { context, source, tag: (any == 0).then_some(tag) })
    }
}

const fn low_bits(count: u32) -> u64 {
    (1 << count) - 1
}
