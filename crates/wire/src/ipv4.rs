//! The IPv4 packet: a header of 20 to 60 octets, then the payload.
//!
//! RFC 791 §3.1; type of service as one octet, whatever it means (RFC 1349, RFC 2474, RFC 3168).
//! Options are carried, not obeyed. Left out: fragmentation and reassembly, which are procedures and
//! stand with the machine, in the room of protocols.
//!
//! | Field | Bits |
//! |---|---|
//! | Version, IHL, Type of Service, Total Length | 4, 4, 8, 16 |
//! | Identification, reserved, DF, MF, Fragment Offset | 16, 1, 1, 1, 13 |
//! | Time to Live, Protocol, Header Checksum | 8, 8, 16 |
//! | Source Address, Destination Address | 32, 32 |
//! | Options and padding | 0 to 320 |

use core::fmt;
use core::net::Ipv4Addr;

use wiretwin_units::Bytes;

use crate::checksum::Sum;
use crate::octets::{array_at, put, u16_at};
use crate::{DecodeError, EmitError, Options};

/// What the payload is (RFC 790 and its successors). Any number is carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Protocol(pub u8);

impl Protocol {
    /// Internet control messages.
    pub const ICMP: Self = Self(1);
    /// Transmission control.
    pub const TCP: Self = Self(6);
    /// User datagrams.
    pub const UDP: Self = Self(17);
}

/// Where a fragment's payload begins in that of the whole datagram, in units of 8 octets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FragmentOffset(u16);

impl FragmentOffset {
    /// The first fragment, or a whole datagram.
    pub const ZERO: Self = Self(0);

    /// This place, if it is a multiple of 8 octets in 0..=65528.
    pub const fn new(offset: Bytes) -> Option<Self> {
        let octets = offset.get();
        if octets.is_multiple_of(8) && octets <= MAX_OFFSET { Some(Self((octets / 8) as u16)) } else { None }
    }

    /// The place in octets.
    pub const fn bytes(self) -> Bytes {
        Bytes::new(self.0 as u64 * 8)
    }
}

/// Source and destination: what TCP and UDP take from the packet into their checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ends {
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
}

impl Ends {
    /// The sum of the pseudo header (RFC 793 §3.1, RFC 768) before `length` octets of `protocol`.
    pub fn pseudo_header(&self, protocol: Protocol, length: u16) -> Sum {
        Sum::ZERO
            .octets(&self.source.octets())
            .octets(&self.destination.octets())
            .word(protocol.0.into())
            .word(length)
    }

    /// The ends of what goes back.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self { source: self.destination, destination: self.source }
    }
}

impl fmt::Display for Ends {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.source, self.destination)
    }
}

/// The octets of one packet, and where its fields are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<T> {
    octets: T,
}

impl<T: AsRef<[u8]>> Packet<T> {
    /// Sees `octets` as a packet. Octets behind its total length are a link's padding and no part
    /// of it.
    ///
    /// # Errors
    /// [`Fault::Size`](crate::Fault::Size) below 20 octets; [`Fault::Value`](crate::Fault::Value) if
    /// the version is not 4, or if header length, total length and the octets there are do not
    /// ascend. The checksum is not looked at.
    pub fn new_checked(octets: T) -> Result<Self, DecodeError> {
        let found = octets.as_ref();
        if found.len() < HEADER_OCTETS {
            return Err(DecodeError::size(FORMAT, "header", found.len(), "20 or more"));
        }
        let (version, words) = (found[0] >> 4, found[0] & 0xF);
        if version != 4 {
            return Err(DecodeError::value((FORMAT, "Version"), 0, version, "4"));
        }
        let header = usize::from(words) * 4;
        if header < HEADER_OCTETS || header > found.len() {
            let allowed = "5 to a quarter of the octets there are";
            return Err(DecodeError::value((FORMAT, "IHL"), 0, words, allowed));
        }
        let total = u16_at(found, 2);
        if usize::from(total) < header || usize::from(total) > found.len() {
            let allowed = "the octets of the header to those there are";
            return Err(DecodeError::value((FORMAT, "Total Length"), 2, total, allowed));
        }
        Ok(Self { octets })
    }

