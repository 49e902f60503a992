//! Ranks inside the library: suspension, progress of their messages, resumption.

use wiretwin_msg::protocol::{Input, Next, Protocol, TransferState};
use wiretwin_record::timeline::Kind;
use wiretwin_units::{Bytes, Span};

use super::state::{Asked, Message, NONE, Rank, Request, RequestState, State};
use super::{CANCELLED, COMPLETED, Completion, Found, RequestId, Resumed, WaitMode, World};
use crate::packet;
use crate::queue::Event;

/// What a rank inside the library does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Works on a message for so long.
    Handle { message: u32, cost: u64 },
    /// Has been resumed.
    Resumed,
    /// Has nothing to do until something arrives.
    Idle,
}

impl World {
    /// Handles one event: `false` if nothing but idle polling is left, for ever.
    pub(super) fn handle(&mut self, event: Event) -> bool {
        match event {
            Event::Arrive { message } if !self.is_held(message, event) => self.arrive(message),
            Event::DataArrive { message } if !self.is_held(message, event) => self.data_arrive(message),
            Event::Arrive { .. } | Event::DataArrive { .. } => {}
            Event::Interrupt { message } => self.interrupt(message),
            Event::InterruptsEnd { core } => self.pick_anew(core),
            Event::Fin { message } => self.fin(message),
            Event::LinkEnter { message } => self.link_enter(message),
            Event::LinkHead { message } => self.link_head(message),
            Event::Share => self.network_share(),
            Event::Flow { flow } => self.network_timer(flow),
            Event::Proceed { rank } => self.proceed(rank),
            Event::Rouse { rank } => self.roused(rank),
            Event::Cancel { number } => self.cancel(number),
            Event::Core { core, epoch } => self.core_event(core, epoch),
            Event::Awake { sharer } => self.awake(sharer),
            Event::Slice { queue } => return self.slice_event(queue),
            Event::Packet { kind, number } => self.network_packet(packet::Event { kind, number }),
        }
        true
    }

    /// Suspends a running rank.
    pub(super) fn suspend(&mut self, rank: u32, state: State) {
        let suspended = &mut self.ranks[rank as usize];
        suspended.state = state;
        suspended.wire_from = u64::MAX;
        if suspended.sharer != NONE {
            self.kick(rank);
            return;
        }
        suspended.in_library_since = suspended.clock;
        let since = suspended.clock;
        self.rank_reads(rank, since);
        if matches!(state, State::Wait(mode) if mode != WaitMode::Test) {
            if self.is_satisfied(rank) {
                self.ready.push(rank);
            } else if self.ranks[rank as usize].work_head != NONE {
                self.schedule_proceed(rank);
            }
        } else {
            self.schedule_proceed(rank);
        }
    }

    /// A rank has ended. What it still owes (the data of buffered sends) it pushes as `MPI_Finalize` does.
    pub(super) fn finish(&mut self, rank: u32, at: u64) {
        let state = &mut self.ranks[rank as usize];
        state.state = State::Finished;
        state.in_library_since = at;
        self.rank_reads(rank, at);
        let state = &self.ranks[rank as usize];
        if state.sharer == NONE && state.work_head != NONE {
            self.schedule_proceed(rank);
        }
    }

    fn schedule_proceed(&mut self, rank: u32) {
        let state = &mut self.ranks[rank as usize];
        state.pending = true;
        self.queue.push(state.clock.max(self.now), Event::Proceed { rank });
    }

    /// A rank is to go on that waits, or watches, with nothing, when it has done what it has begun.
    fn roused(&mut self, rank: u32) {
        let state = &self.ranks[rank as usize];
        if !matches!(state.state, State::Wait(_) | State::Watch) {
            return;
        }
        if state.sharer != NONE {
            self.ranks[rank as usize].state = State::Wait(WaitMode::Test);
            self.wake(rank);
        } else if state.pending || state.clock > self.now {
            let at = state.clock.max(self.now);
            self.queue.push(at, Event::Rouse { rank });
        } else {
            self.resume(rank);
        }
    }

    /// Something has happened that concerns `rank`: it goes on, if it is inside the library and free.
    pub(super) fn notify(&mut self, rank: u32) {
        let state = &self.ranks[rank as usize];
        if state.state == State::Running {
            return;
        }
        if state.sharer != NONE {
            self.wake(rank);
        } else if !state.pending {
            if state.clock <= self.now {
                self.proceed(rank);
            } else {
                self.schedule_proceed(rank);
            }
        }
    }

