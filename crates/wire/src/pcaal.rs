//! Cells of the parallel-computing adaptation layer: SSCOP's PDUs and whole values, one cell each.
//!
//! Vila-Sallent and Solé-Pareta (1998), §3. The fields are theirs; of widths they print that of the CRC
//! alone, and the layout of the 48 octets is a choice, as are the codes of the PDU types:
//!
//! | Octets | Field |
//! |---|---|
//! | 0, high half | PDU Type |
//! | 0, low half | data: how many octets a value has, and whether they are the message's last; else a count or a flag |
//! | 1..3 | Connection Identifier |
//! | 3..46 | data: Sequence Number 4, Tag 4, Offset First 4, Offset Last 4, time stamp 4 if there is one, values; else numbers of 4, time stamps of 8 |
//! | 46..48 | CRC-16, polynomial 0x1021, over all before it |
//!
//! Time stamps are ns of the sender's clock, the short ones modulo 2^32.

mod remainder;
mod train;

pub use train::Train;
use wiretwin_units::Seq;

use crate::octets::{put, u16_at, u32_at};
use crate::{DecodeError, EmitError};

/// Octets of a cell's payload.
pub const CELL_OCTETS: usize = 48;
/// Octets for values in a data cell without a time stamp.
pub const VALUE_OCTETS: usize = CRC_AT - VALUES_AT;
/// Octets for values in one with a time stamp.
pub const STAMPED_VALUE_OCTETS: usize = VALUE_OCTETS - 4;
/// The most elements of a STAT.
pub const STAT_ELEMENTS: usize = 7;
/// The most elements of an LSTAT.
pub const LSTAT_ELEMENTS: usize = 5;

/// A number of a data cell or a POLL.
pub type Number = Seq<32>;

/// How many octets a value has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Characters.
    One,
    /// Short integers.
    Two,
    /// Integers, floats.
    Four,
    /// Long integers, doubles.
    Eight,
    /// Complex doubles.
    Sixteen,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::One, Self::Two, Self::Four, Self::Eight, Self::Sixteen];

    /// Octets of one value.
    pub const fn octets(self) -> usize {
        1 << self as usize
    }

    /// Whole values that fit a data cell, with or without a time stamp.
    pub const fn most(self, stamped: bool) -> usize {
        (if stamped { STAMPED_VALUE_OCTETS } else { VALUE_OCTETS }) / self.octets()
    }
}

/// The elements of a list: first missing, first received after it, and so on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct List {
    elements: [Number; STAT_ELEMENTS],
    count: u8,
}

impl List {
    /// A list of these; `None` where they are more than a STAT has room for.
    pub fn new(elements: &[Number]) -> Option<Self> {
        let mut list = Self { count: elements.len() as u8, ..Self::default() };
        list.elements.get_mut(..elements.len())?.copy_from_slice(elements);
        Some(list)
    }

    /// The elements.
    pub fn as_slice(&self) -> &[Number] {
        &self.elements[..usize::from(self.count)]
    }
}

/// What a cell says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// Values of a message: of their octets, the first `count` times those of the kind count.
    Data {
        /// Sequence Number.
        number: Number,
        /// Tag, of the message library.
        tag: u32,
        /// Octets of each value.
        kind: Kind,
        /// Offset First: the place of the first in its message, in values.
        first: u32,
        /// How many: Offset Last is the first and these, less one. 1 or more.
        count: u8,
        /// They are the last of their message.
        end: bool,
        /// When it was sent, if it is said.
        stamp: Option<u32>,
    },
    /// POLL.
    Poll {
        /// N(PS).
        ps: Number,
        /// N(S).
        s: Number,
    },
    /// STAT.
    Stat {
        /// N(PS).
        ps: Number,
        /// N(MR).
        mr: Number,
        /// N(R).
        r: Number,
        /// What is missing.
        list: List,
    },
    /// USTAT.
    Ustat {
        /// The first that is missing.
        first: Number,
        /// The one behind the last that is.
        end: Number,
        /// N(MR).
        mr: Number,
        /// N(R).
        r: Number,
    },
    /// LSTAT: a STAT that nobody asked for, and the mode that is to be from now on.
    Lstat {
        /// N(PS) of the last POLL that came.
        ps: Number,
        /// N(MR).
        mr: Number,
        /// N(R).
        r: Number,
        /// What is missing, at most [`LSTAT_ELEMENTS`].
        list: List,
        /// The time stamp of the cell that was late, or should have come.
        stamp: u64,
        /// High latency, not low.
        high: bool,
    },
    /// Monitoring.
    Monitor {
        /// Which, from 0.
        number: u32,
        /// When it was sent.
        stamp: u64,
        /// The sender is in high-latency mode.
        high: bool,
    },
    /// The answer to a monitoring cell where round trips are watched.
    Echo {
        /// The number of the monitoring cell that is answered.
        number: u32,
        /// When that was sent.
        stamp: u64,
    },
    /// The sender's clock, over a circuit of constant delay.
    Clock {
        /// What it read.
        stamp: u64,
    },
}

