//! Connections between hosts: the TCP machine at each end, what is written and what is read.

use std::collections::VecDeque;

use wiretwin_proto::tcp::{Counters, Reason};
use wiretwin_units::{Bytes, SimTime, Span};

use super::tcp::TcpEnd;

/// Which connection of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId(pub u32);

/// Which end of a connection of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EndId(pub(super) u32);

impl ConnectionId {
    /// The end that opens the connection, or the other one.
    #[must_use]
    pub const fn end(self, opens: bool) -> EndId {
        EndId(2 * self.0 + !opens as u32)
    }
}

impl EndId {
    /// The other end of the same connection.
    #[must_use]
    pub const fn peer(self) -> Self {
        Self(self.0 ^ 1)
    }
}

/// What has become of one direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamReport {
    /// Bytes that the receiver's user has read.
    pub read: Bytes,
    /// When the last of them were read.
    pub last_read: SimTime,
    /// What the sender has counted.
    pub sender: Counters,
    /// What the receiver has counted.
    pub receiver: Counters,
    /// Why the sender's end is over, if it is.
    pub ended: Option<Reason>,
}

/// A message whose sender is still making it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Making {
    /// Bytes that are still to be written.
    pub left: u64,
    /// When the next piece is there, and how long each takes.
    pub next: SimTime,
    pub each: Span,
}

#[derive(Clone, Debug)]
pub(super) struct End {
    pub tcp: TcpEnd,
    /// The number of its host.
    pub host: u32,
    /// Where its path begins in the list of paths.
    pub path: u32,
    /// Which flow it is at the port of its host.
    pub flow: u32,
    /// Messages that are being made, the first alone having a piece that is due.
    pub making: VecDeque<Making>,
    /// Bytes that the user was given, written or not.
    pub given: u64,
    /// Messages that are on their way here: the bytes read when each is complete, and whose it is.
    pub expected: VecDeque<(u64, u32)>,
}
