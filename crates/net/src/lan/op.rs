//! What was lost, and why an operation is rejected.

use std::fmt;

use wiretwin_msg::library::Refusal;
use wiretwin_units::Bytes;

use crate::op::RequestId;

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

/// Why an operation was rejected.
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
    /// What a library has rejected.
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
