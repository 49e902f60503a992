//! The UDP datagram: eight octets of header, then the payload.
//!
//! RFC 768. Left out: nothing.
//!
//! | Field | Octets | Rule |
//! |---|---|---|
//! | Source Port, Destination Port | 2, 2 | a source port of 0 is none |
//! | Length | 2 | header and payload, 8 and up |
//! | Checksum | 2 | over pseudo header, header and payload; 0 is none |

use crate::checksum::Sum;
use crate::ipv4::{Ends, Protocol};
use crate::octets::{put, u16_at};
use crate::{DecodeError, EmitError};

/// The octets of one datagram, and where its fields are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<T> {
    octets: T,
}

impl<T: AsRef<[u8]>> Datagram<T> {
    /// Sees `octets`, the payload of a packet, as a datagram.
    ///
    /// # Errors
    /// [`Fault::Size`](crate::Fault::Size) below 8 octets; [`Fault::Value`](crate::Fault::Value) if
    /// Length is below 8 or more than there is. The checksum is not looked at.
    pub fn new_checked(octets: T) -> Result<Self, DecodeError> {
        let found = octets.as_ref();
        if found.len() < HEADER_OCTETS {
            return Err(DecodeError::size(FORMAT, "header", found.len(), "8 or more"));
        }
        let length = u16_at(found, 4);
        // Choice: octets behind Length are no part of the datagram, as in every system that runs.
        if usize::from(length) < HEADER_OCTETS || usize::from(length) > found.len() {
            return Err(DecodeError::value((FORMAT, "Length"), 4, length, "8 to the octets there are"));
        }
        Ok(Self { octets })
    }

    /// Source port; 0 is none.
    pub fn source_port(&self) -> u16 {
        u16_at(self.octets.as_ref(), 0)
    }

    /// Destination port.
    pub fn destination_port(&self) -> u16 {
        u16_at(self.octets.as_ref(), 2)
    }

    /// Octets of header and payload.
    pub fn length(&self) -> u16 {
        u16_at(self.octets.as_ref(), 4)
    }

    /// Checksum as it stands; 0 is none.
    pub fn checksum(&self) -> u16 {
        u16_at(self.octets.as_ref(), CHECKSUM_AT)
    }

    /// What the datagram carries.
    pub fn payload(&self) -> &[u8] {
        &self.octets.as_ref()[HEADER_OCTETS..usize::from(self.length())]
    }

    /// The sum of pseudo header, header and payload.
    fn sum(&self, ends: &Ends) -> Sum {
        let octets = &self.octets.as_ref()[..usize::from(self.length())];
        ends.pseudo_header(Protocol::UDP, self.length()).octets(octets)
    }
}

/// What a datagram says besides its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Source port; 0 is none.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// Octets of payload, 0 to 65507 (what IPv4 takes behind a header without options).
    pub payload_length: u16,
    /// Whether there is a checksum. Systems of the time could leave it out, and some did.
    pub checksum: bool,
}

impl Repr {
    /// Reads the header and, if there is a checksum, checks it.
    ///
    /// # Errors
    /// [`Fault::Checksum`](crate::Fault::Checksum) if there is a checksum and it fails.
    pub fn parse<T: AsRef<[u8]>>(datagram: &Datagram<T>, ends: &Ends) -> Result<Self, DecodeError> {
        let found = datagram.checksum();
        if found != 0 {
            let sum = datagram.sum(ends);
            if !sum.holds() {
                let computed = sent(sum.without(found).checksum());
                return Err(DecodeError::checksum((FORMAT, "Checksum"), CHECKSUM_AT, found, computed));
            }
        }
        Ok(Self {
            source_port: datagram.source_port(),
            destination_port: datagram.destination_port(),
            payload_length: datagram.length() - HEADER_OCTETS as u16,
            checksum: found != 0,
        })
    }

