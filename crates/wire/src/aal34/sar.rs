//! The SAR-PDU of AAL type 3/4: one cell's payload, 44 octets of it for the message.
//!
//! I.363.3 §9.1.1.
//!
//! | Field | Bits | Rule |
//! |---|---|---|
//! | Segment Type | 2 | BOM 10, COM 00, EOM 01, SSM 11 |
//! | Sequence Number | 4 | one more with each SAR-PDU of a message |
//! | Multiplexing Identification | 10 | 0 where messages do not interleave |
//! | Payload | 352 | what Length Indication does not count is zeros |
//! | Length Indication | 6 | 44 in BOM and COM, 4 to 44 in EOM, 8 to 44 in SSM, in steps of 4; 63 in EOM aborts |
//! | CRC-10 | 10 | over all bits before it |

use wiretwin_units::Seq;

use crate::cell::PAYLOAD_OCTETS as CELL_PAYLOAD_OCTETS;
use crate::crc10::{self, CRC_AT};
use crate::octets::{put, u16_at};
use crate::{DecodeError, EmitError};

/// Which part of a message this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SegmentType {
    /// Beginning of message.
    Bom,
    /// Continuation of message.
    Com,
    /// End of message.
    Eom,
    /// Single-segment message.
    Ssm,
}

impl SegmentType {
    const fn from_code(code: u16) -> Self {
        match code & 0b11 {
            0b10 => Self::Bom,
            0b00 => Self::Com,
            0b01 => Self::Eom,
            _ => Self::Ssm,
        }
    }

    /// The two bits, 0..=3.
    pub const fn code(self) -> u8 {
        match self {
            Self::Bom => 0b10,
            Self::Com => 0b00,
            Self::Eom => 0b01,
            Self::Ssm => 0b11,
        }
    }

    /// What Length Indication may be, for an error.
    const fn allowed(self) -> &'static str {
        match self {
            Self::Bom | Self::Com => "44",
            Self::Eom => "4 to 44 in steps of 4, or 63 to abort",
            Self::Ssm => "8 to 44 in steps of 4",
        }
    }

    /// Whether Length Indication may be this.
    const fn allows(self, length: u8) -> bool {
        let least = match self {
            Self::Bom | Self::Com => SAR_PAYLOAD_OCTETS as u8,
            Self::Eom if length == ABORT => return true,
            Self::Eom => 4,
            Self::Ssm => 8,
        };
        least <= length && length as usize <= SAR_PAYLOAD_OCTETS && length.is_multiple_of(4)
    }
}

/// Multiplexing identification, 0..=1023: which of the messages that interleave on a channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mid(u16);

impl Mid {
    /// The identification with this number, if it is in 0..=1023.
    pub const fn new(mid: u16) -> Option<Self> {
        if mid <= MID_BITS { Some(Self(mid)) } else { None }
    }

    /// The number.
    pub const fn get(self) -> u16 {
        self.0
    }
}

/// The octets of one SAR-PDU, and where its fields are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SarPdu<T> {
    octets: T,
}

impl<T: AsRef<[u8]>> SarPdu<T> {
    /// Sees `octets`, the payload of a cell, as a SAR-PDU.
    ///
    /// # Errors
    /// [`Fault::Size`](crate::Fault::Size) unless there are 48. CRC and lengths are not looked at.
    pub fn new_checked(octets: T) -> Result<Self, DecodeError> {
        crc10::sized(FORMAT, octets.as_ref())?;
        Ok(Self { octets })
    }

    /// The CRC-10 field as it stands.
    pub fn crc(&self) -> u16 {
        u16_at(self.octets.as_ref(), CRC_AT) & 0x3FF
    }

    /// The CRC-10 that the bits before the field have.
    pub fn computed_crc(&self) -> u16 {
        crc10::computed(self.octets.as_ref())
    }

    /// The payload, as long as `repr` says; nothing in one that aborts.
    pub fn payload(&self, repr: &Repr) -> &[u8] {
        &self.octets.as_ref()[HEADER_OCTETS..][..repr.payload_octets()]
    }
}

impl<T: AsRef<[u8]> + AsMut<[u8]>> SarPdu<T> {
    /// The 44 octets of payload, to be written before [`Repr::emit`] closes the PDU.
    pub fn payload_mut(&mut self) -> &mut [u8] {
        &mut self.octets.as_mut()[HEADER_OCTETS..CRC_AT]
    }
}

/// What a SAR-PDU says besides its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Which part of a message this is.
    pub segment_type: SegmentType,
    /// Counts the PDUs of one identification.
    pub sequence: Seq<4>,
    /// Which of the messages that interleave.
    pub mid: Mid,
    /// Length Indication: octets of payload, or [`ABORT`].
    pub length: u8,
}

