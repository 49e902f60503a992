//! AAL type 5, common part convergence sublayer: payload, padding and an eight-octet trailer.
//!
//! I.363.5 (1996) §9.2.1. Left out: nothing of the format; corrupted-data delivery and streaming
//! mode are procedures and stand with the machine, in the room of protocols.
//!
//! | Field | Octets | Rule |
//! |---|---|---|
//! | CPCS-PDU payload | 0..=65535 | |
//! | PAD | 0..=47 | the whole becomes a multiple of 48 |
//! | CPCS-UU | 1 | carried for the user |
//! | CPI | 1 | 0 |
//! | Length | 2 | octets of payload; 0 is an abort |
//! | CRC-32 | 4 | over all octets before it |

use core::fmt;

use crc::{CRC_32_BZIP2, Crc, Table};
use wiretwin_units::Bytes;

use crate::cell::PAYLOAD_OCTETS;
use crate::{DecodeError, Fault};

/// The octets of one CPCS-PDU, and where its fields are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpcsPdu<T> {
    octets: T,
}

impl<T: AsRef<[u8]>> CpcsPdu<T> {
    /// Sees `octets` as a CPCS-PDU.
    ///
    /// # Errors
    /// [`Fault::Size`] unless they are 1 to 1366 times 48. Length and CRC are not looked at.
    pub fn new_checked(octets: T) -> Result<Self, DecodeError> {
        let found = octets.as_ref().len();
        if found == 0 || found % PAYLOAD_OCTETS != 0 || found > MAX_PDU_OCTETS {
            let allowed = "a multiple of 48 from 48 to 65568";
            let fault = Fault::Size { found: Bytes::new(found as u64), allowed };
            return Err(DecodeError { format: FORMAT, field: "CPCS-PDU", offset: Bytes::new(0), fault });
        }
        Ok(Self { octets })
    }

    /// Octets before the trailer: payload and padding.
    pub fn room(&self) -> usize {
        self.octets.as_ref().len() - TRAILER_OCTETS
    }

    /// CPCS user-to-user indication.
    pub fn uu(&self) -> u8 {
        self.octets.as_ref()[self.room()]
    }

    /// Common part indicator.
    pub fn cpi(&self) -> u8 {
        self.octets.as_ref()[self.room() + 1]
    }

    /// The Length field as it stands.
    pub fn length(&self) -> u16 {
        let (octets, at) = (self.octets.as_ref(), self.room() + 2);
        u16::from_be_bytes([octets[at], octets[at + 1]])
    }

    /// The CRC-32 field as it stands.
    pub fn crc(&self) -> u32 {
        let (octets, at) = (self.octets.as_ref(), self.room() + 4);
        u32::from_be_bytes([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]])
    }

    /// The CRC-32 that the octets before the field have.
    pub fn computed_crc(&self) -> u32 {
        CRC.checksum(&self.octets.as_ref()[..self.room() + 4])
    }

    /// The payload, as long as `repr` says.
    ///
    /// # Panics
    /// If `repr` was not parsed from this PDU and is longer.
    pub fn payload(&self, repr: &Repr) -> &[u8] {
        &self.octets.as_ref()[..usize::from(repr.length)]
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> CpcsPdu<T> {
    /// Payload and padding, to be written before [`Repr::emit`] closes the PDU.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        let room = self.room();
        &mut self.octets.as_mut()[..room]
    }
}

/// What a CPCS-PDU says besides its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// CPCS user-to-user indication.
    pub uu: u8,
    /// Common part indicator: 0, the other values are for further study.
    pub cpi: u8,
    /// Octets of payload; 0 means that the sender gave the PDU up.
    pub length: u16,
}

/// A PDU of the wrong size for what it is to carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmitError {
    /// Octets that there are.
    pub found: Bytes,
    /// Octets that the payload, its padding and the trailer take.
    pub needed: Bytes,
}

impl fmt::Display for EmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (found, needed) = (self.found.get(), self.needed.get());
        write!(f, "a CPCS-PDU of {found} octets, but its payload, padding and trailer take {needed}")
    }
}

impl core::error::Error for EmitError {}