/// A cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Connection Identifier.
    pub connection: u16,
    /// What it says.
    pub body: Body,
}

impl Body {
    const fn head(&self) -> u8 {
        let (kind, low) = match *self {
            Self::Data { kind, end, stamp, .. } => {
                (if stamp.is_some() { STAMPED } else { DATA }, kind as u8 | if end { 8 } else { 0 })
            }
            Self::Poll { .. } => (POLL, 0),
            Self::Stat { list, .. } => (STAT, list.count),
            Self::Ustat { .. } => (USTAT, 0),
            Self::Lstat { list, high, .. } => (LSTAT, list.count | if high { 8 } else { 0 }),
            Self::Monitor { high, .. } => (MONITOR, if high { 8 } else { 0 }),
            Self::Echo { .. } => (ECHO, 0),
            Self::Clock { .. } => (CLOCK, 0),
        };
        kind << 4 | low
    }

    /// Octets of values behind a data cell's fields.
    pub const fn value_octets(&self) -> usize {
        match *self {
            Self::Data { kind, count, .. } => kind.octets() * count as usize,
            _ => 0,
        }
    }
}

impl Repr {
    /// Reads a cell and returns what it says with the octets of its values.
    ///
    /// # Errors
    /// [`Fault::Size`](crate::Fault::Size) unless there are 48 octets;
    /// [`Fault::Checksum`](crate::Fault::Checksum) if the CRC fails; then
    /// [`Fault::Value`](crate::Fault::Value) for a type or a kind of value that there is not, more
    /// values or elements than fit, none, or offsets that fall.
    pub fn parse(octets: &[u8]) -> Result<(Self, &[u8]), DecodeError> {
        let Ok(cell) = <&[u8; CELL_OCTETS]>::try_from(octets) else {
            return Err(DecodeError::size(FORMAT, "cell", octets.len(), "48"));
        };
        let found = u16_at(octets, CRC_AT);
        let computed = crc(cell) ^ found;
        if found != computed {
            return Err(DecodeError::checksum((FORMAT, "CRC"), CRC_AT, found, computed));
        }
        let (code, low) = (octets[0] >> 4, octets[0] & 15);
        let n = |at| Seq::wrapping(u32_at(octets, at));
        let stamp = |at| u64::from(u32_at(octets, at)) << 32 | u64::from(u32_at(octets, at + 4));
        let list = |most: usize| {
            let mut list = List { count: low & 7, ..List::default() };
            if usize::from(list.count) > most {
                return Err(DecodeError::value((FORMAT, "elements"), 0, list.count, "0 to 7, 5 in an LSTAT"));
            }
            let places = list.elements.iter_mut().take(list.count.into()).enumerate();
            places.for_each(|(place, element)| *element = n(LIST_AT + 4 * place));
            Ok(list)
        };
        let (ps, mr, r, high) = (n(3), n(7), n(11), low & 8 != 0);
        let body = match code {
            DATA | STAMPED => return Self::parse_data(octets, code == STAMPED),
            POLL => Body::Poll { ps, s: n(7) },
            STAT => Body::Stat { ps, mr, r, list: list(STAT_ELEMENTS)? },
            USTAT => Body::Ustat { first: n(3), end: n(7), mr: r, r: n(15) },
            LSTAT => {
                Body::Lstat { ps, mr, r, list: list(LSTAT_ELEMENTS)?, stamp: stamp(LSTAT_STAMP_AT), high }
            }
            MONITOR => Body::Monitor { number: u32_at(octets, 3), stamp: stamp(7), high },
            ECHO => Body::Echo { number: u32_at(octets, 3), stamp: stamp(7) },
            CLOCK => Body::Clock { stamp: stamp(7) },
            _ => return Err(DecodeError::value((FORMAT, "PDU Type"), 0, code, "1 to 9")),
        };
        Ok((Self { connection: u16_at(octets, 1), body }, &[]))
    }