    /// A rank with a core of its own goes on, its clock being reached.
    fn proceed(&mut self, rank: u32) {
        let state = &mut self.ranks[rank as usize];
        state.pending = true;
        let current = std::mem::replace(&mut state.current, NONE);
        if current != NONE {
            self.finish_work(rank, current);
        }
        let next = self.next_step(rank);
        let state = &mut self.ranks[rank as usize];
        if let Step::Handle { message, cost } = next {
            // Data that the rank pushes are on their own way at once; the rest is done when it has worked.
            if self.messages[message as usize].transfer.state() != TransferState::DataUnderWay {
                state.current = message;
            }
            self.spend_on(rank, message, cost);
            self.schedule_proceed(rank);
        } else {
            state.pending = false;
        }
    }

    /// Charges a rank for its work on a message, and lets data whose ends overlap leave.
    fn spend_on(&mut self, rank: u32, index: u32, cost: u64) {
        let message = &self.messages[index as usize];
        let peer = if message.source == rank { message.destination } else { message.source };
        let (bytes, pushing) = (message.bytes, message.transfer.state() == TransferState::DataUnderWay);
        self.spend(rank, cost, Kind::Endpoint, peer as i32, bytes);
        if pushing {
            let end = self.ranks[rank as usize].clock;
            self.leave(index, end, end - cost);
        }
    }

    /// What a suspended rank that is free does now. Work without cost is done here.
    pub(super) fn next_step(&mut self, rank: u32) -> Step {
        loop {
            let over = match self.ranks[rank as usize].state {
                State::Running => return Step::Idle,
                State::Wait(WaitMode::Test) => self.ranks[rank as usize].wait_open == 0,
                State::Wait(_) => self.is_satisfied(rank),
                State::Yield => true,
                State::Probe => self.found(rank).is_some(),
                State::Watch => self.is_satisfied(rank) || self.found(rank).is_some(),
                State::ProbeNow | State::Finished => false,
            };
            if over {
                self.resume(rank);
                return Step::Resumed;
            }
            let Some(index) = self.pop_work(rank) else {
                let at_once =
                    matches!(self.ranks[rank as usize].state, State::ProbeNow | State::Wait(WaitMode::Test));
                if at_once {
                    self.resume(rank);
                    return Step::Resumed;
                }
                return Step::Idle;
            };
            let cost = self.begin_work(rank, index);
            if cost > 0 {
                return Step::Handle { message: index, cost };
            }
            if self.messages[index as usize].transfer.state() == TransferState::DataUnderWay {
                self.leave(index, self.now, self.now);
            }
            self.finish_work(rank, index);
        }
    }

    /// A rank takes up what a message calls for; returns what that costs.
    fn begin_work(&mut self, rank: u32, index: u32) -> u64 {
        let message = &self.messages[index as usize];
        let layer = self.layer(message.reach);
        let (peer, bytes) = (message.source as i32, message.bytes);
        match message.transfer.state() {
            TransferState::Matched => {
                let message = &mut self.messages[index as usize];
                message.receiver_ready =
                    message.receiver_ready.max(self.ranks[rank as usize].in_library_since);
                message.cleared_at = self.now;
                0
            }
            TransferState::Cleared => {
                let cost = layer.send_cost_ps(bytes);
                // Both ends may have been ready while the request to send was still on its way: the
                // transfer began then, and the layer's time for it includes the handshake.
                let ready = message
                    .receiver_ready
                    .max(message.sent_at)
                    .max(self.ranks[rank as usize].in_library_since);
                let credit = message.cleared_at.saturating_sub(ready).min(layer.control_flight_ps());
                let destination = message.destination as i32;
                self.messages[index as usize].credit = credit;
                self.wait_until(rank, self.now, u64::MAX, u64::MAX, destination, bytes);
                self.transition(index, Input::Push);
                cost
            }
            TransferState::FinUnderWay => {
                let cost = layer.recv_cost_ps(0);
                let (arrival, flight, peer) = (message.arrival, message.flight, message.destination as i32);
                self.wait_until(rank, self.now, arrival.saturating_sub(flight), arrival, peer, bytes);
                cost
            }
            _ => {
                let protocol = message.transfer.protocol();
                let copy = if message.unexpected && protocol.pushes_at_once() {
                    layer.unexpected_copy_ps(bytes)
                } else {
                    0
                };
                // What a receiver fetches was measured with its FIN.
                let fin = if protocol == Protocol::Acknowledged { layer.send_cost_ps(0) } else { 0 };
                let cost = message.recv_cost + copy + fin;
                let (arrival, flight) = (message.arrival, message.flight);
                let cost = cost + if self.early == 0 { 0 } else { self.early_ps(rank, index) };
                self.wait_until(rank, self.now, arrival.saturating_sub(flight), arrival, peer, bytes);
                cost
            }
        }
    }

