//! Rates, in whole bits per second.

use core::fmt;
use core::num::NonZeroU64;
use core::str::FromStr;

use crate::decimal::{Unit, write_decimal};
use crate::parse::{ParseQuantityError, Quantity, parse};
use crate::size::Bits;
use crate::time::Span;

/// Picoseconds in a second.
pub(crate) const PS_PER_S: u64 = 1_000_000_000_000;

/// A rate in bits per second; never zero, so that a size divided by it is a time.
///
/// Prefixes are decimal: 155.52 Mbit/s is 155 520 000 bit/s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitRate(NonZeroU64);

const PRINTED: &[Unit] = &[
    Unit::new("Tbit/s", 1_000_000_000_000),
    Unit::new("Gbit/s", 1_000_000_000),
    Unit::new("Mbit/s", 1_000_000),
    Unit::new("kbit/s", 1_000),
    Unit::new("bit/s", 1),
];

const RATE: Quantity = Quantity {
    what: "a rate",
    units: &[
        Unit::new("bit/s", 1),
        Unit::new("kbit/s", 1_000),
        Unit::new("Mbit/s", 1_000_000),
        Unit::new("Gbit/s", 1_000_000_000),
        Unit::new("Tbit/s", 1_000_000_000_000),
    ],
    aliases: &[],
    smallest: "bit/s",
};

/// A rate of nothing: every transmission would take forever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZeroRate;

impl fmt::Display for ZeroRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a rate of 0 bit/s: a rate is at least 1 bit/s")
    }
}

impl core::error::Error for ZeroRate {}

impl BitRate {
    /// This many bits per second.
    ///
    /// # Errors
    /// [`ZeroRate`] where `bits_per_second` is zero.
    pub const fn new(bits_per_second: u64) -> Result<Self, ZeroRate> {
        match NonZeroU64::new(bits_per_second) {
            Some(rate) => Ok(Self(rate)),
            None => Err(ZeroRate),
        }
    }

    /// This many bits per second, for constants.
    ///
    /// # Panics
    /// Where `bits_per_second` is zero; in a `const`, that is a compile error.
    pub const fn bit_s(bits_per_second: u64) -> Self {
        Self(NonZeroU64::new(bits_per_second).expect("a rate is at least 1 bit/s"))
    }

    /// This many 10^3 bits per second; panics as [`BitRate::bit_s`], and where it exceeds 64 bits.
    pub const fn kbit_s(thousands: u64) -> Self {
        Self::bit_s(thousands.checked_mul(1_000).expect("a rate fits 64 bits of bit/s"))
    }

    /// This many 10^6 bits per second; panics as [`BitRate::kbit_s`].
    pub const fn mbit_s(millions: u64) -> Self {
        Self::bit_s(millions.checked_mul(1_000_000).expect("a rate fits 64 bits of bit/s"))
    }

    /// This many 10^9 bits per second; panics as [`BitRate::kbit_s`].
    pub const fn gbit_s(billions: u64) -> Self {
        Self::bit_s(billions.checked_mul(1_000_000_000).expect("a rate fits 64 bits of bit/s"))
    }

    /// The rate in bits per second.
    pub const fn get(self) -> u64 {
        self.0.get()
    }

    /// The time `bits` take at this rate, the last picosecond begun counting as whole; `None` where
    /// it exceeds [`Span::MAX`].
    ///
    /// For one piece alone. A line that sends piece after piece uses a
    /// [`Serializer`](crate::Serializer), which does not round each piece.
    pub const fn time_for(self, bits: Bits) -> Option<Span> {
        let total = bits.get() as u128 * PS_PER_S as u128;
        let ps = total.div_ceil(self.get() as u128);
        if ps > u64::MAX as u128 { None } else { Some(Span::from_ps(ps as u64)) }
    }

    /// The bits that have wholly passed in `span` at this rate, at most [`Bits::MAX`].
    pub const fn bits_in(self, span: Span) -> Bits {
        let bits = self.get() as u128 * span.as_ps() as u128 / PS_PER_S as u128;
        if bits > u64::MAX as u128 { Bits::MAX } else { Bits::new(bits as u64) }
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_decimal(f, self.get(), PRINTED)
    }
}

impl FromStr for BitRate {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::new(parse(text, &RATE)?).map_err(|ZeroRate| ParseQuantityError::TooSmall {
            value: text.trim().into(),
            what: RATE.what,
            least: 1,
            smallest: RATE.smallest,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn a_rate_reads_and_prints_as_an_exact_decimal() {
        for (text, bits) in [
            ("155.52 Mbit/s", 155_520_000),
            ("149.76 Mbit/s", 149_760_000),
            ("1 bit/s", 1),
            ("10 Gbit/s", 10_000_000_000),
            ("599.04 Mbit/s", 599_040_000),
            ("1.2 Tbit/s", 1_200_000_000_000),
            ("9.6 kbit/s", 9_600),
        ] {
            let rate: BitRate = text.parse().unwrap();
            assert_eq!(rate.get(), bits);
            assert_eq!(rate.to_string(), text);
        }
    }

    #[test]
    fn a_rate_of_zero_is_refused_with_the_least_rate() {
        let error = "0.000 Mbit/s".parse::<BitRate>().unwrap_err();
        assert_eq!(error.to_string(), "`0.000 Mbit/s` is too small: a rate is at least 1 bit/s");
        assert_eq!(BitRate::new(0), Err(ZeroRate));
    }

    #[test]
    fn a_fraction_of_a_bit_per_second_is_refused() {
        let error = "0.0015 kbit/s".parse::<BitRate>().unwrap_err();
        assert_eq!(error.to_string(), "`0.0015 kbit/s` is not a whole number of bit/s, as a rate must be");
    }

    #[test]
    fn bytes_per_second_are_not_a_rate_in_bits() {
        let error = "10 MB/s".parse::<BitRate>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "`10 MB/s`: `MB/s` is not a unit of a rate; \
             allowed are bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s"
        );
    }

    #[test]
    fn one_piece_alone_counts_its_last_picosecond_as_whole() {
        let rate = BitRate::bit_s(155_520_000);
        assert_eq!(rate.time_for(Bits::new(424)), Some(Span::from_ps(2_726_338)));
        assert_eq!(BitRate::gbit_s(1).time_for(Bits::new(8)), Some(Span::from_ps(8_000)));
        assert_eq!(BitRate::bit_s(1).time_for(Bits::MAX), None);
    }

    #[test]
    fn bits_in_a_span_are_those_that_have_wholly_passed() {
        let rate = BitRate::bit_s(155_520_000);
        assert_eq!(rate.bits_in(Span::from_ps(2_726_337)), Bits::new(423));
        assert_eq!(rate.bits_in(Span::from_ps(2_726_338)), Bits::new(424));
        assert_eq!(BitRate::bit_s(u64::MAX).bits_in(Span::MAX), Bits::MAX);
    }
}
