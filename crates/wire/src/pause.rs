//! MAC control: the PAUSE frame.
//!
//! IEEE 802.3-1998 clause 31 and annex 31B (802.3x). The data of an Ethernet frame of type 0x8808.
//! Left out: other control operations, which are rejected.
//!
//! | Field | Octets | Rule |
//! |---|---|---|
//! | Opcode | 2 | 0x0001 |
//! | pause_time | 2 | in times of 512 bits; 0 lets the other side go on |
//! | reserved | 42 | zeros |

use crate::ethernet::{self, EtherType, Kind};
use crate::mac::MacAddress;
use crate::octets::{put, u16_at};
use crate::{DecodeError, EmitError};

/// What a PAUSE frame asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// How long to send no data, in quanta of 512 bit times. 0: not any longer.
    pub quanta: u16,
}

impl Repr {
    /// Reads the data of a frame of type 0x8808. What is reserved is not looked at.
    ///
    /// # Errors
    /// [`Fault::Size`](crate::Fault::Size) below 46 octets; [`Fault::Value`](crate::Fault::Value) if
    /// the operation is not PAUSE.
    pub fn parse(data: &[u8]) -> Result<Self, DecodeError> {
        if data.len() < DATA_OCTETS {
            return Err(DecodeError::size(FORMAT, "data", data.len(), "46 or more"));
        }
        let opcode = u16_at(data, 0);
        if opcode != OPCODE {
            return Err(DecodeError::value((FORMAT, "Opcode"), 0, opcode, "1"));
        }
        Ok(Self { quanta: u16_at(data, 2) })
    }

    /// Writes the data of the frame.
    ///
    /// # Errors
    /// [`EmitError`] unless there are 46 octets. Nothing is written then.
    pub fn emit(&self, data: &mut [u8]) -> Result<(), EmitError> {
        EmitError::unless_size(FORMAT, "data", data.len(), DATA_OCTETS)?;
        data.fill(0);
        put(data, 0, OPCODE.to_be_bytes());
        put(data, 2, self.quanta.to_be_bytes());
        Ok(())
    }

    /// The whole frame, without FCS, to the group address that no bridge forwards.
    pub fn frame(&self, source: MacAddress) -> [u8; ethernet::HEADER_OCTETS + DATA_OCTETS] {
        let mut octets = [0; ethernet::HEADER_OCTETS + DATA_OCTETS];
        self.emit(&mut octets[ethernet::HEADER_OCTETS..]).expect("46 octets of data");
        let kind = Kind::Type(EtherType::MAC_CONTROL);
        let header = ethernet::Repr { destination: DESTINATION, source, kind };
        header.emit(&mut octets).expect("room for a header, and a type");
        octets
    }
}

/// Where a PAUSE frame goes, besides to the address of the station itself.
pub const DESTINATION: MacAddress = MacAddress([0x01, 0x80, 0xC2, 0x00, 0x00, 0x01]);
/// Bit times of one quantum.
pub const QUANTUM_BITS: u64 = 512;
/// Octets of the data: the least that a frame has.
pub const DATA_OCTETS: usize = 46;

const FORMAT: &str = "PAUSE frame";
const OPCODE: u16 = 1;

/// Reads arbitrary octets as the data of a PAUSE frame and, if they are, writes what was read and
/// compares. The fuzz target is this function.
///
/// # Panics
/// If what was read is not written back: a bug here.
#[doc(hidden)]
pub fn round_trip(octets: &[u8]) {
    let Ok(repr) = Repr::parse(octets) else { return };
    let mut written = [0xEE; DATA_OCTETS];
    repr.emit(&mut written).expect("46 octets");
    assert_eq!(Repr::parse(&written), Ok(repr), "what was written reads the same");
    assert_eq!(written[..4], octets[..4], "written back octet for octet");
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn a_pause_frame_is_written_and_read() {
        let octets = Repr { quanta: 0xFFFF }.frame(MacAddress([2, 0, 0, 0, 0, 9]));
        let head = [1, 0x80, 0xC2, 0, 0, 1, 2, 0, 0, 0, 0, 9, 0x88, 0x08, 0, 1, 0xFF, 0xFF, 0];
        assert_eq!((&octets[..19], octets.len()), (&head[..], 60));
        let frame = ethernet::Frame::new_checked(&octets[..]).expect("a frame");
        assert_eq!(Repr::parse(frame.payload()), Ok(Repr { quanta: 0xFFFF }));
        round_trip(frame.payload());
    }

    #[test]
    fn every_wrong_field_is_named_with_its_place() {
        let mut data = [0; DATA_OCTETS];
        let error = Repr::parse(&data).expect_err("operation 0");
        assert_eq!(error.to_string(), "PAUSE frame, Opcode at octet 0: 0, allowed is 1");
        let error = Repr::parse(&data[1..]).expect_err("45 octets");
        assert_eq!(error.to_string(), "PAUSE frame, data at octet 0: 45 octets, allowed are 46 or more");
        let error = Repr { quanta: 1 }.emit(&mut data[1..]).expect_err("45 octets");
        assert_eq!(error.to_string(), "PAUSE frame, data: 45 octets to write to, but it takes 46");
        assert_eq!(data, [0; DATA_OCTETS]);
    }
}
