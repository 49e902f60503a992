//! The CPCS-PDU of AAL type 3/4: four octets, the payload, padding, four octets.
//!
//! I.363.3 §9.2.1.
//!
//! | Field | Octets | Rule |
//! |---|---|---|
//! | CPI | 1 | 0: lengths count octets |
//! | BTag | 1 | another in each PDU |
//! | BASize | 2 | room that the receiver needs, not below Length |
//! | Payload | 1..=65535 | |
//! | PAD | 0..=3 | the whole becomes a multiple of 4; zeros |
//! | AL | 1 | 0 |
//! | ETag | 1 | as BTag |
//! | Length | 2 | octets of payload |

use crate::octets::{put, u16_at};
use crate::{DecodeError, EmitError};

/// The octets of one CPCS-PDU, and where its fields are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpcsPdu<T> {
    octets: T,
}

impl<T: AsRef<[u8]>> CpcsPdu<T> {
    /// Sees `octets` as a CPCS-PDU.
    ///
    /// # Errors
    /// [`Fault::Size`](crate::Fault::Size) unless they are a multiple of 4 from 12 to 65544. Fields
    /// are not looked at.
    pub fn new_checked(octets: T) -> Result<Self, DecodeError> {
        let found = octets.as_ref().len();
        if !found.is_multiple_of(4) || !(MIN_PDU_OCTETS..=MAX_PDU_OCTETS).contains(&found) {
            return Err(DecodeError::size(FORMAT, "CPCS-PDU", found, "a multiple of 4 from 12 to 65544"));
        }
        Ok(Self { octets })
    }

    /// The payload, as long as `repr` says.
    ///
    /// # Panics
    /// If `repr` was not parsed from this PDU and is longer.
    pub fn payload(&self, repr: &Repr) -> &[u8] {
        &self.octets.as_ref()[HEADER_OCTETS..][..usize::from(repr.length)]
    }

    fn trailer_at(&self) -> usize {
        self.octets.as_ref().len() - TRAILER_OCTETS
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> CpcsPdu<T> {
    /// Payload and padding, to be written.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let end = self.trailer_at();
        &mut self.octets.as_mut()[HEADER_OCTETS..end]
    }
}

/// What a CPCS-PDU says besides its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// BTag and ETag.
    pub tag: u8,
    /// BASize: octets of room that the receiver needs, not below `length`.
    pub ba_size: u16,
    /// Octets of payload, 1 and up.
    pub length: u16,
}

impl Repr {
    /// What a sender in message mode says: it knows the length when it begins.
    pub const fn message(tag: u8, length: u16) -> Self {
        Self { tag, ba_size: length, length }
    }

    /// Reads header and trailer and checks that they belong together.
    ///
    /// # Errors
    /// [`Fault::Value`](crate::Fault::Value) for a CPI or an AL other than 0, an ETag that is not the
    /// BTag, a Length that the octets there are do not bear out, or a BASize below it.
    pub fn parse<T: AsRef<[u8]>>(pdu: &CpcsPdu<T>) -> Result<Self, DecodeError> {
        let (octets, at) = (pdu.octets.as_ref(), pdu.trailer_at());
        let value = |field, offset, found: u16, allowed| {
            Err(DecodeError::value((FORMAT, field), offset, found, allowed))
        };
        if octets[0] != 0 {
            return value("CPI", 0, octets[0].into(), "0");
        }
        if octets[at] != 0 {
            return value("AL", at, octets[at].into(), "0");
        }
        let tag = octets[1];
        if octets[at + 1] != tag {
            return value("ETag", at + 1, octets[at + 1].into(), "the BTag");
        }
        let (ba_size, length) = (u16_at(octets, 2), u16_at(octets, at + 2));
        if length == 0 || pdu_octets(length) != octets.len() {
            let allowed = "the octets between header and trailer less a padding of 0 to 3";
            return value("Length", at + 2, length, allowed);
        }
        if ba_size < length {
            return value("BASize", 2, ba_size, "the Length or more");
        }
        Ok(Self { tag, ba_size, length })
    }

    /// Writes header, padding and trailer; the payload stays as it is.
    ///
    /// # Errors
    /// [`EmitError`] for a length of 0, a BASize below the length, or a PDU that is not of the one
    /// size that the length asks for. Nothing is written then.
    pub fn emit<T: AsRef<[u8]> + AsMut<[u8]>>(&self, pdu: &mut CpcsPdu<T>) -> Result<(), EmitError> {
        if self.length == 0 {
            return Err(EmitError::value(FORMAT, "Length", self.length, "1 to 65535"));
        }
        if self.ba_size < self.length {
            return Err(EmitError::value(FORMAT, "BASize", self.ba_size, "the Length or more"));
        }
        let (at, found) = (pdu.trailer_at(), pdu.octets.as_ref().len());
        EmitError::unless_size(FORMAT, "CPCS-PDU", found, pdu_octets(self.length))?;
        let octets = pdu.octets.as_mut();
        put(octets, 0, [0, self.tag]);
        put(octets, 2, self.ba_size.to_be_bytes());
        octets[HEADER_OCTETS + usize::from(self.length)..at].fill(0);
        put(octets, at, [0, self.tag]);
        put(octets, at + 2, self.length.to_be_bytes());
        Ok(())
    }
}

/// Octets of the CPCS-PDU that carries this many octets of payload: a multiple of 4.
pub const fn pdu_octets(length: u16) -> usize {
    HEADER_OCTETS + (length as usize).next_multiple_of(4) + TRAILER_OCTETS
}

