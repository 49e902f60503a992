//! The arithmetic that every amount shares, written once.

/// Sums, differences, multiples and quotients of an amount that wraps one `u64`.
macro_rules! amount_arithmetic {
    ($name:ident, $what:literal) => {
        impl $name {
            /// The least amount.
            pub const ZERO: Self = Self(0);

            /// The greatest amount that can be held.
            pub const MAX: Self = Self(u64::MAX);

            /// The sum, or `None` where it exceeds [`Self::MAX`].
            pub const fn checked_add(self, other: Self) -> Option<Self> {
                match self.0.checked_add(other.0) {
                    Some(sum) => Some(Self(sum)),
                    None => None,
                }
            }

            /// The difference, or `None` where `other` is the greater.
            pub const fn checked_sub(self, other: Self) -> Option<Self> {
                match self.0.checked_sub(other.0) {
                    Some(difference) => Some(Self(difference)),
                    None => None,
                }
            }

            /// This amount `count` times, or `None` where that exceeds [`Self::MAX`].
            pub const fn checked_mul(self, count: u64) -> Option<Self> {
                match self.0.checked_mul(count) {
                    Some(product) => Some(Self(product)),
                    None => None,
                }
            }

            /// The sum, at most [`Self::MAX`].
            pub const fn saturating_add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }

            /// The difference, or [`Self::ZERO`] where `other` is the greater.
            pub const fn saturating_sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }

            /// This amount `count` times, at most [`Self::MAX`].
            pub const fn saturating_mul(self, count: u64) -> Self {
                Self(self.0.saturating_mul(count))
            }

            /// Whether there is nothing of it.
            pub const fn is_zero(self) -> bool {
                self.0 == 0
            }
        }

        impl core::ops::Add for $name {
            type Output = Self;

            /// # Panics
            /// Where the sum exceeds [`Self::MAX`].
            #[track_caller]
            fn add(self, other: Self) -> Self {
                self.checked_add(other).expect(concat!("the sum of two ", $what, " fits 64 bits"))
            }
        }

        impl core::ops::AddAssign for $name {
            #[track_caller]
            fn add_assign(&mut self, other: Self) {
                *self = *self + other;
            }
        }

        impl core::ops::Sub for $name {
            type Output = Self;

            /// # Panics
            /// Where `other` is the greater.
            #[track_caller]
            fn sub(self, other: Self) -> Self {
                self.checked_sub(other).expect(concat!("the lesser of two ", $what, " is subtracted"))
            }
        }

        impl core::ops::SubAssign for $name {
            #[track_caller]
            fn sub_assign(&mut self, other: Self) {
                *self = *self - other;
            }
        }

        impl core::ops::Mul<u64> for $name {
            type Output = Self;

            /// # Panics
            /// Where the product exceeds [`Self::MAX`].
            #[track_caller]
            fn mul(self, count: u64) -> Self {
                self.checked_mul(count).expect(concat!("a multiple of ", $what, " fits 64 bits"))
            }
        }

        impl core::ops::Div<u64> for $name {
            type Output = Self;

            /// The whole part of one share of `parts`.
            ///
            /// # Panics
            /// Where `parts` is zero.
            #[track_caller]
            fn div(self, parts: u64) -> Self {
                Self(self.0 / parts)
            }
        }

        impl core::ops::Div for $name {
            type Output = u64;

            /// How often `other` fits in whole.
            ///
            /// # Panics
            /// Where `other` is zero.
            #[track_caller]
            fn div(self, other: Self) -> u64 {
                self.0 / other.0
            }
        }

        impl core::ops::Rem for $name {
            type Output = Self;

            /// What is left after taking `other` out as often as it fits.
            ///
            /// # Panics
            /// Where `other` is zero.
            #[track_caller]
            fn rem(self, other: Self) -> Self {
                Self(self.0 % other.0)
            }
        }

        impl core::iter::Sum for $name {
            fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
                amounts.fold(Self::ZERO, |sum, amount| sum + amount)
            }
        }
    };
}

pub(crate) use amount_arithmetic;
