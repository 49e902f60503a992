//! Address resolution for IPv4 over ATM: ATMARP, and InATMARP for the other direction.
//!
//! RFC 2225 §8.4 (RFC 1577 §8.4). Each address may be missing: its length is then 0. Left out: other
//! protocols than IPv4, which are rejected.
//!
//! | Field | Octets | Rule |
//! |---|---|---|
//! | Hardware type, protocol type | 2, 2 | 0x0013, 0x0800 |
//! | Type and length of the source's ATM number, of its subaddress | 1, 1 | 0 to 20 octets |
//! | Operation | 2 | request 1, reply 2, InATMARP 8 and 9, NAK 10 |
//! | Length of the source's IP address | 1 | 0 or 4 |
//! | The same three lengths of the target | 1, 1, 1 | |
//! | The addresses | 0 to 88 | in the order of their lengths, source first |

use core::fmt;
use core::net::Ipv4Addr;

use crate::arp::Operation;
use crate::ethernet::EtherType;
use crate::octets::{array_at, put, u16_at};
use crate::{DecodeError, EmitError};

/// How a number or subaddress is to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// An address of the ATM Forum's NSAP format, of 20 octets where there is one.
    #[default]
    Nsap,
    /// Digits in ASCII.
    E164,
}

/// An ATM number or subaddress, of 0 to 20 octets; of 0 it is not there.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct AtmAddress {
    form: Form,
    length: u8,
    /// Zeros behind `length`.
    octets: [u8; MAX_ADDRESS_OCTETS],
}

impl AtmAddress {
    /// No address.
    pub const NONE: Self = Self { form: Form::Nsap, length: 0, octets: [0; MAX_ADDRESS_OCTETS] };

    /// An address of the NSAP format.
    pub const fn nsap(octets: [u8; MAX_ADDRESS_OCTETS]) -> Self {
        Self { form: Form::Nsap, length: MAX_ADDRESS_OCTETS as u8, octets }
    }

    /// These octets in this form; `None` if there are more than 20.
    pub fn new(form: Form, octets: &[u8]) -> Option<Self> {
        let mut address = Self { form, ..Self::NONE };
        address.octets.get_mut(..octets.len())?.copy_from_slice(octets);
        address.length = octets.len() as u8;
        Some(address)
    }

    /// How it is to be read.
    pub const fn form(&self) -> Form {
        self.form
    }

    /// Its octets; none where there is no address.
    pub fn octets(&self) -> &[u8] {
        &self.octets[..usize::from(self.length)]
    }

    const fn type_and_length(&self) -> u8 {
        match self.form {
            Form::Nsap => self.length,
            Form::E164 => self.length | E164_BIT,
        }
    }
}

impl fmt::Debug for AtmAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} ", self.form)?;
        self.octets().iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

/// The addresses of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Party {
    /// ATM number.
    pub number: AtmAddress,
    /// ATM subaddress.
    pub subaddress: AtmAddress,
    /// IP address.
    pub protocol: Option<Ipv4Addr>,
}

impl Party {
    fn octets(&self) -> usize {
        let protocol = if self.protocol.is_some() { 4 } else { 0 };
        self.number.octets().len() + self.subaddress.octets().len() + protocol
    }
}

/// What a packet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// What is asked or told.
    pub operation: Operation,
    /// Who asks or tells.
    pub source: Party,
    /// Who is asked for or told.
    pub target: Party,
}