impl Repr {
    /// Reads the trailer and checks that it belongs to the octets before it.
    ///
    /// # Errors
    /// [`Fault::Checksum`] if the CRC-32 fails; then [`Fault::Value`] if Length and the number of
    /// octets do not agree: padding of 0 to 47, or Length 0, an abort, at any size.
    pub fn parse<T: AsRef<[u8]>>(pdu: &CpcsPdu<T>) -> Result<Self, DecodeError> {
        let error = |field, into, fault| {
            let offset = Bytes::new((pdu.room() + into) as u64);
            Err(DecodeError { format: FORMAT, field, offset, fault })
        };
        let (found, computed) = (pdu.crc(), pdu.computed_crc());
        if found != computed {
            return error("CRC-32", 4, Fault::Checksum { found, computed });
        }
        let length = pdu.length();
        if length != 0 && pdu_octets(length) != pdu.room() + TRAILER_OCTETS {
            let allowed = "the octets before the trailer less a padding of 0 to 47";
            return error("Length", 2, Fault::Value { found: length.into(), allowed });
        }
        Ok(Self { uu: pdu.uu(), cpi: pdu.cpi(), length })
    }

    /// Clears the padding and writes the trailer. The payload must be in place: the CRC covers it.
    ///
    /// # Errors
    /// [`EmitError`] if the PDU is not of the one size that the length asks for; a PDU of length 0
    /// (an abort) may have any. Nothing is written then.
    pub fn emit<T: AsRef<[u8]> + AsMut<[u8]>>(&self, pdu: &mut CpcsPdu<T>) -> Result<(), EmitError> {
        let (found, needed) = (pdu.room() + TRAILER_OCTETS, pdu_octets(self.length));
        if self.length != 0 && found != needed {
            return Err(EmitError { found: Bytes::new(found as u64), needed: Bytes::new(needed as u64) });
        }
        let room = pdu.room();
        let octets = pdu.octets.as_mut();
        // Choice: I.363.5 §9.2.1.2 leaves the value of PAD open; zeros here.
        octets[usize::from(self.length)..room].fill(0);
        octets[room] = self.uu;
        octets[room + 1] = self.cpi;
        octets[room + 2..room + 4].copy_from_slice(&self.length.to_be_bytes());
        let crc = CRC.checksum(&octets[..room + 4]);
        octets[room + 4..].copy_from_slice(&crc.to_be_bytes());
        Ok(())
    }
}

/// Octets of the CPCS-PDU that carries this many octets of payload: a multiple of 48.
pub const fn pdu_octets(length: u16) -> usize {
    (length as usize + TRAILER_OCTETS).next_multiple_of(PAYLOAD_OCTETS)
}

/// Octets of padding behind this many octets of payload, 0..=47.
pub const fn pad_octets(length: u16) -> usize {
    pdu_octets(length) - length as usize - TRAILER_OCTETS
}

/// Octets of the trailer.
pub const TRAILER_OCTETS: usize = 8;
/// Octets of the largest CPCS-PDU: 65535 of payload, 25 of padding and the trailer, in 1366 cells.
pub const MAX_PDU_OCTETS: usize = pdu_octets(u16::MAX);

const FORMAT: &str = "AAL5 CPCS-PDU";

/// x^32 + x^26 + x^23 + ..., first bit first: not the bit-reflected CRC of Ethernet.
static CRC: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_BZIP2);

