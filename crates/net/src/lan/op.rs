//! What ranks ask for, and what it came to.

use std::fmt;

use wiretwin_msg::library::{Failure, Refusal, Wish};
use wiretwin_units::{Bytes, Span};

/// Names a request of a network. Never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// An operation of a rank.
#[derive(Clone, Copy, Debug)]
pub enum Op<'a> {
    /// Works on its own for this long.
    Compute(Span),
    /// Starts a send; returns its request.
    Send {
        /// The receiver.
        to: u32,
        /// The tag.
        tag: u32,
        /// The length of the message.
        bytes: Bytes,
    },
    /// Starts a send of one message to several ranks, in order and without the rank itself; returns its request.
    Multicast {
        /// The receivers.
        to: &'a [u32],
        /// The tag.
        tag: u32,
        /// The length of the message.
        bytes: Bytes,
    },
    /// Asks for what is no message; returns its request, whose completion has the number that it came to.
    Wish(&'a Wish),
    /// Posts a receive; returns its request.
    Recv {
        /// Whose message; `None` takes anyone's.
        from: Option<u32>,
        /// Which tag; `None` takes any.
        tag: Option<u32>,
        /// The length of the buffer.
        capacity: Bytes,
    },
    /// Sleeps for this long; suspends.
    Pause(Span),
    /// Suspends until all of these are complete, and everything posted before is done.
    Wait(&'a [RequestId]),
    /// The rank has ended.
    Finish,
}

/// A request that is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The request; it is no more.
    pub request: RequestId,
    /// The sender.
    pub source: u32,
    /// The tag.
    pub tag: u32,
    /// The length of the message, even if it is longer than the buffer.
    pub bytes: Bytes,
    /// The send that made the message.
    pub message: RequestId,
    /// The message was longer than the buffer.
    pub truncated: bool,
    /// Of a wish: what it came to.
    pub number: u32,
    /// It came to nothing; then nothing else here says anything.
    pub failure: Option<Failure>,
}

/// What was lost, by why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Cells lost on links.
    pub on_links: u64,
    /// Cells that a switch had no room or no circuit for.
    pub in_switches: u64,
    /// Cells that an adapter had no room or no circuit for.
    pub in_adapters: u64,
    /// PDUs whose check failed for want of a cell.
    pub pdus: u64,
    /// Those of them that did not come whole before their reassembly timer ran out.
    pub timed_out: u64,
    /// Datagrams that lacked a fragment for too long, and damaged ones.
    pub datagrams: u64,
    /// PDUs and datagrams that the receiving process had no room for.
    pub unread: u64,
}

/// Why an operation was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LanError {
    /// There is no such rank.
    NoSuchRank {
        /// The rank.
        rank: u32,
        /// How many there are.
        size: u32,
    },
    /// The rank waits, or has ended.
    NotRunning {
        /// The rank.
        rank: u32,
    },
    /// A rank sends to itself, which this interface cannot.
    ToItself {
        /// The rank.
        rank: u32,
    },
    /// A message without octets, which this interface cannot carry.
    Empty,
    /// A message that is longer than a PDU may be, where messages are not cut.
    TooLong {
        /// Its length.
        bytes: Bytes,
        /// The longest there may be.
        most: Bytes,
    },
    /// The message layer has no such thing.
    Unsupported(&'static str),
    /// No request of this number is open.
    NoSuchRequest {
        /// The number.
        request: RequestId,
    },
}

impl LanError {
    /// What a library has refused.
    pub(super) const fn of(refusal: Refusal, rank: u32, bytes: Bytes) -> Self {
        match refusal {
            Refusal::ToItself => Self::ToItself { rank },
            Refusal::Empty => Self::Empty,
            Refusal::TooLong { most } => Self::TooLong { bytes, most },
            Refusal::Unsupported(what) => Self::Unsupported(what),
        }
    }
}

impl fmt::Display for LanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchRank { rank, size } => write!(f, "no rank {rank} here: ranks are 0 to {}", size - 1),
            Self::NotRunning { rank } => write!(f, "rank {rank} waits or has ended: it posts nothing"),
            Self::ToItself { rank } => {
                write!(f, "rank {rank} sends to itself: this interface has connections between hosts only")
            }
            Self::Empty => f.write_str("a message of 0 bytes: this interface carries 1 or more"),
            Self::TooLong { bytes, most } => write!(
                f,
                "a message of {} bytes: this interface takes at most {}, and messages are not cut",
                bytes.get(),
                most.get()
            ),
            Self::Unsupported(what) => write!(f, "this interface cannot do that: {what}"),
            Self::NoSuchRequest { request } => write!(f, "no request {} is open", request.0),
        }
    }
}

impl std::error::Error for LanError {}
