//! Frames of Ethernet: version 2 with a type, IEEE 802.3 with a length.
//!
//! Digital, Intel, Xerox "The Ethernet" 2.0 (1982) §6, IEEE 802.3-1998 §3. Octets here begin at the
//! destination; preamble, start delimiter, carrier extension and gap are the link's.
//!
//! | Field | Octets | Rule |
//! |---|---|---|
//! | Destination, Source | 6, 6 | |
//! | Type or Length | 2 | 0x0600 and up a type, 0..=1500 a length |
//! | Data and padding | 46 and up | 1500 at most, save where both ends agree on more |
//! | FCS | 4 | over all before it |

use wiretwin_units::Bytes;

use crate::mac::{self, FCS_OCTETS, MacAddress};
use crate::octets::{array_at, put, u16_at};
use crate::{DecodeError, EmitError};

/// What the data of a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EtherType(u16);

impl EtherType {
    /// IPv4.
    pub const IPV4: Self = Self(0x0800);
    /// Address resolution.
    pub const ARP: Self = Self(0x0806);
    /// MAC control: PAUSE.
    pub const MAC_CONTROL: Self = Self(0x8808);

    /// The type with this number, if it is 0x0600 or more.
    pub const fn new(number: u16) -> Option<Self> {
        if number >= FIRST_TYPE { Some(Self(number)) } else { None }
    }

    /// The number.
    pub const fn get(self) -> u16 {
        self.0
    }
}

/// The field behind the addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Ethernet 2: data of this type, up to the end of the frame. Padding is for it to tell.
    Type(EtherType),
    /// IEEE 802.3: this many octets of data, 0..=1500, an LLC header first ([`crate::llc`]).
    Length(u16),
}

/// The octets of one frame without its FCS, and where its fields are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<T> {
    octets: T,
}

impl<T: AsRef<[u8]>> Frame<T> {
    /// Sees `octets` as a frame without FCS, padded or not: a host captures its own before the
    /// adapter fills them.
    ///
    /// # Errors
    /// [`Fault::Size`](crate::Fault::Size) below 14 octets; [`Fault::Value`](crate::Fault::Value) for
    /// a length that is more than there is, or that is neither length nor type.
    pub fn new_checked(octets: T) -> Result<Self, DecodeError> {
        let found = octets.as_ref();
        if found.len() < HEADER_OCTETS {
            return Err(DecodeError::size(FORMAT, "header", found.len(), "14 or more"));
        }
        let field = u16_at(found, KIND_AT);
        if field < FIRST_TYPE && (field > MAX_LENGTH || usize::from(field) > found.len() - HEADER_OCTETS) {
            let allowed = "a type from 1536, or a length up to 1500 and the octets there are";
            return Err(DecodeError::value((FORMAT, "Type or Length"), KIND_AT, field, allowed));
        }
        Ok(Self { octets })
    }

    /// Type or length.
    pub fn kind(&self) -> Kind {
        match u16_at(self.octets.as_ref(), KIND_AT) {
            length @ 0..FIRST_TYPE => Kind::Length(length),
            number => Kind::Type(EtherType(number)),
        }
    }

    /// The data: as many octets as the length says, or all with a type.
    pub fn payload(&self) -> &[u8] {
        let data = &self.octets.as_ref()[HEADER_OCTETS..];
        match self.kind() {
            Kind::Length(length) => &data[..usize::from(length)],
            Kind::Type(_) => data,
        }
    }
}

impl<'a> Frame<&'a [u8]> {
    /// Sees `octets` as a frame that comes from the wire, FCS behind it, on a network that carries
    /// `mtu` of data: 1500, or more where both ends agree.
    ///
    /// # Errors
    /// [`Fault::Size`](crate::Fault::Size) below 64 octets (a runt) or above `mtu` and 18 more,
    /// [`Fault::Checksum`](crate::Fault::Checksum) if the FCS fails; then those of
    /// [`Frame::new_checked`].
    pub fn received(octets: &'a [u8], mtu: Bytes) -> Result<Self, DecodeError> {
        let most = mtu.get() + (HEADER_OCTETS + FCS_OCTETS) as u64;
        if octets.len() < MIN_FRAME_OCTETS || octets.len() as u64 > most {
            let allowed = "64 to 18 more than the network's MTU";
            return Err(DecodeError::size(FORMAT, "frame", octets.len(), allowed));
        }
        Self::new_checked(mac::checked(octets)?)
    }
}

