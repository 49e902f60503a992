//! The older format: a header of 24 octets, then records of one link type.
//!
//! draft-ietf-opsawg-pcap, version 2.4. Microseconds and nanoseconds, both orders of octets. Left out:
//! versions before 2.4, whose lengths stand in another order, and the variants with other magic
//! numbers; they are rejected.

use std::io::{Read, Write};

use super::input::Input;
use super::{ByteOrder, CaptureError, CaptureFault, LinkType, MAX_PACKET_OCTETS, PS_PER_S, Timestamp, drain};

/// What a tick of the timestamps is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resolution {
    /// A microsecond.
    Microsecond,
    /// A nanosecond.
    #[default]
    Nanosecond,
}

impl Resolution {
    const fn ticks_per_s(self) -> u32 {
        match self {
            Self::Microsecond => 1_000_000,
            Self::Nanosecond => 1_000_000_000,
        }
    }
}

/// What the file says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Order of octets in the file's own numbers.
    pub order: ByteOrder,
    /// Resolution of the timestamps.
    pub resolution: Resolution,
    /// Two fields that are zero in every file of today, carried.
    pub reserved: [u32; 2],
    /// The most that was kept of a packet, octets.
    pub snap_length: u32,
    /// What each packet begins with.
    pub link: LinkType,
    /// Octets of frame check sequence behind each packet, 0..=30 and even, where the file says so.
    pub fcs_octets: Option<u8>,
}

impl Header {
    /// What is written here by default: nanoseconds, lowest octet first.
    pub const fn new(link: LinkType) -> Self {
        Self {
            order: ByteOrder::Little,
            resolution: Resolution::Nanosecond,
            reserved: [0; 2],
            snap_length: MAX_PACKET_OCTETS,
            link,
            fcs_octets: None,
        }
    }
}

/// A packet as it stands in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Seconds.
    pub seconds: u32,
    /// Ticks of the file's resolution, less than a second.
    pub ticks: u32,
    /// Octets that the packet had, as many as were kept or more.
    pub original_length: u32,
    /// Octets that were kept.
    pub octets: Vec<u8>,
}

impl Record {
    /// The time of the record in a file of this resolution.
    pub const fn timestamp(&self, resolution: Resolution) -> Timestamp {
        let tick_ps = PS_PER_S / resolution.ticks_per_s() as u64;
        Timestamp { seconds: self.seconds as u64, picoseconds: self.ticks as u64 * tick_ps }
    }
}

/// Reads a file record by record.
#[derive(Debug)]
pub struct Reader<R> {
    input: Input<R>,
    header: Header,
}

