//! The way of nearly every short message: one call where nothing is before it, without the queues of the long way.
//!
//! Each call either does all that [`Machine::send`], [`Machine::handle_frame`] and [`Machine::poll_output`] would do
//! for the message, or does nothing and leaves it to them.

use wiretwin_units::SimTime;
use wiretwin_wire::direct::{Body, Extent, HEADER_OCTETS, Head, Repr};

use super::super::event::{Frame, Message};
use super::super::transfer::Item;
use super::{Machine, State};
use crate::{MessageId, Payload};

impl Machine {
    /// Whether something waits to be handed up, or to be sent as soon as it may.
    #[must_use]
    #[inline]
    pub fn has_output(&self) -> bool {
        !self.ready.is_empty()
            || !self.replies.is_empty()
            || self.greeting.is_some()
            || self.sender.has_wanted()
            || self.outbox.has_next()
            || self.ack_at.is_some_and(|at| at <= self.now)
    }

    /// When [`Machine::handle_timeout`] is to be called, where nothing waits for room.
    #[must_use]
    #[inline]
    pub fn due(&self) -> Option<SimTime> {
        // An acknowledgment that is due waits for room. A time that a frame has overtaken is still to be handled.
        let ack_at = self.ack_at.filter(|&at| at > self.now);
        earlier(earlier(self.rto_at, ack_at), earlier(self.hello_at, self.chooser.due()))
    }

    /// Sends a message that fits in one frame, for which the device has room: the frame. Nothing is done and nothing
    /// returned where the message has to wait, or to go another way.
    #[inline]
    pub fn send_at_once(&mut self, now: SimTime, message: Message) -> Option<Frame> {
        let Message { id, length, tag, data, pushed } = message;
        let head = Head { tag, data, extent: Extent::Whole };
        let eager = if self.is_peer_short() { 0 } else { self.config.eager.get() };
        let room = self.config.frame.get() - (HEADER_OCTETS + head.octets()) as u64;
        let may_go = self.state == State::Open
            && !pushed
            && length.get() <= eager.min(room)
            && self.sender.is_open()
            && self.sender.unacknowledged() < self.window.frames() as usize
            && (self.outbox.waiting() as u32) < self.config.queue;
        // What is due at this time goes behind it, as it would.
        let is_first = self.ready.is_empty()
            && self.replies.is_empty()
            && self.greeting.is_none()
            && !self.sender.has_wanted()
            && !self.outbox.has_next();
        if !may_go || !is_first {
            return None;
        }
        self.now = now;
        Some(self.send_new(Item::Message {
            head: Some(head),
            payload: Payload::whole(id, length),
            ends: true,
        }))
    }

    /// Takes a frame that brings a whole message, the next in order, while nothing else is to be handed up: the message's
    /// own fields; all that follows them in the frame are its bytes. The messages that the frame acknowledges are handed
    /// to `sent`. Nothing is done and nothing returned for any other frame.
    #[inline]
    pub fn take_at_once(
        &mut self,
        now: SimTime,
        repr: &Repr,
        mut sent: impl FnMut(MessageId),
    ) -> Option<Head> {
        let Body::Message { number, head: Some(head) } = repr.body else { return None };
        let is_next = head.extent == Extent::Whole
            && repr.key == self.local.key
            && number == self.receiver.vr_r
            && self.receiver.room() > 0
            && self.ready.is_empty()
            && self.sender.accepts(None, repr.received, &[]);
        let remote = self.remote.as_mut().filter(|remote| is_next && remote.epoch == Some(repr.epoch))?;
        remote.short = repr.short;
        self.now = now;
        let before = self.sender.vt_a;
        self.sender.acknowledge_with(repr.received, |item| item.ends().into_iter().for_each(&mut sent));
        self.granted(before, repr.received, repr.granted);
        self.receiver.pass(1);
        self.counters.received += 1;
        self.unreported += 1;
        self.report();
        Some(head)
    }
}

/// The earlier of two times, where either may not be set.
const fn earlier(one: Option<SimTime>, other: Option<SimTime>) -> Option<SimTime> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if one.as_ps() < other.as_ps() { one } else { other }),
        (Some(_), None) => one,
        _ => other,
    }
}
