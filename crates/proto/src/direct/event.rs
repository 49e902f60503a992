//! What goes in and comes out of a machine.

use core::fmt;

use wiretwin_units::Bytes;
use wiretwin_wire::direct::Repr;

use super::Service;
use crate::{MessageId, Payload};

/// A message to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The sender's number for it; its bytes stay as they are until [`Event::Sent`].
    pub id: MessageId,
    /// How long it is.
    pub length: Bytes,
    /// What it is matched by, if it is of the tagged kind.
    pub tag: Option<u64>,
    /// Remote data, delivered with it.
    pub data: Option<u64>,
    /// Its bytes go another way, on which nothing is lost, and in the order of such messages: the driver sends them with
    /// the message's frame, of which the machine knows no more than any other's.
    pub pushed: bool,
}

/// Why a message is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// As many messages wait as may.
    Full {
        /// How many.
        waiting: u32,
    },
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Full { waiting } = self;
        write!(f, "{waiting} messages wait to be sent, and no more may")
    }
}

impl core::error::Error for SendError {}

/// A frame to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// All but the payload.
    pub repr: Repr,
    /// The payload; of no length in a frame without one.
    pub payload: Payload,
}

impl Frame {
    /// By which service it goes.
    #[must_use]
    pub const fn service(&self) -> Service {
        if self.repr.protected { Service::Protected } else { Service::Ordinary }
    }
}

/// What is handed up, in the order in which it was sent; but bulk as it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// A message with its first bytes, maybe all.
    Begin {
        /// What it is matched by, if it is of the tagged kind.
        tag: Option<u64>,
        /// Remote data.
        data: Option<u64>,
        /// How long the message is.
        length: Bytes,
        /// Its first bytes, as a range of the frame that brought them.
        payload: Payload,
    },
    /// The next bytes of the message that was begun last.
    Continue {
        /// The bytes.
        payload: Payload,
    },
    /// A message whose bytes come another way.
    Pushed {
        /// What it is matched by, if it is of the tagged kind.
        tag: Option<u64>,
        /// Remote data.
        data: Option<u64>,
        /// How long the message is.
        length: Bytes,
    },
    /// A message that waits for [`super::Machine::clear`].
    Offer {
        /// What it is matched by, if it is of the tagged kind.
        tag: Option<u64>,
        /// Remote data.
        data: Option<u64>,
        /// How long the message is.
        length: Bytes,
        /// The peer's number for it.
        offer: u32,
    },
    /// Bytes of a message that was cleared; each comes once.
    Bulk {
        /// The number it was cleared under.
        reference: u32,
        /// Where they belong.
        offset: Bytes,
        /// The bytes.
        payload: Payload,
    },
}

/// What is no one's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The peer has all of a message that it wanted; its bytes are no longer needed.
    Sent(MessageId),
    /// The peer has asked for a message, whose bytes the driver sends: see [`super::Machine::hand_over`].
    Cleared {
        /// The sender's number for it.
        id: MessageId,
        /// The peer's.
        reference: u32,
        /// How many bytes are wanted, from the first on.
        length: Bytes,
    },
    /// A message will not be sent: the endpoint that it was for is no more.
    Failed(MessageId),
    /// The peer is there.
    Met,
    /// The peer is another than before, with a later epoch. What its former self had begun or offered will
    /// not go on; what was on its way to that has failed.
    Returned,
}

/// Whether a frame's bytes are still needed when the outputs have been taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// They are: the payload will be delivered later, by the handle it came with.
    Yes,
    /// They are not.
    No,
}

/// What was counted, in frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Numbered frames sent for the first time.
    pub sent: u64,
    /// Those of them, and of what was sent again, that went by the protected service.
    pub protected: u64,
    /// Bytes of messages in numbered frames, first and again, by the ordinary and by the protected service.
    pub bytes: [u64; 2],
    /// Numbered frames sent again.
    pub resent: u64,
    /// Numbered frames that came for the first time.
    pub received: u64,
    /// Numbered frames that had come before.
    pub duplicates: u64,
    /// Frames with another key than this endpoint's.
    pub stray: u64,
    /// Frames of another epoch than the peer's.
    pub stale: u64,
    /// Frames that cannot be: beyond what was granted, or about numbers never sent.
    pub impossible: u64,
    /// POLLs sent because nothing was heard.
    pub timeouts: u64,
}

impl Counters {
    /// Adds what another end has counted.
    pub const fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.protected += other.protected;
        self.bytes[0] += other.bytes[0];
        self.bytes[1] += other.bytes[1];
        self.resent += other.resent;
        self.received += other.received;
        self.duplicates += other.duplicates;
        self.stray += other.stray;
        self.stale += other.stale;
        self.impossible += other.impossible;
        self.timeouts += other.timeouts;
    }
}
