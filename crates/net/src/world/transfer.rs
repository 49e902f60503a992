//! Messages on their way: departure, link, arrival, matching.

use wiretwin_msg::matching::Envelope;
use wiretwin_msg::protocol::{Input, Mode, Next, Protocol, TransferState};
use wiretwin_units::{Bytes, SimTime, Transmitter};

use super::state::{Last, NONE, Pair, Request, RequestState, State};
use super::{MATCHED, World};
use crate::model::Reach;
use crate::queue::Event;

/// How an envelope or data came to the end of what lies between the nodes.
#[derive(Clone, Copy, Default)]
pub(super) struct Crossing {
    /// When its sender was done with it, or when it was through where the ends do not work at the same time.
    pub at: u64,
    /// Time on the way before `at`, without what was spent waiting for others.
    pub on_link: u64,
    /// It does not arrive before.
    pub not_before: u64,
    /// When the last of several packets was there: its receiver has worked on those before it in the meantime.
    pub last_packet: u64,
    /// Of the time after `at`, what it waited for others.
    pub contended: u64,
}

impl World {
    /// An envelope leaves its sender at `at`: with its data, if eager, whose sending began at `began`.
    pub(super) fn depart(&mut self, index: u32, at: u64, began: u64) {
        self.leave(index, at, began);
        self.has_left(index);
    }

    /// The same, or the data of a rendezvous do; the sender's request knows nothing of it yet.
    pub(super) fn leave(&mut self, index: u32, at: u64, began: u64) {
        let message = &mut self.messages[index as usize];
        message.sent_at = at;
        message.earliest = began;
        self.launch(index, at);
    }

    /// A message has left: the request is complete of a send that waits for nothing more.
    pub(super) fn has_left(&mut self, index: u32) {
        let message = &self.messages[index as usize];
        let (id, local) = (message.id, message.transfer.completes_locally());
        if local
            && !self.is_held_back(index)
            && let Some(request) = self.live_request(id)
        {
            // Not noted: its time follows from those of the message.
            self.settle(request, RequestState::Done);
        }
    }

    /// Sends an envelope or data off: over the link, if there is one, else straight to its arrival.
    fn launch(&mut self, index: u32, at: u64) {
        let message = &self.messages[index as usize];
        if message.reach == Reach::Between && self.network.is_some() {
            let entry = self.network_entry(index, message.earliest, at);
            self.queue.push(entry.max(self.now), Event::LinkEnter { message: index });
        } else if message.reach == Reach::Between && self.model.link.is_some() {
            self.queue.push(at.max(self.now), Event::LinkEnter { message: index });
        } else {
            self.fly(index, Crossing { at, ..Crossing::default() });
        }
    }

    pub(super) fn link_enter(&mut self, index: u32) {
        if self.network.is_some() {
            return self.network_enter(index);
        }
        let Some(link) = self.model.link else { return };
        let message = &self.messages[index as usize];
        let node = self.model.placement[message.source as usize] as usize;
        let bytes = if is_envelope_only(message) { 0 } else { message.bytes };
        let (head, _) = on_wire(&mut self.egress[node], self.now, link.message + Bytes::new(bytes));
        self.queue.push(head.saturating_add(link.delay.as_ps()), Event::LinkHead { message: index });
    }

    pub(super) fn link_head(&mut self, index: u32) {
        let Some(link) = self.model.link else { return };
        let message = &self.messages[index as usize];
        let node = self.model.placement[message.destination as usize] as usize;
        let bytes = if is_envelope_only(message) { 0 } else { message.bytes };
        let (start, end) = on_wire(&mut self.ingress[node], self.now, link.message + Bytes::new(bytes));
        self.messages[index as usize].earliest = end;
        let on_link = end - start + link.delay.as_ps();
        self.fly(index, Crossing { at: end, on_link, ..Crossing::default() });
    }

