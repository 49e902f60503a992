//! Address resolution for IPv4 over 48-bit addresses.
//!
//! RFC 826 on Ethernet, RFC 1042 on IEEE 802 networks, RFC 1390 on FDDI; RFC 903 and RFC 2390 for the
//! operations in the other direction. Left out: other hardware and protocols, which are rejected
//! ([`crate::atmarp`] is that of ATM).
//!
//! | Field | Octets | Rule |
//! |---|---|---|
//! | Hardware type, protocol type | 2, 2 | 1 Ethernet or 6 IEEE 802; 0x0800 |
//! | Lengths of their addresses | 1, 1 | 6, 4 |
//! | Operation | 2 | |
//! | Sender's and target's addresses | 6, 4, 6, 4 | |

use core::net::Ipv4Addr;

use crate::ethernet::EtherType;
use crate::mac::MacAddress;
use crate::octets::{array_at, put, u16_at};
use crate::{DecodeError, EmitError};

/// What is asked or told. Any number is carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Operation(pub u16);

impl Operation {
    /// Who has this protocol address?
    pub const REQUEST: Self = Self(1);
    /// I have.
    pub const REPLY: Self = Self(2);
    /// Which protocol address has this station (RFC 903)?
    pub const REVERSE_REQUEST: Self = Self(3);
    /// This one.
    pub const REVERSE_REPLY: Self = Self(4);
    /// Which protocol address is at the other end of this channel (RFC 2390)?
    pub const INVERSE_REQUEST: Self = Self(8);
    /// This one.
    pub const INVERSE_REPLY: Self = Self(9);
    /// Nobody known has it (RFC 2225): ATM only.
    pub const NAK: Self = Self(10);
}

/// Which network the addresses are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hardware {
    /// Ethernet; on FDDI too (RFC 1390).
    Ethernet,
    /// IEEE 802 networks (RFC 1042).
    Ieee802,
}

/// What a packet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Which network.
    pub hardware: Hardware,
    /// What is asked or told.
    pub operation: Operation,
    /// Who asks or tells.
    pub sender_hardware: MacAddress,
    /// Its protocol address.
    pub sender_protocol: Ipv4Addr,
    /// Who is asked for or told; zeros where that is the question.
    pub target_hardware: MacAddress,
    /// Its protocol address.
    pub target_protocol: Ipv4Addr,
}

impl Repr {
    /// Reads a packet. Octets behind it are a link's padding.
    ///
    /// # Errors
    /// [`Fault::Size`](crate::Fault::Size) below 28 octets; [`Fault::Value`](crate::Fault::Value) for
    /// other hardware, another protocol, or lengths that are not theirs.
    pub fn parse(octets: &[u8]) -> Result<Self, DecodeError> {
        if octets.len() < PACKET_OCTETS {
            return Err(DecodeError::size(FORMAT, "packet", octets.len(), "28 or more"));
        }
        let hardware = match u16_at(octets, 0) {
            ETHERNET => Hardware::Ethernet,
            IEEE_802 => Hardware::Ieee802,
            other => return Err(DecodeError::value((FORMAT, "hardware type"), 0, other, "1 or 6")),
        };
        let protocol = u16_at(octets, 2);
        if protocol != EtherType::IPV4.get() {
            return Err(DecodeError::value((FORMAT, "protocol type"), 2, protocol, "2048"));
        }
        if octets[4] != 6 {
            return Err(DecodeError::value((FORMAT, "hardware address length"), 4, octets[4], "6"));
        }
        if octets[5] != 4 {
            return Err(DecodeError::value((FORMAT, "protocol address length"), 5, octets[5], "4"));
        }
        Ok(Self {
            hardware,
            operation: Operation(u16_at(octets, 6)),
            sender_hardware: MacAddress(array_at(octets, 8)),
            sender_protocol: Ipv4Addr::from(array_at::<4>(octets, 14)),
            target_hardware: MacAddress(array_at(octets, 18)),
            target_protocol: Ipv4Addr::from(array_at::<4>(octets, 24)),
        })
    }

