//! FDDI: frames, tokens, and the indicators that follow a frame round the ring.
//!
//! ANSI X3.139-1987 §7.3 (formats), RFC 1390 (IP). Octets here begin at the frame control; preamble
//! and delimiters are symbols of the ring. Left out: 16-bit addresses, which are rejected.
//!
//! | Field | Octets | Rule |
//! |---|---|---|
//! | FC | 1 | class, address length, format, control |
//! | DA, SA | 6, 6 | highest bit of an octet first: not the order of Ethernet |
//! | INFO | 0..=4478 | with LLC, a header of [`crate::llc`] first |
//! | FCS | 4 | over all before it |

use crate::mac::{self, FCS_OCTETS, MacAddress};
use crate::octets::{array_at, put};
use crate::{DecodeError, EmitError};

/// Frame control, of frames with 48-bit addresses and of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameControl {
    /// A token; restricted, only stations in a dialogue may send asynchronous frames.
    Token {
        /// Restricted.
        restricted: bool,
    },
    /// Nothing: ignored by who receives it.
    Void,
    /// Station management, information.
    Smt,
    /// Station management, to the next station.
    SmtNextStation,
    /// MAC: a station is left without a ring.
    Beacon,
    /// MAC: the stations agree on the rotation time.
    Claim,
    /// LLC, asynchronous.
    LlcAsynchronous {
        /// 0 to 7, 7 first.
        priority: u8,
    },
    /// LLC, synchronous.
    LlcSynchronous,
    /// Any other with 48-bit addresses: for the implementer, or kept for the future.
    Other(u8),
}

impl FrameControl {
    /// What the octet says; `None` with 16-bit addresses.
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            0x80 => Self::Token { restricted: false },
            0xC0 => Self::Token { restricted: true },
            0x40 => Self::Void,
            0x41 => Self::Smt,
            0x4F => Self::SmtNextStation,
            0xC2 => Self::Beacon,
            0xC3 => Self::Claim,
            0x50..=0x57 => Self::LlcAsynchronous { priority: code & 7 },
            0xD0 => Self::LlcSynchronous,
            other if other & LONG_ADDRESSES != 0 => Self::Other(other),
            _ => return None,
        })
    }

    /// The octet.
    pub const fn code(self) -> u8 {
        match self {
            Self::Token { restricted: false } => 0x80,
            Self::Token { restricted: true } => 0xC0,
            Self::Void => 0x40,
            Self::Smt => 0x41,
            Self::SmtNextStation => 0x4F,
            Self::Beacon => 0xC2,
            Self::Claim => 0xC3,
            Self::LlcAsynchronous { priority } => 0x50 | priority,
            Self::LlcSynchronous => 0xD0,
            Self::Other(code) => code,
        }
    }

    /// Whether this is a token: nothing follows the octet.
    pub const fn is_token(self) -> bool {
        matches!(self, Self::Token { .. })
    }
}

/// The symbols behind a frame: E, A and C, each set or reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// E: a station found an error first.
    pub error: bool,
    /// A: the station that it is for saw its address.
    pub recognized: bool,
    /// C: and copied the frame.
    pub copied: bool,
}

impl Status {
    /// The ending delimiter and the three indicators, as 5-bit code groups.
    pub const fn symbols(self) -> [u8; 4] {
        const fn symbol(set: bool) -> u8 {
            if set { SYMBOL_S } else { SYMBOL_R }
        }
        [SYMBOL_T, symbol(self.error), symbol(self.recognized), symbol(self.copied)]
    }

    /// Reads the four code groups that end a frame.
    ///
    /// # Errors
    /// [`Fault::Value`](crate::Fault::Value) for a first that is not T, or another that is neither R
    /// nor S; the offset counts symbols.
    pub fn from_symbols(symbols: [u8; 4]) -> Result<Self, DecodeError> {
        if symbols[0] != SYMBOL_T {
            return Err(DecodeError::value((FORMAT, "ED"), 0, symbols[0], "13, the symbol T"));
        }
        let indicator = |at: usize, field| match symbols[at] {
            SYMBOL_R => Ok(false),
            SYMBOL_S => Ok(true),
            other => Err(DecodeError::value((FORMAT, field), at, other, "7 or 25, the symbols R and S")),
        };
        Ok(Self { error: indicator(1, "E")?, recognized: indicator(2, "A")?, copied: indicator(3, "C")? })
    }
}

