//! Exact serialization time: how long bits take on a line, with what is left of a picosecond carried.
//!
//! A cell of 424 bits at 155.52 Mbit/s takes 2 726 337.448… ps. Rounding each cell would put a
//! million of them 448 ns off; carrying the remainder puts no cell off by a picosecond.

use core::fmt;

use crate::rate::{BitRate, PS_PER_S};
use crate::size::Bits;
use crate::time::{SimTime, Span};

/// A piece whose time on the line exceeds what a [`Span`] or a [`SimTime`] can hold, 213 days.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// The piece.
    pub bits: Bits,
    /// The line's rate.
    pub rate: BitRate,
}

impl fmt::Display for TooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {} end after 213 days, the last instant there is", self.bits, self.rate)
    }
}

impl core::error::Error for TooLong {}

/// Times on a line of one rate, piece after piece without a gap.
///
/// After any pieces since [`Serializer::new`] or [`Serializer::reset`], the spans handed out sum to
/// the whole picoseconds of the exact total.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Serializer {
    rate: BitRate,
    /// What is left of a picosecond, in parts of 1/rate ps; below the rate.
    carried: u64,
    /// The last piece and its time, so that equal pieces (cells, full frames) cost no division.
    last: Bits,
    last_ps: u64,
    last_parts: u64,
}

impl Serializer {
    /// A line of this rate, with nothing carried.
    pub const fn new(rate: BitRate) -> Self {
        Self { rate, carried: 0, last: Bits::new(0), last_ps: 0, last_parts: 0 }
    }

    /// The line's rate.
    pub const fn rate(&self) -> BitRate {
        self.rate
    }

    /// The time from the end of the piece before to the end of this one, both at whole picoseconds
    /// (the exact instant rounded down).
    ///
    /// # Errors
    /// [`TooLong`] where the span exceeds [`Span::MAX`]; nothing is carried then.
    pub fn push(&mut self, bits: Bits) -> Result<Span, TooLong> {
        let next = self.after(bits, self.carried)?;
        self.take(bits, &next);
        Ok(next.span)
    }

    /// What the line would be after a piece, with so much carried before it.
    #[inline]
    fn after(&self, bits: Bits, carried: u64) -> Result<After, TooLong> {
        let too_long = TooLong { bits, rate: self.rate };
        let (ps, parts) = if bits == self.last {
            (self.last_ps, self.last_parts)
        } else {
            divide(bits, self.rate).ok_or(too_long)?
        };
        // Both are below the rate; written so that their sum cannot overflow.
        let room = self.rate.get() - parts;
        let whole = carried >= room;
        let span = Span::from_ps(ps.checked_add(u64::from(whole)).ok_or(too_long)?);
        Ok(After { span, carried: if whole { carried - room } else { carried + parts }, ps, parts })
    }

    /// Sends a piece. Few and small stores: the next piece often follows at once.
    #[inline]
    const fn take(&mut self, bits: Bits, after: &After) {
        self.carried = after.carried;
        if bits.get() != self.last.get() {
            (self.last, self.last_ps, self.last_parts) = (bits, after.ps, after.parts);
        }
    }

    /// Forgets what is carried: the next piece begins at a whole picosecond.
    pub const fn reset(&mut self) {
        self.carried = 0;
    }
}

/// A piece's time, what is carried after it, and its exact time.
struct After {
    span: Span,
    carried: u64,
    ps: u64,
    parts: u64,
}

/// The exact time of `bits`: whole picoseconds, and what is left in parts of 1/rate ps.
fn divide(bits: Bits, rate: BitRate) -> Option<(u64, u64)> {
    let rate = rate.get();
    if let Some(total) = bits.get().checked_mul(PS_PER_S) {
        return Some((total / rate, total % rate));
    }
    let total = u128::from(bits.get()) * u128::from(PS_PER_S);
    let ps = u64::try_from(total / u128::from(rate)).ok()?;
    Some((ps, (total % u128::from(rate)) as u64))
}

/// When a piece was on the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmission {
    /// When its first bit left.
    pub start: SimTime,
    /// When its last bit had left.
    pub end: SimTime,
}

/// The clock of one transmitter: takes pieces in order and says when each is on the line.
///
/// A piece that finds the line busy follows the one before without a gap and carries its remainder;
/// a piece that finds it idle starts where it was handed in, at a whole picosecond. So every instant
/// lies within one picosecond below the exact one, however long the busy period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmitter {
    line: Serializer,
    free_at: SimTime,
}

impl Transmitter {
    /// An idle transmitter of this rate.
    pub const fn new(rate: BitRate) -> Self {
        Self { line: Serializer::new(rate), free_at: SimTime::ZERO }
    }

    /// The line's rate.
    pub const fn rate(&self) -> BitRate {
        self.line.rate()
    }

