//! PDUs of the service specific connection oriented protocol.
//!
//! Q.2110 (1994) §7. What a PDU says stands at its end, in words of 32 bits; in front of it is
//! information, data between users, or the list of a STAT. Left out: the procedures, which stand with
//! the machine, in the room of protocols; management data of SSCOP's predecessors.
//!
//! | Last word | Bits | Rule |
//! |---|---|---|
//! | PL, reserved | 2, 1 | octets that fill the last word in front, 0..=3 |
//! | S | 1 | in END only: SSCOP itself ends the connection |
//! | PDU Type | 4 | |
//! | N(S), N(MR) or N(R) | 24 | as the type has it, else 0 |

use core::fmt;

use wiretwin_units::Seq;

use crate::octets::{put, u32_at};
use crate::{DecodeError, EmitError};

/// A number of an SD or a POLL PDU, or a limit of the window.
pub type Number = Seq<24>;
/// A number of a connection.
pub type ConnectionNumber = Seq<8>;

/// What a PDU says behind what is in front of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repr {
    /// Begin: a connection is asked for. Data between users in front.
    Bgn {
        /// N(SQ).
        sq: ConnectionNumber,
        /// N(MR): the first SD that is not allowed.
        mr: Number,
    },
    /// Begin acknowledge. Data between users in front.
    Bgak {
        /// N(MR).
        mr: Number,
    },
    /// Begin reject. Data between users in front.
    Bgrej,
    /// End. Data between users in front.
    End {
        /// S: SSCOP ends the connection, not its user.
        by_sscop: bool,
    },
    /// End acknowledge.
    Endak,
    /// Resynchronization. Data between users in front.
    Rs {
        /// N(SQ).
        sq: ConnectionNumber,
        /// N(MR).
        mr: Number,
    },
    /// Resynchronization acknowledge.
    Rsak {
        /// N(MR).
        mr: Number,
    },
    /// Error recovery.
    Er {
        /// N(SQ).
        sq: ConnectionNumber,
        /// N(MR).
        mr: Number,
    },
    /// Error recovery acknowledge.
    Erak {
        /// N(MR).
        mr: Number,
    },
    /// Sequenced data: information in front.
    Sd {
        /// N(S).
        s: Number,
    },
    /// Asks how things stand.
    Poll {
        /// N(PS): which POLL.
        ps: Number,
        /// N(S): of the next SD.
        s: Number,
    },
    /// How things stand: a list of [`elements`] in front.
    Stat {
        /// N(PS): of the POLL that asked.
        ps: Number,
        /// N(MR).
        mr: Number,
        /// N(R): all below have come.
        r: Number,
    },
    /// A gap was seen.
    Ustat {
        /// The first SD that is missing.
        first: Number,
        /// The one behind the last that is.
        end: Number,
        /// N(MR).
        mr: Number,
        /// N(R).
        r: Number,
    },
    /// Unnumbered data: information in front.
    Ud,
    /// Management data: information in front.
    Md,
}

/// What may be in front of a type's words.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Front {
    Nothing,
    Octets,
    Elements,
}

impl Repr {
    /// The four bits of the type.
    pub const fn code(&self) -> u8 {
        match self {
            Self::Bgn { .. } => 1,
            Self::Bgak { .. } => 2,
            Self::End { .. } => 3,
            Self::Endak => 4,
            Self::Rs { .. } => 5,
            Self::Rsak { .. } => 6,
            Self::Bgrej => 7,
            Self::Sd { .. } => 8,
            Self::Er { .. } => 9,
            Self::Poll { .. } => 10,
            Self::Stat { .. } => 11,
            Self::Ustat { .. } => 12,
            Self::Ud => 13,
            Self::Md => 14,
            Self::Erak { .. } => 15,
        }
    }

    /// Octets of the type's own words, and what may stand in front of them.
    const fn shape(code: u8) -> (usize, Front) {
        match code {
            1 | 2 | 3 | 5 | 7 => (8, Front::Octets),
            8 | 13 | 14 => (4, Front::Octets),
            11 => (12, Front::Elements),
            12 => (16, Front::Nothing),
            _ => (8, Front::Nothing),
        }
    }