/// The octets of one frame without its FCS, and where its fields are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<T> {
    octets: T,
}

impl<T: AsRef<[u8]>> Frame<T> {
    /// Sees `octets` as a frame without FCS, or as a token.
    ///
    /// # Errors
    /// [`Fault::Value`](crate::Fault::Value) for frame control with 16-bit addresses;
    /// [`Fault::Size`](crate::Fault::Size) for a token of more than one octet, or a frame of fewer
    /// than 13 or more than 4491.
    pub fn new_checked(octets: T) -> Result<Self, DecodeError> {
        let found = octets.as_ref();
        let Some(&code) = found.first() else {
            return Err(DecodeError::size(FORMAT, "FC", 0, "1 for a token, 13 to 4491 for a frame"));
        };
        let (field, right) = match FrameControl::from_code(code) {
            None => {
                let allowed = "a token, or one with 48-bit addresses";
                return Err(DecodeError::value((FORMAT, "FC"), 0, code, allowed));
            }
            Some(control) if control.is_token() => ("token", found.len() == 1),
            Some(_) => ("frame", (HEADER_OCTETS..=HEADER_OCTETS + MAX_INFO_OCTETS).contains(&found.len())),
        };
        if !right {
            let allowed = "1 for a token, 13 to 4491 for a frame";
            return Err(DecodeError::size(FORMAT, field, found.len(), allowed));
        }
        Ok(Self { octets })
    }

    /// What the frame is.
    pub fn control(&self) -> FrameControl {
        FrameControl::from_code(self.octets.as_ref()[0]).expect("looked at when the view was made")
    }

    /// What the frame carries; nothing in a token.
    pub fn info(&self) -> &[u8] {
        self.octets.as_ref().get(HEADER_OCTETS..).unwrap_or(&[])
    }
}

impl<'a> Frame<&'a [u8]> {
    /// Sees `octets` as a frame that comes from the ring, FCS behind it.
    ///
    /// # Errors
    /// [`Fault::Checksum`](crate::Fault::Checksum) if the FCS fails; then those of
    /// [`Frame::new_checked`]. A token has no FCS and is not received this way.
    pub fn received(octets: &'a [u8]) -> Result<Self, DecodeError> {
        let inside = mac::checked(octets)?;
        if inside.len() < HEADER_OCTETS {
            return Err(DecodeError::size(FORMAT, "frame with FCS", octets.len(), "17 to 4495"));
        }
        Self::new_checked(inside)
    }
}

/// What a frame says besides what it carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repr {
    /// A token.
    Token {
        /// Only stations in a dialogue may send asynchronous frames.
        restricted: bool,
    },
    /// A frame.
    Frame {
        /// What it is; not a token.
        control: FrameControl,
        /// Where it goes, in canonical order.
        destination: MacAddress,
        /// Where it comes from, in canonical order.
        source: MacAddress,
    },
}

impl Repr {
    /// Reads a header.
    pub fn parse<T: AsRef<[u8]>>(frame: &Frame<T>) -> Self {
        let octets = frame.octets.as_ref();
        match frame.control() {
            FrameControl::Token { restricted } => Self::Token { restricted },
            control => Self::Frame {
                control,
                destination: MacAddress(array_at(octets, 1)).bit_reversed(),
                source: MacAddress(array_at(octets, 7)).bit_reversed(),
            },
        }
    }