impl Repr {
    /// Reads a packet. Octets behind it are no part of it.
    ///
    /// # Errors
    /// [`Fault::Size`](crate::Fault::Size) if the octets end before the packet does;
    /// [`Fault::Value`](crate::Fault::Value) for other hardware, another protocol, or a length that
    /// an address does not have.
    pub fn parse(octets: &[u8]) -> Result<Self, DecodeError> {
        if octets.len() < HEADER_OCTETS {
            return Err(DecodeError::size(FORMAT, "header", octets.len(), "12 or more"));
        }
        let value =
            |field, at, found: u16, allowed| Err(DecodeError::value((FORMAT, field), at, found, allowed));
        match (u16_at(octets, 0), u16_at(octets, 2)) {
            (HARDWARE, 0x0800) => {}
            (HARDWARE, other) => return value("ar$pro", 2, other, "2048"),
            (other, _) => return value("ar$hrd", 0, other, "19"),
        }
        let fields = ["ar$shtl", "ar$sstl", "ar$thtl", "ar$tstl"];
        for (field, at) in fields.into_iter().zip(ATM_LENGTHS_AT) {
            if usize::from(octets[at] & LENGTH_BITS) > MAX_ADDRESS_OCTETS || octets[at] & 0x80 != 0 {
                return value(field, at, octets[at].into(), "0 to 20, or 64 more for E.164");
            }
        }
        for (field, at) in [("ar$spln", 8), ("ar$tpln", 11)] {
            if !matches!(octets[at], 0 | 4) {
                return value(field, at, octets[at].into(), "0 or 4");
            }
        }
        let [source_number, source_sub, target_number, target_sub] = ATM_LENGTHS_AT.map(|at| octets[at]);
        let mut rest = &octets[HEADER_OCTETS..];
        let mut party = |number, subaddress, protocol| {
            let number = take_address(&mut rest, number)?;
            let subaddress = take_address(&mut rest, subaddress)?;
            let protocol = take(&mut rest, protocol)?;
            let protocol = (protocol.len() == 4).then(|| Ipv4Addr::from(array_at::<4>(protocol, 0)));
            Some(Party { number, subaddress, protocol })
        };
        let parties = party(source_number, source_sub, octets[8])
            .and_then(|source| Some((source, party(target_number, target_sub, octets[11])?)));
        let Some((source, target)) = parties else {
            return Err(DecodeError::size(
                FORMAT,
                "addresses",
                octets.len(),
                "12 and what the lengths add up to",
            ));
        };
        Ok(Self { operation: Operation(u16_at(octets, 6)), source, target })
    }

    /// Writes the packet.
    ///
    /// # Errors
    /// [`EmitError`] unless there are as many octets as [`Repr::packet_octets`]. Nothing is written
    /// then.
    pub fn emit(&self, octets: &mut [u8]) -> Result<(), EmitError> {
        EmitError::unless_size(FORMAT, "packet", octets.len(), self.packet_octets())?;
        let protocol = |party: &Party| if party.protocol.is_some() { 4 } else { 0 };
        put(octets, 0, HARDWARE.to_be_bytes());
        put(octets, 2, EtherType::IPV4.get().to_be_bytes());
        put(octets, 4, [self.source.number.type_and_length(), self.source.subaddress.type_and_length()]);
        put(octets, 6, self.operation.0.to_be_bytes());
        put(octets, 8, [protocol(&self.source), self.target.number.type_and_length()]);
        put(octets, 10, [self.target.subaddress.type_and_length(), protocol(&self.target)]);
        let mut at = HEADER_OCTETS;
        for party in [&self.source, &self.target] {
            let protocol = party.protocol.map(|address| address.octets());
            let protocol = protocol.as_ref().map_or(&[][..], |address| &address[..]);
            for address in [party.number.octets(), party.subaddress.octets(), protocol] {
                octets[at..at + address.len()].copy_from_slice(address);
                at += address.len();
            }
        }
        Ok(())
    }

    /// Octets of the packet, 12..=100.
    pub fn packet_octets(&self) -> usize {
        HEADER_OCTETS + self.source.octets() + self.target.octets()
    }
}

/// Takes the first `length` octets away from `rest`.
fn take<'a>(rest: &mut &'a [u8], length: u8) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(length.into())?;
    *rest = left;
    Some(taken)
}

/// Takes the address whose type and length this is.
fn take_address(rest: &mut &[u8], type_and_length: u8) -> Option<AtmAddress> {
    let form = if type_and_length & E164_BIT == 0 { Form::Nsap } else { Form::E164 };
    AtmAddress::new(form, take(rest, type_and_length & LENGTH_BITS)?)
}

/// Octets of an address in NSAP format, and the most that any has.
pub const MAX_ADDRESS_OCTETS: usize = 20;
/// Octets of the longest packet.
pub const MAX_PACKET_OCTETS: usize = HEADER_OCTETS + 2 * (2 * MAX_ADDRESS_OCTETS + 4);

const FORMAT: &str = "ATMARP packet";
const HEADER_OCTETS: usize = 12;
const HARDWARE: u16 = 0x0013;
const E164_BIT: u8 = 0x40;
const LENGTH_BITS: u8 = 0x3F;
/// Where the types and lengths of the ATM numbers and subaddresses stand.
const ATM_LENGTHS_AT: [usize; 4] = [4, 5, 9, 10];