/// What a frame says besides its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Where it goes.
    pub destination: MacAddress,
    /// Where it comes from.
    pub source: MacAddress,
    /// Type or length.
    pub kind: Kind,
}

impl Repr {
    /// Reads a header.
    pub fn parse<T: AsRef<[u8]>>(frame: &Frame<T>) -> Self {
        let octets = frame.octets.as_ref();
        let (destination, source) = (MacAddress(array_at(octets, 0)), MacAddress(array_at(octets, 6)));
        Self { destination, source, kind: frame.kind() }
    }

    /// Writes the header in front of the data, and zeros behind the data that a length counts.
    /// `octets` are the frame's, without FCS; behind data with a type the padding is the caller's.
    ///
    /// # Errors
    /// [`EmitError`] below 14 octets, or for a length above 1500 or the octets there are. Nothing is
    /// written then.
    pub fn emit(&self, octets: &mut [u8]) -> Result<(), EmitError> {
        let Some(room) = octets.len().checked_sub(HEADER_OCTETS) else {
            return EmitError::unless_size(FORMAT, "header", octets.len(), HEADER_OCTETS);
        };
        let field = match self.kind {
            Kind::Type(EtherType(number)) => number,
            Kind::Length(length) if length > MAX_LENGTH || usize::from(length) > room => {
                return Err(EmitError::value(FORMAT, "Length", length, "0 to 1500 and the octets there are"));
            }
            Kind::Length(length) => {
                octets[HEADER_OCTETS + usize::from(length)..].fill(0);
                length
            }
        };
        put(octets, 0, self.destination.0);
        put(octets, 6, self.source.0);
        put(octets, KIND_AT, field.to_be_bytes());
        Ok(())
    }
}

/// Octets of the frame that carries this much data, without FCS: never below 60.
pub const fn frame_octets(data: usize) -> usize {
    let least = MIN_FRAME_OCTETS - FCS_OCTETS;
    if data + HEADER_OCTETS < least { least } else { data + HEADER_OCTETS }
}

/// Octets of the header.
pub const HEADER_OCTETS: usize = 14;
/// Octets of the smallest frame, FCS included.
pub const MIN_FRAME_OCTETS: usize = 64;
/// The most data of a standard frame, octets.
pub const MTU: Bytes = Bytes::new(1500);
/// Octets before a frame: preamble and start delimiter.
pub const PREAMBLE_OCTETS: usize = 8;
/// Octet times between frames.
pub const GAP_OCTETS: usize = 12;

const FORMAT: &str = "Ethernet frame";
const KIND_AT: usize = 12;
const FIRST_TYPE: u16 = 0x0600;
const MAX_LENGTH: u16 = 1500;

