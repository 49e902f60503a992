//! The 16 octets before a cell or an AAL5 PDU in captures of link type 197.
//!
//! The extensible record format, record types 3 (ATM cell) and 4 (AAL5 PDU). Either begins with the
//! first four octets of a cell header; there is no room for the header error control. Numbers are
//! highest octet first, the time lowest first.

use std::fmt;

use super::{PS_PER_S, Timestamp};

/// What follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A cell: four octets of header, 48 of payload.
    Cell,
    /// The payloads of the cells of one AAL5 PDU behind four octets of header.
    Aal5,
}

/// What the 16 octets say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// When it was seen, to 2^-32 s.
    pub time: Timestamp,
    /// What follows.
    pub kind: Kind,
    /// Which of four interfaces, 0..=3.
    pub interface: u8,
    /// Octets that follow.
    pub length: u16,
}

/// Octets that are no such record, or a record that cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErfError {
    /// The field.
    pub field: &'static str,
    /// Where it stands.
    pub offset: usize,
    /// What it is.
    pub found: u64,
    /// What it may be.
    pub allowed: &'static str,
}

impl fmt::Display for ErfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, offset, found, allowed } = self;
        write!(f, "ERF record, {field} at octet {offset}: {found}, allowed is {allowed}")
    }
}

impl std::error::Error for ErfError {}

impl Header {
    /// Reads the 16 octets; what follows is behind them, as long as they say.
    ///
    /// # Errors
    /// [`ErfError`] for too few octets, another type, an extension or a padding, and for lengths that
    /// do not agree.
    pub fn parse(octets: &[u8]) -> Result<(Self, &[u8]), ErfError> {
        let error = |field, offset, found: u64, allowed| Err(ErfError { field, offset, found, allowed });
        let Some((&header, rest)) = octets.split_first_chunk::<HEADER_OCTETS>() else {
            return error("header", 0, octets.len() as u64, "16 octets or more");
        };
        let [t0, t1, t2, t3, t4, t5, t6, t7, kind, flags, r0, r1, _, _, w0, w1] = header;
        let kind = match kind {
            TYPE_CELL => Kind::Cell,
            TYPE_AAL5 => Kind::Aal5,
            other => return error("type", 8, other.into(), "3 or 4"),
        };
        let (record, length) = (u16::from_be_bytes([r0, r1]), u16::from_be_bytes([w0, w1]));
        if usize::from(record) != HEADER_OCTETS + usize::from(length) {
            return error("record length", 10, record.into(), "16 more than the wire length");
        }
        if usize::from(length) > rest.len() {
            return error("wire length", 14, length.into(), "0 to the octets there are");
        }
        let fixed = u64::from_le_bytes([t0, t1, t2, t3, t4, t5, t6, t7]);
        let picoseconds = ((fixed & 0xFFFF_FFFF) as u128 * u128::from(PS_PER_S)).div_ceil(1 << 32);
        let time = Timestamp { seconds: fixed >> 32, picoseconds: picoseconds as u64 };
        Ok((Self { time, kind, interface: flags & 3, length }, &rest[..usize::from(length)]))
    }

    /// The 16 octets. What is finer than 2^-32 s is cut off the time.
    ///
    /// # Errors
    /// [`ErfError`] for more than 65519 octets, an interface above 3, a time after 2106, or a second
    /// or more of picoseconds.
    pub fn octets(&self) -> Result<[u8; HEADER_OCTETS], ErfError> {
        let error = |field, offset, found: u64, allowed| Err(ErfError { field, offset, found, allowed });
        let Some(record) = self.length.checked_add(HEADER_OCTETS as u16) else {
            return error("wire length", 14, self.length.into(), "0 to 65519");
        };
        if self.interface > 3 {
            return error("interface", 9, self.interface.into(), "0 to 3");
        }
        let Ok(seconds) = u32::try_from(self.time.seconds) else {
            return error("timestamp", 0, self.time.seconds, "0 to 4294967295 s");
        };
        if self.time.picoseconds >= PS_PER_S {
            return error("timestamp", 0, self.time.picoseconds, "less than 10^12 ps");
        }
        let fraction = (u128::from(self.time.picoseconds) << 32) / u128::from(PS_PER_S);
        let mut octets = [0; HEADER_OCTETS];
        octets[..8].copy_from_slice(&(u64::from(seconds) << 32 | fraction as u64).to_le_bytes());
        octets[8] = match self.kind {
            Kind::Cell => TYPE_CELL,
            Kind::Aal5 => TYPE_AAL5,
        };
        octets[9] = VARYING_LENGTH | self.interface;
        octets[10..12].copy_from_slice(&record.to_be_bytes());
        octets[14..].copy_from_slice(&self.length.to_be_bytes());
        Ok(octets)
    }
}

/// Octets before what follows.
pub const HEADER_OCTETS: usize = 16;

const TYPE_CELL: u8 = 3;
const TYPE_AAL5: u8 = 4;
const VARYING_LENGTH: u8 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        let time = Timestamp { seconds: 5, picoseconds: PS_PER_S / 2 };
        Header { time, kind: Kind::Cell, interface: 1, length: 52 }
    }

    #[test]
    fn a_header_is_written_and_read() {
        let mut record = header().octets().expect("a header").to_vec();
        assert_eq!(record, [0, 0, 0, 0x80, 5, 0, 0, 0, 3, 5, 0, 68, 0, 0, 0, 52]);
        record.extend([7; 53]);
        assert_eq!(Header::parse(&record), Ok((header(), &[7; 52][..])));
        let aal5 = Header { kind: Kind::Aal5, length: 100, ..header() };
        assert_eq!(aal5.octets().expect("a header")[8..], [4, 5, 0, 116, 0, 0, 0, 100]);
    }

    #[test]
    fn every_wrong_field_is_named_with_its_place() {
        let mut record = header().octets().expect("a header").to_vec();
        record.extend([7; 52]);
        for (at, octet, said) in [
            (8, 2, "ERF record, type at octet 8: 2, allowed is 3 or 4"),
            (11, 70, "ERF record, record length at octet 10: 70, allowed is 16 more than the wire length"),
        ] {
            let mut record = record.clone();
            record[at] = octet;
            assert_eq!(Header::parse(&record).expect_err(said).to_string(), said);
        }
        assert_eq!(Header::parse(&record[..67]).expect_err("cut short").field, "wire length");
        assert_eq!(Header::parse(&record[..15]).expect_err("cut short").field, "header");
        let late = Timestamp { seconds: 1 << 32, picoseconds: 0 };
        for (wrong, field) in [
            (Header { length: 65_520, ..header() }, "wire length"),
            (Header { interface: 4, ..header() }, "interface"),
            (Header { time: late, ..header() }, "timestamp"),
            (Header { time: Timestamp { seconds: 0, picoseconds: PS_PER_S }, ..header() }, "timestamp"),
        ] {
            assert_eq!(wrong.octets().expect_err(field).field, field);
        }
    }
}