/// Reads arbitrary octets as a packet and, if they are one, writes what was read and compares. The
/// fuzz target and the property test below are this function.
///
/// # Panics
/// If a packet that was read is not written back octet for octet: a bug here.
#[doc(hidden)]
pub fn round_trip(octets: &[u8]) {
    let Ok(repr) = Repr::parse(octets) else { return };
    let mut written = [0xEE; MAX_PACKET_OCTETS];
    let end = repr.packet_octets();
    repr.emit(&mut written[..end]).expect("as many octets as were read");
    assert_eq!(written[..end], octets[..end], "written back octet for octet");
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn request() -> Repr {
        let number = AtmAddress::nsap(core::array::from_fn(|at| 0x47 + at as u8));
        let source = Party { number, protocol: Some(Ipv4Addr::new(10, 0, 0, 1)), ..Party::default() };
        let target = Party { protocol: Some(Ipv4Addr::new(10, 0, 0, 2)), ..Party::default() };
        Repr { operation: Operation::REQUEST, source, target }
    }

    fn emitted(repr: &Repr) -> Vec<u8> {
        let mut octets = vec![0xEE; repr.packet_octets()];
        repr.emit(&mut octets).expect("the size fits");
        octets
    }

    #[test]
    fn a_request_leaves_the_number_that_it_asks_for_out() {
        let octets = emitted(&request());
        assert_eq!(octets[..12], [0, 0x13, 8, 0, 20, 0, 0, 1, 4, 0, 0, 4]);
        assert_eq!(octets[12..32], core::array::from_fn::<u8, 20, _>(|at| 0x47 + at as u8));
        assert_eq!(octets[32..], [10, 0, 0, 1, 10, 0, 0, 2]);
        assert_eq!(Repr::parse(&octets), Ok(request()));
    }

    #[test]
    fn a_public_network_has_digits_and_a_subaddress() {
        let number = AtmAddress::new(Form::E164, b"15551234567").expect("eleven digits");
        let source = Party { number, subaddress: AtmAddress::nsap([7; 20]), protocol: None };
        let repr = Repr { operation: Operation::INVERSE_REQUEST, source, target: source };
        let octets = emitted(&repr);
        assert_eq!(octets[4..12], [0x4B, 20, 0, 8, 0, 0x4B, 20, 0]);
        assert_eq!((octets.len(), Repr::parse(&octets)), (74, Ok(repr)));
        assert_eq!(AtmAddress::new(Form::E164, &[0; 21]), None);
    }

    #[test]
    fn every_wrong_field_is_named_with_its_place() {
        for (at, octet, said) in [
            (1, 1, "ATMARP packet, ar$hrd at octet 0: 1, allowed is 19"),
            (3, 6, "ATMARP packet, ar$pro at octet 2: 2054, allowed is 2048"),
            (4, 21, "ATMARP packet, ar$shtl at octet 4: 21, allowed is 0 to 20, or 64 more for E.164"),
            (5, 0x80, "ATMARP packet, ar$sstl at octet 5: 128, allowed is 0 to 20, or 64 more for E.164"),
            (9, 0x55, "ATMARP packet, ar$thtl at octet 9: 85, allowed is 0 to 20, or 64 more for E.164"),
            (10, 63, "ATMARP packet, ar$tstl at octet 10: 63, allowed is 0 to 20, or 64 more for E.164"),
            (8, 6, "ATMARP packet, ar$spln at octet 8: 6, allowed is 0 or 4"),
            (11, 3, "ATMARP packet, ar$tpln at octet 11: 3, allowed is 0 or 4"),
        ] {
            let mut octets = emitted(&request());
            octets[at] = octet;
            assert_eq!(Repr::parse(&octets).expect_err(said).to_string(), said);
        }
        let octets = emitted(&request());
        let error = Repr::parse(&octets[..11]).expect_err("no header");
        assert_eq!(error.to_string(), "ATMARP packet, header at octet 0: 11 octets, allowed are 12 or more");
        for end in 12..octets.len() {
            assert_eq!(Repr::parse(&octets[..end]).expect_err("cut short").field, "addresses");
        }
        request().emit(&mut [0; 41]).expect_err("one octet too many");
    }

    fn any_address() -> impl Strategy<Value = AtmAddress> {
        (any::<bool>(), prop::collection::vec(any::<u8>(), 0..21)).prop_map(|(e164, octets)| {
            AtmAddress::new(if e164 { Form::E164 } else { Form::Nsap }, &octets).expect("at most 20")
        })
    }

    fn any_party() -> impl Strategy<Value = Party> {
        (any_address(), any_address(), any::<Option<u32>>()).prop_map(|(number, subaddress, protocol)| {
            Party { number, subaddress, protocol: protocol.map(Ipv4Addr::from) }
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(operation: u16, source in any_party(), target in any_party()) {
            let repr = Repr { operation: Operation(operation), source, target };
            let octets = emitted(&repr);
            prop_assert_eq!(Repr::parse(&octets), Ok(repr));
            round_trip(&octets);
        }
    }
}
