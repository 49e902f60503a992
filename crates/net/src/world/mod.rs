//! A world of ranks that compute and send messages, in virtual time.
//!
//! Clients [`World::post`] operations for a rank until they post a suspending one (`Wait`, `Probe`,
//! `ProbeNow`, `Watch`, `Yield`, `Finish`), then [`World::step`] until the rank is among
//! [`World::resumed`]. Payloads stay with the client, keyed by message id; the world moves lengths.
//!
//! Rules of the model:
//! - Every rank has a clock, and every picosecond of it is compute, endpoint, wire or waiting.
//! - An eager send charges its overhead, then flies; its request is complete when it has left. A
//!   message of one sender does not overtake an earlier one to the same receiver, and their arrivals
//!   are at least the gap apart. The gap is that of messages of one length in a row, each taken in behind the last: where one
//!   costs its receiver more than the last did, it may arrive so much sooner, and is there no later than a gap after the last.
//! - Matched messages are taken in while the receiver is inside a suspending call, in the order in
//!   which they became available, and each charges its overhead (and the copy, if it came before its
//!   receive was posted). There is no asynchronous progress.
//! - A synchronous send that is short is an eager one whose receiver tells its sender.
//! - A rendezvous sends its envelope ahead; its data move once the receive is posted and both ends
//!   are inside the library, and then take what the layer says, the handshake included.
//! - Where the layer's receivers fetch, the receiver alone works on the data of a rendezvous once the
//!   envelope is there; the sender's request is complete when it has seen the receiver's word. Both ranks
//!   of an exchange so work at once. Over a link data are pushed.
//! - Between nodes of a network, messages are flows that share its lines, or packets (`network`).
//! - A call takes more after computation, which has left little of the library in its core's caches, and so does
//!   a message that is taken in after others have computed on that core.
//! - On a node with more ranks than cores, everything that needs a core is served in time slices.
//!
//! A rank that has a core of its own may run ahead of [`World::now`]: that is exact, because all that
//! others can see of it are events at their own times, and what a receive matches does not depend on
//! how posts and arrivals interleave (see `docs/models`). Probes, tests and cancels, which do depend
//! on it, wait for the world to reach the rank's clock.

mod account;
mod blocked;
mod carrier;
mod cores;
mod early;
mod interrupts;
mod network;
mod progress;
mod state;
mod transfer;
mod turns;

use wiretwin_engine::{Digest, Trace, TraceDigest, TraceEvent};
use wiretwin_msg::library::NO_MULTICAST;
use wiretwin_msg::matching::{Matcher, Pattern, PostOutcome};
use wiretwin_msg::protocol::{Mode, Protocol, Transfer};
use wiretwin_msg::table::Table;
use wiretwin_record::timeline::{Kind, Timeline};
use wiretwin_units::{Bytes, SimTime, Span, Transmitter};

use crate::layer::{Costs, Layer};
use crate::model::{Model, Reach};
pub use crate::op::{Blocked, Completion, Counts, Found, NameId, Op, OpError, Outcome, RequestId, WaitMode};
use crate::op::{LARGEST_TAG, Names};
use crate::queue::{Event, Queue};
use cores::Cores;
use interrupts::Interrupts;
use network::Network;
use state::{Asked, Message, NONE, Pair, PairState, Rank, Request, RequestState, State};

#[derive(Clone, Copy, Debug)]
enum Resumed {
    Completed { first: usize, end: usize },
    Probed(Option<Found>),
    Reached,
}

/// The world. See the module's description.
#[derive(Clone)]
pub struct World {
    model: Model,
    /// Of the layer within nodes and of that between them, what the last message cost.
    known: [Costs; 3],
    now: u64,
    queue: Queue,
    ranks: Vec<Rank>,
    cores: Cores,
    interrupts: Option<Box<Interrupts>>,
    egress: Vec<Transmitter>,
    ingress: Vec<Transmitter>,
    network: Option<Network>,
    matcher: Matcher,
    pairs: Table<Pair, PairState>,
    requests: Vec<Request>,
    free_requests: Vec<u32>,
    messages: Vec<Message>,
    free_messages: Vec<u32>,
    /// Ranks whose wait was over when it began.
    ready: Vec<u32>,
    ready_now: Vec<u32>,
    resumed: Vec<(u32, Resumed)>,
    completions: Vec<Completion>,
    names: Names,
    /// By name, which of the model's first calls it is one of, as bits.
    firsts_of: Vec<u64>,
    /// Which of them are costs of early messages, as bits; and by name, those to which the call makes any message early.
    early: u64,
    looks_of: Vec<u64>,
    /// By name, what a call takes before any message, in picoseconds.
    call_of: Vec<u64>,
    /// By the number of a call's name, whether a rank that waits in it keeps its core though ranks yield.
    keeping: Vec<bool>,
    /// By rank, for how long it has computed on a core of its own since its last call; of none where that makes no
    /// call longer.
    computed: Vec<u64>,
    timeline: Option<Timeline>,
    digest: TraceDigest,
    /// Requests to be cancelled, by the number of their event, and how many events are to come.
    cancels: Vec<u64>,
    open_cancels: usize,
    counts: Counts,
    posts: u64,
}

