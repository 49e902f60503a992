//! Exact decimals: an integer count of a small unit written in a larger one.

use core::fmt;

/// A unit: its name and how many of the smallest unit it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unit {
    pub(crate) name: &'static str,
    pub(crate) scale: u64,
}

impl Unit {
    pub(crate) const fn new(name: &'static str, scale: u64) -> Self {
        Self { name, scale }
    }
}

/// Digits after the point beyond which a smaller unit is chosen for powers of two.
const MAX_BINARY_PLACES: usize = 3;

/// Writes `value` in the largest of `units` (largest first) that it reaches.
///
/// All digits are written, so that the text reads back as the same value, unless the formatter asks
/// for a precision: then the last place is rounded half up.
pub(crate) fn write_decimal(f: &mut fmt::Formatter<'_>, value: u64, units: &[Unit]) -> fmt::Result {
    let smallest = units[units.len() - 1];
    let unit = units.iter().copied().find(|unit| value >= unit.scale).unwrap_or(smallest);
    match f.precision() {
        Some(places) => write_rounded(f, value, unit, places),
        None => write_exact(f, value, unit),
    }
}

/// As [`write_decimal`], for units whose scales are powers of two: a unit is taken only where the
/// value has at most three digits after the point in it, so that 1500 B does not become 1.46484375 KiB.
pub(crate) fn write_binary(f: &mut fmt::Formatter<'_>, value: u64, units: &[Unit]) -> fmt::Result {
    if f.precision().is_some() {
        return write_decimal(f, value, units);
    }
    let smallest = units[units.len() - 1];
    let short = |unit: &Unit| {
        let fraction = u128::from(value % unit.scale) * 10_u128.pow(MAX_BINARY_PLACES as u32);
        value >= unit.scale && fraction.is_multiple_of(u128::from(unit.scale))
    };
    write_exact(f, value, units.iter().copied().find(short).unwrap_or(smallest))
}

fn write_exact(f: &mut fmt::Formatter<'_>, value: u64, unit: Unit) -> fmt::Result {
    write!(f, "{}", value / unit.scale)?;
    let mut rest = u128::from(value % unit.scale);
    if rest > 0 {
        f.write_str(".")?;
    }
    while rest > 0 {
        rest *= 10;
        write!(f, "{}", rest / u128::from(unit.scale))?;
        rest %= u128::from(unit.scale);
    }
    write!(f, " {}", unit.name)
}

fn write_rounded(f: &mut fmt::Formatter<'_>, value: u64, unit: Unit, places: usize) -> fmt::Result {
    // Beyond 18 places every scale in use is exhausted; 10^18 x 2^64 still fits u128.
    let places = places.min(18);
    let power = 10_u128.pow(places as u32);
    let scale = u128::from(unit.scale);
    let scaled = (u128::from(value) * power * 2 + scale) / (2 * scale);
    write!(f, "{}", scaled / power)?;
    if places > 0 {
        write!(f, ".{:0places$}", scaled % power)?;
    }
    write!(f, " {}", unit.name)
}