    /// Writes the header in front of what the frame carries. `octets` are the frame's, without FCS.
    ///
    /// # Errors
    /// [`EmitError`] for a size that neither token nor frame has, and for a frame control that is a
    /// token's, has 16-bit addresses, a priority above 7, or a name of its own. Nothing is written
    /// then.
    pub fn emit(&self, octets: &mut [u8]) -> Result<(), EmitError> {
        match *self {
            Self::Token { restricted } => {
                EmitError::unless_size(FORMAT, "token", octets.len(), 1)?;
                octets[0] = FrameControl::Token { restricted }.code();
            }
            Self::Frame { control, destination, source } => {
                if control.is_token() || FrameControl::from_code(control.code()) != Some(control) {
                    let allowed = "that of a frame with 48-bit addresses, by its name";
                    return Err(EmitError::value(FORMAT, "FC", control.code(), allowed));
                }
                if octets.len() < HEADER_OCTETS {
                    return EmitError::unless_size(FORMAT, "header", octets.len(), HEADER_OCTETS);
                }
                if octets.len() > HEADER_OCTETS + MAX_INFO_OCTETS {
                    let found = (octets.len() - HEADER_OCTETS) as u64;
                    return Err(EmitError::value(FORMAT, "INFO", found, "0 to 4478 octets"));
                }
                octets[0] = control.code();
                put(octets, 1, destination.bit_reversed().0);
                put(octets, 7, source.bit_reversed().0);
            }
        }
        Ok(())
    }
}

/// Octets before what a frame carries.
pub const HEADER_OCTETS: usize = 13;
/// The most that a frame carries: 9000 symbols less preamble, delimiters, indicators and the rest.
pub const MAX_INFO_OCTETS: usize = 4500 - 5 - HEADER_OCTETS - FCS_OCTETS;
/// The symbol T, ending delimiter, as a code group.
pub const SYMBOL_T: u8 = 0b01101;
/// The symbol R, reset.
pub const SYMBOL_R: u8 = 0b00111;
/// The symbol S, set.
pub const SYMBOL_S: u8 = 0b11001;

const FORMAT: &str = "FDDI frame";
const LONG_ADDRESSES: u8 = 0x40;

