//! The TCP segment: a header of 20 to 60 octets, then the payload.
//!
//! RFC 9293 §3.1 (RFC 793 §3.1 with the flags of RFC 3168). Options of the time are understood
//! ([`Known`]), all are carried. Left out: nothing of the format.
//!
//! | Field | Bits |
//! |---|---|
//! | Source Port, Destination Port | 16, 16 |
//! | Sequence Number, Acknowledgment Number | 32, 32 |
//! | Data Offset, reserved, CWR, ECE, URG, ACK, PSH, RST, SYN, FIN | 4, 4, 8 times 1 |
//! | Window, Checksum, Urgent Pointer | 16, 16, 16 |
//! | Options and padding | 0 to 320 |

use core::fmt;

use wiretwin_units::Seq;

use crate::checksum::Sum;
use crate::ipv4::{Ends, Protocol};
use crate::octets::{put, u16_at, u32_at};
use crate::{DecodeError, EmitError, Options};

mod options;

pub use options::{
    Known, MAX_SACK_BLOCKS, MAX_WINDOW_SCALE, MSS, SACK, SACK_PERMITTED, SackBlock, SackBlocks, TIMESTAMPS,
    Timestamps, WINDOW_SCALE,
};

/// A place in the stream of one direction.
pub type SeqNumber = Seq<32>;

/// The flags that say nothing about another field. ACK and URG stand with the fields they make valid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Flags {
    /// Congestion window reduced (RFC 3168).
    pub cwr: bool,
    /// Congestion experienced, echoed (RFC 3168).
    pub ece: bool,
    /// Push.
    pub psh: bool,
    /// Reset the connection.
    pub rst: bool,
    /// Synchronize sequence numbers: the connection begins.
    pub syn: bool,
    /// No more data from the sender.
    pub fin: bool,
}

impl Flags {
    /// None set.
    pub const NONE: Self = Self { cwr: false, ece: false, psh: false, rst: false, syn: false, fin: false };
    /// SYN alone.
    pub const SYN: Self = Self { syn: true, ..Self::NONE };
    /// FIN alone.
    pub const FIN: Self = Self { fin: true, ..Self::NONE };
    /// RST alone.
    pub const RST: Self = Self { rst: true, ..Self::NONE };
    /// PSH alone.
    pub const PSH: Self = Self { psh: true, ..Self::NONE };

    const fn of(bits: u8) -> Self {
        Self {
            cwr: bits & CWR != 0,
            ece: bits & ECE != 0,
            psh: bits & PSH != 0,
            rst: bits & RST != 0,
            syn: bits & SYN != 0,
            fin: bits & FIN != 0,
        }
    }

    const fn bits(self) -> u8 {
        let high = (self.cwr as u8) << 7 | (self.ece as u8) << 6 | (self.psh as u8) << 3;
        high | (self.rst as u8) << 2 | (self.syn as u8) << 1 | self.fin as u8
    }
}

/// The octets of one segment, and where its fields are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<T> {
    octets: T,
}

impl<T: AsRef<[u8]>> Segment<T> {
    /// Sees `octets`, the whole payload of a packet, as a segment.
    ///
    /// # Errors
    /// [`Fault::Size`](crate::Fault::Size) unless there are 20 to 65515;
    /// [`Fault::Value`](crate::Fault::Value) if the data offset lies inside the fixed header or
    /// behind the end. The checksum is not looked at.
    pub fn new_checked(octets: T) -> Result<Self, DecodeError> {
        let found = octets.as_ref();
        if found.len() < HEADER_OCTETS || found.len() > MAX_SEGMENT_OCTETS {
            return Err(DecodeError::size(FORMAT, "segment", found.len(), "20 to 65515"));
        }
        let words = found[OFFSET_AT] >> 4;
        let header = usize::from(words) * 4;
        if header < HEADER_OCTETS || header > found.len() {
            let allowed = "5 to a quarter of the octets there are";
            return Err(DecodeError::value((FORMAT, "Data Offset"), OFFSET_AT, words, allowed));
        }
        Ok(Self { octets })
    }

    /// Source port.
    pub fn source_port(&self) -> u16 {
        u16_at(self.octets.as_ref(), 0)
    }