    /// When the line has sent all it was given.
    pub const fn free_at(&self) -> SimTime {
        self.free_at
    }

    /// Whether a piece handed in at `now` would have to wait.
    pub fn is_busy(&self, now: SimTime) -> bool {
        now < self.free_at
    }

    /// When a piece that is handed in at `now` would be on the line.
    ///
    /// # Errors
    /// [`TooLong`] where it would end after [`SimTime::MAX`].
    #[inline]
    pub fn would_send(&self, now: SimTime, bits: Bits) -> Result<Transmission, TooLong> {
        Ok(self.plan(now, bits)?.0)
    }

    /// Takes a piece at `now`.
    ///
    /// # Errors
    /// [`TooLong`] where it would end after [`SimTime::MAX`]; the transmitter is unchanged then.
    #[inline]
    pub fn send(&mut self, now: SimTime, bits: Bits) -> Result<Transmission, TooLong> {
        let (sent, after) = self.plan(now, bits)?;
        self.line.take(bits, &after);
        self.free_at = sent.end;
        Ok(sent)
    }

    #[inline]
    fn plan(&self, now: SimTime, bits: Bits) -> Result<(Transmission, After), TooLong> {
        let (start, carried) = if now > self.free_at { (now, 0) } else { (self.free_at, self.line.carried) };
        let after = self.line.after(bits, carried)?;
        let end = start.checked_add(after.span).ok_or(TooLong { bits, rate: self.rate() })?;
        Ok((Transmission { start, end }, after))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::size::{Bytes, Cells};
    use alloc::string::ToString;

    const OC3: BitRate = BitRate::bit_s(155_520_000);
    const OC3_PAYLOAD: BitRate = BitRate::bit_s(149_760_000);

    #[test]
    fn a_million_cells_take_the_right_time_to_the_picosecond() {
        // 424 x 10^18 / 155 520 000 = 2 726 337 448 559.67…
        // 424 x 10^18 / 149 760 000 = 2 831 196 581 196.58…
        for (rate, ps) in [(OC3, 2_726_337_448_559), (OC3_PAYLOAD, 2_831_196_581_196)] {
            let mut line = Serializer::new(rate);
            let cell = Cells::new(1).bits();
            let total: Span = (0..1_000_000).map(|_| line.push(cell).unwrap()).sum();
            assert_eq!(total.as_ps(), ps);
        }
    }

    #[test]
    fn a_busy_transmitter_is_never_a_picosecond_off_the_exact_instant() {
        let mut port = Transmitter::new(OC3);
        for sent in 1..=10_000_u128 {
            let would = port.would_send(SimTime::ZERO, Cells::new(1).bits());
            assert_eq!(would, port.send(SimTime::ZERO, Cells::new(1).bits()));
            let end = would.unwrap().end;
            assert_eq!(u128::from(end.as_ps()), sent * 424 * 1_000_000_000_000 / 155_520_000);
        }
    }

    #[test]
    fn a_piece_that_finds_the_line_idle_starts_at_once_and_carries_nothing() {
        let mut port = Transmitter::new(OC3);
        let first = port.send(SimTime::from_ps(5), Cells::new(1).bits()).unwrap();
        assert_eq!((first.start.as_ps(), first.end.as_ps()), (5, 2_726_342));
        assert!(port.is_busy(SimTime::from_ps(2_726_341)) && !port.is_busy(SimTime::from_ps(2_726_342)));
        // Twice 0.448 does not make a picosecond; a third time does, unless the line was idle.
        port.send(SimTime::from_ps(2_726_342), Cells::new(1).bits()).unwrap();
        let back_to_back = port;
        let third = { port }.send(SimTime::ZERO, Cells::new(1).bits()).unwrap();
        assert_eq!((third.end - third.start).as_ps(), 2_726_338);
        let mut idle = back_to_back;
        let later = idle.send(idle.free_at() + Span::from_ps(1), Cells::new(1).bits()).unwrap();
        assert_eq!((later.end - later.start).as_ps(), 2_726_337);
    }

    #[test]
    fn a_piece_that_would_never_end_is_refused_and_changes_nothing() {
        let mut port = Transmitter::new(BitRate::bit_s(1));
        let before = port;
        let error = port.send(SimTime::ZERO, Bytes::mib(4).bits()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "33.554432 Mbit at 1 bit/s end after 213 days, the last instant there is"
        );
        assert_eq!(port, before);
        assert!(port.send(SimTime::MAX, Bits::new(1)).is_err());
        assert!(port.would_send(SimTime::MAX, Bits::new(1)).is_err());
        assert_eq!(port, before);
    }

    #[test]
    fn nothing_takes_no_time() {
        let mut line = Serializer::new(OC3);
        assert_eq!(line.push(Bits::ZERO), Ok(Span::ZERO));
    }
}
