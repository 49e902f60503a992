//! The Transmission Control Protocol: one machine for every world and every age.
//!
//! RFC 9293 (2022), with what was there before and beside it: the rules of 4.3BSD-Tahoe to 4.4BSD-Lite
//! and those of RFC 1122, 5681, 6298, 6582, 6675, 6928, 7323, 2018, 3042, 3168, 5961 and 9438 are
//! options of one [`Config`], and [presets](Config::presets) put them together as they were shipped. Left out:
//! segments that carry text with a SYN, tail-loss probes, pacing.
//!
//! # How to drive it
//! An [`Endpoint`] is one end of one connection.
//!
//! 1. Make one call: a command ([`connect`](Endpoint::connect), [`listen`](Endpoint::listen),
//!    [`send`](Endpoint::send), [`receive`](Endpoint::receive), [`shutdown`](Endpoint::shutdown),
//!    [`close`](Endpoint::close), [`abort`](Endpoint::abort)), a segment
//!    ([`handle_segment`](Endpoint::handle_segment)) or the time
//!    ([`handle_timeout`](Endpoint::handle_timeout)).
//! 2. Drain [`poll_output`](Endpoint::poll_output) until it yields `Timeout`, before any other call.
//!    Everything comes out as of the time of the call. `Work` comes before what it pays for.
//! 3. Call `handle_timeout` at the time that `Timeout` named, if nothing was called before. A segment
//!    or a command does not disturb it: the next `Timeout` replaces the last.
//!
//! - *Writing.* [`send`](Endpoint::send) says how many octets it took; they are the next of this end's
//!   stream. If fewer than asked, [`Event::Writable`] says when to go on. The write is passed on in
//!   the pieces that `sosend` makes, each with its `CopyIn` and the segments it lets go.
//! - *Reading.* `Deliver` says that a range of the peer's stream is there to be read (and wakes its
//!   reader); [`receive`](Endpoint::receive) takes some of it and may send a window update. Whoever
//!   reads nothing closes the window.
//! - *Octets.* A [`Segment`] names a range of its sender's stream. A driver that has octets keeps its own
//!   until [`acknowledged`](Endpoint::acknowledged), and those of a segment that arrives at
//!   [`place_of`](Endpoint::place_of) it, *before* it hands the segment in, between
//!   [`expected`](Endpoint::expected) and [`keeps_to`](Endpoint::keeps_to).
//! - *Whose segment it is* (addresses, ports) is the driver's to know. Segments for nobody go to an end
//!   that is closed, which answers with a reset. [`Listener`] makes ends for those who ask.
//! - *Grids.* On a clock of ticks all ends of a host share its [`Phases`], in its [`Config`].

mod ack;
mod config;
mod congestion;
mod cubic;
mod endpoint;
mod event;
mod input;
mod listener;
mod octets;
mod output;
mod poll;
mod presets;
mod rtt;
mod sack;
mod segment;
mod state;
mod tally;
#[cfg(test)]
mod tests;
mod timeout;
mod timers;

use crate::{Output, Payload};

pub use config::{
    BufferError, Buffers, Clock, Config, Congestion, DelayedAck, IP_AND_TCP_OCTETS, InitialWindow, KeepAlive,
    LEAST_MSS, LossBasis, LowWater, MOST_SCALE, Nagle, Pieces, Rto, WindowUpdate,
};
pub use endpoint::{Endpoint, Setup};
pub use event::{CommandError, Counters, Event, Read, Reason};
pub use listener::{Listener, Refusal};
pub use segment::{Ecn, Flags, HEADER_OCTETS, Options, SackBlocks, Segment, SeqNumber, Timestamps};
pub use state::State;
pub use timers::{Phases, Timer};

/// What an [`Endpoint`] asks of its driver.
pub type TcpOutput = Output<Segment, Payload, Event>;

const _: () = assert!(
    size_of::<Endpoint>() <= 512,
    "an idle end takes at most 512 octets: it owns no heap while nothing is missing"
);
