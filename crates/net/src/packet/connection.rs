//! Connections between hosts: the TCP machine at each end, what is written and what is read.

use std::collections::VecDeque;

use wiretwin_proto::tcp::{Counters, Reason};
use wiretwin_units::{Bytes, SimTime, Span};

use super::tcp::TcpEnd;
use crate::fabric::CircuitId;

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
    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }

    /// The other end of the same connection.
    #[must_use]
    pub const fn peer(self) -> Self {
        Self(self.0 ^ 1)
    }
}

/// What has become of one direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamReport {
    /// Packets of both directions that were lost in a network of cells.
    pub packets_lost: u64,
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
    /// Where the network is one of cells, the circuit on which it sends.
    pub circuit: CircuitId,
    /// Of an end whose datagrams come back, which echo it is of.
    pub echo: u32,
    /// Packets that it sent and a network of cells lost.
    pub lost: u64,
    /// Messages that are being made, the first alone having a piece that is due.
    pub making: VecDeque<Making>,
    /// Bytes that the user was given, written or not.
    pub given: u64,
    /// Messages that are on their way here: the bytes read when each is complete, and whose it is.
    pub expected: VecDeque<(u64, u32)>,
}

impl End {
    /// The next piece, of `most` bytes at most, that is made by now; else when one is made, if one will be.
    pub(super) fn piece(&mut self, now: SimTime, most: u64) -> Result<u64, Option<SimTime>> {
        while let Some(first) = self.making.front_mut() {
            if first.left == 0 {
                self.making.pop_front();
                continue;
            }
            if first.next > now {
                return Err(Some(first.next));
            }
            let piece = first.left.min(most);
            first.left -= piece;
            first.next = first.next.saturating_add(first.each);
            return Ok(piece);
        }
        Err(None)
    }

    /// The client of the first message that has come whole.
    pub(super) fn whole(&mut self) -> Option<u32> {
        let &(read, client) = self.expected.front()?;
        (read <= self.tcp.read).then(|| {
            self.expected.pop_front();
            client
        })
    }
}
