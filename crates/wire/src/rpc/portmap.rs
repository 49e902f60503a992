//! The port mapper and its successor `rpcbind`: where a program can be reached.
//!
//! RFC 1833 §3 (version 2), §2 (versions 3 and 4). Left out: the indirect calls and the statistics of
//! versions 3 and 4; their arguments are octets to this crate.

use core::fmt::{self, Write};
use core::net::{Ipv4Addr, SocketAddrV4};

use crate::xdr::{Reader, Writer};
use crate::{DecodeError, EmitError};

/// Program number, on port 111 of UDP and TCP.
pub const PROGRAM: u32 = 100_000;
/// The port.
pub const PORT: u16 = 111;
/// The version of the port mapper proper.
pub const VERSION: u32 = 2;
/// Does nothing.
pub const PROC_NULL: u32 = 0;
/// Says where a program is: a mapping; a boolean comes back.
pub const PROC_SET: u32 = 1;
/// Takes that back: a mapping of which protocol and port are ignored; a boolean comes back.
pub const PROC_UNSET: u32 = 2;
/// Asks where a program is: a mapping of which the port is ignored; a port or 0 comes back.
pub const PROC_GETPORT: u32 = 3;
/// Asks for all; a list of mappings comes back.
pub const PROC_DUMP: u32 = 4;
/// Calls a procedure of a program here, and answers only if that does.
pub const PROC_CALLIT: u32 = 5;

/// Which transport a mapping is for: its protocol number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transport(pub u32);

impl Transport {
    /// TCP.
    pub const TCP: Self = Self(6);
    /// UDP.
    pub const UDP: Self = Self(17);
}

/// A program in a version, over a transport, at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Program number.
    pub program: u32,
    /// Version.
    pub version: u32,
    /// Transport.
    pub transport: Transport,
    /// Port, 0 where that is the question.
    pub port: u32,
}

impl Mapping {
    /// Reads the four words that octets begin with, and returns them with what follows.
    ///
    /// # Errors
    /// [`DecodeError`] below 16 octets.
    pub fn parse(octets: &[u8]) -> Result<(Self, &[u8]), DecodeError> {
        let mut reader = Reader::new(FORMAT, octets);
        let (program, version) = (reader.u32("prog")?, reader.u32("vers")?);
        let (transport, port) = (Transport(reader.u32("prot")?), reader.u32("port")?);
        Ok((Self { program, version, transport, port }, reader.rest()))
    }

    /// Writes the four words.
    ///
    /// # Errors
    /// [`EmitError`] below 16 octets.
    pub fn emit(&self, octets: &mut [u8]) -> Result<usize, EmitError> {
        let mut writer = Writer::new(FORMAT, octets);
        writer.u32("prog", self.program)?;
        writer.u32("vers", self.version)?;
        writer.u32("prot", self.transport.0)?;
        writer.u32("port", self.port)?;
        Ok(writer.position())
    }
}

/// The mappings of a DUMP, one after the other.
#[derive(Clone, Debug)]
pub struct Mappings<'a> {
    octets: &'a [u8],
    ended: bool,
}

impl<'a> Mappings<'a> {
    /// The mappings in the results of a DUMP.
    pub const fn new(octets: &'a [u8]) -> Self {
        Self { octets, ended: false }
    }
}

impl Iterator for Mappings<'_> {
    type Item = Result<Mapping, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let mut reader = Reader::new(FORMAT, self.octets);
        let next = match reader.bool("more") {
            Ok(false) => None,
            Ok(true) => Some(Mapping::parse(reader.rest()).map(|(mapping, rest)| {
                self.octets = rest;
                mapping
            })),
            Err(error) => Some(Err(error)),
        };
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

/// An entry of versions 3 and 4 (`rpcb`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Program number.
    pub program: u32,
    /// Version.
    pub version: u32,
    /// Name of the transport, `tcp` or `udp`.
    pub netid: &'a [u8],
    /// Universal address, [`UniversalAddress`] for these two.
    pub address: &'a [u8],
    /// Who registered it.
    pub owner: &'a [u8],
}

impl<'a> Entry<'a> {
    /// Reads an entry that octets begin with, and returns it with what follows.
    ///
    /// # Errors
    /// [`DecodeError`] where the octets end, or for a string of more than 1024 octets.
    pub fn parse(octets: &'a [u8]) -> Result<(Self, &'a [u8]), DecodeError> {
        let mut reader = Reader::new(FORMAT, octets);
        let entry = Self {
            program: reader.u32("r_prog")?,
            version: reader.u32("r_vers")?,
            netid: reader.counted("r_netid", MAX_STRING, STRING_ALLOWED)?,
            address: reader.counted("r_addr", MAX_STRING, STRING_ALLOWED)?,
            owner: reader.counted("r_owner", MAX_STRING, STRING_ALLOWED)?,
        };
        Ok((entry, reader.rest()))
    }

    /// Writes the entry and returns its octets.
    ///
    /// # Errors
    /// [`EmitError`] for a string of more than 1024 octets, or where there is no room.
    pub fn emit(&self, octets: &mut [u8]) -> Result<usize, EmitError> {
        let mut writer = Writer::new(FORMAT, octets);
        writer.u32("r_prog", self.program)?;
        writer.u32("r_vers", self.version)?;
        writer.counted("r_netid", self.netid, MAX_STRING, STRING_ALLOWED)?;
        writer.counted("r_addr", self.address, MAX_STRING, STRING_ALLOWED)?;
        writer.counted("r_owner", self.owner, MAX_STRING, STRING_ALLOWED)?;
        Ok(writer.position())
    }
}

