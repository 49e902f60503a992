//! The resource management cell of ABR.
//!
//! af-tm-0056.000 (Traffic Management 4.0) §5.10.3, I.371. The payload of a cell with payload type
//! 110. Octet numbers in errors count from 0 at the first of the payload.
//!
//! | Field | Bits | Rule |
//! |---|---|---|
//! | Protocol ID | 8 | 1: ABR |
//! | DIR, BN, CI, NI, RA, reserved | 1, 1, 1, 1, 1, 3 | |
//! | ER, CCR, MCR | 16, 16, 16 | a [`Rate`] each |
//! | QL, SN | 32, 32 | I.371; 0 here |
//! | reserved | 240, 6 | 0x6A in each octet; 0 |
//! | CRC-10 | 10 | over all bits before it |

use crate::cell::{IDLE_OCTET, PAYLOAD_OCTETS};
use crate::crc10;
use crate::octets::{put, u16_at, u32_at};
use crate::{DecodeError, EmitError};

/// A rate as RM cells carry it: 2^e (1 + m/512) cells/s with 5 bits of e and 9 of m, or none.
///
/// af-tm-0056 §5.10.3.2. Between two such rates there is none: whoever codes one rounds down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rate(u16);

impl Rate {
    /// No cells.
    pub const ZERO: Self = Self(0);
    /// The highest: 2^31 (1 + 511/512) = 4 290 772 992 cells/s.
    pub const MAX: Self = Self(0x7FFF);

    /// The rate with this code; `None` if the reserved bit is set. Without the bit that says that
    /// there is a rate, all others are carried and mean nothing.
    pub const fn from_code(code: u16) -> Option<Self> {
        if code & 0x8000 == 0 { Some(Self(code)) } else { None }
    }

    /// The sixteen bits.
    pub const fn code(self) -> u16 {
        self.0
    }

    /// The highest rate that is not above `cells_per_s`; below one cell a second that is none.
    pub fn floor(cells_per_s: f64) -> Self {
        if cells_per_s.is_nan() || cells_per_s < 1.0 {
            return Self::ZERO;
        }
        // A double holds exponent and mantissa in just this form: the low bits are cut off.
        let bits = cells_per_s.to_bits();
        let exponent = (bits >> 52 & 0x7FF) - 1023;
        if exponent > 31 {
            return Self::MAX;
        }
        Self(NONZERO | (exponent as u16) << 9 | (bits >> 43 & 0x1FF) as u16)
    }

    /// The rate in cells/s, exactly.
    pub fn cells_per_s(self) -> f64 {
        if self.0 & NONZERO == 0 {
            return 0.0;
        }
        let (exponent, mantissa) = (u64::from(self.0 >> 9 & 0x1F), u64::from(self.0 & 0x1FF));
        f64::from_bits((exponent + 1023) << 52 | mantissa << 43)
    }
}

/// What a resource management cell says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repr {
    /// DIR: on the way back to the source.
    pub backward: bool,
    /// BN: made by a switch or the destination, not by the source.
    pub becn: bool,
    /// CI: congestion; the source slows down.
    pub congestion: bool,
    /// NI: the source does not go faster.
    pub no_increase: bool,
    /// RA: request or acknowledge, I.371 only.
    pub request_acknowledge: bool,
    /// ER: the most that the source may send.
    pub explicit_rate: Rate,
    /// CCR: what it may send as the cell leaves it.
    pub current_cell_rate: Rate,
    /// MCR: what it may send always.
    pub minimum_cell_rate: Rate,
    /// QL, I.371 only.
    pub queue_length: u32,
    /// SN, I.371 only.
    pub sequence_number: u32,
}