    /// Schedules the arrival of an envelope or data that has crossed what lies between the ends.
    pub(super) fn fly(&mut self, index: u32, crossing: Crossing) {
        let Crossing { at, on_link, not_before, last_packet, contended } = crossing;
        let message = &self.messages[index as usize];
        let bytes = message.bytes;
        let (wanted, flight, recv_cost, gap) = if is_envelope_only(message) {
            let layer = self.layer(message.reach);
            let control = layer.control_flight_ps();
            let fetched = message.transfer.protocol() == Protocol::Fetched;
            let mode = message.transfer.mode();
            let cost = if fetched { layer.fetch_cost_ps(bytes, mode).unwrap_or(0) } else { 0 };
            (at + control, control, cost, 0)
        } else {
            let (reach, earliest, credit) = (message.reach, message.earliest, message.credit);
            let costs = self.costs(reach, bytes);
            let delivery = costs.deliver(at, earliest, credit);
            let begun = delivery.arrival_ps.max(not_before);
            let arrival = begun.max(last_packet);
            let flight = arrival.saturating_sub(at).saturating_sub(contended);
            let spared = arrival - begun;
            (arrival, flight, delivery.recv_cost_ps.saturating_sub(spared), costs.gap_ps)
        };
        let message = &self.messages[index as usize];
        let with_envelope = message.transfer.state() == TransferState::EnvelopeUnderWay;
        let with_data = !is_envelope_only(message);
        let pair = Pair { source: message.source, destination: message.destination };
        let awake = if self.early == 0 { 0 } else { self.layer(message.reach).interrupt_ps(0) };
        let latest = self.pairs.entry(pair, Default::default);
        let mut behind = message.cleared_at;
        let mut arrival = wanted.max(self.now);
        if with_envelope {
            arrival = arrival.max(latest.envelope);
        }
        if with_data {
            if let Some(last) = latest.data {
                // A long message is not taken in behind a short one as late as behind its like.
                let sooner = recv_cost.saturating_sub(last.recv_cost);
                arrival = arrival.max(last.at + gap.saturating_sub(sooner));
                if with_envelope && arrival <= last.at + last.recv_cost.max(awake) {
                    behind = last.at;
                }
            }
            latest.data = Some(Last { at: arrival, recv_cost });
        }
        if with_envelope {
            latest.envelope = arrival;
        }
        let message = &mut self.messages[index as usize];
        message.arrival = arrival;
        message.cleared_at = behind;
        message.flight = flight + on_link;
        message.recv_cost = recv_cost;
        let event = if with_envelope {
            Event::Arrive { message: index }
        } else {
            Event::DataArrive { message: index }
        };
        self.queue.push(arrival, event);
    }

    /// An envelope is there.
    pub(super) fn arrive(&mut self, index: u32) {
        let message = &self.messages[index as usize];
        let envelope = Envelope { context: message.context, source: message.source, tag: message.tag };
        let destination = message.destination;
        let taken = self.matcher.arrive(destination, envelope, u64::from(index));
        match taken {
            Some(request) => {
                // A posted receive is live until it is matched or cancelled.
                let request = self.live_request(request).expect("a posted receive is live");
                // Posted at a clock that runs ahead of this arrival.
                self.messages[index as usize].unexpected =
                    self.requests[request as usize].posted_at > self.now;
                self.matched(index, request, Input::ArrivedMatched);
            }
            None => {
                self.transition(index, Input::ArrivedUnexpected);
                let rank = &self.ranks[destination as usize];
                self.messages[index as usize].early = !matches!(rank.state, State::Running | State::Finished);
                if matches!(rank.state, State::Probe | State::Watch)
                    && rank.sought.pattern().accepts(&envelope)
                {
                    self.notify(destination);
                }
            }
        }
    }

    /// A receive and a message have found each other.
    pub(super) fn matched(&mut self, index: u32, request: u32, how: Input) {
        let message = &mut self.messages[index as usize];
        message.receive = request;
        let Request { posted_at, order_or_message: post_order, .. } = self.requests[request as usize];
        message.receiver_ready = posted_at;
        let (id, source, destination, arrival) =
            (message.id, message.source, message.destination, message.arrival);
        let taken = &mut self.requests[request as usize];
        taken.posted = None;
        (taken.asked.peer, taken.asked.tag) = (source, message.tag);
        taken.truncated = message.bytes > taken.bytes;
        taken.bytes = message.bytes;
        taken.order_or_message = id;
        let receive = taken.id(request).0;
        self.note_early(index, posted_at);
        self.note(MATCHED, posted_at.max(arrival), id, receive);
        self.transition(index, how);
        // What came before its receive was posted is handled in the order of posting.
        let available = if posted_at >= arrival { (posted_at, post_order) } else { (arrival, 0) };
        self.push_work(destination, index, available);
    }

