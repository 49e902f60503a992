//! A TCP connection between two hosts of a network, and what its users do.

use wiretwin_proto::tcp::{Counters, Endpoint, Reason};
use wiretwin_units::{Bytes, SimTime};

use super::network::NodeId;

/// Which flow of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowId(pub u32);

/// What the user of the sending end does; the other end reads all that comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Application {
    /// Writes for ever.
    Endless,
    /// Writes so much, then closes.
    Transfer(Bytes),
}

/// What became of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowReport {
    /// Octets that the receiver's user has read.
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

#[derive(Clone, Debug)]
pub(super) struct End {
    pub machine: Endpoint,
    pub host: NodeId,
    /// The link that its segments go out by.
    pub link: u32,
    /// When its next timer runs out; [`SimTime::MAX`] for never.
    pub deadline: SimTime,
    /// The earliest of its events that are scheduled.
    pub scheduled: SimTime,
}

#[derive(Clone, Debug)]
pub(super) struct Flow {
    /// The sender, and the receiver.
    pub ends: [End; 2],
    /// Octets that the sender has still to write.
    pub to_write: u64,
    pub closes: bool,
    pub read: u64,
    pub last_read: SimTime,
    pub ended: Option<Reason>,
}

pub(super) const SENDER: u8 = 0;
pub(super) const RECEIVER: u8 = 1;