    /// Octets of the header, options included: 20..=60.
    pub fn header_octets(&self) -> usize {
        usize::from(self.octets.as_ref()[0] & 0xF) * 4
    }

    /// Octets of header and payload.
    pub fn total_length(&self) -> u16 {
        u16_at(self.octets.as_ref(), 2)
    }

    /// Header checksum as it stands.
    pub fn checksum(&self) -> u16 {
        u16_at(self.octets.as_ref(), CHECKSUM_AT)
    }

    /// What the packet carries.
    pub fn payload(&self) -> &[u8] {
        &self.octets.as_ref()[self.header_octets()..usize::from(self.total_length())]
    }
}

/// What a packet says besides its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Type of service: precedence and type, or DSCP and ECN.
    pub type_of_service: u8,
    /// Which datagram a fragment is part of.
    pub identification: u16,
    /// DF: no router may fragment this.
    pub dont_fragment: bool,
    /// MF: not the last fragment.
    pub more_fragments: bool,
    /// Where the payload begins in that of the datagram.
    pub fragment_offset: FragmentOffset,
    /// Routers that may still forward this, 0..=255.
    pub time_to_live: u8,
    /// What the payload is.
    pub protocol: Protocol,
    /// From where, to where.
    pub ends: Ends,
    /// Options, carried as they stand.
    pub options: Options,
    /// Octets of payload, 0 to 65535 less the header.
    pub payload_length: u16,
}

impl Repr {
    /// Reads a header and checks its checksum.
    ///
    /// # Errors
    /// [`Fault::Checksum`](crate::Fault::Checksum) if the header does not sum to all ones; then
    /// [`Fault::Value`](crate::Fault::Value) if an option runs out of the header.
    pub fn parse<T: AsRef<[u8]>>(packet: &Packet<T>) -> Result<Self, DecodeError> {
        let octets = packet.octets.as_ref();
        let header = &octets[..packet.header_octets()];
        let sum = Sum::ZERO.octets(header);
        if !sum.holds() {
            let found = packet.checksum();
            let computed = sum.without(found).checksum();
            return Err(DecodeError::checksum((FORMAT, "Header Checksum"), CHECKSUM_AT, found, computed));
        }
        let options =
            Options::from_octets(&header[HEADER_OCTETS..]).expect("15 times 4 octets less 20 are 40");
        options.check(FORMAT, HEADER_OCTETS)?;
        let fragment = u16_at(octets, 6);
        Ok(Self {
            type_of_service: octets[1],
            identification: u16_at(octets, 4),
            // Choice: RFC 791 wants the first flag zero; it is not sent, and ignored when it comes.
            dont_fragment: fragment & DONT_FRAGMENT != 0,
            more_fragments: fragment & MORE_FRAGMENTS != 0,
            fragment_offset: FragmentOffset(fragment & 0x1FFF),
            time_to_live: octets[8],
            protocol: Protocol(octets[9]),
            ends: Ends { source: array_at(octets, 12).into(), destination: array_at(octets, 16).into() },
            options,
            payload_length: packet.total_length() - header.len() as u16,
        })
    }

    /// Writes the header in front of the payload, which stays as it is. `octets` are the packet's.
    ///
    /// # Errors
    /// [`EmitError`] if header and payload are more than 65535 octets, or not as many as `octets`.
    /// Nothing is written then.
    pub fn emit(&self, octets: &mut [u8]) -> Result<(), EmitError> {
        let header = self.header_octets();
        let total = header + usize::from(self.payload_length);
        let Ok(length) = u16::try_from(total) else {
            let allowed = "0 to 65535 octets less the header";
            return Err(EmitError::value(FORMAT, "payload", self.payload_length, allowed));
        };
        EmitError::unless_size(FORMAT, "header and payload", octets.len(), total)?;
        octets[0] = 0x40 | (header / 4) as u8;
        octets[1] = self.type_of_service;
        put(octets, 2, length.to_be_bytes());
        put(octets, 4, self.identification.to_be_bytes());
        let dont_fragment = if self.dont_fragment { DONT_FRAGMENT } else { 0 };
        let more_fragments = if self.more_fragments { MORE_FRAGMENTS } else { 0 };
        put(octets, 6, (dont_fragment | more_fragments | self.fragment_offset.0).to_be_bytes());
        octets[8] = self.time_to_live;
        octets[9] = self.protocol.0;
        put(octets, CHECKSUM_AT, [0, 0]);
        put(octets, 12, self.ends.source.octets());
        put(octets, 16, self.ends.destination.octets());
        octets[HEADER_OCTETS..header].copy_from_slice(self.options.octets());
        let checksum = crate::checksum::checksum(&octets[..header]);
        put(octets, CHECKSUM_AT, checksum.to_be_bytes());
        Ok(())
    }

