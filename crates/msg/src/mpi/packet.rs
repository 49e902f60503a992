//! What one rank's library says to another's, whatever carries it.

use wiretwin_proto::Payload;
use wiretwin_units::Bytes;

use crate::matching::Envelope;

/// Octets that a head takes in a buffer of counted flow.
pub(crate) const HEAD: u64 = 48;

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An envelope and its data.
    Eager {
        /// The receiver says when it has matched.
        synchronous: bool,
    },
    /// An envelope alone: may the data come?
    Request,
    /// They may; `bytes` is how many are wanted.
    Reply,
    /// The data of a rendezvous.
    Data,
    /// The data were fetched.
    Fetched,
    /// A synchronous message has matched.
    Matched,
    /// The sender wants its message back.
    Cancel,
    /// The sender has it back, or not.
    Cancelled {
        /// Whether.
        done: bool,
    },
    /// Eager octets were matched, or buffers emptied: nothing else.
    Credit,
}

/// One packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// What it is.
    pub kind: Kind,
    /// Of which message, for those that have one.
    pub envelope: Envelope,
    /// Octets of the message; of a reply those that are wanted.
    pub bytes: Bytes,
    /// The sender's number of the message.
    pub send: u64,
    /// The receiver's number of the receive that has matched.
    pub receive: u64,
    /// The data that go with it.
    pub body: Option<Payload>,
    /// Buffers returned.
    pub credit: u32,
    /// Eager octets that were matched since the last packet.
    pub matched: Bytes,
}

impl Packet {
    pub(crate) const fn of(kind: Kind) -> Self {
        Self {
            kind,
            envelope: Envelope { context: 0, source: 0, tag: 0 },
            bytes: Bytes::new(0),
            send: 0,
            receive: 0,
            body: None,
            credit: 0,
            matched: Bytes::new(0),
        }
    }
}