impl World {
    /// A world of as many ranks as the model places. With `timeline`, intervals are recorded.
    ///
    /// `seed` is that of the matchings of crossbars, where the network has some; nothing else is random.
    #[must_use]
    pub fn new(mut model: Model, seed: u64, timeline: bool) -> Self {
        let pushed = carrier::agree_on_offers(&mut model);
        let mut on_node = vec![0u32; model.nodes.len()];
        let cores_of = |node: u32| model.nodes[node as usize].cores_of.unwrap_or(node);
        for node in &model.placement {
            on_node[cores_of(*node) as usize] += 1;
        }
        let interrupts = Interrupts::new(&model);
        let mut cores = Cores::new(&model, &on_node, interrupts.is_some());
        let mut seated = vec![0u32; model.nodes.len()];
        let seat = |(rank, node): (usize, &u32)| {
            let node = cores_of(*node);
            let before = seated[node as usize];
            seated[node as usize] += 1;
            let in_turn = before % model.nodes[node as usize].cores;
            (node, model.dealt.get(rank).copied().unwrap_or(in_turn))
        };
        let seats = model.placement.iter().enumerate().map(seat).collect::<Vec<_>>();
        let mut ranks = vec![Rank::new(NONE); seats.len()];
        let by_number = (0..seats.len() as u32).collect::<Vec<_>>();
        for &rank in if model.order.is_empty() { &by_number } else { &model.order } {
            let (node, core) = seats[rank as usize];
            ranks[rank as usize] = Rank::new(cores.admit(rank, node, core));
        }
        let wires = model.link.map(|link| vec![Transmitter::new(link.rate); model.nodes.len()]);
        let wires = wires.unwrap_or_default();
        Self {
            known: [Reach::Own, Reach::Within, Reach::Between].map(|reach| model.layer(reach).costs(0)),
            now: 0,
            queue: Queue::default(),
            cores,
            interrupts,
            egress: wires.clone(),
            ingress: wires,
            network: model.network.as_ref().map(|network| Network::new(network, pushed, seed)),
            matcher: Matcher::new(),
            pairs: Table::new(),
            requests: Vec::new(),
            free_requests: Vec::new(),
            messages: Vec::new(),
            free_messages: Vec::new(),
            ready: Vec::new(),
            ready_now: Vec::new(),
            resumed: Vec::new(),
            completions: Vec::new(),
            names: Names::new(),
            firsts_of: vec![0],
            early: early::bits(&model.first, None, true),
            looks_of: vec![0],
            call_of: vec![0],
            keeping: vec![false],
            computed: vec![0; if model.cold.is_empty() { 0 } else { ranks.len() }],
            timeline: timeline.then(|| Timeline::new(ranks.len() as u32)),
            digest: TraceDigest::new(),
            cancels: Vec::new(),
            open_cancels: 0,
            counts: Counts::default(),
            posts: 0,
            ranks,
            model,
        }
    }

    /// How many ranks there are.
    #[must_use]
    pub fn size(&self) -> u32 {
        self.ranks.len() as u32
    }

    /// The model it runs on.
    #[must_use]
    pub const fn model(&self) -> &Model {
        &self.model
    }

    /// The instant the last step reached.
    #[must_use]
    pub const fn now(&self) -> SimTime {
        SimTime::from_ps(self.now)
    }