    /// Reads a PDU and returns what it says with what is in front: information, data between users, or
    /// the octets of a list. Reserved bits and what fills a word are not looked at.
    ///
    /// # Errors
    /// [`Fault::Size`](crate::Fault::Size) for octets that are not whole words, or not as many as the
    /// type has (error U of Q.2110); [`Fault::Value`](crate::Fault::Value) for a type that there is
    /// not, or more fill than there is in front.
    pub fn parse(octets: &[u8]) -> Result<(Self, &[u8]), DecodeError> {
        if octets.is_empty() || !octets.len().is_multiple_of(4) {
            return Err(DecodeError::size(FORMAT, "PDU", octets.len(), "a multiple of 4, 4 or more"));
        }
        let at = octets.len() - 4;
        let word = u32_at(octets, at);
        let code = (word >> 24 & 0xF) as u8;
        if code == 0 {
            return Err(DecodeError::value((FORMAT, "PDU Type"), at, code, "1 to 15"));
        }
        let (own, front) = Self::shape(code);
        let Some(before) = octets.len().checked_sub(own) else {
            return Err(DecodeError::size(FORMAT, "PDU", octets.len(), "what its type has, or more"));
        };
        if front == Front::Nothing && before != 0 {
            return Err(DecodeError::size(FORMAT, "PDU", octets.len(), "what its type has"));
        }
        let fill = if front == Front::Octets { (word >> 30) as usize } else { 0 };
        if fill > before {
            return Err(DecodeError::value((FORMAT, "PL"), at, fill as u64, "0 where nothing is in front"));
        }
        let number = |back: usize| Seq::wrapping(u32_at(octets, octets.len() - back));
        let last = number(4);
        let sq = || Seq::wrapping(u32_at(octets, at - 4));
        let repr = match code {
            1 => Self::Bgn { sq: sq(), mr: last },
            2 => Self::Bgak { mr: last },
            3 => Self::End { by_sscop: word & BY_SSCOP != 0 },
            4 => Self::Endak,
            5 => Self::Rs { sq: sq(), mr: last },
            6 => Self::Rsak { mr: last },
            7 => Self::Bgrej,
            8 => Self::Sd { s: last },
            9 => Self::Er { sq: sq(), mr: last },
            10 => Self::Poll { ps: number(8), s: last },
            11 => Self::Stat { ps: number(12), mr: number(8), r: last },
            12 => Self::Ustat { first: number(16), end: number(12), mr: number(8), r: last },
            13 => Self::Ud,
            14 => Self::Md,
            _ => Self::Erak { mr: last },
        };
        Ok((repr, &octets[..before - fill]))
    }

    /// Writes the words of the PDU behind `front` octets that are in place, and zeros between them.
    ///
    /// # Errors
    /// [`EmitError`] for something in front of a type that has nothing there, for a list that is not
    /// whole elements, and unless there are as many octets as [`Repr::pdu_octets`]. Nothing is written
    /// then.
    pub fn emit(&self, front: usize, octets: &mut [u8]) -> Result<(), EmitError> {
        let (own, kind) = Self::shape(self.code());
        let front_allowed = match kind {
            Front::Nothing => front == 0,
            Front::Octets => true,
            Front::Elements => front.is_multiple_of(4),
        };
        if !front_allowed {
            let allowed = "0 octets, or whole elements for a STAT";
            return Err(EmitError::value(FORMAT, "front", front as u64, allowed));
        }
        EmitError::unless_size(FORMAT, "PDU", octets.len(), self.pdu_octets(front))?;
        let at = octets.len() - own;
        octets[front..].fill(0);
        let mut words = [0_u32; 4];
        let numbers = |numbers: &[Number], words: &mut [u32; 4]| {
            numbers.iter().zip(words).for_each(|(number, word)| *word = number.get());
        };
        match *self {
            Self::Bgn { sq, mr } | Self::Rs { sq, mr } | Self::Er { sq, mr } => {
                (words[0], words[1]) = (sq.get(), mr.get());
            }
            Self::Bgak { mr } | Self::Rsak { mr } | Self::Erak { mr } => words[1] = mr.get(),
            Self::End { by_sscop } => words[1] = if by_sscop { BY_SSCOP } else { 0 },
            Self::Endak | Self::Bgrej | Self::Ud | Self::Md => {}
            Self::Sd { s } => words[0] = s.get(),
            Self::Poll { ps, s } => numbers(&[ps, s], &mut words),
            Self::Stat { ps, mr, r } => numbers(&[ps, mr, r], &mut words),
            Self::Ustat { first, end, mr, r } => numbers(&[first, end, mr, r], &mut words),
        }
        let fill = (at - front) as u32;
        words[own / 4 - 1] |= fill << 30 | u32::from(self.code()) << 24;
        for (place, word) in octets[at..].chunks_exact_mut(4).zip(words) {
            put(place, 0, word.to_be_bytes());
        }
        Ok(())
    }

