//! Amounts of data.

use core::fmt;
use core::str::FromStr;

use crate::arithmetic::amount_arithmetic;
use crate::decimal::{Unit, write_binary, write_decimal};
use crate::parse::{ParseQuantityError, Quantity, parse};

/// A number of bytes (of eight bits).
///
/// Prints in KiB and MiB where that is short, else in bytes. Reads both families of prefixes:
/// KiB, MiB, GiB are powers of 1024; kB (also written KB), MB, GB are powers of 1000.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

/// A number of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bits(u64);

/// A number of ATM cells, each of 53 bytes on the line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cells(u64);

amount_arithmetic!(Bytes, "sizes");
amount_arithmetic!(Bits, "numbers of bits");
amount_arithmetic!(Cells, "numbers of cells");

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

const PRINTED_BYTES: &[Unit] =
    &[Unit::new("GiB", GIB), Unit::new("MiB", MIB), Unit::new("KiB", KIB), Unit::new("B", 1)];

const SIZE: Quantity = Quantity {
    what: "a size",
    units: &[
        Unit::new("B", 1),
        Unit::new("kB", 1_000),
        Unit::new("KB", 1_000),
        Unit::new("MB", 1_000_000),
        Unit::new("GB", 1_000_000_000),
        Unit::new("KiB", KIB),
        Unit::new("MiB", MIB),
        Unit::new("GiB", GIB),
    ],
    aliases: &[],
    smallest: "B",
};

const PRINTED_BITS: &[Unit] = &[
    Unit::new("Gbit", 1_000_000_000),
    Unit::new("Mbit", 1_000_000),
    Unit::new("kbit", 1_000),
    Unit::new("bit", 1),
];

const BITS: Quantity = Quantity {
    what: "a number of bits",
    units: &[
        Unit::new("bit", 1),
        Unit::new("kbit", 1_000),
        Unit::new("Mbit", 1_000_000),
        Unit::new("Gbit", 1_000_000_000),
    ],
    aliases: &[],
    smallest: "bit",
};

const CELLS: Quantity = Quantity {
    what: "a number of cells",
    units: &[Unit::new("cells", 1)],
    aliases: &[Unit::new("cell", 1)],
    smallest: "cells",
};

impl Bytes {
    /// This many bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// This many KiB (1024 bytes); panics beyond 64 bits, which in a `const` is a compile error.
    pub const fn kib(count: u64) -> Self {
        Self(count.checked_mul(KIB).expect("a size fits 64 bits of bytes"))
    }

    /// This many MiB (1024 KiB); panics as [`Bytes::kib`].
    pub const fn mib(count: u64) -> Self {
        Self(count.checked_mul(MIB).expect("a size fits 64 bits of bytes"))
    }

    /// The number of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The bits in these bytes, at most [`Bits::MAX`] (from 2 EiB on).
    pub const fn bits(self) -> Bits {
        Bits(self.0.saturating_mul(8))
    }
}

impl Bits {
    /// This many bits.
    pub const fn new(bits: u64) -> Self {
        Self(bits)
    }

    /// The number of bits.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The bytes that hold these bits, the last one perhaps not full.
    pub const fn bytes(self) -> Bytes {
        Bytes(self.0.div_ceil(8))
    }
}

impl Cells {
    /// Bytes of a cell on the line: a header of 5 and a payload of 48 (I.361 §2).
    pub const BYTES_PER_CELL: u64 = 53;

    /// This many cells.
    pub const fn new(cells: u64) -> Self {
        Self(cells)
    }

    /// The number of cells.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The bytes of these cells on the line, at most [`Bytes::MAX`].
    pub const fn bytes(self) -> Bytes {
        Bytes(self.0.saturating_mul(Self::BYTES_PER_CELL))
    }

    /// The bits of these cells on the line, 424 each, at most [`Bits::MAX`].
    pub const fn bits(self) -> Bits {
        self.bytes().bits()
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_binary(f, self.0, PRINTED_BYTES)
    }
}

impl fmt::Display for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_decimal(f, self.0, PRINTED_BITS)
    }
}

impl fmt::Display for Cells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.0, if self.0 == 1 { "cell" } else { "cells" })
    }
}

impl FromStr for Bytes {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text, &SIZE).map(Self)
    }
}

