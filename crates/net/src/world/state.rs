//! What a world remembers: ranks, requests, messages in flight, pairs.

use wiretwin_msg::matching::{Pattern, Posted};
use wiretwin_msg::protocol::Transfer;
use wiretwin_msg::table::{Key, mix};
use wiretwin_units::Span;

use super::WaitMode;

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

#[derive(Clone, Debug)]
pub(super) struct Rank {
    /// Everything before is accounted for; picoseconds.
    pub clock: u64,
    /// Picoseconds by [`wiretwin_record::timeline::Kind`].
    pub totals: [u64; 4],
    /// When it last entered a suspending call: since then it is inside the library.
    pub in_library_since: u64,
    /// From here the wait that ends now was on the wire (`u64::MAX`: never).
    pub wire_from: u64,
    pub pattern: Pattern,
    pub state: State,
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
    pub name: u32,
    pub site: i32,
    /// Which of the model's first calls it has made, as bits.
    pub firsts_done: u64,
    /// What the call that it is in takes at its end, being the first of its kind.
    pub first_late: Span,
    /// Index among the ranks that share cores, or `NONE`.
    pub sharer: u32,
    /// A [`crate::queue::Event::Proceed`] is scheduled, or being handled.
    pub pending: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestState {
    Free,
    Active,
    Done,
    Cancelled,
}

#[derive(Clone, Debug)]
pub(super) struct Request {
    pub generation: u32,
    pub rank: u32,
    pub next_wait: u32,
    pub state: RequestState,
    pub is_send: bool,
    pub waited: bool,
    /// No wait will name it.
    pub let_go: bool,
    pub posted: Option<Posted>,
    /// A receive: what it asks for. A send: what it sent.
    pub pattern: Pattern,
    pub posted_at: u64,
    /// A receive: its place in the order of posting.
    pub post_order: u64,
    /// A receive: the buffer's length. A send: the message's.
    pub capacity: u64,
    /// Of a send: the destination. Of a complete receive: the sender.
    pub peer: u32,
    pub tag: u32,
    pub bytes: u64,
    pub message: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Message {
    /// The request of its send; unique for ever, so it names the message too.
    pub id: u64,
    pub source: u32,
    pub destination: u32,
    pub context: u32,
    pub tag: u32,
    pub bytes: u64,
    pub transfer: Transfer,
    pub inter: bool,
    /// Came before its receive was posted.
    pub unexpected: bool,
    /// The receive that took it (an index), or `NONE`.
    pub receive: u32,
    pub next_work: u32,
    /// Since when its current owner could have handled it, and its place among those of one instant.
    pub available: (u64, u64),
    /// When it left, or its request to send did.
    pub sent_at: u64,
    /// Data cannot arrive before.
    pub earliest: u64,
    /// When it entered the network, and by which of its routes.
    pub entered: u64,
    pub route: u32,
    /// The message that enters the network by the same route after it.
    pub next_on_route: u32,
    /// What the handshake has used of the flight.
    pub credit: u64,
    /// Since when the receiver has been ready for a rendezvous.
    pub receiver_ready: u64,
    /// When the handshake ended.
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
        mix(0, u64::from(self.source) | (u64::from(self.destination) << 32))
    }
}

/// The latest arrivals of one sender's messages at one receiver, scheduled so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PairState {
    pub envelope: u64,
    /// `None` before the first data.
    pub data: Option<u64>,
}