    /// Destination port.
    pub fn destination_port(&self) -> u16 {
        u16_at(self.octets.as_ref(), 2)
    }

    /// Octets of the header, options included: 20..=60.
    pub fn header_octets(&self) -> usize {
        usize::from(self.octets.as_ref()[OFFSET_AT] >> 4) * 4
    }

    /// Checksum as it stands.
    pub fn checksum(&self) -> u16 {
        u16_at(self.octets.as_ref(), CHECKSUM_AT)
    }

    /// What the segment carries.
    pub fn payload(&self) -> &[u8] {
        &self.octets.as_ref()[self.header_octets()..]
    }

    /// The sum of pseudo header, header and payload.
    fn sum(&self, ends: &Ends) -> Sum {
        let octets = self.octets.as_ref();
        ends.pseudo_header(Protocol::TCP, octets.len() as u16).octets(octets)
    }
}

/// What a segment says besides its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
    /// SEG.SEQ: of the first octet of payload, or of SYN.
    pub seq: SeqNumber,
    /// SEG.ACK: the next octet expected, where ACK is set.
    pub ack: Option<SeqNumber>,
    /// The other flags.
    pub flags: Flags,
    /// SEG.WND as it is sent, not scaled.
    pub window: u16,
    /// SEG.UP, where URG is set.
    pub urgent: Option<u16>,
    /// All options, in their order.
    pub options: Options,
    /// Octets of payload, 0 to 65515 less the header.
    pub payload_length: u16,
}

impl Repr {
    /// Reads a header and checks the checksum.
    ///
    /// # Errors
    /// [`Fault::Checksum`](crate::Fault::Checksum) if the checksum fails; then
    /// [`Fault::Value`](crate::Fault::Value) if an option runs out of the header, or is known and has
    /// a length that is not its own.
    pub fn parse<T: AsRef<[u8]>>(segment: &Segment<T>, ends: &Ends) -> Result<Self, DecodeError> {
        let sum = segment.sum(ends);
        if !sum.holds() {
            let found = segment.checksum();
            let computed = sum.without(found).checksum();
            return Err(DecodeError::checksum((FORMAT, "Checksum"), CHECKSUM_AT, found, computed));
        }
        let octets = segment.octets.as_ref();
        let header = segment.header_octets();
        let options = Options::from_octets(&octets[HEADER_OCTETS..header]).expect("60 octets less 20 are 40");
        if !options.is_empty() {
            options.check(FORMAT, HEADER_OCTETS)?;
            Known::of(&options)?;
        }
        let flags = octets[FLAGS_AT];
        // Choice: RFC 9293 §3.1: the four reserved bits are sent as zeros and ignored; so are an
        // acknowledgment number without ACK and an urgent pointer without URG.
        let ack = (flags & ACK != 0).then(|| Seq::wrapping(u32_at(octets, 8)));
        let urgent = (flags & URG != 0).then(|| u16_at(octets, 18));
        Ok(Self {
            source_port: segment.source_port(),
            destination_port: segment.destination_port(),
            seq: Seq::wrapping(u32_at(octets, 4)),
            ack,
            flags: Flags::of(flags),
            window: u16_at(octets, 14),
            urgent,
            options,
            payload_length: (octets.len() - header) as u16,
        })
    }