impl Repr {
    /// Reads the payload of a cell. What is reserved is not looked at.
    ///
    /// # Errors
    /// [`Fault::Size`](crate::Fault::Size) unless there are 48 octets;
    /// [`Fault::Checksum`](crate::Fault::Checksum) if the CRC-10 fails; then
    /// [`Fault::Value`](crate::Fault::Value) for another protocol than ABR, or a rate whose reserved
    /// bit is set.
    pub fn parse(payload: &[u8]) -> Result<Self, DecodeError> {
        crc10::sized(FORMAT, payload)?;
        crc10::check(FORMAT, payload)?;
        if payload[0] != PROTOCOL_ABR {
            return Err(DecodeError::value((FORMAT, "Protocol ID"), 0, payload[0], "1"));
        }
        let rate = |at, field| {
            let code = u16_at(payload, at);
            let error = DecodeError::value((FORMAT, field), at, code, "0 to 32767");
            Rate::from_code(code).ok_or(error)
        };
        Ok(Self {
            backward: payload[1] & DIR != 0,
            becn: payload[1] & BN != 0,
            congestion: payload[1] & CI != 0,
            no_increase: payload[1] & NI != 0,
            request_acknowledge: payload[1] & RA != 0,
            explicit_rate: rate(2, "ER")?,
            current_cell_rate: rate(4, "CCR")?,
            minimum_cell_rate: rate(6, "MCR")?,
            queue_length: u32_at(payload, 8),
            sequence_number: u32_at(payload, 12),
        })
    }

    /// Writes the payload of a cell.
    ///
    /// # Errors
    /// [`EmitError`] unless there are 48 octets. Nothing is written then.
    pub fn emit(&self, payload: &mut [u8]) -> Result<(), EmitError> {
        EmitError::unless_size(FORMAT, "payload", payload.len(), PAYLOAD_OCTETS)?;
        let flags = [
            (self.backward, DIR),
            (self.becn, BN),
            (self.congestion, CI),
            (self.no_increase, NI),
            (self.request_acknowledge, RA),
        ];
        let flags = flags.iter().fold(0, |bits, &(set, bit)| if set { bits | bit } else { bits });
        put(payload, 0, [PROTOCOL_ABR, flags]);
        put(payload, 2, self.explicit_rate.0.to_be_bytes());
        put(payload, 4, self.current_cell_rate.0.to_be_bytes());
        put(payload, 6, self.minimum_cell_rate.0.to_be_bytes());
        put(payload, 8, self.queue_length.to_be_bytes());
        put(payload, 12, self.sequence_number.to_be_bytes());
        payload[16..crc10::CRC_AT].fill(IDLE_OCTET);
        payload[crc10::CRC_AT] = 0;
        crc10::close(payload);
        Ok(())
    }
}

const FORMAT: &str = "RM cell";
const PROTOCOL_ABR: u8 = 1;
const NONZERO: u16 = 0x4000;
const DIR: u8 = 0x80;
const BN: u8 = 0x40;
const CI: u8 = 0x20;
const NI: u8 = 0x10;
const RA: u8 = 0x08;