    /// Octets of the PDU with so many in front.
    pub const fn pdu_octets(&self, front: usize) -> usize {
        front.next_multiple_of(4) + Self::shape(self.code()).0
    }
}

impl fmt::Display for Repr {
    /// The type, as Q.2110 prints it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bgn { .. } => "BGN",
            Self::Bgak { .. } => "BGAK",
            Self::End { .. } => "END",
            Self::Endak => "ENDAK",
            Self::Rs { .. } => "RS",
            Self::Rsak { .. } => "RSAK",
            Self::Bgrej => "BGREJ",
            Self::Sd { .. } => "SD",
            Self::Er { .. } => "ER",
            Self::Poll { .. } => "POLL",
            Self::Stat { .. } => "STAT",
            Self::Ustat { .. } => "USTAT",
            Self::Ud => "UD",
            Self::Md => "MD",
            Self::Erak { .. } => "ERAK",
        })
    }
}

/// The elements of the list in front of a STAT: first missing, first that came behind it, and so on.
pub fn elements(front: &[u8]) -> impl ExactSizeIterator<Item = Number> + '_ {
    front.as_chunks::<4>().0.iter().map(|word| Seq::wrapping(u32::from_be_bytes(*word)))
}

/// Writes a list in front of a STAT and returns its octets.
///
/// # Errors
/// [`EmitError`] if it has no room there. Nothing is written then.
pub fn put_elements(list: &[Number], front: &mut [u8]) -> Result<usize, EmitError> {
    let length = list.len() * 4;
    if length > front.len() {
        EmitError::unless_size(FORMAT, "list", front.len(), length)?;
    }
    for (place, number) in front.chunks_exact_mut(4).zip(list) {
        put(place, 0, number.get().to_be_bytes());
    }
    Ok(length)
}

const FORMAT: &str = "SSCOP PDU";
const BY_SSCOP: u32 = 0x1000_0000;

