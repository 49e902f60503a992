//! CSMA/CD: stations on one cable that listen, collide and back off.
//!
//! [`CsmaCd`] is the medium and the access procedure of every station on it. It is a sans-I/O machine:
//! [`CsmaCd::offer`] gives a station its next frame, [`CsmaCd::poll_output`] says who received what and
//! when, which frame is done and which was given up. A signal takes its time along the cable, so that
//! stations far apart start without hearing one another and the capture of the medium by the one that
//! has just won comes out by itself.
//!
//! At 1000 Mbit/s a station may send bursts: it fills the gap behind a frame with carrier, and sends the next
//! frame, if it has one by then, without listening.
//!
//! Source: IEEE 802.3 (1998), 4.2.3 (transmission), 4.2.8 (the `Deference`, `BurstTimer`, `Transmitter` and
//! `BitTransmitter` processes), 4.4.2 (parameters). Left out: receivers that miss frames, the heartbeat, noise.

mod medium;
#[cfg(test)]
#[path = "tests/oracle.rs"]
mod oracle;
#[cfg(test)]
mod tests;

use wiretwin_units::{BitRate, Bits, Bytes, SimTime, Span};

pub use crate::station::{Frame, StationId};
pub use medium::CsmaCd;

/// The parameters of the access procedure (802.3, 4.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Bits per second on the cable.
    pub rate: BitRate,
    /// `slotTime`: the unit of backoff, and the time after which a collision is late.
    pub slot: Bits,
    /// `interFrameSpacing`: silence between frames.
    pub gap: Bits,
    /// `interFrameSpacingPart1`: the part of the gap in which a carrier starts it anew.
    pub gap_first: Bits,
    /// Preamble and start delimiter.
    pub preamble: Bits,
    /// `jamSize`.
    pub jam: Bits,
    /// `minFrameSize`, check sequence included; shorter frames are padded.
    pub shortest: Bytes,
    /// Shortest carrier after the preamble: `slotTime` where short frames are extended (1000 Mbit/s),
    /// `shortest` elsewhere.
    pub carrier: Bytes,
    /// `burstLimit`: how long after the beginning of a burst its last frame may begin. Zero: no bursts.
    pub burst: Bits,
    /// `attemptLimit`: a frame that has collided this often is given up.
    pub attempt_limit: u32,
    /// `backoffLimit`: the range of the backoff doubles with each collision up to this one.
    pub backoff_limit: u32,
}

impl Config {
    /// 10 Mbit/s.
    pub const TEN: Self = Self::of(BitRate::mbit_s(10));
    /// 100 Mbit/s, half duplex.
    pub const HUNDRED: Self = Self::of(BitRate::mbit_s(100));
    /// 1000 Mbit/s, half duplex: short frames are extended to a slot of 512 octets. Without bursts, which are
    /// left to the station.
    pub const THOUSAND: Self =
        Self { slot: Bits::new(4096), carrier: Bytes::new(512), ..Self::of(BitRate::gbit_s(1)) };
    /// The same, with bursts of 65 536 bit times.
    pub const THOUSAND_IN_BURSTS: Self = Self { burst: Bits::new(65_536), ..Self::THOUSAND };

    const fn of(rate: BitRate) -> Self {
        Self {
            rate,
            slot: Bits::new(512),
            gap: Bits::new(96),
            gap_first: Bits::new(64),
            preamble: Bits::new(64),
            jam: Bits::new(32),
            shortest: Bytes::new(64),
            carrier: Bytes::new(64),
            burst: Bits::new(0),
            attempt_limit: 16,
            backoff_limit: 10,
        }
    }

    /// Time on the cable of a frame of this length, preamble included, if nothing disturbs it.
    ///
    /// # Panics
    /// Never for a frame that [`CsmaCd::offer`] takes.
    pub fn time_of(&self, octets: Bytes) -> Span {
        self.time_of_next(octets.max(self.carrier))
    }

    /// The same for a frame that follows another in a burst: it is not extended.
    ///
    /// # Panics
    /// Never for a frame that [`CsmaCd::offer`] takes.
    pub fn time_of_next(&self, octets: Bytes) -> Span {
        self.time(Bits::new(self.preamble.get() + octets.max(self.shortest).bits().get()))
    }

    fn time(&self, bits: Bits) -> Span {
        self.rate.time_for(bits).expect("a line of at least 1 Mbit/s sends a frame in less than a day")
    }
}

/// The longest frame that a station takes, from the destination address to the end of the check sequence.
pub const LONGEST: Bytes = Bytes::new(65_535);

/// Why a station gave a frame up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It collided `attempt_limit` times (`excessiveCollisionError`).
    Excessive,
    /// It collided after a slot time, or behind the first frame of a burst: the cable is longer than the slot
    /// allows (`lateCollisionError`).
    Late,
}

/// What the medium asks of its driver, in order.
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
        /// When its first bit arrived.
        began: SimTime,
        /// When its last bit arrived, or the last of its extension.
        due: SimTime,
    },
    /// A frame went out whole: the station takes its next.
    Sent {
        /// The station.
        station: StationId,
        /// Collisions it met before.
        collisions: u32,
        /// When its first bit left.
        began: SimTime,
        /// When its last bit left, or the last of its extension.
        due: SimTime,
    },
    /// A frame was given up: the station takes its next.
    Failed {
        /// The station.
        station: StationId,
        /// The frame.
        frame: Frame<P>,
        /// The reason why it was given up.
        why: Failure,
        /// The time at which it was given up.
        due: SimTime,
    },
    /// Nothing more for now. Call [`CsmaCd::handle_timeout`] at this time; `None` is never.
    Timeout(Option<SimTime>),
}

/// What a station has counted (802.3, clause 30, in its words).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames offered.
    pub offered: u64,
    /// Frames sent whole.
    pub sent: u64,
    /// Octets of them, padding apart.
    pub sent_octets: u64,
    /// Frames that had to wait for the medium at their first attempt.
    pub deferred: u64,
    /// Frames that followed another in a burst.
    pub followed: u64,
    /// Transmissions that met another.
    pub collisions: u64,
    /// Frames given up after too many collisions.
    pub excessive: u64,
    /// Late collisions: frames given up after one, and those in the carrier between frames of a burst.
    pub late: u64,
    /// Frames received whole.
    pub received: u64,
    /// Frames that were damaged where this station listens, though their sender noticed nothing.
    pub damaged: u64,
}