/// Reads arbitrary octets as the payload of an RM cell and, if they are, writes what was read and
/// compares. The fuzz target and the property test below are this function.
///
/// # Panics
/// If a payload that was read is not written back with the same fields: a bug here.
#[doc(hidden)]
pub fn round_trip(octets: &[u8]) {
    let Ok(repr) = Repr::parse(octets) else { return };
    let mut written = [0xEE; PAYLOAD_OCTETS];
    repr.emit(&mut written).expect("48 octets");
    assert_eq!(Repr::parse(&written), Ok(repr), "what was written reads the same");
    for rate in [repr.explicit_rate, repr.current_cell_rate, repr.minimum_cell_rate] {
        let again = Rate::floor(rate.cells_per_s());
        assert!(again == rate || (again, rate.code() & NONZERO) == (Rate::ZERO, 0), "{rate:?}");
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    /// A payload as the sheets print it: head, 30 times 6A, tail.
    fn payload(head: &[u8; 16], tail: [u8; 2]) -> Vec<u8> {
        [&head[..], &[0x6A; 30], &tail].concat()
    }

    #[test]
    fn rates_are_rounded_down_to_those_there_are() {
        for (cells_per_s, code, rate) in [
            (0.0, 0x0000, 0.0),
            (0.999, 0x0000, 0.0),
            (1.0, 0x4000, 1.0),
            (10.0, 0x4680, 10.0),
            (1000.0, 0x53E8, 1000.0),
            (100_000.0, 0x610D, 99_968.0),
            (117_924.53, 0x6199, 117_888.0),
            (353_207.55, 0x64B1, 352_768.0),
            (365_566.0, 0x64C9, 365_056.0),
            (4_290_772_992.0, 0x7FFF, 4_290_772_992.0),
            (1e30, 0x7FFF, 4_290_772_992.0),
            (f64::INFINITY, 0x7FFF, 4_290_772_992.0),
            (f64::NAN, 0, 0.0),
            (-5.0, 0, 0.0),
        ] {
            assert_eq!(Rate::floor(cells_per_s).code(), code, "{cells_per_s}");
            assert_eq!(Rate::floor(cells_per_s).cells_per_s(), rate, "{cells_per_s}");
        }
        assert_eq!(Rate::from_code(0x8000), None);
        assert_eq!(Rate::from_code(0x3FFF).map(Rate::cells_per_s), Some(0.0));
    }

    #[test]
    fn known_cells_are_read_and_written() {
        let forward = Repr {
            explicit_rate: Rate::floor(353_207.55),
            current_cell_rate: Rate::floor(117_924.53),
            ..Repr::default()
        };
        let backward = Repr { backward: true, explicit_rate: Rate::floor(100_000.0), ..forward };
        let cases = [
            (forward, payload(b"\x01\x00\x64\xb1\x61\x99\0\0\0\0\0\0\0\0\0\0", [0x02, 0x00])),
            (backward, payload(b"\x01\x80\x61\x0d\x61\x99\0\0\0\0\0\0\0\0\0\0", [0x03, 0xF1])),
        ];
        for (repr, octets) in cases {
            let mut written = [0xEE; 48];
            repr.emit(&mut written).expect("48 octets");
            assert_eq!(written[..], octets[..]);
            assert_eq!(Repr::parse(&octets), Ok(repr));
        }
    }

    #[test]
    fn every_wrong_field_is_named_with_its_place() {
        let mut octets = [0; 48];
        Repr::default().emit(&mut octets).expect("48 octets");
        for (at, octet, said) in [
            (0, 2, "RM cell, Protocol ID at octet 0: 2, allowed is 1"),
            (2, 0x80, "RM cell, ER at octet 2: 32768, allowed is 0 to 32767"),
            (4, 0x81, "RM cell, CCR at octet 4: 33024, allowed is 0 to 32767"),
            (6, 0xFF, "RM cell, MCR at octet 6: 65280, allowed is 0 to 32767"),
        ] {
            let mut octets = octets;
            octets[at] = octet;
            assert_eq!(Repr::parse(&octets).expect_err("the CRC comes first").field, "CRC-10");
            crc10::close(&mut octets);
            assert_eq!(Repr::parse(&octets).expect_err(said).to_string(), said);
        }
        assert_eq!(Repr::parse(&octets[1..]).expect_err("47 octets").field, "payload");
        Repr::default().emit(&mut octets[1..]).expect_err("47 octets");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(bits: u8, rates: [u16; 3], queue_length: u32, sequence_number: u32) {
            let [explicit_rate, current_cell_rate, minimum_cell_rate] = rates.map(|code| Rate(code & 0x7FFF));
            let repr = Repr {
                backward: bits & DIR != 0,
                becn: bits & BN != 0,
                congestion: bits & CI != 0,
                no_increase: bits & NI != 0,
                request_acknowledge: bits & RA != 0,
                explicit_rate,
                current_cell_rate,
                minimum_cell_rate,
                queue_length,
                sequence_number,
            };
            let mut octets = [0xEE; 48];
            repr.emit(&mut octets).expect("48 octets");
            prop_assert_eq!(Repr::parse(&octets), Ok(repr));
            round_trip(&octets);
        }

        #[test]
        fn no_rate_is_rounded_up_or_further_than_needed(cells_per_s in 1.0f64..4.2e9) {
            let rate = Rate::floor(cells_per_s);
            prop_assert!(rate.cells_per_s() <= cells_per_s);
            prop_assert!(Rate(rate.0 + 1).cells_per_s() > cells_per_s);
        }
    }
}