/// Reads arbitrary octets as a PDU and, if they are one, writes what was read and compares.
///
/// The fuzz target and the property test below are this function. `scratch` is at least as long as
/// `octets`.
///
/// # Panics
/// If a PDU that was read is not written back with the same fields: a bug here.
#[doc(hidden)]
pub fn round_trip(octets: &[u8], scratch: &mut [u8]) {
    let Ok((repr, front)) = Repr::parse(octets) else { return };
    let written = &mut scratch[..repr.pdu_octets(front.len())];
    written[..front.len()].copy_from_slice(front);
    repr.emit(front.len(), written).expect("what was read can be written");
    assert_eq!(Repr::parse(written), Ok((repr, front)), "what was written reads the same");
    if let Repr::Stat { .. } = repr {
        assert_eq!(elements(front).len() * 4, front.len(), "a list is whole elements");
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn n(number: u32) -> Number {
        Seq::wrapping(number)
    }

    fn emitted(repr: Repr, front: &[u8]) -> Vec<u8> {
        let mut octets = vec![0xEE; repr.pdu_octets(front.len())];
        octets[..front.len()].copy_from_slice(front);
        repr.emit(front.len(), &mut octets).expect("the size fits");
        octets
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    #[test]
    fn every_type_has_its_words() {
        let list = words(&[3, 6]);
        let sq = Seq::wrapping(1);
        let cases: [(Repr, &[u8], &[u32]); 18] = [
            (Repr::Bgn { sq, mr: n(128) }, b"", &[1, 0x0100_0080]),
            (Repr::Bgn { sq, mr: n(128) }, b"uu", &[0x7575_0000, 1, 0x8100_0080]),
            (Repr::Bgak { mr: n(128) }, b"", &[0, 0x0200_0080]),
            (Repr::End { by_sscop: true }, b"", &[0, 0x1300_0000]),
            (Repr::End { by_sscop: false }, b"", &[0, 0x0300_0000]),
            (Repr::Endak, b"", &[0, 0x0400_0000]),
            (Repr::Rs { sq, mr: n(7) }, b"", &[1, 0x0500_0007]),
            (Repr::Rsak { mr: n(7) }, b"", &[0, 0x0600_0007]),
            (Repr::Bgrej, b"", &[0, 0x0700_0000]),
            (Repr::Sd { s: n(1) }, b"abc", &[0x6162_6300, 0x4800_0001]),
            (Repr::Sd { s: n(0xFF_FFFF) }, b"", &[0x08FF_FFFF]),
            (Repr::Er { sq, mr: n(7) }, b"", &[1, 0x0900_0007]),
            (Repr::Erak { mr: n(7) }, b"", &[0, 0x0F00_0007]),
            (Repr::Poll { ps: n(5), s: n(100) }, b"", &[5, 0x0A00_0064]),
            (Repr::Stat { ps: n(5), mr: n(131), r: n(3) }, &list, &[3, 6, 5, 131, 0x0B00_0003]),
            (Repr::Ustat { first: n(3), end: n(6), mr: n(131), r: n(3) }, b"", &[3, 6, 131, 0x0C00_0003]),
            (Repr::Ud, b"a", &[0x6100_0000, 0xCD00_0000]),
            (Repr::Md, b"abcd", &[0x6162_6364, 0x0E00_0000]),
        ];
        for (repr, front, expected) in cases {
            let octets = emitted(repr, front);
            assert_eq!(octets, words(expected), "{repr}");
            assert_eq!(Repr::parse(&octets), Ok((repr, front)), "{repr}");
        }
    }

    #[test]
    fn a_list_is_elements() {
        let list = [n(3), n(6), n(8), n(10)];
        let mut front = [0xEE; 18];
        assert_eq!(put_elements(&list, &mut front), Ok(16));
        assert_eq!(elements(&front[..16]).collect::<Vec<_>>(), list);
        put_elements(&list, &mut front[..15]).expect_err("fifteen octets");
        assert_eq!(front[16..], [0xEE; 2]);
        // Seven fit the 40 octets of a PDU of AAL5 in one cell.
        assert_eq!(Repr::Stat { ps: n(0), mr: n(0), r: n(0) }.pdu_octets(7 * 4), 40);
    }

    #[test]
    fn every_wrong_field_is_named_with_its_place() {
        for (octets, said) in [
            (vec![], "SSCOP PDU, PDU at octet 0: 0 octets, allowed are a multiple of 4, 4 or more"),
            (vec![0; 7], "SSCOP PDU, PDU at octet 0: 7 octets, allowed are a multiple of 4, 4 or more"),
            (words(&[9, 0]), "SSCOP PDU, PDU Type at octet 4: 0, allowed is 1 to 15"),
            (
                words(&[0x0A00_0000]),
                "SSCOP PDU, PDU at octet 0: 4 octets, allowed are what its type has, or more",
            ),
            (
                words(&[1, 2, 0x0A00_0000]),
                "SSCOP PDU, PDU at octet 0: 12 octets, allowed are what its type has",
            ),
            (
                words(&[1, 2, 0x0C00_0000]),
                "SSCOP PDU, PDU at octet 0: 12 octets, allowed are what its type has, or more",
            ),
            (words(&[0x4800_0000]), "SSCOP PDU, PL at octet 0: 1, allowed is 0 where nothing is in front"),
        ] {
            assert_eq!(Repr::parse(&octets).expect_err(said).to_string(), said);
        }
    }

    #[test]
    fn a_pdu_that_does_not_fit_is_not_written() {
        let mut octets = [0xEE; 12];
        for (repr, front, field) in [
            (Repr::Endak, 4, "front"),
            (Repr::Stat { ps: n(0), mr: n(0), r: n(0) }, 3, "front"),
            (Repr::Sd { s: n(1) }, 9, "PDU"),
        ] {
            assert_eq!(repr.emit(front, &mut octets).expect_err(field).field, field);
        }
        assert_eq!(octets, [0xEE; 12]);
    }

    proptest! {
        #[test]
        fn arbitrary_words_round_trip(mut octets in prop::collection::vec(any::<u8>(), 4..40), own in 0usize..5) {
            octets.truncate(octets.len() / 4 * 4);
            octets.truncate((own * 4).max(4));
            round_trip(&octets, &mut vec![0; octets.len()]);
        }
    }
}
