//! The four octets before an AAL5 SDU in captures of link type 123.
//!
//! As libpcap describes `LINKTYPE_SUNATM`: direction and kind of traffic, VPI, VCI.

use std::fmt;

/// What the SDU is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// Not told.
    Unknown,
    /// LAN emulation.
    Lane,
    /// An LLC header first (RFC 1483).
    Llc,
    /// Multicast address resolution (RFC 2022).
    Mars,
    /// Flow management (RFC 1953).
    Ifmp,
    /// Interim local management.
    Ilmi,
    /// Signalling: SSCOP with Q.2931 in it.
    Signalling,
    /// Another number, 7..=15.
    Other(u8),
}

impl Traffic {
    const NAMED: [Self; 7] =
        [Self::Unknown, Self::Lane, Self::Llc, Self::Mars, Self::Ifmp, Self::Ilmi, Self::Signalling];

    /// The four bits.
    pub fn code(self) -> u8 {
        match self {
            Self::Other(code) => code & 0xF,
            named => Self::NAMED.iter().position(|&other| other == named).expect("one of the named") as u8,
        }
    }
}

/// What the four octets say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// From the host to the network.
    pub from_host: bool,
    /// What the SDU is.
    pub traffic: Traffic,
    /// Path.
    pub vpi: u8,
    /// Channel.
    pub vci: u16,
}

/// Fewer than four octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooShort {
    /// How many.
    pub found: usize,
}

impl fmt::Display for TooShort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SunATM header at octet 0: {} octets, allowed are 4 or more", self.found)
    }
}

impl std::error::Error for TooShort {}

impl Header {
    /// Reads the four octets; the SDU is behind them. Three bits of the first are in no use and not
    /// looked at.
    ///
    /// # Errors
    /// [`TooShort`] below four octets.
    pub fn parse(octets: &[u8]) -> Result<(Self, &[u8]), TooShort> {
        let Some((&[flags, vpi, high, low], sdu)) = octets.split_first_chunk::<HEADER_OCTETS>() else {
            return Err(TooShort { found: octets.len() });
        };
        let code = flags & 0xF;
        let traffic = Traffic::NAMED.get(usize::from(code)).copied().unwrap_or(Traffic::Other(code));
        let vci = u16::from_be_bytes([high, low]);
        Ok((Self { from_host: flags & FROM_HOST != 0, traffic, vpi, vci }, sdu))
    }

    /// The four octets.
    pub fn octets(&self) -> [u8; HEADER_OCTETS] {
        let direction = if self.from_host { FROM_HOST } else { 0 };
        let [high, low] = self.vci.to_be_bytes();
        [direction | self.traffic.code(), self.vpi, high, low]
    }
}

/// Octets before the SDU.
pub const HEADER_OCTETS: usize = 4;

const FROM_HOST: u8 = 0x80;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_traffic_has_its_code() {
        for code in 0..16 {
            let octets = [0x80 | code, 7, 0x01, 0x02, b'x'];
            let (header, sdu) = Header::parse(&octets).expect("five octets");
            assert_eq!((header.from_host, header.vpi, header.vci, sdu), (true, 7, 0x0102, &b"x"[..]));
            assert_eq!(header.octets(), octets[..4]);
        }
        assert_eq!((Traffic::Llc.code(), Traffic::Ilmi.code(), Traffic::Signalling.code()), (2, 5, 6));
        let error = Header::parse(&[0; 3]).expect_err("three octets");
        assert_eq!(error.to_string(), "SunATM header at octet 0: 3 octets, allowed are 4 or more");
    }
}
