//! The Comm interface and the message-passing programs written to it.
//!
//! A program takes `&mut impl Comm` and has no way to ask whether the world behind it is live or
//! simulated.

mod comm;

pub use comm::{Comm, CommError, Incoming, Outgoing, Rank, Source, Status, Tag, TagMatch, Work};