impl<R: Read> Reader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// [`CaptureError`] for another magic number or version, or where the file ends before.
    pub fn new(source: R) -> Result<Self, CaptureError> {
        let mut input = Input::new(FORMAT, source);
        let mut octets = [0; HEADER_OCTETS];
        input.exact("magic number", &mut octets[..4])?;
        let magic = u32::from_le_bytes([octets[0], octets[1], octets[2], octets[3]]);
        let (order, resolution) = match magic {
            MICROSECONDS => (ByteOrder::Little, Resolution::Microsecond),
            NANOSECONDS => (ByteOrder::Little, Resolution::Nanosecond),
            other if other.swap_bytes() == MICROSECONDS => (ByteOrder::Big, Resolution::Microsecond),
            other if other.swap_bytes() == NANOSECONDS => (ByteOrder::Big, Resolution::Nanosecond),
            other => {
                let allowed = "0xa1b2c3d4 or 0xa1b23c4d in either order of octets";
                return Err(input.value("magic number", 4, other.into(), allowed));
            }
        };
        input.exact("header", &mut octets[4..])?;
        let words = octets.as_chunks::<4>().0;
        let versions = [4, 6].map(|at| order.u16([octets[at], octets[at + 1]]));
        let (version, back) = (u64::from(versions[0]) << 16 | u64::from(versions[1]), HEADER_OCTETS as u64);
        if versions != VERSION {
            let allowed = "131076, that is 2.4";
            return Err(input.value("version", back - 4, version, allowed));
        }
        let link = order.u32(words[5]);
        // The four highest bits count 16-bit words of FCS, if the bit behind an unused one is set.
        let fcs_octets = (link & FCS_TOLD != 0).then_some((link >> 28) as u8 * 2);
        if link & 0x0BFF_0000 != 0 || (fcs_octets.is_none() && link >> 16 != 0) {
            let allowed = "0 to 65535, and with them octets of FCS";
            return Err(input.value("link type", 4, link.into(), allowed));
        }
        let header = Header {
            order,
            resolution,
            reserved: [order.u32(words[2]), order.u32(words[3])],
            snap_length: order.u32(words[4]),
            link: LinkType(link as u16),
            fcs_octets,
        };
        Ok(Self { input, header })
    }

    /// What the file says of itself.
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// The next packet, or `None` at the end.
    ///
    /// # Errors
    /// [`CaptureError`] where the file ends inside a record, for ticks of a second or more, for more
    /// octets than 262144, or than the packet had.
    pub fn next_record(&mut self) -> Result<Option<Record>, CaptureError> {
        let mut octets = [0; RECORD_OCTETS];
        if !self.input.exact_or_end("record", &mut octets)? {
            return Ok(None);
        }
        let [seconds, ticks, kept, original_length] = [0, 4, 8, 12]
            .map(|at| self.header.order.u32([octets[at], octets[at + 1], octets[at + 2], octets[at + 3]]));
        if ticks >= self.header.resolution.ticks_per_s() {
            let allowed = "less than a second";
            return Err(self.input.value("timestamp", 12, ticks.into(), allowed));
        }
        if kept > MAX_PACKET_OCTETS {
            return Err(self.input.value("captured length", 8, kept.into(), "0 to 262144"));
        }
        if original_length < kept {
            let allowed = "the captured length or more";
            return Err(self.input.value("original length", 4, original_length.into(), allowed));
        }
        let octets = self.input.octets("packet", kept)?;
        Ok(Some(Record { seconds, ticks, original_length, octets }))
    }

    /// All packets that are left.
    ///
    /// # Errors
    /// Those of [`Reader::next_record`].
    pub fn records(&mut self) -> Result<Vec<Record>, CaptureError> {
        drain(|| self.next_record())
    }
}

/// Writes a file packet by packet.
#[derive(Debug)]
pub struct Writer<W> {
    output: W,
    header: Header,
    offset: u64,
}

impl<W: Write> Writer<W> {
    /// Writes the header.
    ///
    /// # Errors
    /// [`CaptureError`] for octets of FCS that are odd or more than 30, or where nothing can be
    /// written.
    pub fn new(output: W, header: Header) -> Result<Self, CaptureError> {
        let mut writer = Self { output, header, offset: 0 };
        let fcs = match header.fcs_octets {
            None => 0,
            Some(octets) if octets % 2 == 1 || octets > 30 => {
                return Err(writer.value(
                    "link type",
                    octets.into(),
                    "0 to 30 octets of FCS, an even number",
                ));
            }
            Some(octets) => FCS_TOLD | u32::from(octets / 2) << 28,
        };
        let magic = match header.resolution {
            Resolution::Microsecond => MICROSECONDS,
            Resolution::Nanosecond => NANOSECONDS,
        };
        let mut octets = Vec::with_capacity(HEADER_OCTETS);
        header.order.put32(&mut octets, magic);
        VERSION.iter().for_each(|&number| header.order.put16(&mut octets, number));
        let [zone, accuracy] = header.reserved;
        for word in [zone, accuracy, header.snap_length, fcs | u32::from(header.link.0)] {
            header.order.put32(&mut octets, word);
        }
        writer.put("header", &octets)?;
        Ok(writer)
    }