/// Octets of the header.
pub const HEADER_OCTETS: usize = 4;
/// Octets of the trailer.
pub const TRAILER_OCTETS: usize = 4;
/// Octets of the largest CPCS-PDU.
pub const MAX_PDU_OCTETS: usize = pdu_octets(u16::MAX);

const FORMAT: &str = "AAL3/4 CPCS-PDU";
const MIN_PDU_OCTETS: usize = pdu_octets(1);

/// Reads arbitrary octets as a CPCS-PDU and, if they are one, writes what was read and compares.
///
/// The fuzz target and the property test below are this function. `scratch` is at least as long as
/// `octets`.
///
/// # Panics
/// If a PDU that was read is not written back octet for octet, padding apart: a bug here.
#[doc(hidden)]
pub fn round_trip(octets: &[u8], scratch: &mut [u8]) {
    let Ok(pdu) = CpcsPdu::new_checked(octets) else { return };
    let Ok(repr) = Repr::parse(&pdu) else { return };
    let mut copy = CpcsPdu { octets: &mut scratch[..octets.len()] };
    copy.payload_mut()[..usize::from(repr.length)].copy_from_slice(pdu.payload(&repr));
    repr.emit(&mut copy).expect("the size is that of the PDU that was read");
    assert_eq!(Repr::parse(&copy), Ok(repr), "what was written reads the same");
    let (payload_end, trailer) = (HEADER_OCTETS + usize::from(repr.length), pdu.trailer_at());
    assert_eq!(copy.octets[..payload_end], octets[..payload_end], "written back octet for octet");
    assert_eq!(copy.octets[trailer..], octets[trailer..], "written back octet for octet");
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn emitted(repr: Repr, payload: &[u8]) -> Vec<u8> {
        let mut pdu = CpcsPdu::new_checked(vec![0xEE; pdu_octets(repr.length)]).expect("a whole PDU");
        pdu.payload_mut()[..payload.len()].copy_from_slice(payload);
        repr.emit(&mut pdu).expect("the size fits");
        pdu.octets
    }

    #[test]
    fn a_known_pdu_is_read_and_written() {
        let octets = emitted(Repr::message(7, 40), &[0; 40]);
        assert_eq!(
            (&octets[..4], &octets[4..44], &octets[44..]),
            (&[0, 7, 0, 40][..], &[0; 40][..], &[0, 7, 0, 40][..])
        );
        let octets = emitted(Repr::message(1, 4), b"ABCD");
        assert_eq!(octets, *b"\x00\x01\x00\x04ABCD\x00\x01\x00\x04");
        let pdu = CpcsPdu::new_checked(&octets[..]).expect("12 octets");
        let repr = Repr::parse(&pdu).expect("what was written is right");
        assert_eq!((repr, pdu.payload(&repr)), (Repr::message(1, 4), &b"ABCD"[..]));
    }

    #[test]
    fn padding_fills_the_last_word() {
        assert_eq!(
            emitted(Repr { tag: 9, ba_size: 99, length: 5 }, b"ABCDE"),
            *b"\x00\x09\x00\x63ABCDE\x00\x00\x00\x00\x09\x00\x05"
        );
        for (length, octets) in [(1, 12), (4, 12), (5, 16), (65_535, 65_544)] {
            assert_eq!(pdu_octets(length), octets);
        }
    }

    #[test]
    fn every_wrong_field_is_named_with_its_place() {
        let octets = emitted(Repr::message(7, 6), b"ABCDEF");
        for (at, octet, said) in [
            (0, 1, "CPI at octet 0: 1, allowed is 0"),
            (1, 8, "ETag at octet 13: 7, allowed is the BTag"),
            (3, 5, "BASize at octet 2: 5, allowed is the Length or more"),
            (12, 1, "AL at octet 12: 1, allowed is 0"),
            (
                15,
                4,
                "Length at octet 14: 4, allowed is the octets between header and trailer less a padding of 0 to 3",
            ),
            (
                15,
                9,
                "Length at octet 14: 9, allowed is the octets between header and trailer less a padding of 0 to 3",
            ),
            (
                15,
                0,
                "Length at octet 14: 0, allowed is the octets between header and trailer less a padding of 0 to 3",
            ),
        ] {
            let mut octets = octets.clone();
            octets[at] = octet;
            let error = Repr::parse(&CpcsPdu { octets }).expect_err(said);
            assert_eq!(error.to_string(), "AAL3/4 CPCS-PDU, ".to_string() + said);
        }
        for octets in [0, 8, 13, 65_548] {
            let error = CpcsPdu::new_checked(vec![0; octets]).expect_err("no PDU");
            assert_eq!(error.field, "CPCS-PDU");
        }
    }

    #[test]
    fn a_pdu_that_does_not_fit_is_not_written() {
        let mut pdu = CpcsPdu::new_checked([0xEE; 16]).expect("16 octets");
        for (repr, field) in [
            (Repr::message(1, 0), "Length"),
            (Repr { tag: 1, ba_size: 4, length: 5 }, "BASize"),
            (Repr::message(1, 4), "CPCS-PDU"),
        ] {
            assert_eq!(repr.emit(&mut pdu).expect_err(field).field, field);
        }
        assert_eq!(pdu.octets, [0xEE; 16]);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(payload in prop::collection::vec(any::<u8>(), 1..99), tag: u8, more in 0u16..9) {
            let length = payload.len() as u16;
            let repr = Repr { tag, ba_size: length + more, length };
            let octets = emitted(repr, &payload);
            let pdu = CpcsPdu::new_checked(&octets[..]).expect("a whole PDU");
            prop_assert_eq!((Repr::parse(&pdu), pdu.payload(&repr)), (Ok(repr), &payload[..]));
            round_trip(&octets, &mut vec![0; octets.len()]);
        }
    }
}