impl Repr {
    /// Reads a PDU and checks its CRC.
    ///
    /// # Errors
    /// [`Fault::Checksum`](crate::Fault::Checksum) if the CRC-10 fails; then
    /// [`Fault::Value`](crate::Fault::Value) for a length that the segment type does not have.
    pub fn parse<T: AsRef<[u8]>>(pdu: &SarPdu<T>) -> Result<Self, DecodeError> {
        let octets = pdu.octets.as_ref();
        crc10::check(FORMAT, octets)?;
        let head = u16_at(octets, 0);
        let (segment_type, length) = (SegmentType::from_code(head >> 14), octets[CRC_AT] >> 2);
        if !segment_type.allows(length) {
            let allowed = segment_type.allowed();
            return Err(DecodeError::value((FORMAT, "Length Indication"), CRC_AT, length, allowed));
        }
        let sequence = Seq::wrapping((head >> 10).into());
        Ok(Self { segment_type, sequence, mid: Mid(head & MID_BITS), length })
    }

    /// Writes the header, zeros behind the payload, and the trailer. The payload must be in place:
    /// the CRC covers it.
    ///
    /// # Errors
    /// [`EmitError`] for a length that the segment type does not have. Nothing is written then.
    pub fn emit<T: AsRef<[u8]> + AsMut<[u8]>>(&self, pdu: &mut SarPdu<T>) -> Result<(), EmitError> {
        if !self.segment_type.allows(self.length) {
            let allowed = self.segment_type.allowed();
            return Err(EmitError::value(FORMAT, "Length Indication", self.length, allowed));
        }
        let octets = pdu.octets.as_mut();
        let head =
            u16::from(self.segment_type.code()) << 14 | (self.sequence.get() as u16) << 10 | self.mid.0;
        put(octets, 0, head.to_be_bytes());
        // I.363.3 §9.1.1: what the length does not count is zeros; so is all of one that aborts.
        octets[HEADER_OCTETS + self.payload_octets()..CRC_AT].fill(0);
        octets[CRC_AT] = self.length << 2;
        crc10::close(octets);
        Ok(())
    }

    /// Whether the sender gave the message up.
    pub const fn is_abort(&self) -> bool {
        self.length == ABORT
    }

    /// Octets of payload, 0 in a PDU that aborts.
    pub const fn payload_octets(&self) -> usize {
        if self.is_abort() { 0 } else { self.length as usize }
    }
}

/// Octets of payload in a SAR-PDU.
pub const SAR_PAYLOAD_OCTETS: usize = CELL_PAYLOAD_OCTETS - 4;
/// Length Indication of an EOM that gives the message up.
pub const ABORT: u8 = 63;

const FORMAT: &str = "AAL3/4 SAR-PDU";
const HEADER_OCTETS: usize = 2;
const MID_BITS: u16 = 0x3FF;

