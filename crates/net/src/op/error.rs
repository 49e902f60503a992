//! Why an operation was rejected.

use thiserror::Error;
use wiretwin_msg::library::Refusal;
use wiretwin_units::Bytes;

use super::{NameId, RequestId};

/// The largest tag (`MPI_TAG_UB`).
pub(crate) const LARGEST_TAG: u32 = i32::MAX as u32;

/// An operation that was rejected; the ranks are as they were.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum OpError {
    /// There is no such rank.
    #[error("no rank {rank} here: ranks are 0 to {}", size.saturating_sub(1))]
    NoSuchRank {
        /// The rank.
        rank: u32,
        /// How many there are.
        size: u32,
    },
    /// A message or a receive names a rank that does not exist.
    #[error("the peer is rank {peer}: ranks are 0 to {}", size.saturating_sub(1))]
    NoSuchPeer {
        /// The rank named.
        peer: u32,
        /// How many there are.
        size: u32,
    },
    /// The rank waits; only a step can resume it.
    #[error("rank {rank} is suspended; only a step resumes it")]
    RankSuspended {
        /// The rank.
        rank: u32,
    },
    /// The rank has finished.
    #[error("rank {rank} has finished")]
    RankFinished {
        /// The rank.
        rank: u32,
    },
    /// A rank sends to itself, which this interface cannot.
    #[error("rank {rank} sends to itself: this interface has connections between hosts only")]
    ToItself {
        /// The rank.
        rank: u32,
    },
    /// A message without bytes, which this interface cannot carry.
    #[error("a message of 0 bytes: this interface carries 1 or more")]
    Empty,
    /// A message that is longer than the interface takes, where messages are not cut.
    #[error(
        "a message of {} bytes: this interface takes at most {}, and messages are not cut",
        bytes.get(),
        most.get()
    )]
    TooLong {
        /// Its length.
        bytes: Bytes,
        /// The longest there may be.
        most: Bytes,
    },
    /// The request never was, or has been returned by a wait.
    #[error("request {} does not exist or has been returned already", request.0)]
    NoSuchRequest {
        /// The request.
        request: RequestId,
    },
    /// The request belongs to another rank.
    #[error("request {} is rank {owner}'s, not rank {rank}'s", request.0)]
    RequestOfAnother {
        /// The request.
        request: RequestId,
        /// The rank that named it.
        rank: u32,
        /// Its owner.
        owner: u32,
    },
    /// A wait names the request twice.
    #[error("request {} is named twice", request.0)]
    RequestTwice {
        /// The request.
        request: RequestId,
    },
    /// Sends cannot be cancelled (deprecated since MPI-4.0).
    #[error("request {} is a send, and only receives can be cancelled", request.0)]
    CancelOfSend {
        /// The request.
        request: RequestId,
    },
    /// The tag is above the largest.
    #[error("tag {tag} is too large: tags are 0 to {LARGEST_TAG}")]
    TagTooLarge {
        /// The tag.
        tag: u32,
    },
    /// The name was not given out by this world.
    #[error("name {} was not given out by this world", name.0)]
    NoSuchName {
        /// The name.
        name: NameId,
    },
    /// The layer has no such operation.
    #[error("this layer cannot do that: {0}")]
    Unsupported(&'static str),
}

impl OpError {
    /// What a library has rejected.
    pub(crate) const fn of(refusal: Refusal, rank: u32, bytes: Bytes) -> Self {
        match refusal {
            Refusal::ToItself => Self::ToItself { rank },
            Refusal::Empty => Self::Empty,
            Refusal::TooLong { most } => Self::TooLong { bytes, most },
            Refusal::Unsupported(what) => Self::Unsupported(what),
        }
    }
}
