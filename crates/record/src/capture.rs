//! Captures of packets, in the two formats that other tools read: [`pcap`] and [`pcapng`].
//!
//! Both are read in either order of octets and written in either; what was read can be written back
//! octet for octet. Readers take any octets: a length is believed only as far as its bound and as far
//! as there are octets, and an error says where in the file it is.

use std::fmt;
use std::io::{self, Read};

use wiretwin_units::SimTime;

pub mod erf;
mod input;
pub mod pcap;
pub mod pcapng;
pub mod sunatm;

use input::Input;

/// What the octets of a packet begin with. Any number is carried; the names are those used here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkType(pub u16);

impl LinkType {
    /// Ethernet: the destination address. Without FCS, unless the file says so.
    pub const ETHERNET: Self = Self(1);
    /// FDDI: the frame control, addresses with the highest bit first. Without FCS.
    pub const FDDI: Self = Self(10);
    /// The LLC header of RFC 1483, with nothing about the channel.
    pub const ATM_RFC1483: Self = Self(11);
    /// The header of an IPv4 or IPv6 packet.
    pub const RAW_IP: Self = Self(101);
    /// ATM: the four octets of [`sunatm`], then an AAL5 SDU.
    pub const SUNATM: Self = Self(123);
    /// Extensible record format: cells, AAL5 PDUs and others with a header of 16 octets.
    pub const ERF: Self = Self(197);
}

/// The order of octets in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ByteOrder {
    /// Lowest first: what these tools write on today's machines.
    #[default]
    Little,
    /// Highest first.
    Big,
}

impl ByteOrder {
    fn u16(self, octets: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(octets),
            Self::Big => u16::from_be_bytes(octets),
        }
    }

    fn u32(self, octets: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(octets),
            Self::Big => u32::from_be_bytes(octets),
        }
    }

    fn put16(self, to: &mut Vec<u8>, number: u16) {
        to.extend(match self {
            Self::Little => number.to_le_bytes(),
            Self::Big => number.to_be_bytes(),
        });
    }

    fn put32(self, to: &mut Vec<u8>, number: u32) {
        to.extend(match self {
            Self::Little => number.to_le_bytes(),
            Self::Big => number.to_be_bytes(),
        });
    }
}

/// When a packet was seen: time since 1970, or since the start of a simulated run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timestamp {
    /// Whole seconds.
    pub seconds: u64,
    /// What is over, ps, below 10^12.
    pub picoseconds: u64,
}

impl From<SimTime> for Timestamp {
    fn from(time: SimTime) -> Self {
        let picoseconds = time.as_ps();
        Self { seconds: picoseconds / PS_PER_S, picoseconds: picoseconds % PS_PER_S }
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:012} s", self.seconds, self.picoseconds)
    }
}

/// Octets that are no capture, or a file that cannot be read or written.
#[derive(Debug)]
pub struct CaptureError {
    /// `pcap` or `pcapng`.
    pub format: &'static str,
    /// The field, in the words of the format.
    pub field: &'static str,
    /// Where it stands, octets from the start of the file.
    pub offset: u64,
    /// What is wrong.
    pub fault: CaptureFault,
}

/// What is wrong with a capture.
#[derive(Debug)]
pub enum CaptureFault {
    /// A value that the field may not have.
    Value {
        /// The value.
        found: u64,
        /// What it may be.
        allowed: &'static str,
    },
    /// The file ends inside the field.
    Truncated {
        /// Octets that there are.
        found: u64,
        /// Octets that the field has.
        needed: u64,
    },
    /// The system does not read or write.
    Io(io::Error),
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { format, field, offset, fault } = self;
        write!(f, "{format}, {field} at octet {offset}: ")?;
        match fault {
            CaptureFault::Value { found, allowed } => write!(f, "{found}, allowed is {allowed}"),
            CaptureFault::Truncated { found, needed } => {
                write!(f, "{found} octets of {needed}, then the file ends")
            }
            CaptureFault::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CaptureError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.fault {
            CaptureFault::Io(error) => Some(error),
            _ => None,
        }
    }
}

/// What `read` yields up to its end, or its error.
///
/// # Errors
/// Those of `next`.
fn drain<T>(mut next: impl FnMut() -> Result<Option<T>, CaptureError>) -> Result<Vec<T>, CaptureError> {
    let mut all = Vec::new();
    while let Some(one) = next()? {
        all.push(one);
    }
    Ok(all)
}

/// The most octets of one packet, as in other tools.
pub const MAX_PACKET_OCTETS: u32 = 262_144;

const PS_PER_S: u64 = 1_000_000_000_000;

/// Opens the capture in `input`, whichever of the two formats it is in.
///
/// # Errors
/// [`CaptureError`] where the first four octets are those of neither, and those of the formats.
pub fn open<R: Read>(mut input: R) -> Result<Capture<Whole<R>>, CaptureError> {
    let mut first = [0; 4];
    let mut probe = Input::new("capture", &mut input);
    probe.exact("magic number", &mut first)?;
    let whole = io::Cursor::new(first).chain(input);
    Ok(match first {
        pcapng::SECTION_OCTETS => Capture::Pcapng(pcapng::Reader::new(whole)),
        _ => Capture::Pcap(pcap::Reader::new(whole)?),
    })
}

/// The octets that told the format, then the others.
pub type Whole<R> = io::Chain<io::Cursor<[u8; 4]>, R>;

/// A capture in one of the two formats.
#[derive(Debug)]
pub enum Capture<R> {
    /// The older one: one link type, one resolution.
    Pcap(pcap::Reader<R>),
    /// The newer one: blocks, interfaces, options.
    Pcapng(pcapng::Reader<R>),
}

/// A packet of a capture, from whichever format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// When it was seen; `None` where the format has no place for it.
    pub timestamp: Option<Timestamp>,
    /// What its octets begin with.
    pub link: LinkType,
    /// Octets that it had.
    pub original_length: u32,
    /// Octets that were kept.
    pub octets: Vec<u8>,
}

impl<R: Read> Capture<R> {
    /// The next packet, or `None` at the end. Blocks that are no packets are passed over.
    ///
    /// # Errors
    /// [`CaptureError`] with its place.
    pub fn next_packet(&mut self) -> Result<Option<Packet>, CaptureError> {
        match self {
            Self::Pcap(reader) => {
                let link = reader.header().link;
                let resolution = reader.header().resolution;
                Ok(reader.next_record()?.map(|record| Packet {
                    timestamp: Some(record.timestamp(resolution)),
                    link,
                    original_length: record.original_length,
                    octets: record.octets,
                }))
            }
            Self::Pcapng(reader) => reader.next_packet(),
        }
    }
}