/// Reads arbitrary octets as a CPCS-PDU and, if they are one, writes what was read and compares.
///
/// The fuzz target and the property test below are this function. `scratch` is at least as long as
/// `octets`.
///
/// # Panics
/// If a PDU that was read is not written back with the same fields and payload: a bug here.
#[doc(hidden)]
pub fn round_trip(octets: &[u8], scratch: &mut [u8]) {
    let Ok(pdu) = CpcsPdu::new_checked(octets) else { return };
    let Ok(repr) = Repr::parse(&pdu) else { return };
    let written = &mut scratch[..octets.len()];
    let mut copy = CpcsPdu::new_checked(written).expect("as many octets as the PDU that was read");
    copy.payload_mut()[..usize::from(repr.length)].copy_from_slice(pdu.payload(&repr));
    repr.emit(&mut copy).expect("the size is that of the PDU that was read");
    assert_eq!(Repr::parse(&copy), Ok(repr), "what was written reads the same");
    assert_eq!(copy.payload(&repr), pdu.payload(&repr), "the payload is untouched");
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn emitted(payload: &[u8], uu: u8, cpi: u8) -> Vec<u8> {
        let repr = Repr { uu, cpi, length: payload.len() as u16 };
        let mut pdu = CpcsPdu::new_checked(vec![0xEE; pdu_octets(repr.length)]).expect("a whole PDU");
        pdu.payload_mut()[..payload.len()].copy_from_slice(payload);
        repr.emit(&mut pdu).expect("the size fits");
        pdu.octets
    }

    fn counting() -> Vec<u8> {
        (1..=40).collect()
    }

    #[test]
    fn known_pdus_end_in_their_trailers() {
        // The first four are the examples printed in I.363.5.
        let cases: [(&[u8], u8, u8, [u8; 8]); 6] = [
            (&[0x00; 40], 0x00, 0x00, [0x00, 0x00, 0x00, 0x28, 0x86, 0x4D, 0x7F, 0x99]),
            (&[0xFF; 40], 0x00, 0x00, [0x00, 0x00, 0x00, 0x28, 0xC5, 0x5E, 0x45, 0x7A]),
            (&counting(), 0x00, 0x00, [0x00, 0x00, 0x00, 0x28, 0xBF, 0x67, 0x1E, 0xD0]),
            (&counting(), 0x11, 0x22, [0x11, 0x22, 0x00, 0x28, 0xAC, 0xBA, 0x60, 0x2A]),
            (b"123456789", 0x00, 0x00, [0x00, 0x00, 0x00, 0x09, 0xFB, 0xB9, 0x71, 0x24]),
            (b"", 0x00, 0x00, [0x00, 0x00, 0x00, 0x00, 0x38, 0x66, 0x24, 0xC1]),
        ];
        for (payload, uu, cpi, trailer) in cases {
            let octets = emitted(payload, uu, cpi);
            assert_eq!(octets.len(), 48);
            assert_eq!(octets[40..], trailer, "{payload:02x?}");
            assert!(octets[payload.len()..40].iter().all(|&pad| pad == 0), "padding is zeros");
            let pdu = CpcsPdu::new_checked(&octets[..]).expect("48 octets");
            let repr = Repr::parse(&pdu).expect("what was written is right");
            assert_eq!(repr, Repr { uu, cpi, length: payload.len() as u16 });
            assert_eq!(pdu.payload(&repr), payload);
        }
    }

    #[test]
    fn forty_octets_are_the_most_that_fit_one_cell() {
        assert_eq!((pdu_octets(40), pad_octets(40)), (48, 0));
        assert_eq!((pdu_octets(41), pad_octets(41)), (96, 47));
        assert_eq!((pdu_octets(48), pad_octets(48)), (96, 40));
        // An IP datagram of 9180 octets behind LLC/SNAP (RFC 1626).
        assert_eq!((pdu_octets(9188), pad_octets(9188)), (192 * 48, 20));
        assert_eq!((pdu_octets(65535), pad_octets(65535)), (1366 * 48, 25));
    }

    #[test]
    fn only_whole_cells_are_a_pdu() {
        for octets in [0, 47, 49, MAX_PDU_OCTETS + 48] {
            let error = CpcsPdu::new_checked(vec![0; octets]).expect_err("not a PDU");
            let allowed = "a multiple of 48 from 48 to 65568";
            assert_eq!(error.fault, Fault::Size { found: Bytes::new(octets as u64), allowed });
        }
    }

    #[test]
    fn a_wrong_crc_is_named_with_its_place() {
        let mut octets = emitted(&counting(), 0, 0);
        octets[3] ^= 0x10;
        let pdu = CpcsPdu::new_checked(&octets[..]).expect("48 octets");
        let error = Repr::parse(&pdu).expect_err("a payload bit was turned");
        assert_eq!((error.field, error.offset), ("CRC-32", Bytes::new(44)));
        assert!(matches!(error.fault, Fault::Checksum { found: 0xBF67_1ED0, .. }));
    }

    /// A PDU whose CRC holds and whose Length says what it likes.
    fn with_length(cells: usize, length: u16) -> Vec<u8> {
        let mut octets = vec![0; cells * 48];
        let at = octets.len() - 6;
        octets[at..at + 2].copy_from_slice(&length.to_be_bytes());
        let crc = CRC.checksum(&octets[..at + 2]);
        octets[at + 2..].copy_from_slice(&crc.to_be_bytes());
        octets
    }

    #[test]
    fn a_length_that_the_cells_do_not_bear_out_is_refused() {
        for (cells, length, right) in [
            (1, 40, true),
            (1, 41, false),
            (2, 40, false),
            (2, 41, true),
            (2, 88, true),
            (3, 88, false),
            (2, 89, false),
        ] {
            let octets = with_length(cells, length);
            let parsed = Repr::parse(&CpcsPdu::new_checked(&octets[..]).expect("whole cells"));
            assert_eq!(parsed.is_ok(), right, "{length} octets in {cells} cells");
            if let Err(error) = parsed {
                assert_eq!((error.field, error.offset), ("Length", Bytes::new(cells as u64 * 48 - 6)));
            }
        }
    }

    #[test]
    fn a_length_of_zero_is_an_abort_at_any_size() {
        for cells in [1, 2, 1366] {
            let octets = with_length(cells, 0);
            let pdu = CpcsPdu::new_checked(&octets[..]).expect("whole cells");
            assert_eq!(Repr::parse(&pdu), Ok(Repr { uu: 0, cpi: 0, length: 0 }));
        }
    }

    #[test]
    fn a_pdu_of_the_wrong_size_is_not_written() {
        let mut pdu = CpcsPdu::new_checked(vec![0xEE; 96]).expect("two cells");
        let error = Repr { uu: 0, cpi: 0, length: 40 }.emit(&mut pdu).expect_err("one cell would do");
        assert_eq!(
            error.to_string(),
            "a CPCS-PDU of 96 octets, but its payload, padding and trailer take 48"
        );
        assert_eq!(pdu.octets, vec![0xEE; 96]);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(payload in prop::collection::vec(any::<u8>(), 0..400), uu: u8, cpi: u8) {
            let octets = emitted(&payload, uu, cpi);
            let pdu = CpcsPdu::new_checked(&octets[..]).expect("a whole PDU");
            let repr = Repr::parse(&pdu).expect("what was written is right");
            prop_assert_eq!(repr, Repr { uu, cpi, length: payload.len() as u16 });
            prop_assert_eq!(pdu.payload(&repr), &payload[..]);
            let mut scratch = vec![0; octets.len()];
            round_trip(&octets, &mut scratch);
            prop_assert_eq!(scratch, octets);
        }

        #[test]
        fn arbitrary_octets_round_trip(
            mut octets in prop::collection::vec(any::<u8>(), 0..400),
            cells in prop::option::of(1usize..5),
        ) {
            if let Some(cells) = cells {
                // Whole cells with a right CRC, so that the rest of the parser is reached.
                octets.resize(cells * 48, 0x5A);
                let at = octets.len() - 4;
                octets[at - 2] = 0;
                let crc = CRC.checksum(&octets[..at]);
                octets[at..].copy_from_slice(&crc.to_be_bytes());
            }
            let mut scratch = vec![0; octets.len()];
            round_trip(&octets, &mut scratch);
        }

        #[test]
        fn a_burst_of_up_to_thirty_two_wrong_bits_is_always_found(
            payload in prop::collection::vec(any::<u8>(), 1..200),
            at: prop::sample::Index,
            pattern in 1u32..,
        ) {
            let mut octets = emitted(&payload, 0, 0);
            let first = at.index(octets.len() - 3);
            for (octet, wrong) in octets[first..].iter_mut().zip(pattern.to_be_bytes()) {
                *octet ^= wrong;
            }
            let pdu = CpcsPdu::new_checked(&octets[..]).expect("a whole PDU");
            let error = Repr::parse(&pdu).expect_err("a burst within 32 bits");
            prop_assert_eq!(error.field, "CRC-32");
        }
    }
}
