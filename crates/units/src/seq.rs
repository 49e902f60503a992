//! Sequence numbers that wrap.

use core::cmp::Ordering;
use core::fmt;
use core::ops::{Add, AddAssign};

/// A sequence number of `BITS` bits: arithmetic is modulo 2^`BITS`.
///
/// It has no order of its own ([`Ord`] is not implemented): which of two numbers is the later is
/// asked with [`Seq::serial_cmp`] (RFC 1982 §3.2, as TCP compares) or, in a window protocol, from a
/// base with [`Seq::cmp_from`] (as Q.2110 §7.1 compares state variables).
///
/// `BITS` is from 1 to 32; any other is a compile error.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Seq<const BITS: u32>(u32);

/// A number that a sequence number of so many bits cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeqOutOfRange {
    /// The number.
    pub value: u32,
    /// The bits of the sequence number.
    pub bits: u32,
}

impl fmt::Display for SeqOutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let most = (1_u64 << self.bits) - 1;
        write!(f, "{} is no sequence number of {} bits: allowed are 0 to {most}", self.value, self.bits)
    }
}

impl core::error::Error for SeqOutOfRange {}

impl<const BITS: u32> Seq<BITS> {
    /// One less than the modulus.
    const MASK: u32 = {
        assert!(BITS >= 1 && BITS <= 32, "a sequence number has 1 to 32 bits");
        u32::MAX >> (32 - BITS)
    };

    /// The first number.
    pub const ZERO: Self = Self(0);

    /// How many numbers there are, 2^`BITS`.
    pub const MODULUS: u64 = Self::MASK as u64 + 1;

    /// This number.
    ///
    /// # Errors
    /// [`SeqOutOfRange`] where `value` is the modulus or more.
    pub const fn new(value: u32) -> Result<Self, SeqOutOfRange> {
        if value > Self::MASK { Err(SeqOutOfRange { value, bits: BITS }) } else { Ok(Self(value)) }
    }

    /// This number modulo 2^`BITS`: a field cut out of a header, or a count.
    pub const fn wrapping(value: u32) -> Self {
        Self(value & Self::MASK)
    }

    /// The number, below the modulus.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// The number that comes next.
    pub const fn next(self) -> Self {
        Self::wrapping(self.0.wrapping_add(1))
    }

    /// The number `count` before.
    pub const fn back(self, count: u32) -> Self {
        Self::wrapping(self.0.wrapping_sub(count))
    }

    /// How many steps lead from `base` forward to this number, below the modulus.
    pub const fn offset_from(self, base: Self) -> u32 {
        self.0.wrapping_sub(base.0) & Self::MASK
    }

    /// Which comes first, counted from `base`: for numbers inside one window that begins there.
    pub fn cmp_from(self, base: Self, other: Self) -> Ordering {
        self.offset_from(base).cmp(&other.offset_from(base))
    }

    /// Which comes first the shorter way round (RFC 1982 §3.2); `None` where they are half the
    /// modulus apart, which the RFC leaves undefined.
    pub fn serial_cmp(self, other: Self) -> Option<Ordering> {
        let ahead = u64::from(self.offset_from(other));
        if ahead == 0 {
            return Some(Ordering::Equal);
        }
        match (2 * ahead).cmp(&Self::MODULUS) {
            Ordering::Less => Some(Ordering::Greater),
            Ordering::Equal => None,
            Ordering::Greater => Some(Ordering::Less),
        }
    }

    /// Whether this number comes before `other` the shorter way round; false for both of two numbers
    /// half the modulus apart.
    pub fn precedes(self, other: Self) -> bool {
        self.serial_cmp(other) == Some(Ordering::Less)
    }

    /// Whether this number is one of the `count` numbers from `base` on.
    pub const fn is_within(self, base: Self, count: u32) -> bool {
        self.offset_from(base) < count
    }
}

impl<const BITS: u32> Add<u32> for Seq<BITS> {
    type Output = Self;

    /// The number `count` later, modulo 2^`BITS`.
    fn add(self, count: u32) -> Self {
        Self::wrapping(self.0.wrapping_add(count))
    }
}

impl<const BITS: u32> AddAssign<u32> for Seq<BITS> {
    fn add_assign(&mut self, count: u32) {
        *self = *self + count;
    }
}

impl<const BITS: u32> fmt::Debug for Seq<BITS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} mod 2^{BITS}", self.0)
    }
}

impl<const BITS: u32> fmt::Display for Seq<BITS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn the_number_after_the_last_is_the_first() {
        assert_eq!(Seq::<24>::wrapping(0x00ff_ffff).next(), Seq::ZERO);
        assert_eq!(Seq::<32>::wrapping(u32::MAX) + 5, Seq::wrapping(4));
        assert_eq!(Seq::<4>::ZERO.back(1), Seq::wrapping(15));
        assert_eq!(Seq::<1>::ZERO.next().next(), Seq::ZERO);
    }

    #[test]
    fn a_number_beyond_the_modulus_is_refused() {
        assert_eq!(Seq::<4>::new(15).map(Seq::get), Ok(15));
        let error = Seq::<4>::new(16).unwrap_err();
        assert_eq!(error.to_string(), "16 is no sequence number of 4 bits: allowed are 0 to 15");
        assert!(Seq::<32>::new(u32::MAX).is_ok());
    }

    #[test]
    fn serial_comparison_goes_the_shorter_way_round() {
        let near_end = Seq::<24>::wrapping(0x00ff_fff0);
        let wrapped = near_end + 0x20;
        assert!(wrapped.get() < near_end.get());
        assert!(near_end.precedes(wrapped) && !wrapped.precedes(near_end));
        assert_eq!(wrapped.serial_cmp(wrapped), Some(Ordering::Equal));
    }

    #[test]
    fn numbers_half_the_modulus_apart_have_no_order() {
        let far = Seq::<32>::ZERO + (1 << 31);
        assert_eq!(far.serial_cmp(Seq::ZERO), None);
        assert_eq!(Seq::<32>::ZERO.serial_cmp(far), None);
    }

    #[test]
    fn from_a_base_the_whole_modulus_is_ordered() {
        let base = Seq::<4>::wrapping(12);
        assert_eq!((base + 3).cmp_from(base, base + 14), Ordering::Less);
        assert!((base + 3).is_within(base, 4) && !(base + 4).is_within(base, 4));
    }
}