/// Reads arbitrary octets as a frame and, if they are one, writes what was read and compares.
///
/// The fuzz target and the property test below are this function. `scratch` is at least as long as
/// `octets`.
///
/// # Panics
/// If a frame that was read is not written back octet for octet, padding apart: a bug here.
#[doc(hidden)]
pub fn round_trip(octets: &[u8], scratch: &mut [u8]) {
    let Ok(frame) = Frame::new_checked(octets) else { return };
    let repr = Repr::parse(&frame);
    let written = &mut scratch[..octets.len()];
    let end = HEADER_OCTETS + frame.payload().len();
    written[HEADER_OCTETS..end].copy_from_slice(frame.payload());
    repr.emit(written).expect("as many octets as the frame that was read");
    let copy = Frame::new_checked(&*written).expect("what was written is a frame");
    assert_eq!(Repr::parse(&copy), repr, "what was written reads the same");
    assert_eq!(written[..end], octets[..end], "written back octet for octet");
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn repr(kind: Kind) -> Repr {
        let (destination, source) = (MacAddress::BROADCAST, MacAddress([8, 0, 0x20, 1, 2, 3]));
        Repr { destination, source, kind }
    }

    /// A frame with its FCS.
    fn closed(kind: Kind, data: &[u8]) -> Vec<u8> {
        let mut octets = vec![0; frame_octets(data.len())];
        octets[14..14 + data.len()].copy_from_slice(data);
        repr(kind).emit(&mut octets).expect("a frame");
        octets.extend([0; 4]);
        mac::close(&mut octets).expect("room for the FCS");
        octets
    }

    #[test]
    fn a_frame_with_a_type_keeps_its_padding_and_one_with_a_length_does_not() {
        let typed = closed(Kind::Type(EtherType::ARP), b"abc");
        assert_eq!(typed.len(), 64);
        assert_eq!(typed[..18], *b"\xff\xff\xff\xff\xff\xff\x08\x00\x20\x01\x02\x03\x08\x06abc\x00");
        let frame = Frame::received(&typed, MTU).expect("a whole frame");
        assert_eq!(Repr::parse(&frame), repr(Kind::Type(EtherType::ARP)));
        assert_eq!((frame.payload().len(), &frame.payload()[..3]), (46, &b"abc"[..]));
        let counted = closed(Kind::Length(3), b"abc");
        assert_eq!(counted[12..18], *b"\x00\x03abc\x00");
        let frame = Frame::received(&counted, MTU).expect("a whole frame");
        assert_eq!((Repr::parse(&frame), frame.payload()), (repr(Kind::Length(3)), &b"abc"[..]));
    }

    #[test]
    fn padding_is_zeros_whatever_was_there() {
        let mut octets = [0xEE; 60];
        repr(Kind::Length(40)).emit(&mut octets).expect("a frame");
        assert_eq!((octets[53], &octets[54..]), (0xEE, &[0; 6][..]));
    }

    #[test]
    fn the_smallest_frame_has_sixty_four_octets() {
        assert_eq!((frame_octets(0), frame_octets(46), frame_octets(47)), (60, 60, 61));
        assert_eq!(frame_octets(1500) + FCS_OCTETS, 1518);
    }

    #[test]
    fn every_wrong_field_is_named_with_its_place() {
        let whole = closed(Kind::Type(EtherType::IPV4), &[0x5A; 1500]);
        Frame::received(&whole, MTU).expect("the longest frame");
        let error = Frame::received(&whole, Bytes::new(1499)).expect_err("a giant");
        let said =
            "Ethernet frame, frame at octet 0: 1518 octets, allowed are 64 to 18 more than the network's MTU";
        assert_eq!(error.to_string(), said);
        assert_eq!(Frame::received(&whole[..63], MTU).expect_err("a runt").field, "frame");
        assert_eq!(Frame::received(&whole[..64], MTU).expect_err("cut short").field, "FCS");
        let error = Frame::new_checked(&whole[..13]).expect_err("no header");
        assert_eq!(error.to_string(), "Ethernet frame, header at octet 0: 13 octets, allowed are 14 or more");
        for (field, octets) in [(47, 60), (1501, 1514), (1535, 1600)] {
            let mut octets = vec![0; octets];
            put(&mut octets, KIND_AT, u16::to_be_bytes(field));
            let said = "Ethernet frame, Type or Length at octet 12: ".to_string()
                + &field.to_string()
                + ", allowed is a type from 1536, or a length up to 1500 and the octets there are";
            assert_eq!(Frame::new_checked(octets).expect_err("a wrong length").to_string(), said);
        }
        assert_eq!((EtherType::new(1535), EtherType::new(1536)), (None, Some(EtherType(1536))));
    }

    #[test]
    fn a_frame_that_does_not_fit_is_not_written() {
        let mut octets = [0xEE; 13];
        let error = repr(Kind::Length(0)).emit(&mut octets).expect_err("13 octets");
        assert_eq!(error.to_string(), "Ethernet frame, header: 13 octets to write to, but it takes 14");
        assert_eq!(octets, [0xEE; 13]);
        let mut octets = [0xEE; 1600];
        for length in [1501, u16::MAX] {
            let error = repr(Kind::Length(length)).emit(&mut octets).expect_err("no length");
            assert_eq!(error.field, "Length");
        }
        assert_eq!(octets, [0xEE; 1600]);
        repr(Kind::Length(47)).emit(&mut octets[..60]).expect_err("more than there is");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(to: [u8; 6], from: [u8; 6], field: u16, data in prop::collection::vec(any::<u8>(), 0..99)) {
            let length = Kind::Length(data.len() as u16);
            let kind = EtherType::new(field).map_or(length, Kind::Type);
            let repr = Repr { destination: MacAddress(to), source: MacAddress(from), kind };
            let mut octets = vec![0; frame_octets(data.len())];
            octets[14..14 + data.len()].copy_from_slice(&data);
            repr.emit(&mut octets).expect("a frame");
            let frame = Frame::new_checked(&octets[..]).expect("a frame");
            prop_assert_eq!(Repr::parse(&frame), repr);
            prop_assert_eq!(&frame.payload()[..data.len()], &data[..]);
        }

        #[test]
        fn arbitrary_octets_round_trip(octets in prop::collection::vec(any::<u8>(), 0..99)) {
            let mut scratch = vec![0; octets.len()];
            round_trip(&octets, &mut scratch);
        }
    }
}