    /// Writes a packet of which all octets are there. What is finer than the file's resolution is cut
    /// off its time.
    ///
    /// # Errors
    /// Those of [`Writer::write`], and [`CaptureError`] for a time after 2106.
    pub fn packet(&mut self, time: Timestamp, octets: &[u8]) -> Result<(), CaptureError> {
        let Ok(seconds) = u32::try_from(time.seconds) else {
            return Err(self.value("timestamp", time.seconds, "0 to 4294967295 s"));
        };
        let tick_ps = PS_PER_S / u64::from(self.header.resolution.ticks_per_s());
        let ticks = u32::try_from(time.picoseconds / tick_ps).unwrap_or(u32::MAX);
        let original_length = u32::try_from(octets.len()).unwrap_or(u32::MAX);
        self.write(seconds, ticks, original_length, octets)
    }

    /// Writes a record as it stands.
    ///
    /// # Errors
    /// [`CaptureError`] for what no reader would take, or where nothing can be written.
    pub fn record(&mut self, record: &Record) -> Result<(), CaptureError> {
        self.write(record.seconds, record.ticks, record.original_length, &record.octets)
    }

    /// Flushes, and gives the output back.
    ///
    /// # Errors
    /// [`CaptureError`] where nothing can be written.
    pub fn finish(mut self) -> Result<W, CaptureError> {
        match self.output.flush() {
            Ok(()) => Ok(self.output),
            Err(error) => Err(self.error("end", CaptureFault::Io(error))),
        }
    }

    fn write(&mut self, seconds: u32, ticks: u32, original: u32, octets: &[u8]) -> Result<(), CaptureError> {
        if ticks >= self.header.resolution.ticks_per_s() {
            return Err(self.value("timestamp", ticks.into(), "less than a second"));
        }
        let kept = octets.len() as u64;
        if kept > u64::from(MAX_PACKET_OCTETS) {
            return Err(self.value("captured length", kept, "0 to 262144"));
        }
        if u64::from(original) < kept {
            return Err(self.value("original length", original.into(), "the captured length or more"));
        }
        let mut head = Vec::with_capacity(RECORD_OCTETS);
        for word in [seconds, ticks, kept as u32, original] {
            self.header.order.put32(&mut head, word);
        }
        self.put("record", &head)?;
        self.put("packet", octets)
    }

    fn put(&mut self, field: &'static str, octets: &[u8]) -> Result<(), CaptureError> {
        match self.output.write_all(octets) {
            Ok(()) => self.offset += octets.len() as u64,
            Err(error) => return Err(self.error(field, CaptureFault::Io(error))),
        }
        Ok(())
    }

    fn value(&self, field: &'static str, found: u64, allowed: &'static str) -> CaptureError {
        self.error(field, CaptureFault::Value { found, allowed })
    }

    fn error(&self, field: &'static str, fault: CaptureFault) -> CaptureError {
        CaptureError { format: FORMAT, field, offset: self.offset, fault }
    }
}

const FORMAT: &str = "pcap";
const HEADER_OCTETS: usize = 24;
const RECORD_OCTETS: usize = 16;
const MICROSECONDS: u32 = 0xA1B2_C3D4;
const NANOSECONDS: u32 = 0xA1B2_3C4D;
const VERSION: [u16; 2] = [2, 4];
const FCS_TOLD: u32 = 0x0400_0000;

/// Reads arbitrary octets as a file and writes what was read; returns it, if they are one.
///
/// The fuzz target and the property test below are this function.
///
/// # Panics
/// If a file that was read to its end is not written back octet for octet: a bug here.
#[doc(hidden)]
pub fn round_trip(octets: &[u8]) -> Option<Vec<Record>> {
    let mut reader = Reader::new(octets).ok()?;
    let records = reader.records().ok()?;
    let mut writer = Writer::new(Vec::new(), *reader.header()).expect("a header that was read");
    records.iter().for_each(|record| writer.record(record).expect("a record that was read"));
    let written = writer.finish().expect("memory takes everything");
    assert_eq!(written, octets, "written back octet for octet");
    Some(records)
}

#[cfg(test)]
#[path = "pcap_tests.rs"]
mod tests;
