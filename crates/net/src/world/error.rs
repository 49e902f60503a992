//! Why an operation was rejected.

use std::fmt;

use super::{NameId, RequestId, World};

/// An operation that makes no sense; the world is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorldError {
    /// There is no such rank.
    NoSuchRank {
        /// The rank.
        rank: u32,
        /// How many there are.
        size: u32,
    },
    /// A message or a receive names a rank that does not exist.
    NoSuchPeer {
        /// The rank named.
        peer: u32,
        /// How many there are.
        size: u32,
    },
    /// The rank waits; only a step can resume it.
    RankSuspended {
        /// The rank.
        rank: u32,
    },
    /// The rank has finished.
    RankFinished {
        /// The rank.
        rank: u32,
    },
    /// The request never was, or has been returned by a wait.
    NoSuchRequest {
        /// The request.
        request: RequestId,
    },
    /// The request belongs to another rank.
    RequestOfAnother {
        /// The request.
        request: RequestId,
        /// The rank that named it.
        rank: u32,
        /// Its owner.
        owner: u32,
    },
    /// A wait names the request twice.
    RequestTwice {
        /// The request.
        request: RequestId,
    },
    /// Sends cannot be cancelled (deprecated since MPI-4.0).
    CancelOfSend {
        /// The request.
        request: RequestId,
    },
    /// The tag is above the largest.
    TagTooLarge {
        /// The tag.
        tag: u32,
    },
    /// The name was not given out by this world.
    NoSuchName {
        /// The name.
        name: NameId,
    },
    /// Ranks of this world have no such operation.
    Unsupported(&'static str),
}

impl fmt::Display for WorldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSuchRank { rank, size } => {
                write!(f, "no rank {rank} here: ranks are 0 to {}", size.saturating_sub(1))
            }
            Self::NoSuchPeer { peer, size } => {
                write!(f, "the peer is rank {peer}: ranks are 0 to {}", size.saturating_sub(1))
            }
            Self::RankSuspended { rank } => {
                write!(f, "rank {rank} is suspended; only a step resumes it")
            }
            Self::RankFinished { rank } => write!(f, "rank {rank} has finished"),
            Self::NoSuchRequest { request } => {
                write!(f, "request {} does not exist or has been returned already", request.0)
            }
            Self::RequestOfAnother { request, rank, owner } => {
                write!(f, "request {} is rank {owner}'s, not rank {rank}'s", request.0)
            }
            Self::RequestTwice { request } => write!(f, "request {} is named twice", request.0),
            Self::CancelOfSend { request } => {
                write!(f, "request {} is a send, and only receives can be cancelled", request.0)
            }
            Self::TagTooLarge { tag } => {
                write!(f, "tag {tag} is too large: tags are 0 to {}", World::LARGEST_TAG)
            }
            Self::Unsupported(what) => {
                write!(f, "ranks whose layer is known by its costs cannot do that: {what}")
            }
            Self::NoSuchName { name } => write!(f, "name {} was not given out by this world", name.0),
        }
    }
}

impl std::error::Error for WorldError {}