    /// Writes the header. The payload must be in place: the checksum covers it.
    ///
    /// # Errors
    /// [`EmitError`] if header and payload are more than 65515 octets, or not as many as `octets`.
    /// Nothing is written then.
    pub fn emit(&self, ends: &Ends, octets: &mut [u8]) -> Result<(), EmitError> {
        let (header, total) = (self.header_octets(), self.total_octets());
        if total > MAX_SEGMENT_OCTETS {
            let allowed = "0 to 65515 octets less the header";
            return Err(EmitError::value(FORMAT, "payload", self.payload_length, allowed));
        }
        EmitError::unless_size(FORMAT, "header and payload", octets.len(), total)?;
        put(octets, 0, self.source_port.to_be_bytes());
        put(octets, 2, self.destination_port.to_be_bytes());
        put(octets, 4, self.seq.get().to_be_bytes());
        put(octets, 8, self.ack.map_or(0, Seq::get).to_be_bytes());
        octets[OFFSET_AT] = (header / 4) as u8 * 0x10;
        let ack = if self.ack.is_some() { ACK } else { 0 };
        let urgent = if self.urgent.is_some() { URG } else { 0 };
        octets[FLAGS_AT] = self.flags.bits() | ack | urgent;
        put(octets, 14, self.window.to_be_bytes());
        put(octets, CHECKSUM_AT, [0, 0]);
        put(octets, 18, self.urgent.unwrap_or(0).to_be_bytes());
        octets[HEADER_OCTETS..header].copy_from_slice(self.options.octets());
        let sum = ends.pseudo_header(Protocol::TCP, total as u16).octets(octets);
        put(octets, CHECKSUM_AT, sum.checksum().to_be_bytes());
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

    /// SEG.LEN: octets of sequence space that the segment takes, SYN and FIN counted.
    pub const fn seq_length(&self) -> u32 {
        self.payload_length as u32 + self.flags.syn as u32 + self.flags.fin as u32
    }
}

impl fmt::Display for Repr {
    /// One line, in the words of `tcpdump`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Flags { cwr, ece, psh, rst, syn, fin } = self.flags;
        write!(f, "{} > {} [", self.source_port, self.destination_port)?;
        let letters = [(syn, "S"), (fin, "F"), (rst, "R"), (psh, "P"), (ece, "E"), (cwr, "W")];
        letters.iter().filter(|(set, _)| *set).try_for_each(|(_, letter)| f.write_str(letter))?;
        if self.ack.is_some() {
            f.write_str(".")?;
        }
        write!(f, "] seq {}", self.seq)?;
        if let Some(ack) = self.ack {
            write!(f, " ack {ack}")?;
        }
        write!(f, " win {} length {}", self.window, self.payload_length)
    }
}

/// Octets of a header without options.
pub const HEADER_OCTETS: usize = 20;
/// Octets of the longest segment: 65535 less an IPv4 header without options.
pub const MAX_SEGMENT_OCTETS: usize = 65_515;

const FORMAT: &str = "TCP segment";
const OFFSET_AT: usize = 12;
const FLAGS_AT: usize = 13;
const CHECKSUM_AT: usize = 16;

const CWR: u8 = 0x80;
const ECE: u8 = 0x40;
const URG: u8 = 0x20;
const ACK: u8 = 0x10;
const PSH: u8 = 0x08;
const RST: u8 = 0x04;
const SYN: u8 = 0x02;
const FIN: u8 = 0x01;

/// Reads arbitrary octets as a segment and, if they are one, writes what was read and compares.
///
/// The fuzz target and the property test below are this function. `scratch` is at least as long as
/// `octets`.
///
/// # Panics
/// If a segment that was read is not written back with the same fields and payload, or not octet for
/// octet though all that is ignored was zero: a bug here.
#[doc(hidden)]
pub fn round_trip(ends: &Ends, octets: &[u8], scratch: &mut [u8]) {
    let Ok(segment) = Segment::new_checked(octets) else { return };
    let Ok(repr) = Repr::parse(&segment, ends) else { return };
    let written = &mut scratch[..octets.len()];
    written[repr.header_octets()..].copy_from_slice(segment.payload());
    repr.emit(ends, written).expect("as many octets as the segment that was read");
    let copy = Segment::new_checked(&*written).expect("what was written is a segment");
    assert_eq!(Repr::parse(&copy, ends), Ok(repr), "what was written reads the same");
    assert_eq!(copy.payload(), segment.payload(), "the payload is untouched");
    let ignored = (octets[OFFSET_AT] & 0x0F != 0)
        || (repr.ack.is_none() && u32_at(octets, 8) != 0)
        || (repr.urgent.is_none() && u16_at(octets, 18) != 0);
    if !ignored && segment.checksum() != u16::MAX {
        assert_eq!(written, octets, "written back octet for octet");
    }
    let known = Known::of(&repr.options).expect("checked when it was read");
    if let Ok(list) = known.list() {
        assert_eq!(Known::of(&list), Ok(known), "the known options make a list that reads the same");
    }
}

#[cfg(test)]
mod tests;