    /// The work on a message is done.
    pub(super) fn finish_work(&mut self, rank: u32, index: u32) {
        match self.messages[index as usize].transfer.state() {
            TransferState::Matched => {
                self.transition(index, Input::Clear);
                if !self.network_clear(index) {
                    let source = self.messages[index as usize].source;
                    self.push_work(source, index, (self.now, 0));
                }
            }
            // The sender's part is done; the data are on their way.
            TransferState::DataUnderWay => {}
            TransferState::FinUnderWay => {
                let next = self.transition(index, Input::FinSeen);
                let id = self.messages[index as usize].id;
                self.free_messages.push(index);
                if let Next::Done { sender_completes: true } = next
                    && let Some(request) = self.live_request(id)
                {
                    self.complete(request, RequestState::Done);
                }
            }
            _ => {
                let next = self.transition(index, Input::TakenIn);
                let message = &self.messages[index as usize];
                let (id, source, receive, pushed) =
                    (message.id, message.source, message.receive, message.sent_at);
                self.counts.delivered += 1;
                self.counts.held -= 1;
                debug_assert_eq!(self.requests[receive as usize].rank, rank);
                self.complete(receive, RequestState::Done);
                if next == Next::FinTravels {
                    self.send_fin(index);
                    return;
                }
                self.free_messages.push(index);
                if let Next::Done { sender_completes: true } = next
                    && let Some(request) = self.live_request(id)
                {
                    self.ranks[source as usize].wire_from = pushed;
                    self.complete(request, RequestState::Done);
                }
            }
        }
    }

    /// A request is complete, or cancelled, and the digest takes note.
    pub(super) fn complete(&mut self, index: u32, state: RequestState) {
        let request = &self.requests[index as usize];
        let (rank, id) = (request.rank, request.id(index).0);
        let time = self.now.max(self.ranks[rank as usize].clock);
        let kind = if state == RequestState::Cancelled { CANCELLED } else { COMPLETED };
        self.note(kind, time, id, u64::from(rank));
        self.settle(index, state);
    }

    /// A request is complete, or cancelled.
    pub(super) fn settle(&mut self, index: u32, state: RequestState) {
        let request = &mut self.requests[index as usize];
        request.state = state;
        if request.let_go {
            self.free_request(index);
        } else if request.waited {
            let rank = request.rank;
            let owner = &mut self.ranks[rank as usize];
            owner.wait_open -= 1;
            owner.wait_done += 1;
            if self.is_satisfied(rank) {
                self.notify(rank);
            }
        }
    }

    fn cancel(&mut self, number: u32) {
        let id = self.cancels[number as usize];
        self.open_cancels -= 1;
        if self.open_cancels == 0 {
            self.cancels.clear();
        }
        let Some(index) = self.live_request(id) else { return };
        let Some(posted) = self.requests[index as usize].posted else { return };
        if self.matcher.cancel(posted, id) {
            self.requests[index as usize].posted = None;
            self.complete(index, RequestState::Cancelled);
        }
    }

    pub(super) fn is_satisfied(&self, rank: u32) -> bool {
        let state = &self.ranks[rank as usize];
        match state.state {
            State::Wait(WaitMode::All) => state.wait_open == 0,
            State::Wait(WaitMode::Any | WaitMode::Some) => state.wait_done > 0 || state.wait_open == 0,
            State::Wait(WaitMode::Test) => true,
            State::Watch => state.wait_done > 0,
            _ => false,
        }
    }