/// The address of a port on an IPv4 host as text: `h1.h2.h3.h4.p1.p2` (RFC 5665 §5.2.3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UniversalAddress(pub SocketAddrV4);

impl UniversalAddress {
    /// Reads the text.
    ///
    /// # Errors
    /// [`DecodeError`] unless there are six numbers of 0 to 255 between points.
    pub fn parse(text: &[u8]) -> Result<Self, DecodeError> {
        let allowed = "six numbers of 0 to 255 between points";
        let error = || DecodeError::size(FORMAT, "universal address", text.len(), allowed);
        let mut numbers = [0_u8; 6];
        let mut parts = text.split(|&octet| octet == b'.');
        for number in &mut numbers {
            let part = parts.next().and_then(|part| str::from_utf8(part).ok()).ok_or_else(error)?;
            if part.is_empty() || !part.bytes().all(|octet| octet.is_ascii_digit()) {
                return Err(error());
            }
            *number = part.parse().map_err(|_| error())?;
        }
        if parts.next().is_some() {
            return Err(error());
        }
        let [a, b, c, d, high, low] = numbers;
        Ok(Self(SocketAddrV4::new(Ipv4Addr::new(a, b, c, d), u16::from_be_bytes([high, low]))))
    }
}

impl fmt::Display for UniversalAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [high, low] = self.0.port().to_be_bytes();
        write!(f, "{}", self.0.ip())?;
        f.write_char('.')?;
        write!(f, "{high}.{low}")
    }
}

const FORMAT: &str = "port mapping";
const MAX_STRING: u32 = 1024;
const STRING_ALLOWED: &str = "0 to 1024 octets";

/// Reads arbitrary octets as arguments and results and, if they are some, writes them and compares.
///
/// # Panics
/// If what was read is not written back octet for octet: a bug here.
#[doc(hidden)]
pub fn round_trip(octets: &[u8]) {
    let mut written = [0xEE; 20 + 3 * 1024];
    if let Ok((mapping, rest)) = Mapping::parse(octets) {
        let end = mapping.emit(&mut written).expect("16 octets");
        assert_eq!(written[..end], octets[..octets.len() - rest.len()], "written back octet for octet");
    }
    if let Ok((entry, rest)) = Entry::parse(octets) {
        let end = entry.emit(&mut written).expect("what was read can be written");
        assert_eq!(written[..end], octets[..octets.len() - rest.len()], "written back octet for octet");
    }
    let listed = Mappings::new(octets).filter(|next| next.is_ok()).count();
    assert!(listed <= octets.len() / 20, "each takes twenty octets");
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn a_known_question_is_written_and_read() {
        let mapping = Mapping { program: 0x2000_0001, version: 1, transport: Transport::TCP, port: 0 };
        let mut octets = [0xEE; 17];
        assert_eq!(mapping.emit(&mut octets), Ok(16));
        assert_eq!(octets, *b"\x20\0\0\x01\0\0\0\x01\0\0\0\x06\0\0\0\0\xEE");
        assert_eq!(Mapping::parse(&octets), Ok((mapping, &[0xEE][..])));
        mapping.emit(&mut octets[2..]).expect_err("15 octets");
        assert_eq!(Mapping::parse(&octets[2..]).expect_err("15 octets").field, "port");
    }

    #[test]
    fn a_list_ends_at_its_end_or_at_the_first_fault() {
        let mut octets = Vec::new();
        for program in 1..=3_u8 {
            octets.extend([0, 0, 0, 1, 0, 0, 0, program, 0, 0, 0, 2, 0, 0, 0, 17, 0, 0, 0, 111]);
        }
        octets.extend([0; 4]);
        let programs: Result<Vec<_>, _> =
            Mappings::new(&octets).map(|next| next.map(|one| one.program)).collect();
        assert_eq!(programs, Ok([1, 2, 3].to_vec()));
        let cut: Vec<_> = Mappings::new(&octets[..50]).collect();
        assert_eq!((cut.len(), cut[2].is_err()), (3, true));
        octets[3] = 2;
        assert_eq!(Mappings::new(&octets).count(), 1, "one error");
    }

    #[test]
    fn entries_have_three_strings() {
        let entry =
            Entry { program: 1, version: 2, netid: b"tcp", address: b"10.0.0.1.8.1", owner: b"superuser" };
        let mut octets = [0xEE; 60];
        let end = entry.emit(&mut octets).expect("room");
        assert_eq!(end, 8 + 8 + 16 + 16);
        assert_eq!(Entry::parse(&octets[..end]), Ok((entry, &[][..])));
        assert_eq!(Entry::parse(&octets[..end - 1]).expect_err("cut short").field, "r_owner");
        octets[8..12].copy_from_slice(&1025_u32.to_be_bytes());
        let said = "port mapping, r_netid at octet 8: 1025, allowed is 0 to 1024 octets";
        assert_eq!(Entry::parse(&octets).expect_err("a long name").to_string(), said);
    }

    #[test]
    fn a_universal_address_is_host_and_port() {
        let address = UniversalAddress(SocketAddrV4::new(Ipv4Addr::new(10, 1, 2, 3), 2049));
        assert_eq!(address.to_string(), "10.1.2.3.8.1");
        assert_eq!(UniversalAddress::parse(b"10.1.2.3.8.1"), Ok(address));
        for wrong in [
            "10.1.2.3.8",
            "10.1.2.3.8.1.1",
            "10.1.2.3.8.256",
            "10.1.2.3.8.",
            "a.1.2.3.8.1",
            "+1.1.2.3.8.1",
            "",
        ] {
            let error = UniversalAddress::parse(wrong.as_bytes()).expect_err(wrong);
            assert_eq!(error.field, "universal address");
        }
    }
}