    /// Writes the packet.
    ///
    /// # Errors
    /// [`EmitError`] unless there are 28 octets. Nothing is written then.
    pub fn emit(&self, octets: &mut [u8]) -> Result<(), EmitError> {
        EmitError::unless_size(FORMAT, "packet", octets.len(), PACKET_OCTETS)?;
        let hardware = match self.hardware {
            Hardware::Ethernet => ETHERNET,
            Hardware::Ieee802 => IEEE_802,
        };
        put(octets, 0, hardware.to_be_bytes());
        put(octets, 2, EtherType::IPV4.get().to_be_bytes());
        put(octets, 4, [6, 4]);
        put(octets, 6, self.operation.0.to_be_bytes());
        put(octets, 8, self.sender_hardware.0);
        put(octets, 14, self.sender_protocol.octets());
        put(octets, 18, self.target_hardware.0);
        put(octets, 24, self.target_protocol.octets());
        Ok(())
    }
}

/// Octets of a packet.
pub const PACKET_OCTETS: usize = 28;

const FORMAT: &str = "ARP packet";
const ETHERNET: u16 = 1;
const IEEE_802: u16 = 6;

/// Reads arbitrary octets as a packet and, if they are one, writes what was read and compares. The
/// fuzz target and the property test below are this function.
///
/// # Panics
/// If a packet that was read is not written back octet for octet: a bug here.
#[doc(hidden)]
pub fn round_trip(octets: &[u8]) {
    let Ok(repr) = Repr::parse(octets) else { return };
    let mut written = [0xEE; PACKET_OCTETS];
    repr.emit(&mut written).expect("28 octets");
    assert_eq!(written, octets[..PACKET_OCTETS], "written back octet for octet");
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use proptest::prelude::*;

    use super::*;

    const KNOWN: [u8; 28] = *b"\x00\x01\x08\x00\x06\x04\x00\x01\x08\x00\x20\x01\x02\x03\x0a\x00\x00\x01\
        \x00\x00\x00\x00\x00\x00\x0a\x00\x00\x02";

    fn repr() -> Repr {
        Repr {
            hardware: Hardware::Ethernet,
            operation: Operation::REQUEST,
            sender_hardware: MacAddress([8, 0, 0x20, 1, 2, 3]),
            sender_protocol: Ipv4Addr::new(10, 0, 0, 1),
            target_hardware: MacAddress([0; 6]),
            target_protocol: Ipv4Addr::new(10, 0, 0, 2),
        }
    }

    #[test]
    fn a_known_packet_is_read_and_written() {
        assert_eq!(Repr::parse(&KNOWN), Ok(repr()));
        let mut octets = [0; 28];
        repr().emit(&mut octets).expect("28 octets");
        assert_eq!(octets, KNOWN);
        repr().emit(&mut octets[1..]).expect_err("27 octets");
    }

    #[test]
    fn every_wrong_field_is_named_with_its_place() {
        for (at, octet, said) in [
            (1, 19, "ARP packet, hardware type at octet 0: 19, allowed is 1 or 6"),
            (3, 1, "ARP packet, protocol type at octet 2: 2049, allowed is 2048"),
            (4, 2, "ARP packet, hardware address length at octet 4: 2, allowed is 6"),
            (5, 6, "ARP packet, protocol address length at octet 5: 6, allowed is 4"),
        ] {
            let mut octets = KNOWN;
            octets[at] = octet;
            assert_eq!(Repr::parse(&octets).expect_err(said).to_string(), said);
        }
        let error = Repr::parse(&KNOWN[1..]).expect_err("27 octets");
        assert_eq!(error.to_string(), "ARP packet, packet at octet 0: 27 octets, allowed are 28 or more");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(rest: [u8; 20], operation: u16, ieee: bool) {
            let mut octets = KNOWN;
            octets[1] = if ieee { 6 } else { 1 };
            put(&mut octets, 6, operation.to_be_bytes());
            put(&mut octets, 8, rest);
            let repr = Repr::parse(&octets).expect("right lengths");
            prop_assert_eq!(repr.operation, Operation(operation));
            round_trip(&octets);
        }
    }
}
