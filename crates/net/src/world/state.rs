//! What a world remembers: ranks, requests, messages in flight, pairs.

use wiretwin_msg::matching::{Pattern, Posted};
use wiretwin_msg::protocol::Transfer;
use wiretwin_msg::table::{Key, mix};
use wiretwin_units::Span;

use super::WaitMode;
use crate::model::Reach;

/// No entry of a slab.
pub(super) const NONE: u32 = u32::MAX;

/// What a rank is doing, as far as its client is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The client may post.
    Running,
    /// Suspended in a wait on the list that begins at `Rank::wait_head`.
    Wait(WaitMode),
    /// Suspended until a message that `Rank::pattern` accepts has arrived.
    Probe,
    /// Suspended until one of such a list is complete, or a message that `Rank::pattern` accepts has arrived.
    Watch,
    /// Suspended until the world knows what has arrived by now.
    ProbeNow,
    /// Suspended until the world has reached the rank's clock.
    Yield,
    /// Ended.
    Finished,
}

/// What a receive or a probe asks for, as a request keeps it: `NONE` stands for any source or tag. Of a send, or of a
/// receive that has taken a message, it is the peer and the tag.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    pub context: u32,
    pub peer: u32,
    pub tag: u32,
}

impl Asked {
    pub(super) const NOTHING: Self = Self { context: 0, peer: NONE, tag: NONE };

    #[inline]
    pub(super) fn of(pattern: &Pattern) -> Self {
        let Pattern { context, source, tag } = *pattern;
        Self { context, peer: source.unwrap_or(NONE), tag: tag.unwrap_or(NONE) }
    }

    #[inline]
    pub(super) fn pattern(self) -> Pattern {
        let given = |one: u32| (one != NONE).then_some(one);
        Pattern { context: self.context, source: given(self.peer), tag: given(self.tag) }
    }
}

/// Two lines of the cache, what every message looks at in the first.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub(super) struct Rank {
    /// Everything before is accounted for; picoseconds.
    pub clock: u64,
    /// When it last entered a suspending call: since then it is inside the library.
    pub in_library_since: u64,
    /// From here the wait that ends now was on the wire (`u64::MAX`: never).
    pub wire_from: u64,
    pub state: State,
    /// A [`crate::queue::Event::Proceed`] is scheduled, or being handled.
    pub pending: bool,
    /// The requests it waits for, linked by `Request::next_wait`.
    pub wait_head: u32,
    /// Of these, how many are not complete.
    pub wait_open: u32,
    /// Of these, how many are complete.
    pub wait_done: u32,
    /// Messages it must handle when inside the library, linked by `Message::next_work`.
    pub work_head: u32,
    pub work_tail: u32,
    /// The message being handled by a rank with a core of its own.
    pub current: u32,
    /// Index among the ranks that share cores, or `NONE`.
    pub sharer: u32,
    /// What the call that it is in takes at its end, being the first of its kind.
    pub first_late: Span,
    /// Picoseconds by [`wiretwin_record::timeline::Kind`].
    pub totals: [u64; 4],
    /// Which of the model's first calls it has made, as bits.
    pub firsts_done: u64,
    pub name: u32,
    pub site: i32,
    /// What it looks for.
    pub sought: Asked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestState {
    Free,
    Active,
    Done,
    Cancelled,
}

/// One line of the cache.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Request {
    pub generation: u32,
    pub rank: u32,
    pub next_wait: u32,
    pub state: RequestState,
    pub is_send: bool,
    pub waited: bool,
    /// No wait will name it.
    pub let_go: bool,
    /// The message was longer than the buffer.
    pub truncated: bool,
    pub posted: Option<Posted>,
    pub asked: Asked,
    /// Of a receive that waits for a message, the buffer's length; of others, the message's.
    pub bytes: u64,
    pub posted_at: u64,
    /// Of a receive that waits for a message, its place in the order of posting; of others, the message.
    pub order_or_message: u64,
}

/// Two lines of the cache.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Message {
    /// The request of its send; unique for ever, so it names the message too.
    pub id: u64,
    pub source: u32,
    pub destination: u32,
    pub context: u32,
    pub tag: u32,
    pub bytes: u64,
    pub transfer: Transfer,
    pub reach: Reach,
    /// Came before its receive was posted.
    pub unexpected: bool,
    /// Its receiver's library read it before that.
    pub early: bool,
    /// The receive that took it (an index), or `NONE`.
    pub receive: u32,
    pub next_work: u32,
    /// Since when its current owner could have handled it, and its place among those of one instant.
    pub available: (u64, u64),
    /// When it left, or its request to send did.
    pub sent_at: u64,
    /// Data cannot arrive before.
    pub earliest: u64,
    /// What the handshake has used of the flight.
    pub credit: u64,
    /// Since when the receiver has been ready for a rendezvous.
    pub receiver_ready: u64,
    /// When the handshake ended; of data that are pushed at once, when those before them arrive if these do so while
    /// the receiver's core is still at work on them, else 0.
    pub cleared_at: u64,
    /// When its latest part (envelope or data) reached the receiver.
    pub arrival: u64,
    /// Of that, the uncontended flight.
    pub flight: u64,
    pub recv_cost: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub source: u32,
    pub destination: u32,
}

impl Key for Pair {
    #[inline]
    fn hash(&self) -> u64 {
        mix(u64::from(self.source), u64::from(self.destination))
    }
}

/// The latest arrivals of one sender's messages at one receiver, scheduled so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PairState {
    pub envelope: u64,
    /// `None` before the first data.
    pub data: Option<Last>,
}

/// The last data of a pair: when they arrive, and what taking them in costs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Last {
    pub at: u64,
    pub recv_cost: u64,
}