    fn parse_data(octets: &[u8], stamped: bool) -> Result<(Self, &[u8]), DecodeError> {
        let low = octets[0] & 7;
        let Some(&kind) = Kind::ALL.get(usize::from(low)) else {
            return Err(DecodeError::value((FORMAT, "kind of value"), 0, low, "0 to 4"));
        };
        let (first, last) = (u32_at(octets, 11), u32_at(octets, 15));
        let most = kind.most(stamped) as u32;
        if last < first || last - first >= most {
            let allowed = "Offset First and as many more as fit";
            return Err(DecodeError::value((FORMAT, "Offset Last"), 15, last, allowed));
        }
        let count = (last - first + 1) as u8;
        let body = Body::Data {
            number: Seq::wrapping(u32_at(octets, 3)),
            tag: u32_at(octets, 7),
            kind,
            first,
            count,
            end: octets[0] & 8 != 0,
            stamp: stamped.then(|| u32_at(octets, VALUES_AT)),
        };
        let at = if stamped { VALUES_AT + 4 } else { VALUES_AT };
        Ok((Self { connection: u16_at(octets, 1), body }, &octets[at..at + body.value_octets()]))
    }

    /// Writes a cell with the octets of its values, none where it has none.
    ///
    /// # Errors
    /// [`EmitError`] unless there are 48 octets, for other than the values' octets, more values than fit
    /// or none, places beyond 2^32, and more elements than fit. Nothing is written then.
    pub fn emit(&self, values: &[u8], octets: &mut [u8]) -> Result<(), EmitError> {
        EmitError::unless_size(FORMAT, "cell", octets.len(), CELL_OCTETS)?;
        let octets: &mut [u8; CELL_OCTETS] = octets.try_into().expect("a cell, as was asked");
        EmitError::unless_size(FORMAT, "values", values.len(), self.body.value_octets())?;
        match self.body {
            Body::Data { kind, count, first, stamp, .. } => {
                if count == 0 || usize::from(count) > kind.most(stamp.is_some()) {
                    return Err(EmitError::value(FORMAT, "values", count, "1 to as many as fit"));
                }
                if first.checked_add(u32::from(count) - 1).is_none() {
                    return Err(EmitError::value(
                        FORMAT,
                        "Offset First",
                        first,
                        "below 2^32 with the values",
                    ));
                }
            }
            Body::Lstat { list, .. } if usize::from(list.count) > LSTAT_ELEMENTS => {
                return Err(EmitError::value(FORMAT, "elements", list.count, "0 to 5"));
            }
            _ => {}
        }
        octets.fill(0);
        octets[0] = self.body.head();
        put(octets, 1, self.connection.to_be_bytes());
        let mut words = |at: usize, words: &[u32]| {
            let places = words.iter().enumerate();
            places.for_each(|(place, word)| put(octets, at + 4 * place, word.to_be_bytes()));
        };
        let halves = |stamp: u64| [(stamp >> 32) as u32, stamp as u32];
        let elements = |list: &List| list.elements.map(Seq::get);
        match &self.body {
            Body::Data { number, tag, first, count, stamp, .. } => {
                words(3, &[number.get(), *tag, *first, first + (u32::from(*count) - 1)]);
                words(VALUES_AT, stamp.as_slice());
                let at = VALUES_AT + 4 * usize::from(stamp.is_some());
                octets[at..at + values.len()].copy_from_slice(values);
            }
            Body::Poll { ps, s } => words(3, &[ps.get(), s.get()]),
            Body::Stat { ps, mr, r, list } => {
                words(3, &[ps.get(), mr.get(), r.get()]);
                words(LIST_AT, &elements(list)[..list.count.into()]);
            }
            Body::Ustat { first, end, mr, r } => words(3, &[first.get(), end.get(), mr.get(), r.get()]),
            Body::Lstat { ps, mr, r, list, stamp, .. } => {
                words(3, &[ps.get(), mr.get(), r.get()]);
                words(LIST_AT, &elements(list)[..list.count.into()]);
                words(LSTAT_STAMP_AT, &halves(*stamp));
            }
            Body::Monitor { number, stamp, .. } | Body::Echo { number, stamp } => {
                words(3, &[*number]);
                words(7, &halves(*stamp));
            }
            Body::Clock { stamp } => words(7, &halves(*stamp)),
        }
        let sum = crc(octets);
        put(octets, CRC_AT, sum.to_be_bytes());
        Ok(())
    }
}

