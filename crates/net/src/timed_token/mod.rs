//! The timed token: stations on a ring that send while they hold it (FDDI).
//!
//! [`TimedToken`] is the ring and the access procedure of every station on it. It is a sans-I/O machine:
//! [`TimedToken::offer`] queues a frame at a station, [`TimedToken::poll_output`] says who received what
//! and when. While nobody has anything to send the token goes round without an event.
//!
//! Source: ANSI X3.139-1987 (FDDI MAC), 8.4.2 and 8.4.3 (timers, token); R. Jain, "Performance analysis
//! of FDDI token ring networks" (1991). Left out: claim and beacon (the ring is up, and a second expiry
//! of a rotation timer is counted and ends the lateness), synchronous frames, restricted tokens, priorities
//! of asynchronous frames, faults of the ring.

mod ring;
#[cfg(test)]
mod tests;

use wiretwin_units::{BitRate, Bits, Bytes, SimTime, Span};

pub use crate::station::{Frame, StationId};
pub use ring::TimedToken;

/// A station and what is behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StationConfig {
    /// Time from this station's output to the next one's input: 5.085 us a kilometre of fibre.
    pub hop: Span,
    /// Time a symbol takes through this station: 0.6 to 1 us.
    pub latency: Span,
    /// Frames its queue holds.
    pub queue_frames: u32,
}

/// The parameters of the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Bits per second of data: 100 Mbit/s.
    pub rate: BitRate,
    /// `T_Opr`, the target token rotation time that the stations have agreed: 8 ms by default.
    pub target: Span,
    /// The token with its preamble: 22 symbols, 88 bits.
    pub token: Bits,
    /// Preamble, start and end delimiter and frame status around a frame: 22 symbols, 88 bits.
    pub framing: Bits,
}

impl Config {
    /// FDDI with a target of 8 ms.
    pub const FDDI: Self = Self {
        rate: BitRate::mbit_s(100),
        target: Span::from_ms(8),
        token: Bits::new(88),
        framing: Bits::new(88),
    };

    /// Time on the ring of a frame of this length, preamble and delimiters included.
    ///
    /// # Panics
    /// Never for a frame that [`TimedToken::offer`] takes.
    pub fn time_of(&self, octets: Bytes) -> Span {
        self.time(Bits::new(self.framing.get() + octets.bits().get()))
    }

    fn time(&self, bits: Bits) -> Span {
        self.rate.time_for(bits).expect("a ring of at least 1 Mbit/s sends a frame in less than a day")
    }
}

/// The longest frame, from frame control to check sequence: 9000 symbols less preamble and delimiters as
/// the standard counts them.
pub const LONGEST: Bytes = Bytes::new(4491);

/// What the ring asks of its driver, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output<P> {
    /// A frame has been received whole.
    Deliver {
        /// The station that receives.
        station: StationId,
        /// The station that sent.
        from: StationId,
        /// The frame.
        frame: Frame<P>,
        /// When its last symbol arrived.
        due: SimTime,
    },
    /// A frame has left its station: there is room for another.
    Sent {
        /// The station.
        station: StationId,
        /// When its last symbol left.
        due: SimTime,
    },
    /// Nothing more for now. Call [`TimedToken::handle_timeout`] at this time; `None` is never.
    Timeout(Option<SimTime>),
}

/// What a station has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames offered and taken.
    pub offered: u64,
    /// Frames sent.
    pub sent: u64,
    /// Octets of them.
    pub sent_octets: u64,
    /// Frames received.
    pub received: u64,
    /// Times it held the token.
    pub held: u64,
    /// Times the token came late.
    pub late: u64,
    /// Times its rotation timer ran out twice: the standard would claim the ring anew.
    pub expired_twice: u64,
}
