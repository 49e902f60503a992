//! Reading `155.52 Mbit/s`: an exact decimal number and a unit, never one without the other.
//!
//! The grammar is `digits [ "." digits ] [ blanks ] unit`; no sign, no exponent, no separators. The
//! value must be a whole number of the smallest unit: nothing is rounded.

use alloc::string::String;
use core::fmt;

use crate::decimal::Unit;

/// What a kind of quantity is called and which units it takes.
pub(crate) struct Quantity {
    /// With its article, for messages: `a rate`.
    pub(crate) what: &'static str,
    /// Every unit that is read, in the order in which a message lists them.
    pub(crate) units: &'static [Unit],
    /// Spellings that are read besides, and what they mean; not listed in messages.
    pub(crate) aliases: &'static [Unit],
    /// The unit the value is counted in.
    pub(crate) smallest: &'static str,
}

/// The units of a quantity, as a message lists them.
#[derive(Clone, Copy)]
pub struct Allowed(&'static [Unit]);

impl Allowed {
    /// The names of the units.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|unit| unit.name)
    }
}

impl PartialEq for Allowed {
    fn eq(&self, other: &Self) -> bool {
        self.names().eq(other.names())
    }
}

impl Eq for Allowed {}

impl fmt::Debug for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

impl fmt::Display for Allowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, name) in self.names().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            f.write_str(name)?;
        }
        Ok(())
    }
}

/// Why a text is not the quantity that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParseQuantityError {
    /// A number and nothing else: its unit would have to be guessed.
    NoUnit {
        /// The text.
        value: String,
        /// The kind of quantity, with its article.
        what: &'static str,
        /// The units it takes.
        allowed: Allowed,
    },
    /// The unit is none of this quantity.
    UnknownUnit {
        /// The text.
        value: String,
        /// The part that was taken for a unit.
        unit: String,
        /// The kind of quantity, with its article.
        what: &'static str,
        /// The units it takes.
        allowed: Allowed,
    },
    /// The text does not begin with an unsigned decimal number.
    NoNumber {
        /// The text.
        value: String,
        /// The kind of quantity, with its article.
        what: &'static str,
        /// The units it takes.
        allowed: Allowed,
    },
    /// The value is not a whole number of the smallest unit.
    NotWhole {
        /// The text.
        value: String,
        /// The kind of quantity, with its article.
        what: &'static str,
        /// The smallest unit.
        smallest: &'static str,
    },
    /// The value is below the least that is allowed (a rate of zero).
    TooSmall {
        /// The text.
        value: String,
        /// The kind of quantity, with its article.
        what: &'static str,
        /// The least value, in the smallest unit.
        least: u64,
        /// The smallest unit.
        smallest: &'static str,
    },
    /// The value does not fit 64 bits of the smallest unit.
    TooLarge {
        /// The text.
        value: String,
        /// The kind of quantity, with its article.
        what: &'static str,
        /// The greatest value, in the smallest unit.
        most: u64,
        /// The smallest unit.
        smallest: &'static str,
    },
}

impl fmt::Display for ParseQuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoUnit { value, what, allowed } => {
                write!(f, "`{value}` has no unit: {what} is a number with one of {allowed}")
            }
            Self::UnknownUnit { value, unit, what, allowed } => {
                write!(f, "`{value}`: `{unit}` is not a unit of {what}; allowed are {allowed}")
            }
            Self::NoNumber { value, what, allowed } => {
                write!(
                    f,
                    "`{value}` does not begin with an unsigned decimal number: \
                     {what} is a number with one of {allowed}"
                )
            }
            Self::NotWhole { value, what, smallest } => {
                write!(f, "`{value}` is not a whole number of {smallest}, as {what} must be")
            }
            Self::TooSmall { value, what, least, smallest } => {
                write!(f, "`{value}` is too small: {what} is at least {least} {smallest}")
            }
            Self::TooLarge { value, what, most, smallest } => {
                write!(f, "`{value}` is too large: {what} is at most {most} {smallest}")
            }
        }
    }
}

impl core::error::Error for ParseQuantityError {}

/// Reads `text` as a quantity: its value in the smallest unit.
pub(crate) fn parse(text: &str, quantity: &Quantity) -> Result<u64, ParseQuantityError> {
    let value = text.trim();
    let what = quantity.what;
    let allowed = Allowed(quantity.units);

    let whole_end = digits_end(value, 0);
    let (fraction_start, number_end) = match value.as_bytes().get(whole_end) {
        Some(b'.') => (whole_end + 1, digits_end(value, whole_end + 1)),
        _ => (whole_end, whole_end),
    };
    let point_without_digits = number_end == fraction_start && fraction_start > whole_end;
    if whole_end == 0 || point_without_digits {
        return Err(ParseQuantityError::NoNumber { value: value.into(), what, allowed });
    }
    let name = value[number_end..].trim_start();
    if name.is_empty() {
        return Err(ParseQuantityError::NoUnit { value: value.into(), what, allowed });
    }
    let unit =
        quantity.units.iter().chain(quantity.aliases).find(|unit| unit.name == name).ok_or_else(|| {
            ParseQuantityError::UnknownUnit { value: value.into(), unit: name.into(), what, allowed }
        })?;

    let too_large = || ParseQuantityError::TooLarge {
        value: value.into(),
        what,
        most: u64::MAX,
        smallest: quantity.smallest,
    };
    let mut total: u64 = 0;
    for digit in value[..whole_end].bytes() {
        total = total
            .checked_mul(10)
            .and_then(|shifted| shifted.checked_add(u64::from(digit - b'0')))
            .ok_or_else(too_large)?;
    }
    let mut total = total.checked_mul(unit.scale).ok_or_else(too_large)?;

    // The fraction times the scale, exactly, must be whole.
    let fraction = value[fraction_start..number_end].trim_end_matches('0');
    let mut numerator: u128 = 0;
    let mut denominator: u128 = 1;
    let inexact = || ParseQuantityError::NotWhole { value: value.into(), what, smallest: quantity.smallest };
    for digit in fraction.bytes() {
        // Its last digit is not zero, so a whole product needs a scale with a factor of 2 or of 5 for
        // every digit: 30 (GiB) at most, where 38 fit.
        numerator = numerator
            .checked_mul(10)
            .and_then(|shifted| shifted.checked_add(u128::from(digit - b'0')))
            .ok_or_else(inexact)?;
        denominator = denominator.checked_mul(10).ok_or_else(inexact)?;
    }
    let scale = u128::from(unit.scale);
    let common = gcd(scale, denominator);
    let (scale, denominator) = (scale / common, denominator / common);
    if !numerator.is_multiple_of(denominator) {
        return Err(inexact());
    }
    // numerator / denominator x scale < 1 x unit.scale, which fits u64.
    let part = numerator / denominator * scale;
    total = total.checked_add(part as u64).ok_or_else(too_large)?;
    Ok(total)
}

/// Where the run of digits that starts at `from` ends.
fn digits_end(text: &str, from: usize) -> usize {
    from + text[from..].bytes().take_while(u8::is_ascii_digit).count()
}

fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}
