//! Addresses of 48 bits, and the frame check sequence that Ethernet and FDDI share.
//!
//! IEEE 802-1990 §5 (addresses, bit order), IEEE 802.3 §3.2.8, ANSI X3.139 §7.3.6 (frame check
//! sequence).

use core::fmt;

use crc::{CRC_32_ISO_HDLC, Crc, Table};

use crate::octets::put;
use crate::{DecodeError, EmitError};

/// The address of a station or of a group, in canonical order: the group bit is the lowest of the
/// first octet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// All stations.
    pub const BROADCAST: Self = Self([0xFF; 6]);

    /// Whether this names a group of stations, all of them included.
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }

    /// Whether this was given out locally.
    pub const fn is_local(self) -> bool {
        self.0[0] & 2 != 0
    }

    /// The octets with the bits of each the other way round: as FDDI, which sends the highest bit of
    /// an octet first, has them in its frames.
    #[must_use]
    pub fn bit_reversed(self) -> Self {
        Self(self.0.map(u8::reverse_bits))
    }
}

impl fmt::Display for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// The frame check sequence of these octets, as a number; it is sent lowest octet first.
pub fn frame_check(octets: &[u8]) -> u32 {
    FCS.checksum(octets)
}

/// Writes the frame check sequence of the octets before them into the last four of `frame`.
///
/// # Errors
/// [`EmitError`] if there are not four.
pub fn close(frame: &mut [u8]) -> Result<(), EmitError> {
    let Some(end) = frame.len().checked_sub(FCS_OCTETS) else {
        return EmitError::unless_size(FORMAT, "FCS", frame.len(), FCS_OCTETS);
    };
    let check = frame_check(&frame[..end]);
    put(frame, end, check.to_le_bytes());
    Ok(())
}

/// The octets before a frame check sequence that is right.
///
/// # Errors
/// [`Fault::Size`](crate::Fault::Size) below four octets, [`Fault::Checksum`](crate::Fault::Checksum)
/// if the last four are not the check of the others.
pub fn checked(frame: &[u8]) -> Result<&[u8], DecodeError> {
    let Some((octets, &found)) = frame.split_last_chunk::<FCS_OCTETS>() else {
        return Err(DecodeError::size(FORMAT, "FCS", frame.len(), "4 or more"));
    };
    let (found, computed) = (u32::from_le_bytes(found), frame_check(octets));
    if found != computed {
        return Err(DecodeError::checksum((FORMAT, "FCS"), octets.len(), found, computed));
    }
    Ok(octets)
}

/// Octets of the frame check sequence.
pub const FCS_OCTETS: usize = 4;

const FORMAT: &str = "frame";

/// Lowest bit first: not the CRC of AAL5, which has the same polynomial.
static FCS: Crc<u32, Table<16>> = Crc::<u32, Table<16>>::new(&CRC_32_ISO_HDLC);

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn an_address_prints_and_says_what_it_is() {
        let station = MacAddress([0x08, 0x00, 0x20, 0x01, 0x02, 0xFE]);
        assert_eq!(station.to_string(), "08:00:20:01:02:fe");
        assert!(!station.is_group() && !station.is_local());
        assert!(MacAddress::BROADCAST.is_group() && MacAddress([2, 0, 0, 0, 0, 1]).is_local());
        assert_eq!(station.bit_reversed(), MacAddress([0x10, 0x00, 0x04, 0x80, 0x40, 0x7F]));
    }

    #[test]
    fn the_check_is_that_of_the_catalogue_and_goes_lowest_octet_first() {
        assert_eq!(frame_check(b"123456789"), 0xCBF4_3926);
        let mut frame = *b"123456789....";
        close(&mut frame).expect("room for four octets");
        assert_eq!(frame[9..], [0x26, 0x39, 0xF4, 0xCB]);
        assert_eq!(checked(&frame), Ok(&b"123456789"[..]));
    }

    #[test]
    fn every_wrong_bit_of_a_frame_is_found() {
        let mut frame = *b"123456789....";
        close(&mut frame).expect("room for four octets");
        for bit in 0..frame.len() * 8 {
            let mut wrong = frame;
            wrong[bit / 8] ^= 1 << (bit % 8);
            let error = checked(&wrong).expect_err("a bit was turned");
            assert_eq!((error.field, error.offset.get()), ("FCS", 9));
        }
        let said = "frame, FCS at octet 9: checksum 0xcbf43927, but the octets it covers give 0xcbf43926";
        frame[9] ^= 1;
        assert_eq!(checked(&frame).expect_err("a wrong check").to_string(), said);
        assert_eq!(checked(&[0; 3]), Err(DecodeError::size("frame", "FCS", 3, "4 or more")));
        close(&mut [0; 3]).expect_err("no room for four octets");
    }
}