/// Reads arbitrary octets as a frame and, if they are one, writes what was read and compares.
///
/// The fuzz target and the property test below are this function. `scratch` is at least as long as
/// `octets`.
///
/// # Panics
/// If a frame that was read is not written back octet for octet: a bug here.
#[doc(hidden)]
pub fn round_trip(octets: &[u8], scratch: &mut [u8]) {
    let Ok(frame) = Frame::new_checked(octets) else { return };
    let repr = Repr::parse(&frame);
    let written = &mut scratch[..octets.len()];
    let header = written.len() - frame.info().len();
    written[header..].copy_from_slice(frame.info());
    repr.emit(written).expect("as many octets as the frame that was read");
    assert_eq!(written, octets, "written back octet for octet");
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    fn repr() -> Repr {
        let control = FrameControl::LlcAsynchronous { priority: 3 };
        let (destination, source) =
            (MacAddress([0x08, 0, 0x20, 1, 2, 3]), MacAddress([0x08, 0, 0x2B, 4, 5, 6]));
        Repr::Frame { control, destination, source }
    }

    fn emitted(info: &[u8]) -> Vec<u8> {
        let mut octets = vec![0xEE; HEADER_OCTETS];
        octets.extend(info);
        repr().emit(&mut octets).expect("a frame");
        octets
    }

    #[test]
    fn a_frame_has_the_bits_of_its_addresses_the_other_way_round() {
        let octets = emitted(b"abc");
        assert_eq!(octets, *b"\x53\x10\x00\x04\x80\x40\xc0\x10\x00\xd4\x20\xa0\x60abc");
        let frame = Frame::new_checked(&octets[..]).expect("a frame");
        assert_eq!((Repr::parse(&frame), frame.info()), (repr(), &b"abc"[..]));
    }

    #[test]
    fn a_token_is_one_octet() {
        for (restricted, octet) in [(false, 0x80), (true, 0xC0)] {
            let mut octets = [0xEE];
            Repr::Token { restricted }.emit(&mut octets).expect("a token");
            assert_eq!(octets, [octet]);
            let frame = Frame::new_checked(octets).expect("a token");
            assert_eq!((Repr::parse(&frame), frame.info()), (Repr::Token { restricted }, &[][..]));
        }
        Repr::Token { restricted: false }.emit(&mut [0; 2]).expect_err("two octets");
    }

    #[test]
    fn every_frame_control_with_long_addresses_has_its_code() {
        for code in 0..=u8::MAX {
            match FrameControl::from_code(code) {
                Some(control) => assert_eq!(control.code(), code),
                None => assert!(code & LONG_ADDRESSES == 0 && code != 0x80),
            }
        }
    }

    #[test]
    fn indicators_are_symbols() {
        let status = Status { error: false, recognized: true, copied: true };
        assert_eq!(status.symbols(), [0b01101, 0b00111, 0b11001, 0b11001]);
        assert_eq!(Status::from_symbols(status.symbols()), Ok(status));
        for (at, field) in ["ED", "E", "A", "C"].into_iter().enumerate() {
            let mut wrong = status.symbols();
            wrong[at] = 0b11111;
            let error = Status::from_symbols(wrong).expect_err(field);
            assert_eq!((error.field, error.offset.get()), (field, at as u64));
        }
    }

    #[test]
    fn a_frame_from_the_ring_must_have_its_check() {
        let mut octets = emitted(b"abc");
        octets.extend([0; 4]);
        mac::close(&mut octets).expect("room");
        assert_eq!(Frame::received(&octets).map(|frame| Repr::parse(&frame)), Ok(repr()));
        octets[3] ^= 1;
        assert_eq!(Frame::received(&octets).expect_err("a turned bit").field, "FCS");
        let mut token = [0x80, 0, 0, 0, 0];
        mac::close(&mut token).expect("room");
        assert_eq!(Frame::received(&token).expect_err("a token has no FCS").field, "frame with FCS");
    }

    #[test]
    fn every_wrong_field_is_named_with_its_place() {
        let cases: [(&[u8], &str); 5] = [
            (&[], "FDDI frame, FC at octet 0: 0 octets, allowed are 1 for a token, 13 to 4491 for a frame"),
            (&[0x10; 20], "FDDI frame, FC at octet 0: 16, allowed is a token, or one with 48-bit addresses"),
            (
                &[0x80; 2],
                "FDDI frame, token at octet 0: 2 octets, allowed are 1 for a token, 13 to 4491 for a frame",
            ),
            (
                &[0x50; 12],
                "FDDI frame, frame at octet 0: 12 octets, allowed are 1 for a token, 13 to 4491 for a frame",
            ),
            (
                &[0x50; 4492],
                "FDDI frame, frame at octet 0: 4492 octets, allowed are 1 for a token, 13 to 4491 for a frame",
            ),
        ];
        for (octets, said) in cases {
            assert_eq!(Frame::new_checked(octets).expect_err(said).to_string(), said);
        }
    }

    #[test]
    fn a_frame_that_does_not_fit_is_not_written() {
        let MacAddress(group) = MacAddress::BROADCAST;
        let frame =
            |control| Repr::Frame { control, destination: MacAddress(group), source: MacAddress(group) };
        let mut octets = vec![0xEE; 4492];
        assert_eq!(frame(FrameControl::Void).emit(&mut octets).expect_err("too long").field, "INFO");
        assert_eq!(frame(FrameControl::Void).emit(&mut octets[..12]).expect_err("too short").field, "header");
        for control in [
            FrameControl::Token { restricted: false },
            FrameControl::LlcAsynchronous { priority: 8 },
            FrameControl::Other(0x51),
            FrameControl::Other(0x01),
        ] {
            assert_eq!(frame(control).emit(&mut octets[..20]).expect_err("no such frame").field, "FC");
        }
        assert_eq!(octets, vec![0xEE; 4492]);
    }

    proptest! {
        #[test]
        fn arbitrary_octets_round_trip(octets in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut scratch = vec![0; octets.len()];
            round_trip(&octets, &mut scratch);
        }
    }
}