    /// A rank's own clock. Operations that have been posted do not show before they are done, where ranks may
    /// be [behind](World::is_behind): post a `Yield` and step first.
    ///
    /// # Errors
    /// [`OpError::NoSuchRank`].
    pub fn rank_now(&self, rank: u32) -> Result<SimTime, OpError> {
        self.check_rank(rank)?;
        Ok(SimTime::from_ps(self.ranks[rank as usize].clock))
    }

    /// When a rank first had a core: not at once where it shares cores, and another came before it.
    ///
    /// # Errors
    /// [`OpError::NoSuchRank`].
    pub fn rank_begun(&self, rank: u32) -> Result<SimTime, OpError> {
        self.check_rank(rank)?;
        let sharer = self.ranks[rank as usize].sharer;
        Ok(SimTime::from_ps(if sharer == NONE { 0 } else { self.cores.begun(sharer) }))
    }

    /// Whether what a rank has posted may not show in its clock yet: where it shares cores with others, its node
    /// having fewer of them than ranks, or messages that come take its core from it (`interrupts`).
    ///
    /// # Panics
    /// Where there is no such rank.
    #[must_use]
    pub fn is_behind(&self, rank: u32) -> bool {
        self.ranks[rank as usize].sharer != NONE
    }

    /// The number of a call's name, for [`Op::Enter`].
    pub fn name_id(&mut self, name: &str) -> NameId {
        let id = self.names.id(name);
        if self.firsts_of.len() < self.names.list().len() {
            self.firsts_of.push(early::bits(&self.model.first, Some(name), false));
            self.looks_of.push(early::bits(&self.model.first, Some(name), true));
            let beyond =
                self.model.beyond.iter().filter(|beyond| beyond.calls.iter().any(|call| call == name));
            let beyond_ps: i64 = beyond.map(|beyond| beyond.takes_ps).sum();
            self.call_of.push(self.model.intra.call.as_ps().saturating_add_signed(beyond_ps));
            self.keeping.push(self.model.keeping.iter().any(|call| call == name));
        }
        id
    }

    /// The names of calls by number; 0 is empty.
    #[must_use]
    pub fn names(&self) -> &[String] {
        self.names.list()
    }

    /// The recorded intervals, if they were asked for.
    #[must_use]
    pub const fn timeline(&self) -> Option<&Timeline> {
        self.timeline.as_ref()
    }

    /// A rank's time so far by kind, in the order of [`Kind::ALL`]; the sum is its clock.
    ///
    /// # Errors
    /// [`OpError::NoSuchRank`].
    pub fn totals(&self, rank: u32) -> Result<[Span; 4], OpError> {
        self.check_rank(rank)?;
        Ok(self.ranks[rank as usize].totals.map(Span::from_ps))
    }