const FORMAT: &str = "cell of the parallel-computing AAL";
const CRC_AT: usize = 46;

/// The CRC of a cell's octets before it, added to what stands in its place: by itself where that is 0, and 0 where it
/// is right.
///
/// Choice: CRC-16/GSM, whose sum of nothing but zeros is not zero.
const fn crc(cell: &[u8; CELL_OCTETS]) -> u16 {
    !remainder::of(cell)
}

const VALUES_AT: usize = 19;
const LIST_AT: usize = 15;
const LSTAT_STAMP_AT: usize = LIST_AT + 4 * LSTAT_ELEMENTS;
const DATA: u8 = 1;
const STAMPED: u8 = 2;
const POLL: u8 = 3;
const STAT: u8 = 4;
const USTAT: u8 = 5;
const LSTAT: u8 = 6;
const MONITOR: u8 = 7;
const ECHO: u8 = 8;
const CLOCK: u8 = 9;

/// Reads arbitrary octets as a cell and, if they are one, writes what was read and compares; the CRC is
/// put right first. The fuzz target and the property test below are this function.
///
/// # Panics
/// If a cell that was read is not written back with the same fields: a bug here.
#[doc(hidden)]
pub fn round_trip(octets: &[u8]) {
    assert!(Repr::parse(octets).is_err() || octets.len() == CELL_OCTETS);
    let mut cell = [0; CELL_OCTETS];
    let length = octets.len().min(CRC_AT);
    cell[..length].copy_from_slice(&octets[..length]);
    let sum = crc(&cell);
    put(&mut cell, CRC_AT, sum.to_be_bytes());
    let Ok((repr, values)) = Repr::parse(&cell) else { return };
    let mut written = [0xEE; CELL_OCTETS];
    repr.emit(values, &mut written).expect("what was read can be written");
    assert_eq!(Repr::parse(&written), Ok((repr, values)), "what was written reads the same");
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn n(number: u32) -> Number {
        Seq::wrapping(number)
    }

    fn emitted(body: Body, values: &[u8]) -> [u8; 48] {
        let mut octets = [0xEE; 48];
        Repr { connection: 0x0102, body }.emit(values, &mut octets).expect("the size fits");
        octets
    }

    #[test]
    fn six_integers_or_three_doubles_fill_a_cell() {
        assert_eq!(Kind::ALL.map(|kind| kind.most(false)), [27, 13, 6, 3, 1]);
        assert_eq!(Kind::ALL.map(|kind| kind.most(true)), [23, 11, 5, 2, 1]);
    }

    #[test]
    fn every_field_has_its_place() {
        let list = List::new(&[n(3), n(6)]).expect("two elements");
        assert_eq!(List::new(&[n(0); 8]), None);
        let values: Vec<u8> = (1..=8).collect();
        let data = Body::Data {
            number: n(0x0A0B_0C0D),
            tag: 77,
            kind: Kind::Four,
            first: 6,
            count: 2,
            end: true,
            stamp: None,
        };
        let head = b"\x1A\x01\x02\x0A\x0B\x0C\x0D\0\0\0\x4D\0\0\0\x06\0\0\0\x07";
        let octets = emitted(data, &values);
        assert_eq!(octets[..19], head[..]);
        assert_eq!(octets[19..29], [1, 2, 3, 4, 5, 6, 7, 8, 0, 0]);
        assert_eq!(Repr::parse(&octets), Ok((Repr { connection: 0x0102, body: data }, &values[..])));
        let lstat = Body::Lstat { ps: n(5), mr: n(131), r: n(3), list, stamp: 1 << 40 | 9, high: true };
        for (body, start) in [
            (Body::Poll { ps: n(5), s: n(100) }, &b"\x30\x01\x02\0\0\0\x05\0\0\0\x64"[..]),
            (
                Body::Stat { ps: n(5), mr: n(131), r: n(3), list },
                b"\x42\x01\x02\0\0\0\x05\0\0\0\x83\0\0\0\x03\0\0\0\x03\0\0\0\x06\0\0\0\0",
            ),
            (
                Body::Ustat { first: n(3), end: n(6), mr: n(131), r: n(3) },
                b"\x50\x01\x02\0\0\0\x03\0\0\0\x06\0\0\0\x83\0\0\0\x03",
            ),
            (lstat, b"\x6A\x01\x02\0\0\0\x05\0\0\0\x83\0\0\0\x03\0\0\0\x03\0\0\0\x06\0\0\0\0"),
            (Body::Monitor { number: 4, stamp: 5, high: true }, b"\x78\x01\x02\0\0\0\x04\0\0\0\0\0\0\0\x05"),
            (Body::Echo { number: 4, stamp: 5 }, b"\x80\x01\x02\0\0\0\x04\0\0\0\0\0\0\0\x05"),
            (Body::Clock { stamp: 5 }, b"\x90\x01\x02\0\0\0\0\0\0\0\0\0\0\0\x05"),
        ] {
            let octets = emitted(body, &[]);
            assert_eq!(octets[..start.len()], start[..], "{body:?}");
            assert_eq!(Repr::parse(&octets), Ok((Repr { connection: 0x0102, body }, &[][..])));
        }
        assert_eq!(emitted(lstat, &[])[35..43], (1_u64 << 40 | 9).to_be_bytes());
    }

    #[test]
    fn every_wrong_field_is_named_with_its_place() {
        let data = Body::Data {
            number: n(1),
            tag: 2,
            kind: Kind::Eight,
            first: 3,
            count: 1,
            end: false,
            stamp: None,
        };
        let good = emitted(data, &[9; 8]);
        let fixed = |at: usize, octet: u8| {
            let mut octets = good;
            octets[at] = octet;
            put(&mut octets, CRC_AT, [0; 2]);
            let sum = crc(&octets);
            put(&mut octets, CRC_AT, sum.to_be_bytes());
            Repr::parse(&octets).expect_err("a wrong field").to_string()
        };
        let name = "cell of the parallel-computing AAL";
        let more = "allowed is Offset First and as many more as fit";
        assert_eq!(fixed(18, 2), [name, ", Offset Last at octet 15: 2, ", more].concat());
        assert_eq!(fixed(18, 6), [name, ", Offset Last at octet 15: 6, ", more].concat());
        assert_eq!(fixed(0, 0x15), [name, ", kind of value at octet 0: 5, allowed is 0 to 4"].concat());
        assert_eq!(fixed(0, 0xA0), [name, ", PDU Type at octet 0: 10, allowed is 1 to 9"].concat());
        let seven = "7, allowed is 0 to 7, 5 in an LSTAT";
        assert_eq!(fixed(0, 0x67), [name, ", elements at octet 0: ", seven].concat());
        assert_eq!(Repr::parse(&good[..47]).expect_err("47 octets").field, "cell");
        let gsm = crc::Crc::<u16>::new(&crc::CRC_16_GSM).checksum(&good[..CRC_AT]);
        assert_eq!(u16_at(&good, CRC_AT), gsm, "as it is in the catalogue");
        let mut wrong = good;
        wrong[20] ^= 1;
        assert_eq!(Repr::parse(&wrong).expect_err("a wrong bit").field, "CRC");
        let repr = Repr { connection: 0, body: data };
        repr.emit(&[9; 7], &mut [0; 48]).expect_err("seven octets");
        repr.emit(&[9; 8], &mut [0; 47]).expect_err("a cell of 47");
        let many = Body::Data {
            number: n(1),
            tag: 2,
            kind: Kind::Eight,
            first: 3,
            count: 4,
            end: false,
            stamp: None,
        };
        Repr { connection: 0, body: many }.emit(&[9; 32], &mut [0; 48]).expect_err("four doubles");
    }

    #[test]
    fn the_last_value_of_all_is_written_and_read() {
        let body = |first| Body::Data {
            number: n(1),
            tag: 2,
            kind: Kind::ALL[0],
            first,
            count: 1,
            end: true,
            stamp: None,
        };
        let octets = Kind::ALL[0].octets();
        let cell = emitted(body(u32::MAX), &[9; 8][..octets]);
        assert_eq!(
            Repr::parse(&cell),
            Ok((Repr { connection: 0x0102, body: body(u32::MAX) }, &[9; 8][..octets]))
        );
    }

    proptest! {
        #[test]
        fn whatever_is_a_cell_is_written_back(octets in prop::collection::vec(any::<u8>(), 0..60), head: u8) {
            round_trip(&octets);
            let mut octets = octets;
            octets.resize(48, 0);
            octets[0] = head;
            // Offsets that may be.
            octets[11..19].copy_from_slice(&[0, 0, 0, 1, 0, 0, 0, 1 + head % 3]);
            round_trip(&octets);
        }
    }
}