    /// Writes the header. The payload must be in place: the checksum covers it.
    ///
    /// # Errors
    /// [`EmitError`] if the payload is more than 65507 octets, or header and payload are not as many
    /// as `octets`. Nothing is written then.
    pub fn emit(&self, ends: &Ends, octets: &mut [u8]) -> Result<(), EmitError> {
        let length = self.total_octets();
        if self.payload_length > MAX_PAYLOAD_OCTETS {
            return Err(EmitError::value(FORMAT, "payload", self.payload_length, "0 to 65507 octets"));
        }
        EmitError::unless_size(FORMAT, "header and payload", octets.len(), length)?;
        put(octets, 0, self.source_port.to_be_bytes());
        put(octets, 2, self.destination_port.to_be_bytes());
        put(octets, 4, (length as u16).to_be_bytes());
        put(octets, CHECKSUM_AT, [0, 0]);
        if self.checksum {
            let sum = ends.pseudo_header(Protocol::UDP, length as u16).octets(octets);
            put(octets, CHECKSUM_AT, sent(sum.checksum()).to_be_bytes());
        }
        Ok(())
    }

    /// Octets of header and payload.
    pub const fn total_octets(&self) -> usize {
        HEADER_OCTETS + self.payload_length as usize
    }
}

/// A checksum as it is sent: where it comes out as zero, which would mean none, the other zero.
const fn sent(checksum: u16) -> u16 {
    if checksum == 0 { u16::MAX } else { checksum }
}

/// Octets of the header.
pub const HEADER_OCTETS: usize = 8;
/// Octets of the largest payload: 65535 less an IPv4 header without options and the header.
pub const MAX_PAYLOAD_OCTETS: u16 = 65_507;

const FORMAT: &str = "UDP datagram";
const CHECKSUM_AT: usize = 6;