    /// How many messages were sent, delivered, and are still held.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// A digest of every match and completion with its time (but that of a send which is complete as
    /// soon as it has left): equal runs have equal digests.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest.value()
    }

    /// Posts an operation of `rank`. A send or a receive returns its request, others `None`.
    ///
    /// # Errors
    /// [`OpError`] names what is wrong with the operation; nothing happens then.
    pub fn post(&mut self, rank: u32, op: Op<'_>) -> Result<Option<RequestId>, OpError> {
        self.begin_post(rank)?;
        match op {
            Op::Compute(span) => {
                if let Some(computed) = self.computed.get_mut(rank as usize) {
                    *computed = computed.saturating_add(span.as_ps());
                }
                self.act(rank, span.as_ps(), Kind::Compute, Effect::None);
            }
            Op::Sleep(span) => self.act(rank, span.as_ps(), Kind::Compute, Effect::Sleep),
            Op::Enter { name, site } => self.begin_call(rank, name, site)?,
            Op::Exit => {
                let late = std::mem::replace(&mut self.ranks[rank as usize].first_late, Span::ZERO);
                if late > Span::ZERO {
                    self.act(rank, late.as_ps(), Kind::Endpoint, Effect::None);
                }
                self.act(rank, 0, Kind::Endpoint, Effect::Name { name: 0, site: -1 });
            }
            Op::Send { context, to, tag, bytes, mode } => {
                return self.post_send(rank, context, to, tag, bytes.get(), mode).map(Some);
            }
            Op::Recv { pattern, capacity } => return self.post_recv(rank, pattern, capacity.get()).map(Some),
            Op::Cancel(request) => {
                let index = self.check_request(rank, request)?;
                if self.requests[index as usize].is_send {
                    return Err(OpError::CancelOfSend { request });
                }
                self.act(rank, 0, Kind::Endpoint, Effect::Cancel { request: request.0 });
            }
            Op::Wait { requests, mode } => {
                self.link_wait(rank, requests)?;
                self.suspend(rank, State::Wait(mode));
            }
            Op::Watch { requests, pattern } => {
                self.check_pattern(&pattern)?;
                self.link_wait(rank, requests)?;
                self.ranks[rank as usize].sought = Asked::of(&pattern);
                self.suspend(rank, State::Watch);
            }
            Op::Probe(pattern) => {
                self.check_pattern(&pattern)?;
                self.ranks[rank as usize].sought = Asked::of(&pattern);
                self.suspend(rank, State::Probe);
            }
            Op::ProbeNow(pattern) => {
                self.check_pattern(&pattern)?;
                self.ranks[rank as usize].sought = Asked::of(&pattern);
                self.suspend(rank, State::ProbeNow);
            }
            Op::Yield => self.suspend(rank, State::Yield),
            Op::Multicast { .. } => return Err(OpError::Unsupported(NO_MULTICAST)),
            Op::Control(control) => return Err(OpError::Unsupported(control.unsupported())),
            Op::Pause(_) => return Err(OpError::Unsupported("a pause")),
            Op::Finish => self.act(rank, 0, Kind::Endpoint, Effect::Finish),
        }
        Ok(None)
    }

    /// Posts a call of a rank as a whole: its beginning, standard sends and receives, and the wait for all of them.
    /// Their requests are added to `requests`, the receives first. It is what posting one after the other would be.
    ///
    /// # Errors
    /// As [`World::post`]; what was posted before the operation that is wrong stays.
    pub fn post_exchange(
        &mut self,
        rank: u32,
        name: NameId,
        receives: impl Iterator<Item = (Pattern, Bytes)>,
        sends: impl Iterator<Item = (u32, u32, Bytes)>,
        requests: &mut Vec<RequestId>,
    ) -> Result<(), OpError> {
        self.begin_post(rank)?;
        self.begin_call(rank, name, -1)?;
        for (pattern, capacity) in receives {
            requests.push(self.post_recv(rank, pattern, capacity.get())?);
        }
        for (to, tag, bytes) in sends {
            requests.push(self.post_send(rank, 0, to, tag, bytes.get(), Mode::Standard)?);
        }
        self.link_wait(rank, requests)?;
        self.suspend(rank, State::Wait(WaitMode::All));
        Ok(())
    }

    /// Sees that a rank may post, its clock being where the world is at least.
    #[inline]
    fn begin_post(&mut self, rank: u32) -> Result<(), OpError> {
        self.check_rank(rank)?;
        match self.ranks[rank as usize].state {
            State::Running => {}
            State::Finished => return Err(OpError::RankFinished { rank }),
            _ => return Err(OpError::RankSuspended { rank }),
        }
        if self.ranks[rank as usize].sharer == NONE {
            // Its client let the world go on without it.
            self.wait_until(rank, self.now, u64::MAX, u64::MAX, -1, 0);
        }
        Ok(())
    }

    /// A rank begins a call.
    fn begin_call(&mut self, rank: u32, name: NameId, site: i32) -> Result<(), OpError> {
        if name.0 as usize >= self.names.list().len() {
            return Err(OpError::NoSuchName { name });
        }
        self.act(rank, 0, Kind::Endpoint, Effect::Name { name: name.0, site });
        let computed = self.computed.get_mut(rank as usize).map_or(0, std::mem::take);
        // Of a rank that may share its core, who else has computed there is known when the call begins.
        let cold = if self.ranks[rank as usize].sharer == NONE { self.model.cold_ps(computed) } else { 0 };
        let known = self.call_of[name.0 as usize] + cold;
        let call = known + self.first_time(rank, name).as_ps();
        self.act(rank, call, Kind::Endpoint, Effect::None);
        Ok(())
    }

    /// What a call takes beyond a later one at its beginning, if it is a rank's first of its kind: it is so no
    /// more. What it takes at its end is kept until then.
    fn first_time(&mut self, rank: u32, name: NameId) -> Span {
        let state = &mut self.ranks[rank as usize];
        let mut new = self.firsts_of[name.0 as usize] & !state.firsts_done;
        state.firsts_done |= new;
        let mut takes = Span::ZERO;
        while new != 0 {
            let first = &self.model.first[new.trailing_zeros() as usize];
            *(if first.at_end { &mut state.first_late } else { &mut takes }) += first.takes;
            new &= new - 1;
        }
        takes
    }

    /// Lets go of a request, which no wait will name: it is forgotten as soon as it is complete.
    ///
    /// # Errors
    /// [`OpError`] if there is no such request of this rank.
    pub fn let_go(&mut self, rank: u32, request: RequestId) -> Result<(), OpError> {
        let index = self.check_request(rank, request)?;
        if self.requests[index as usize].state == RequestState::Active {
            self.requests[index as usize].let_go = true;
        } else {
            self.free_request(index);
        }
        Ok(())
    }

    /// Lets time pass for a rank that its client has kept: it waited for something outside the world until then.
    /// Nothing where the rank's clock is beyond that, or the rank shares cores or is suspended.
    pub fn let_pass(&mut self, rank: u32, until: SimTime) {
        let state = &self.ranks[rank as usize];
        if state.state == State::Running && state.sharer == NONE {
            self.wait_until(rank, until.as_ps(), u64::MAX, u64::MAX, -1, 0);
        }
    }

    /// Lets a rank go on that waits, or watches, for what will not come: the next step resumes it, with nothing.
    /// Only for after a step that found that nothing will happen any more, and before the next.
    pub fn rouse(&mut self, rank: u32) {
        let state = &mut self.ranks[rank as usize];
        if !matches!(state.state, State::Wait(_) | State::Watch) {
            return;
        }
        if state.sharer == NONE {
            self.ready.push(rank);
        } else {
            state.state = State::Wait(WaitMode::Test);
            self.kick(rank);
        }
    }

    /// The same at a time, while other things happen; nothing where the rank does not wait then.
    pub fn rouse_at(&mut self, rank: u32, at: SimTime) {
        self.queue.push(at.as_ps().max(self.now), Event::Rouse { rank });
    }

    /// Goes to the next instant at which a rank can go on: `false` if there is none, because all
    /// have finished or none ever will.
    pub fn step(&mut self) -> bool {
        self.resumed.clear();
        self.completions.clear();
        self.start_kicked();
        std::mem::swap(&mut self.ready, &mut self.ready_now);
        for index in 0..self.ready_now.len() {
            self.resume(self.ready_now[index]);
        }
        self.ready_now.clear();
        while self.resumed.is_empty() {
            let Some((time, first)) = self.queue.pop() else { return false };
            self.now = time;
            let mut next = Some(first);
            while let Some(event) = next {
                if !self.handle(event) {
                    return !self.resumed.is_empty();
                }
                next = self.queue.pop_through(time).map(|(_, event)| event);
            }
        }
        true
    }

    /// The ranks that the last step resumed, with their outcomes.
    pub fn resumed(&self) -> impl ExactSizeIterator<Item = (u32, Outcome<'_>)> {
        self.resumed.iter().map(|(rank, outcome)| {
            let outcome = match *outcome {
                Resumed::Completed { first, end } => Outcome::Completed(&self.completions[first..end]),
                Resumed::Probed(found) => Outcome::Probed(found),
                Resumed::Reached => Outcome::Reached,
            };
            (*rank, outcome)
        })
    }

    /// The ranks that the last step resumed, and where the completions of each begin.
    pub(crate) fn each_resumed(&self, mut each: impl FnMut(u32, u32)) {
        for (rank, outcome) in &self.resumed {
            each(*rank, if let Resumed::Completed { first, .. } = outcome { *first as u32 } else { 0 });
        }
    }

    /// All completions of the last step, those of a rank together.
    pub(crate) fn completions(&self) -> &[Completion] {
        &self.completions
    }

    // Operations.

    /// Does `effect` after `cost` of a core's time: at once on the rank's clock if it has a core of
    /// its own, else when it gets one. Inlined, so that of the effects each operation has its own alone.
    #[inline(always)]
    fn act(&mut self, rank: u32, cost: u64, kind: Kind, effect: Effect) {
        if self.ranks[rank as usize].sharer == NONE {
            self.advance(rank, cost, kind, &effect);
            let at = self.ranks[rank as usize].clock;
            self.apply(rank, at, at - cost, effect);
        } else {
            self.enqueue(rank, cost, kind, effect);
        }
    }

    /// An effect at `at`, after work that began at `began`.
    #[inline(always)]
    fn apply(&mut self, rank: u32, at: u64, began: u64, effect: Effect) {
        match effect {
            Effect::None | Effect::Sleep => {}
            Effect::Name { name, site } => {
                let state = &mut self.ranks[rank as usize];
                state.name = name;
                state.site = site;
            }
            Effect::Send { message } => self.depart(message, at, began),
            Effect::Sent { message } => self.has_left(message),
            Effect::Post { request } => self.match_receive(request, at),
            Effect::Cancel { request } => {
                let number = self.cancels.len() as u32;
                self.cancels.push(request);
                self.open_cancels += 1;
                self.queue.push(at, Event::Cancel { number });
            }
            Effect::Finish => self.finish(rank, at),
        }
    }

    fn post_send(
        &mut self,
        rank: u32,
        context: u32,
        to: u32,
        tag: u32,
        bytes: u64,
        mode: Mode,
    ) -> Result<RequestId, OpError> {
        self.check_peer(to)?;
        check_tag(tag)?;
        let reach = match (rank, to) {
            (rank, to) if rank == to => Reach::Own,
            (rank, to) if self.model.placement[rank as usize] == self.model.placement[to as usize] => {
                Reach::Within
            }
            _ => Reach::Between,
        };
        let protocol = self.protocol(reach, bytes, mode);
        let asked = Asked { context, peer: to, tag };
        let index = self.new_request(Request { is_send: true, asked, bytes, ..Request::new(rank) });
        let request = &mut self.requests[index as usize];
        let id = request.id(index);
        request.order_or_message = id.0;
        let message = self.new_message(Message {
            id: id.0,
            source: rank,
            destination: to,
            context,
            tag,
            bytes,
            transfer: Transfer::new(protocol, mode),
            reach,
            unexpected: false,
            early: false,
            receive: NONE,
            next_work: NONE,
            available: (0, 0),
            sent_at: 0,
            earliest: 0,
            credit: 0,
            receiver_ready: 0,
            cleared_at: 0,
            arrival: 0,
            flight: 0,
            recv_cost: 0,
        });
        self.counts.sent += 1;
        self.counts.longest = self.counts.longest.max(Bytes::new(bytes));
        self.counts.held += 1;
        let cost = match protocol {
            Protocol::Eager | Protocol::Acknowledged => self.costs(reach, bytes).send_ps,
            Protocol::Rendezvous => 0,
            // The envelope alone.
            Protocol::Fetched => self.layer(reach).send_cost_ps(0),
        };
        self.act(rank, cost, Kind::Endpoint, Effect::Send { message });
        Ok(id)
    }

    fn post_recv(&mut self, rank: u32, pattern: Pattern, capacity: u64) -> Result<RequestId, OpError> {
        self.check_pattern(&pattern)?;
        let asked = Asked::of(&pattern);
        let index = self.new_request(Request { asked, bytes: capacity, ..Request::new(rank) });
        let id = self.requests[index as usize].id(index);
        self.act(rank, 0, Kind::Endpoint, Effect::Post { request: index });
        Ok(id)
    }

    fn match_receive(&mut self, index: u32, at: u64) {
        let request = &mut self.requests[index as usize];
        self.posts += 1;
        request.posted_at = at;
        request.order_or_message = self.posts;
        let (rank, pattern, id) = (request.rank, request.asked.pattern(), request.id(index));
        match self.matcher.post(rank, pattern, id.0) {
            PostOutcome::Waits(posted) => self.requests[index as usize].posted = Some(posted),
            PostOutcome::Took { message, .. } => {
                let message = message as u32;
                // An unexpected message is in the slab until it is matched.
                self.messages[message as usize].unexpected = true;
                self.matched(message, index, wiretwin_msg::protocol::Input::Posted);
            }
        }
    }

    fn link_wait(&mut self, rank: u32, requests: &[RequestId]) -> Result<(), OpError> {
        let (mut head, mut last, mut open) = (NONE, NONE, 0);
        for (position, request) in requests.iter().enumerate() {
            let checked = self.check_request(rank, *request).and_then(|index| {
                if self.requests[index as usize].waited {
                    return Err(OpError::RequestTwice { request: *request });
                }
                Ok(index)
            });
            let index = match checked {
                Ok(index) => index,
                Err(error) => {
                    for taken in &requests[..position] {
                        self.requests[index_of(*taken) as usize].waited = false;
                    }
                    return Err(error);
                }
            };
            let one = &mut self.requests[index as usize];
            (one.waited, one.next_wait) = (true, NONE);
            open += u32::from(one.state == RequestState::Active);
            if last == NONE {
                head = index;
            } else {
                self.requests[last as usize].next_wait = index;
            }
            last = index;
        }
        let rank = &mut self.ranks[rank as usize];
        rank.wait_head = head;
        rank.wait_open = open;
        rank.wait_done = requests.len() as u32 - open;
        Ok(())
    }

    // Slabs and checks.

    fn layer(&self, reach: Reach) -> &Layer {
        self.model.layer(reach)
    }

    /// Puts a request into the slab, its generation being the next of its place.
    fn new_request(&mut self, request: Request) -> u32 {
        if let Some(index) = self.free_requests.pop() {
            let place = &mut self.requests[index as usize];
            *place = Request { generation: place.generation + 1, ..request };
            return index;
        }
        self.requests.push(request);
        (self.requests.len() - 1) as u32
    }

    /// What messages of so many bytes cost: most often those of the last one.
    #[inline]
    fn costs(&mut self, reach: Reach, bytes: u64) -> Costs {
        let known = self.known[reach as usize];
        if known.bytes == bytes {
            return known;
        }
        let costs = self.layer(reach).costs(bytes);
        self.known[reach as usize] = costs;
        costs
    }

    fn free_request(&mut self, index: u32) {
        let request = &mut self.requests[index as usize];
        request.state = RequestState::Free;
        (request.waited, request.let_go) = (false, false);
        // A generation that would wrap is not used again: ids stay unique.
        if request.generation < Request::LAST_GENERATION {
            self.free_requests.push(index);
        }
    }

    fn new_message(&mut self, message: Message) -> u32 {
        if let Some(index) = self.free_messages.pop() {
            self.messages[index as usize] = message;
            return index;
        }
        self.messages.push(message);
        (self.messages.len() - 1) as u32
    }

    /// The index of a live request, `None` if it is no more.
    fn live_request(&self, id: u64) -> Option<u32> {
        let index = index_of(RequestId(id));
        let request = self.requests.get(index as usize)?;
        (request.state != RequestState::Free && request.id(index).0 == id).then_some(index)
    }

    fn check_rank(&self, rank: u32) -> Result<(), OpError> {
        if rank < self.size() { Ok(()) } else { Err(OpError::NoSuchRank { rank, size: self.size() }) }
    }

    fn check_peer(&self, peer: u32) -> Result<(), OpError> {
        if peer < self.size() { Ok(()) } else { Err(OpError::NoSuchPeer { peer, size: self.size() }) }
    }

    fn check_pattern(&self, pattern: &Pattern) -> Result<(), OpError> {
        if let Some(source) = pattern.source {
            self.check_peer(source)?;
        }
        pattern.tag.map_or(Ok(()), check_tag)
    }

    fn check_request(&self, rank: u32, request: RequestId) -> Result<u32, OpError> {
        match self.live_request(request.0) {
            Some(index) if self.requests[index as usize].rank == rank => Ok(index),
            Some(index) => {
                Err(OpError::RequestOfAnother { request, rank, owner: self.requests[index as usize].rank })
            }
            None => Err(OpError::NoSuchRequest { request }),
        }
    }

    /// Takes note of something for the digest.
    fn note(&mut self, kind: u32, time: u64, a: u64, b: u64) {
        self.digest.record(TraceEvent { time: SimTime::from_ps(time), kind, a, b });
    }
}

/// Kinds of trace events.
const MATCHED: u32 = 1;
const COMPLETED: u32 = 2;
const CANCELLED: u32 = 3;

/// What a piece of a core's work leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    None,
    /// The time before it was slept.
    Sleep,
    Name {
        name: u32,
        site: i32,
    },
    Send {
        message: u32,
    },
    /// Of a message that has left when its sender began to work on it: it is done.
    Sent {
        message: u32,
    },
    Post {
        request: u32,
    },
    Cancel {
        request: u64,
    },
    Finish,
}

fn check_tag(tag: u32) -> Result<(), OpError> {
    if tag <= LARGEST_TAG { Ok(()) } else { Err(OpError::TagTooLarge { tag }) }
}

const fn index_of(request: RequestId) -> u32 {
    request.0 as u32
}

#[cfg(test)]
mod tests;