    pub(super) fn found(&self, rank: u32) -> Option<Found> {
        let (envelope, message) = self.matcher.probe(rank, &self.ranks[rank as usize].sought.pattern())?;
        let message = &self.messages[message as usize];
        Some(Found {
            source: envelope.source,
            tag: envelope.tag,
            bytes: Bytes::new(message.bytes),
            message: RequestId(message.id),
        })
    }

    /// Hands a suspended rank back to its client.
    pub(super) fn resume(&mut self, rank: u32) {
        let outcome = match self.ranks[rank as usize].state {
            State::Wait(mode) => self.collect(rank, mode),
            State::Watch => self.collect(rank, WaitMode::Some),
            State::Probe | State::ProbeNow => Resumed::Probed(self.found(rank)),
            _ => Resumed::Reached,
        };
        let wire_from = match outcome {
            Resumed::Probed(Some(found)) => self.wire_from(rank, found),
            _ => self.ranks[rank as usize].wire_from,
        };
        self.wait_until(rank, self.now, wire_from, u64::MAX, -1, 0);
        self.ranks[rank as usize].state = State::Running;
        self.rank_reads_no_more(rank);
        self.resumed.push((rank, outcome));
    }

    /// From when the message that a probe found was on the wire.
    fn wire_from(&self, rank: u32, found: Found) -> u64 {
        let probed = self.matcher.probe(rank, &self.ranks[rank as usize].sought.pattern());
        probed.map_or(u64::MAX, |(_, message)| {
            let message = &self.messages[message as usize];
            debug_assert_eq!(message.id, found.message.0);
            message.arrival.saturating_sub(message.flight)
        })
    }

    /// Takes what a wait returns out of its list, and lets the others go.
    fn collect(&mut self, rank: u32, mode: WaitMode) -> Resumed {
        let first = self.completions.len();
        let mut at = std::mem::replace(&mut self.ranks[rank as usize].wait_head, NONE);
        while at != NONE {
            let index = at;
            let request = &mut self.requests[index as usize];
            at = std::mem::replace(&mut request.next_wait, NONE);
            request.waited = false;
            let full = mode == WaitMode::Any && self.completions.len() > first;
            if request.state == RequestState::Active || full {
                continue;
            }
            self.completions.push(Completion {
                request: request.id(index),
                source: if request.is_send { rank } else { request.asked.peer },
                tag: request.asked.tag,
                bytes: Bytes::new(request.bytes),
                message: RequestId(request.order_or_message),
                number: 0,
                truncated: request.truncated,
                cancelled: request.state == RequestState::Cancelled,
                failed: false,
            });
            self.free_request(index);
        }
        Resumed::Completed { first, end: self.completions.len() }
    }
}

impl Rank {
    pub(super) const fn new(sharer: u32) -> Self {
        Self {
            clock: 0,
            totals: [0; 4],
            in_library_since: 0,
            wire_from: u64::MAX,
            sought: Asked::NOTHING,
            state: State::Running,
            wait_head: NONE,
            wait_open: 0,
            wait_done: 0,
            work_head: NONE,
            work_tail: NONE,
            current: NONE,
            name: 0,
            site: -1,
            firsts_done: 0,
            first_late: Span::ZERO,
            sharer,
            pending: false,
        }
    }

    pub(super) const fn is_suspended(&self) -> bool {
        !matches!(self.state, State::Running | State::Finished)
    }
}

impl Request {
    pub(super) const LAST_GENERATION: u32 = i32::MAX as u32;

    /// A receive of the first generation.
    pub(super) const fn new(rank: u32) -> Self {
        Self {
            generation: 1,
            rank,
            next_wait: NONE,
            state: RequestState::Active,
            is_send: false,
            waited: false,
            let_go: false,
            truncated: false,
            posted: None,
            asked: Asked::NOTHING,
            bytes: 0,
            posted_at: 0,
            order_or_message: 0,
        }
    }

    /// The id of the request in this place.
    pub(super) const fn id(&self, index: u32) -> RequestId {
        RequestId(((self.generation as u64) << 32) | index as u64)
    }
}

const _: () = assert!(size_of::<Message>() == 128, "a message is two lines of the cache");
const _: () = assert!(size_of::<Rank>() == 128, "a rank is two lines of the cache");
const _: () = assert!(size_of::<Request>() == 64, "a request is one line of the cache");