/// Reads arbitrary octets as a datagram and, if they are one, writes what was read and compares.
///
/// The fuzz target and the property test below are this function. `scratch` is at least as long as
/// `octets`.
///
/// # Panics
/// If a datagram that was read is not written back octet for octet: a bug here.
#[doc(hidden)]
pub fn round_trip(ends: &Ends, octets: &[u8], scratch: &mut [u8]) {
    let Ok(datagram) = Datagram::new_checked(octets) else { return };
    let Ok(repr) = Repr::parse(&datagram, ends) else { return };
    if repr.payload_length > MAX_PAYLOAD_OCTETS {
        return;
    }
    let written = &mut scratch[..repr.total_octets()];
    written[HEADER_OCTETS..].copy_from_slice(datagram.payload());
    repr.emit(ends, written).expect("as many octets as the datagram that was read");
    assert_eq!(written, &octets[..written.len()], "written back octet for octet");
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;
    use alloc::vec::Vec;
    use core::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::*;

    const ENDS: Ends = Ends { source: Ipv4Addr::new(10, 0, 0, 1), destination: Ipv4Addr::new(10, 0, 0, 2) };

    fn repr(payload_length: u16) -> Repr {
        Repr { source_port: 1024, destination_port: 7, payload_length, checksum: true }
    }

    fn emitted(repr: Repr, payload: &[u8]) -> Vec<u8> {
        let mut octets = vec![0xEE; HEADER_OCTETS];
        octets.extend(payload);
        repr.emit(&ENDS, &mut octets).expect("the size fits");
        octets
    }

    #[test]
    fn a_datagram_is_written_and_read() {
        let octets = emitted(repr(3), b"abc");
        // 0a00 0001 0a00 0002 0011 000b | 0400 0007 000b 0000 6162 6300 add up to dc93.
        assert_eq!(octets, [0x04, 0x00, 0x00, 0x07, 0x00, 0x0B, 0x23, 0x6C, b'a', b'b', b'c']);
        let datagram = Datagram::new_checked(&octets[..]).expect("11 octets");
        assert_eq!(Repr::parse(&datagram, &ENDS), Ok(repr(3)));
        assert_eq!(datagram.payload(), b"abc");
    }

    #[test]
    fn a_checksum_that_comes_out_as_zero_is_sent_as_all_ones() {
        let octets = emitted(repr(2), &[0, 0]);
        let zero = emitted(repr(2), &octets[6..8]);
        assert_eq!(zero[6..8], [0xFF, 0xFF]);
        let datagram = Datagram::new_checked(&zero[..]).expect("10 octets");
        assert_eq!(Repr::parse(&datagram, &ENDS), Ok(repr(2)));
    }

    #[test]
    fn no_checksum_is_a_zero_and_nothing_is_checked() {
        let bare = Repr { checksum: false, ..repr(3) };
        let mut octets = emitted(bare, b"abc");
        assert_eq!(octets[6..8], [0, 0]);
        octets[9] ^= 0x20;
        let datagram = Datagram::new_checked(&octets[..]).expect("11 octets");
        assert_eq!(Repr::parse(&datagram, &ENDS), Ok(bare));
    }

    #[test]
    fn octets_behind_the_length_are_no_part_of_the_datagram() {
        let mut octets = emitted(repr(3), b"abc");
        octets.push(0xEE);
        let datagram = Datagram::new_checked(&octets[..]).expect("12 octets");
        assert_eq!((Repr::parse(&datagram, &ENDS), datagram.payload()), (Ok(repr(3)), &b"abc"[..]));
    }

    #[test]
    fn every_wrong_field_is_named_with_its_place() {
        let octets = emitted(repr(3), b"abc");
        let error = Datagram::new_checked(&octets[..7]).expect_err("seven octets");
        assert_eq!(error.to_string(), "UDP datagram, header at octet 0: 7 octets, allowed are 8 or more");
        for length in [7, 12] {
            let mut wrong = octets.clone();
            wrong[5] = length;
            let said = "UDP datagram, Length at octet 4: ".to_string()
                + &length.to_string()
                + ", allowed is 8 to the octets there are";
            assert_eq!(Datagram::new_checked(&wrong[..]).expect_err("a wrong length").to_string(), said);
        }
        let said = "UDP datagram, Checksum at octet 6: checksum 0x236c, but the octets it covers give 0x436c";
        let mut wrong = octets.clone();
        wrong[8] ^= 0x20;
        let datagram = Datagram::new_checked(&wrong[..]).expect("11 octets");
        assert_eq!(Repr::parse(&datagram, &ENDS).expect_err("a wrong payload").to_string(), said);
        let astray = Ends { destination: Ipv4Addr::new(10, 0, 0, 3), ..ENDS };
        let datagram = Datagram::new_checked(&octets[..]).expect("11 octets");
        assert_eq!(Repr::parse(&datagram, &astray).expect_err("another host's").field, "Checksum");
    }

    #[test]
    fn a_datagram_that_does_not_fit_is_not_written() {
        let mut octets = vec![0xEE; 11];
        let error = repr(4).emit(&ENDS, &mut octets).expect_err("11 octets for 12");
        assert_eq!(
            error.to_string(),
            "UDP datagram, header and payload: 11 octets to write to, but it takes 12"
        );
        let error = repr(65_508).emit(&ENDS, &mut octets).expect_err("more than a packet takes");
        assert_eq!(error.to_string(), "UDP datagram, payload: 65508, allowed is 0 to 65507 octets");
        assert_eq!(octets, vec![0xEE; 11]);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(
            payload in prop::collection::vec(any::<u8>(), 0..200),
            source_port: u16,
            destination_port: u16,
            checksum: bool,
        ) {
            let payload_length = payload.len() as u16;
            let repr = Repr { source_port, destination_port, payload_length, checksum };
            let octets = emitted(repr, &payload);
            let datagram = Datagram::new_checked(&octets[..]).expect("a datagram");
            prop_assert_eq!(Repr::parse(&datagram, &ENDS), Ok(repr));
            prop_assert_eq!(datagram.payload(), &payload[..]);
        }

        #[test]
        fn arbitrary_octets_round_trip(mut octets in prop::collection::vec(any::<u8>(), 8..80), valid: bool) {
            if valid {
                let length = octets.len() as u16 - u16::from(octets[5]) % (octets.len() as u16 - 7);
                put(&mut octets, 4, length.to_be_bytes());
                put(&mut octets, 6, [0, 0]);
                let sum = ends_sum(&octets[..usize::from(length)]);
                put(&mut octets, 6, sent(sum.checksum()).to_be_bytes());
            }
            let mut scratch = vec![0; octets.len()];
            round_trip(&ENDS, &octets, &mut scratch);
        }
    }

    fn ends_sum(octets: &[u8]) -> Sum {
        ENDS.pseudo_header(Protocol::UDP, octets.len() as u16).octets(octets)
    }
}