    /// Octets of the header, options included: 20..=60.
    pub const fn header_octets(&self) -> usize {
        HEADER_OCTETS + self.options.padded()
    }

    /// Octets of header and payload.
    pub const fn total_octets(&self) -> usize {
        self.header_octets() + self.payload_length as usize
    }
}

/// Octets of a header without options.
pub const HEADER_OCTETS: usize = 20;
/// Octets of the longest packet.
pub const MAX_PACKET_OCTETS: usize = 65_535;
/// Octets that every host takes in one datagram (RFC 791 §3.1).
pub const MIN_REASSEMBLED_OCTETS: usize = 576;

const FORMAT: &str = "IPv4 packet";
const CHECKSUM_AT: usize = 10;
const DONT_FRAGMENT: u16 = 0x4000;
const MORE_FRAGMENTS: u16 = 0x2000;
const MAX_OFFSET: u64 = 0x1FFF * 8;

/// Reads arbitrary octets as a packet and, if they are one, writes what was read and compares.
///
/// The fuzz target and the property test below are this function. `scratch` is at least as long as
/// `octets`.
///
/// # Panics
/// If a packet that was read is not written back octet for octet, save for a reserved flag that was
/// set and for the other of the two zeros of a checksum: a bug here.
#[doc(hidden)]
pub fn round_trip(octets: &[u8], scratch: &mut [u8]) {
    let Ok(packet) = Packet::new_checked(octets) else { return };
    let Ok(repr) = Repr::parse(&packet) else { return };
    let written = &mut scratch[..repr.total_octets()];
    written[repr.header_octets()..].copy_from_slice(packet.payload());
    repr.emit(written).expect("as many octets as the packet that was read");
    let copy = Packet::new_checked(&*written).expect("what was written is a packet");
    assert_eq!(Repr::parse(&copy), Ok(repr), "what was written reads the same");
    if octets[6] & 0x80 == 0 && packet.checksum() != u16::MAX {
        assert_eq!(written, &octets[..written.len()], "written back octet for octet");
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::Fault;

    fn repr() -> Repr {
        Repr {
            type_of_service: 0,
            identification: 0,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: FragmentOffset::ZERO,
            time_to_live: 64,
            protocol: Protocol::UDP,
            ends: Ends {
                source: Ipv4Addr::new(192, 168, 0, 1),
                destination: Ipv4Addr::new(192, 168, 0, 199),
            },
            options: Options::NONE,
            payload_length: 95,
        }
    }

    /// A header whose checksum, b861, is worked out by hand in many places.
    const HEADER: [u8; 20] = [
        0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xB8, 0x61, 0xC0, 0xA8, 0x00, 0x01, 0xC0,
        0xA8, 0x00, 0xC7,
    ];

    fn known() -> Vec<u8> {
        let mut octets = vec![0x5A; 115];
        octets[..20].copy_from_slice(&HEADER);
        octets
    }

    fn refused(octets: &[u8]) -> DecodeError {
        match Packet::new_checked(octets) {
            Err(error) => error,
            Ok(packet) => Repr::parse(&packet).expect_err("not a packet"),
        }
    }

    /// Sets the checksum right.
    fn close(octets: &mut [u8]) {
        let header = (usize::from(octets[0] & 0xF) * 4).clamp(HEADER_OCTETS, octets.len());
        put(octets, CHECKSUM_AT, [0, 0]);
        let checksum = crate::checksum::checksum(&octets[..header]);
        put(octets, CHECKSUM_AT, checksum.to_be_bytes());
    }

    #[test]
    fn a_known_header_is_read_and_written() {
        let octets = known();
        let packet = Packet::new_checked(&octets).expect("115 octets");
        assert_eq!(Repr::parse(&packet), Ok(repr()));
        assert_eq!(packet.payload(), [0x5A; 95]);
        let mut written = vec![0x5A; 115];
        repr().emit(&mut written).expect("115 octets");
        assert_eq!(written, octets);
    }

    #[test]
    fn octets_behind_the_total_length_are_no_part_of_the_packet() {
        let mut octets = known();
        octets.extend([0xEE; 6]);
        let packet = Packet::new_checked(&octets).expect("padded");
        assert_eq!(packet.payload(), [0x5A; 95]);
        assert_eq!(Repr::parse(&packet), Ok(repr()));
    }

    #[test]
    fn a_fragment_in_the_middle_keeps_its_place() {
        let offset = FragmentOffset::new(Bytes::new(1480)).expect("a multiple of 8");
        let fragment = Repr {
            dont_fragment: false,
            more_fragments: true,
            fragment_offset: offset,
            identification: 0xBEEF,
            ..repr()
        };
        let mut octets = known();
        fragment.emit(&mut octets).expect("115 octets");
        assert_eq!(octets[4..8], [0xBE, 0xEF, 0x20, 0xB9]);
        assert_eq!(Repr::parse(&Packet::new_checked(&octets).expect("a packet")), Ok(fragment));
        for octets in [1479, 65_536] {
            assert_eq!(FragmentOffset::new(Bytes::new(octets)), None);
        }
        assert_eq!(
            FragmentOffset::new(Bytes::new(65_528)).map(FragmentOffset::bytes),
            Some(Bytes::new(65_528))
        );
    }

    #[test]
    fn options_lengthen_the_header() {
        // Router alert (RFC 2113) and a no-operation.
        let options = Options::from_octets(&[0x94, 0x04, 0x00, 0x00, 0x01]).expect("five octets");
        let repr = Repr { options, payload_length: 7, ..repr() };
        let mut octets = vec![0x5A; 35];
        repr.emit(&mut octets).expect("28 of header, 7 of payload");
        assert_eq!(octets[0], 0x47);
        assert_eq!(octets[20..28], [0x94, 0x04, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00]);
        let packet = Packet::new_checked(&octets).expect("a packet");
        assert_eq!((Repr::parse(&packet), packet.payload()), (Ok(repr), &[0x5A; 7][..]));
    }

    #[test]
    fn every_wrong_field_is_named_with_its_place() {
        assert_eq!(
            refused(&known()[..19]).to_string(),
            "IPv4 packet, header at octet 0: 19 octets, allowed are 20 or more"
        );
        let cases: [(&[(usize, u8)], &str); 7] = [
            (&[(0, 0x65)], "IPv4 packet, Version at octet 0: 6, allowed is 4"),
            (
                &[(0, 0x44)],
                "IPv4 packet, IHL at octet 0: 4, allowed is 5 to a quarter of the octets there are",
            ),
            (
                &[(3, 19)],
                "IPv4 packet, Total Length at octet 2: 19, allowed is the octets of the header to those there are",
            ),
            (
                &[(3, 116)],
                "IPv4 packet, Total Length at octet 2: 116, allowed is the octets of the header to those there are",
            ),
            (
                &[(0, 0x46), (3, 23)],
                "IPv4 packet, Total Length at octet 2: 23, allowed is the octets of the header to those there are",
            ),
            (
                &[(0, 0x46), (20, 7), (21, 9)],
                "IPv4 packet, option length at octet 21: 9, allowed is 2 to the end of the header",
            ),
            (
                &[(0, 0x46), (20, 7), (21, 1)],
                "IPv4 packet, option length at octet 21: 1, allowed is 2 to the end of the header",
            ),
        ];
        for (changes, said) in cases {
            let mut octets = known();
            changes.iter().for_each(|&(at, octet)| octets[at] = octet);
            close(&mut octets);
            assert_eq!(refused(&octets).to_string(), said);
        }
        let mut cut = known();
        cut.truncate(56);
        cut[0] = 0x4F;
        assert_eq!(refused(&cut).field, "IHL");
    }

    #[test]
    fn every_wrong_bit_of_a_header_is_found() {
        for bit in 0..160 {
            let mut octets = known();
            octets[bit / 8] ^= 0x80 >> (bit % 8);
            let error = refused(&octets);
            if !matches!(bit / 8, 0 | 2 | 3) {
                assert_eq!((error.field, error.offset), ("Header Checksum", Bytes::new(10)), "bit {bit}");
            }
        }
        let mut octets = known();
        octets[8] -= 1;
        // What a router does: the time to live is one less, the checksum is brought after it.
        assert_eq!(refused(&octets).fault, Fault::Checksum { found: 0xB861, computed: 0xB961 });
        let updated = crate::checksum::updated(0xB861, 0x4011, 0x3F11);
        put(&mut octets, CHECKSUM_AT, updated.to_be_bytes());
        let forwarded = Repr::parse(&Packet::new_checked(&octets).expect("a packet"));
        assert_eq!(forwarded, Ok(Repr { time_to_live: 63, ..repr() }));
    }

    #[test]
    fn the_reserved_flag_is_ignored() {
        let mut octets = known();
        octets[6] |= 0x80;
        close(&mut octets);
        assert_eq!(Repr::parse(&Packet::new_checked(&octets).expect("a packet")), Ok(repr()));
    }

    #[test]
    fn a_packet_that_does_not_fit_is_not_written() {
        let mut octets = vec![0xEE; 116];
        let error = repr().emit(&mut octets).expect_err("one octet too many");
        assert_eq!(
            error.to_string(),
            "IPv4 packet, header and payload: 116 octets to write to, but it takes 115"
        );
        assert_eq!(octets, vec![0xEE; 116]);
        let long = Repr { payload_length: 65_516, ..repr() };
        let error = long.emit(&mut octets).expect_err("65536 octets");
        assert_eq!(
            error.to_string(),
            "IPv4 packet, payload: 65516, allowed is 0 to 65535 octets less the header"
        );
        let longest = Repr { payload_length: 65_515, ..repr() };
        longest.emit(&mut vec![0; MAX_PACKET_OCTETS]).expect("65535 octets");
    }

    fn any_options() -> impl Strategy<Value = Options> {
        prop::collection::vec((2u8.., prop::collection::vec(any::<u8>(), 0..8), any::<bool>()), 0..4)
            .prop_map(|fields| {
                let mut options = Options::NONE;
                for (kind, data, nop) in fields {
                    if nop {
                        options.push_nop().expect("at most 44 octets come, the last refused");
                    }
                    options.push(kind, &data).expect("4 options of up to 10 octets");
                }
                options
            })
    }

    fn any_repr() -> impl Strategy<Value = Repr> {
        let fragment = (any::<u16>(), any::<bool>(), any::<bool>(), 0u16..0x2000);
        let rest = (any::<u8>(), any::<u8>(), any::<u8>(), any::<u32>(), any::<u32>(), 0u16..200);
        (fragment, rest, any_options()).prop_map(
            |((identification, dont_fragment, more_fragments, offset), rest, options)| {
                let (type_of_service, time_to_live, protocol, source, destination, payload_length) = rest;
                Repr {
                    type_of_service,
                    identification,
                    dont_fragment,
                    more_fragments,
                    fragment_offset: FragmentOffset(offset),
                    time_to_live,
                    protocol: Protocol(protocol),
                    ends: Ends { source: source.into(), destination: destination.into() },
                    options,
                    payload_length,
                }
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(repr in any_repr()) {
            let mut octets = vec![0x5A; repr.total_octets()];
            repr.emit(&mut octets).expect("the size fits");
            prop_assert_eq!(Repr::parse(&Packet::new_checked(&octets[..]).expect("a packet")), Ok(repr));
        }

        #[test]
        fn arbitrary_octets_round_trip(mut octets in prop::collection::vec(any::<u8>(), 20..120), valid: bool) {
            if valid {
                octets[0] = 0x40 | (octets[0] & 0xF).clamp(5, (octets.len() / 4) as u8);
                let header = u16::from(octets[0] & 0xF) * 4;
                let total = (octets.len() as u16 - u16::from(octets[3] & 3)).max(header);
                put(&mut octets, 2, total.to_be_bytes());
                close(&mut octets);
            }
            let mut scratch = vec![0; octets.len()];
            round_trip(&octets, &mut scratch);
        }
    }
}
