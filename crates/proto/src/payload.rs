//! A handle on payload: which octets, without the octets.

use wiretwin_units::Bytes;

/// Which message. The driver gives the numbers out and knows what stands behind them: a buffer in a
/// live world, a length and nothing else in a simulated one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MessageId(pub u64);

/// A range of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload {
    /// The message.
    pub message: MessageId,
    /// Where the range begins in it.
    pub start: Bytes,
    /// How long it is.
    pub length: Bytes,
}

impl Payload {
    /// All of a message of this length.
    pub const fn whole(message: MessageId, length: Bytes) -> Self {
        Self { message, start: Bytes::new(0), length }
    }
}