/// Reads arbitrary octets as a SAR-PDU and, if they are one, writes what was read and compares. The
/// fuzz target and the property test below are this function.
///
/// # Panics
/// If a PDU that was read is not written back with the same fields and payload: a bug here.
#[doc(hidden)]
pub fn round_trip(octets: &[u8]) {
    let Ok(pdu) = SarPdu::new_checked(octets) else { return };
    let Ok(repr) = Repr::parse(&pdu) else { return };
    let mut copy = SarPdu { octets: [0xEE; CELL_PAYLOAD_OCTETS] };
    let payload = pdu.payload(&repr);
    copy.payload_mut()[..payload.len()].copy_from_slice(payload);
    repr.emit(&mut copy).expect("what was read can be written");
    assert_eq!(Repr::parse(&copy), Ok(repr), "what was written reads the same");
    assert_eq!(copy.payload(&repr), payload, "the payload is untouched");
    if octets[HEADER_OCTETS + payload.len()..CRC_AT].iter().all(|&octet| octet == 0) {
        assert_eq!(copy.octets, octets, "written back octet for octet");
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use proptest::prelude::*;

    use super::*;

    fn repr(segment_type: SegmentType, sequence: u32, length: u8) -> Repr {
        Repr { segment_type, sequence: Seq::wrapping(sequence), mid: Mid(0), length }
    }

    fn emitted(repr: Repr, payload: &[u8]) -> [u8; 48] {
        let mut pdu = SarPdu { octets: [0xEE; 48] };
        pdu.payload_mut()[..payload.len()].copy_from_slice(payload);
        repr.emit(&mut pdu).expect("a length that the type has");
        pdu.octets
    }

    #[test]
    fn known_pdus_are_read_and_written() {
        let mut message = [0; 48];
        message[..4].copy_from_slice(&[0, 7, 0, 0x28]);
        (1..=40).zip(&mut message[4..]).for_each(|(octet, place)| *place = octet);
        message[44..].copy_from_slice(&[0, 7, 0, 0x28]);
        let single = *b"\x00\x01\x00\x04ABCD\x00\x01\x00\x04";
        for (repr, payload, head, tail) in [
            (repr(SegmentType::Bom, 0, 44), &message[..44], [0x80, 0x00], [0xB0, 0xAD]),
            (repr(SegmentType::Eom, 1, 4), &message[44..], [0x44, 0x00], [0x10, 0x2E]),
            (repr(SegmentType::Ssm, 0, 12), &single[..], [0xC0, 0x00], [0x31, 0x48]),
        ] {
            let octets = emitted(repr, payload);
            assert_eq!((&octets[..2], &octets[46..]), (&head[..], &tail[..]), "{repr:?}");
            let pdu = SarPdu::new_checked(&octets[..]).expect("48 octets");
            assert_eq!((Repr::parse(&pdu), pdu.payload(&repr)), (Ok(repr), payload));
            assert_eq!(pdu.crc(), pdu.computed_crc());
            assert!(octets[2 + payload.len()..46].iter().all(|&octet| octet == 0));
        }
    }

    #[test]
    fn sequence_and_multiplexing_have_their_bits() {
        let mid = Mid::new(0x3FF).expect("ten bits");
        let octets = emitted(Repr { sequence: Seq::wrapping(15), mid, ..repr(SegmentType::Com, 0, 44) }, &[]);
        assert_eq!(octets[..2], [0x3F, 0xFF]);
        assert_eq!(Mid::new(0x400), None);
    }

    #[test]
    fn an_abort_carries_nothing() {
        let abort = repr(SegmentType::Eom, 3, ABORT);
        let octets = emitted(abort, &[0xAB; 44]);
        assert_eq!((octets[2..46].iter().sum::<u8>(), octets[46] >> 2), (0, 63));
        let pdu = SarPdu::new_checked(octets).expect("48 octets");
        assert!(abort.is_abort() && pdu.payload(&abort).is_empty());
        assert_eq!(Repr::parse(&pdu), Ok(abort));
    }

    #[test]
    fn each_type_has_its_lengths() {
        for (segment_type, right) in [
            (SegmentType::Bom, &[44][..]),
            (SegmentType::Com, &[44]),
            (SegmentType::Eom, &[4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 63]),
            (SegmentType::Ssm, &[8, 12, 16, 20, 24, 28, 32, 36, 40, 44]),
        ] {
            for length in 0..64 {
                let mut pdu = SarPdu { octets: [0xEE; 48] };
                let repr = repr(segment_type, 0, length);
                assert_eq!(repr.emit(&mut pdu).is_ok(), right.contains(&length), "{repr:?}");
                if !right.contains(&length) {
                    assert_eq!(pdu.octets, [0xEE; 48]);
                    let mut octets = [0; 48];
                    octets[0] = segment_type.code() << 6;
                    octets[46] = length << 2;
                    crc10::close(&mut octets);
                    let error = Repr::parse(&SarPdu { octets }).expect_err("another type's length");
                    assert_eq!((error.field, error.offset.get()), ("Length Indication", 46));
                }
            }
        }
        let mut pdu = SarPdu { octets: [0; 48] };
        let error = repr(SegmentType::Ssm, 0, 4).emit(&mut pdu).expect_err("four octets");
        let said = "AAL3/4 SAR-PDU, Length Indication: 4, allowed is 8 to 44 in steps of 4";
        assert_eq!(error.to_string(), said);
    }

    #[test]
    fn every_wrong_bit_is_found() {
        let octets = emitted(repr(SegmentType::Com, 9, 44), &[0x5A; 44]);
        for bit in 0..384 {
            let mut octets = octets;
            octets[bit / 8] ^= 0x80 >> (bit % 8);
            let error = Repr::parse(&SarPdu { octets }).expect_err("a bit was turned");
            assert_eq!((error.field, error.offset.get()), ("CRC-10", 46));
        }
        let error = SarPdu::new_checked(&octets[1..]).expect_err("47 octets");
        assert_eq!(error.to_string(), "AAL3/4 SAR-PDU, payload at octet 0: 47 octets, allowed are 48");
    }

    proptest! {
        #[test]
        fn arbitrary_octets_round_trip(mut octets in prop::collection::vec(any::<u8>(), 48), valid: bool) {
            if valid {
                crc10::close(&mut octets);
            }
            round_trip(&octets);
        }
    }
}
