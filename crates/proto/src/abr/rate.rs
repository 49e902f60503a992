//! Rates in cells per second, which the specification defines as real numbers.

use core::fmt;

use wiretwin_units::{BitRate, Cells, Span};
use wiretwin_wire::rm::Rate;

/// A rate in cells per second: finite, not negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct CellRate(f64);

/// A number that is no rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateError(pub f64);

impl fmt::Display for RateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cells/s: a rate is finite and 0 or more", self.0)
    }
}

impl core::error::Error for RateError {}

impl CellRate {
    /// No cells.
    pub const ZERO: Self = Self(0.0);

    /// So many cells a second.
    ///
    /// # Errors
    /// [`RateError`] unless the number is finite and 0 or more.
    pub const fn new(cells_per_s: f64) -> Result<Self, RateError> {
        if cells_per_s.is_finite() && cells_per_s >= 0.0 {
            Ok(Self(cells_per_s))
        } else {
            Err(RateError(cells_per_s))
        }
    }

    /// The cells of 53 octets that a line of this rate carries.
    #[must_use]
    pub fn of_line(rate: BitRate) -> Self {
        Self(rate.get() as f64 / Cells::new(1).bits().get() as f64)
    }

    /// Cells per second.
    #[must_use]
    pub const fn cells_per_s(self) -> f64 {
        self.0
    }

    /// From one cell to the next, the last picosecond begun counting as whole, so that the rate is never
    /// exceeded; `None` where that is longer than [`Span::MAX`].
    #[must_use]
    pub fn interval(self) -> Option<Span> {
        let ps = PS_PER_S / self.0;
        // Above 2^64 the conversion would stick to the most there is; there, and for no cells, is none.
        if ps < u64::MAX as f64 { Some(Span::from_ps(libm::ceil(ps) as u64)) } else { None }
    }

    /// The highest rate that a resource management cell can say and that is not above this one.
    #[must_use]
    pub fn coded(self) -> Rate {
        Rate::floor(self.0)
    }

    pub(super) const fn raw(cells_per_s: f64) -> Self {
        Self(cells_per_s)
    }

    pub(super) const fn min(self, other: Self) -> Self {
        if other.0 < self.0 { other } else { self }
    }

    pub(super) const fn max(self, other: Self) -> Self {
        if other.0 > self.0 { other } else { self }
    }
}

impl From<Rate> for CellRate {
    fn from(rate: Rate) -> Self {
        Self(rate.cells_per_s())
    }
}

impl fmt::Display for CellRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cells/s", self.0)
    }
}

const PS_PER_S: f64 = 1e12;

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn what_is_no_rate_is_refused() {
        for wrong in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(CellRate::new(wrong).is_err(), "{wrong}");
        }
        let error = CellRate::new(-1.0).expect_err("below none");
        assert_eq!(error.to_string(), "-1 cells/s: a rate is finite and 0 or more");
        assert_eq!(CellRate::new(0.5).map(CellRate::cells_per_s), Ok(0.5));
    }

    #[test]
    fn a_line_carries_cells_of_53_octets() {
        let rate = CellRate::of_line(BitRate::kbit_s(149_760));
        assert!((rate.cells_per_s() - 353_207.547).abs() < 0.001, "{rate}");
        assert_eq!(rate.interval(), Some(Span::from_ps(2_831_197)));
    }

    #[test]
    fn no_rate_has_no_interval() {
        assert_eq!(CellRate::ZERO.interval(), None);
        assert_eq!(CellRate::raw(1e-9).interval(), None);
        assert_eq!(CellRate::raw(10.0).interval(), Some(Span::from_ms(100)));
    }
}