    pub(super) fn data_arrive(&mut self, index: u32) {
        let destination = self.messages[index as usize].destination;
        self.transition(index, Input::DataArrived);
        self.push_work(destination, index, (self.now, 0));
    }

    /// How a message of `bytes` crosses; over a link or a network data are always pushed. Choice: over a link, and packet
    /// by packet, a synchronous one goes by rendezvous, however short it is.
    pub(super) fn protocol(&self, reach: Reach, bytes: u64, mode: Mode) -> Protocol {
        let layer = self.layer(reach);
        let is_remote = reach == Reach::Between && (self.model.link.is_some() || self.network.is_some());
        let fetches = layer.fetch.is_some() && !is_remote;
        let has_fin = !is_remote || self.network.as_ref().is_some_and(|network| network.carrier.is_none());
        let waits = matches!(mode, Mode::Standard | Mode::Ready | Mode::Unchanged)
            && layer.acknowledged_from.is_some_and(|from| bytes >= from.get());
        match Protocol::choose(mode, bytes, layer.rendezvous_from.map(|from| from.get())) {
            Protocol::Rendezvous if fetches => Protocol::Fetched,
            Protocol::Eager if waits && has_fin => Protocol::Acknowledged,
            Protocol::Acknowledged if !has_fin => Protocol::Rendezvous,
            chosen => chosen,
        }
    }

    /// A receiver has a message whose sender is to know: its FIN leaves.
    pub(super) fn send_fin(&mut self, index: u32) {
        let crossing = self.network_fin(index);
        let message = &self.messages[index as usize];
        let flight = self.layer(message.reach).control_flight_ps().saturating_add(crossing);
        let message = &mut self.messages[index as usize];
        message.flight = flight;
        message.arrival = self.now + flight;
        self.queue.push(message.arrival, Event::Fin { message: index });
    }

    /// It is there.
    pub(super) fn fin(&mut self, index: u32) {
        let source = self.messages[index as usize].source;
        self.push_work(source, index, (self.now, 0));
    }

    /// Tells the protocol machine what happened.
    pub(super) fn transition(&mut self, index: u32, input: Input) -> Next {
        let transfer = &mut self.messages[index as usize].transfer;
        // Inputs come only from the events that the machine's own outputs scheduled.
        transfer.handle(input).expect("the world follows the protocol")
    }

    /// A message calls for `rank` to act when it is next inside the library. Work is done in the order
    /// in which it became available; where the rank has run ahead, that may lie in the world's future.
    pub(super) fn push_work(&mut self, rank: u32, index: u32, available: (u64, u64)) {
        let (head, tail) = {
            let state = &self.ranks[rank as usize];
            (state.work_head, state.work_tail)
        };
        // Nearly always the last.
        let mut before = tail;
        if tail != NONE && self.messages[tail as usize].available > available {
            before = NONE;
            let mut at = head;
            while self.messages[at as usize].available <= available {
                before = at;
                at = self.messages[at as usize].next_work;
            }
        }
        let next = if before == NONE { head } else { self.messages[before as usize].next_work };
        let message = &mut self.messages[index as usize];
        message.available = available;
        message.next_work = next;
        if before != NONE {
            self.messages[before as usize].next_work = index;
        }
        let state = &mut self.ranks[rank as usize];
        if before == NONE {
            state.work_head = index;
        }
        if next == NONE {
            state.work_tail = index;
        }
        self.notify(rank);
    }

    pub(super) fn pop_work(&mut self, rank: u32) -> Option<u32> {
        let state = &mut self.ranks[rank as usize];
        let index = state.work_head;
        if index == NONE {
            return None;
        }
        state.work_head = self.messages[index as usize].next_work;
        if state.work_head == NONE {
            state.work_tail = NONE;
        }
        Some(index)
    }
}

/// When the first bit of so many bytes leaves on a wire that is given them now, and when the last one has left, in ps:
/// at the end of time if that is later.
fn on_wire(wire: &mut Transmitter, now: u64, bytes: Bytes) -> (u64, u64) {
    let sent = wire.send(SimTime::from_ps(now), bytes.bits());
    sent.map_or((u64::MAX, u64::MAX), |sent| (sent.start.as_ps(), sent.end.as_ps()))
}

/// Whether what is under way is a request to send, without data.
pub(super) fn is_envelope_only(message: &super::state::Message) -> bool {
    !message.transfer.protocol().pushes_at_once()
        && message.transfer.state() == TransferState::EnvelopeUnderWay
}