impl FromStr for Bits {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text, &BITS).map(Self)
    }
}

impl FromStr for Cells {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text, &CELLS).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::format;
    use alloc::string::ToString;

    #[test]
    fn sizes_print_in_powers_of_1024_only_where_that_is_short() {
        for (bytes, text) in [
            (0, "0 B"),
            (1, "1 B"),
            (1023, "1023 B"),
            (1024, "1 KiB"),
            (1500, "1500 B"),
            (1536, "1.5 KiB"),
            (52_224, "51 KiB"),
            (1 << 20, "1 MiB"),
            ((1 << 20) + 1, "1048577 B"),
            (u64::MAX, "18446744073709551615 B"),
        ] {
            assert_eq!(Bytes::new(bytes).to_string(), text);
            assert_eq!(text.parse(), Ok(Bytes::new(bytes)));
        }
        assert_eq!(format!("{:.1}", Bytes::new(1_000_000)), "976.6 KiB");
    }

    #[test]
    fn both_families_of_prefixes_are_read_and_kb_is_decimal() {
        for (text, bytes) in [
            ("4 KiB", 4_096),
            ("4KiB", 4_096),
            ("4 kB", 4_000),
            ("4 KB", 4_000),
            ("1.5 MB", 1_500_000),
            ("0.25 GiB", 268_435_456),
            ("  64 B ", 64),
        ] {
            assert_eq!(text.parse(), Ok(Bytes::new(bytes)), "{text}");
        }
    }

    #[test]
    fn a_bare_number_is_refused_and_the_units_are_listed() {
        let error = "4096".parse::<Bytes>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "`4096` has no unit: a size is a number with one of \
             B, kB, KB, MB, GB, KiB, MiB, GiB"
        );
        assert!(matches!("0".parse::<Bytes>(), Err(ParseQuantityError::NoUnit { .. })));
    }

    #[test]
    fn what_is_not_an_unsigned_decimal_is_refused() {
        for text in ["", "B", "-1 B", "+1 B", ".5 KiB", "1. KiB", "NaN B", "½ KiB", "١ B"] {
            assert!(matches!(text.parse::<Bytes>(), Err(ParseQuantityError::NoNumber { .. })), "{text}");
        }
        for text in ["1e3 B", "1_000 B", "1,5 KiB", "1 kb", "1 b", "1 MiB/s", "1 KiB B"] {
            assert!(matches!(text.parse::<Bytes>(), Err(ParseQuantityError::UnknownUnit { .. })), "{text}");
        }
    }

    #[test]
    fn a_size_is_a_whole_number_of_bytes_that_fits_64_bits() {
        assert!(matches!("0.3 KiB".parse::<Bytes>(), Err(ParseQuantityError::NotWhole { .. })));
        assert_eq!("18446744073709551615 B".parse(), Ok(Bytes::MAX));
        let error = "18446744073709551616 B".parse::<Bytes>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "`18446744073709551616 B` is too large: a size is at most 18446744073709551615 B"
        );
        assert!(matches!("17179869184 GiB".parse::<Bytes>(), Err(ParseQuantityError::TooLarge { .. })));
        assert!(matches!(
            "18446744073.709551616 GB".parse::<Bytes>(),
            Err(ParseQuantityError::TooLarge { .. })
        ));
        let long = format!("0.{}1 KiB", "0".repeat(60));
        assert!(matches!(long.parse::<Bytes>(), Err(ParseQuantityError::NotWhole { .. })));
        let zeros = format!("1.5{} KiB", "0".repeat(60));
        assert_eq!(zeros.parse(), Ok(Bytes::new(1_536)));
    }

    #[test]
    fn a_cell_is_424_bits_on_the_line() {
        assert_eq!(Cells::new(3).bits(), Bits::new(1_272));
        assert_eq!("1 cell".parse(), Ok(Cells::new(1)));
        assert_eq!(Cells::new(7).to_string().parse(), Ok(Cells::new(7)));
        assert_eq!(Bits::new(9).bytes(), Bytes::new(2));
    }

    #[test]
    #[should_panic(expected = "the lesser of two sizes is subtracted")]
    fn a_greater_size_is_not_subtracted_from_a_lesser() {
        let _ = Bytes::new(1) - Bytes::new(2);
    }
}
