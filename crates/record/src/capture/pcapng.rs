//! The newer format: blocks, each with its length before and behind.
//!
//! draft-ietf-opsawg-pcapng. Sections, interfaces and packets are understood, and of options the
//! resolution and the origin of timestamps; all else is carried. Left out: name resolution,
//! statistics, decryption secrets and custom blocks, as [`Block::Other`].

use std::io::{Read, Write};

use super::input::Input;
use super::{
    ByteOrder, CaptureError, CaptureFault, LinkType, MAX_PACKET_OCTETS, PS_PER_S, Packet, Timestamp, drain,
};

mod options;

pub use options::{ClockTick, interface_options};

/// One block of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// A section begins; what was said of interfaces is forgotten.
    Section {
        /// Order of octets in the section's own numbers.
        order: ByteOrder,
        /// Minor version: 0, or 2, which says the same.
        minor: u16,
        /// Octets of the section; all ones where they were not known.
        length: u64,
        /// Options, as they stand.
        options: Vec<u8>,
    },
    /// An interface: the packets behind it count them from 0.
    Interface {
        /// What its packets begin with.
        link: LinkType,
        /// The most that was kept of a packet, octets; 0 is no limit.
        snap_length: u32,
        /// Options, as they stand.
        options: Vec<u8>,
    },
    /// A packet.
    Packet {
        /// Of which interface.
        interface: u32,
        /// When it was seen, in ticks of the interface.
        ticks: u64,
        /// Octets that it had.
        original_length: u32,
        /// Octets that were kept.
        octets: Vec<u8>,
        /// Options, as they stand.
        options: Vec<u8>,
    },
    /// A packet of the first interface, with no time.
    SimplePacket {
        /// Octets that it had.
        original_length: u32,
        /// Octets that were kept: as many, up to the interface's snap length.
        octets: Vec<u8>,
    },
    /// Any other block.
    Other {
        /// Block type.
        kind: u32,
        /// What is between the two lengths, a multiple of 4 octets.
        body: Vec<u8>,
    },
}

/// What a reader remembers of an interface.
#[derive(Clone, Copy, Debug)]
struct Interface {
    link: LinkType,
    snap_length: u32,
    tick: ClockTick,
}

/// Reads a file block by block.
#[derive(Debug)]
pub struct Reader<R> {
    input: Input<R>,
    order: Option<ByteOrder>,
    interfaces: Vec<Interface>,
}

impl<R: Read> Reader<R> {
    /// A reader of this file. Nothing is read yet.
    pub fn new(source: R) -> Self {
        Self { input: Input::new(FORMAT, source), order: None, interfaces: Vec::new() }
    }

    /// The next block, or `None` at the end.
    ///
    /// # Errors
    /// [`CaptureError`] where the file does not begin with a section or ends inside a block, and for
    /// each length, version or interface that cannot be.
    pub fn next_block(&mut self) -> Result<Option<Block>, CaptureError> {
        let mut head = [0; 8];
        if !self.input.exact_or_end("block", &mut head)? {
            return Ok(None);
        }
        let [[a, b, c, d], length] = *head.as_chunks::<4>().0 else {
            unreachable!("eight octets are two fours")
        };
        if [a, b, c, d] == SECTION_OCTETS {
            return self.section(length).map(Some);
        }
        let Some(order) = self.order else {
            let found = u32::from_be_bytes([a, b, c, d]).into();
            return Err(self.input.value("block type", 8, found, "168627466, a section, at first"));
        };
        let kind = order.u32([a, b, c, d]);
        let length = self.length(order.u32(length), MIN_BLOCK_OCTETS, 4)?;
        let body = self.input.octets("block", length - MIN_BLOCK_OCTETS)?;
        self.closing(order, length)?;
        let body = Body { order, octets: body, input: &self.input };
        let block = match kind {
            INTERFACE => body.interface()?,
            PACKET => body.packet(&self.interfaces)?,
            SIMPLE_PACKET => body.simple_packet(&self.interfaces)?,
            kind => Block::Other { kind, body: body.octets },
        };
        if let Block::Interface { link, snap_length, options } = &block {
            let tick = ClockTick::of(order, options, |back, field, found, allowed| {
                self.input.value(field, back + 4, found, allowed)
            })?;
            if self.interfaces.len() == MAX_INTERFACES {
                let found = self.interfaces.len() as u64 + 1;
                return Err(self.input.value("interfaces", length.into(), found, "1 to 65536"));
            }
            self.interfaces.push(Interface { link: *link, snap_length: *snap_length, tick });
        }
        Ok(Some(block))
    }

    /// The next packet, or `None` at the end. Other blocks are passed over.
    ///
    /// # Errors
    /// Those of [`Reader::next_block`].
    pub fn next_packet(&mut self) -> Result<Option<Packet>, CaptureError> {
        while let Some(block) = self.next_block()? {
            match block {
                Block::Packet { interface, ticks, original_length, octets, .. } => {
                    let Interface { link, tick, .. } = self.interfaces[interface as usize];
                    let timestamp = Some(tick.timestamp(ticks));
                    return Ok(Some(Packet { timestamp, link, original_length, octets }));
                }
                Block::SimplePacket { original_length, octets } => {
                    let link = self.interfaces[0].link;
                    return Ok(Some(Packet { timestamp: None, link, original_length, octets }));
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// All blocks that are left.
    ///
    /// # Errors
    /// Those of [`Reader::next_block`].
    pub fn blocks(&mut self) -> Result<Vec<Block>, CaptureError> {
        drain(|| self.next_block())
    }

    fn section(&mut self, length: [u8; 4]) -> Result<Block, CaptureError> {
        let mut fixed = [0; 16];
        self.input.exact("section", &mut fixed[..4])?;
        let magic = [fixed[0], fixed[1], fixed[2], fixed[3]];
        let order = match u32::from_le_bytes(magic) {
            BYTE_ORDER => ByteOrder::Little,
            other if other.swap_bytes() == BYTE_ORDER => ByteOrder::Big,
            other => {
                let allowed = "0x1a2b3c4d in either order of octets";
                return Err(self.input.value("byte-order magic", 4, other.into(), allowed));
            }
        };
        let length = self.length(order.u32(length), MIN_BLOCK_OCTETS + 16, 8)?;
        self.input.exact("section", &mut fixed[4..])?;
        let (major, minor) = (order.u16([fixed[4], fixed[5]]), order.u16([fixed[6], fixed[7]]));
        if major != 1 || !matches!(minor, 0 | 2) {
            let found = u64::from(major) << 16 | u64::from(minor);
            return Err(self.input.value("version", 12, found, "65536 or 65538, that is 1.0 or 1.2"));
        }
        let options = self.input.octets("section", length - MIN_BLOCK_OCTETS - 16)?;
        self.closing(order, length)?;
        self.order = Some(order);
        self.interfaces.clear();
        let halves = [8, 12].map(|at| order.u32([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]));
        let section_length = match order {
            ByteOrder::Little => u64::from(halves[1]) << 32 | u64::from(halves[0]),
            ByteOrder::Big => u64::from(halves[0]) << 32 | u64::from(halves[1]),
        };
        Ok(Block::Section { order, minor, length: section_length, options })
    }

    /// Checks a length that stands `back` octets before.
    fn length(&self, length: u32, least: u32, back: u64) -> Result<u32, CaptureError> {
        if length < least || length > MAX_BLOCK_OCTETS || !length.is_multiple_of(4) {
            let allowed = "a multiple of 4 from what the block must have to 16777216";
            return Err(self.input.value("block length", back, length.into(), allowed));
        }
        Ok(length)
    }

    fn closing(&mut self, order: ByteOrder, length: u32) -> Result<(), CaptureError> {
        let mut octets = [0; 4];
        self.input.exact("closing length", &mut octets)?;
        let closing = order.u32(octets);
        if closing != length {
            return Err(self.input.value(
                "closing length",
                4,
                closing.into(),
                "the length the block began with",
            ));
        }
        Ok(())
    }
}

/// What stands between the lengths of a block.
struct Body<'a, R> {
    order: ByteOrder,
    octets: Vec<u8>,
    input: &'a Input<R>,
}

impl<R: Read> Body<'_, R> {
    fn u32(&self, at: usize) -> u32 {
        self.order.u32([self.octets[at], self.octets[at + 1], self.octets[at + 2], self.octets[at + 3]])
    }

    /// An error at `at` of the body.
    fn error(&self, field: &'static str, at: usize, found: u64, allowed: &'static str) -> CaptureError {
        self.input.value(field, (self.octets.len() - at + 4) as u64, found, allowed)
    }

    fn at_least(&self, octets: usize, allowed: &'static str) -> Result<(), CaptureError> {
        if self.octets.len() < octets {
            let found = self.octets.len() as u64 + u64::from(MIN_BLOCK_OCTETS);
            return Err(self.input.value("block length", self.octets.len() as u64 + 8, found, allowed));
        }
        Ok(())
    }

    fn interface(self) -> Result<Block, CaptureError> {
        self.at_least(8, "20 or more for an interface")?;
        let link = LinkType(self.order.u16([self.octets[0], self.octets[1]]));
        let reserved = self.order.u16([self.octets[2], self.octets[3]]);
        if reserved != 0 {
            return Err(self.error("reserved", 2, reserved.into(), "0"));
        }
        Ok(Block::Interface { link, snap_length: self.u32(4), options: self.octets[8..].to_vec() })
    }

    fn packet(mut self, interfaces: &[Interface]) -> Result<Block, CaptureError> {
        self.at_least(20, "32 or more for a packet")?;
        let [interface, high, low, kept, original_length] = [0, 4, 8, 12, 16].map(|at| self.u32(at));
        if interface as usize >= interfaces.len() {
            return Err(self.error("interface", 0, interface.into(), "one of those there are"));
        }
        let room = self.octets.len() - 20;
        if kept > MAX_PACKET_OCTETS || (kept as usize).next_multiple_of(4) > room {
            let allowed = "0 to 262144 and the octets of the block";
            return Err(self.error("captured length", 12, kept.into(), allowed));
        }
        let end = 20 + kept as usize;
        self.padding(end)?;
        if original_length < kept {
            let allowed = "the captured length or more";
            return Err(self.error("original length", 16, original_length.into(), allowed));
        }
        let options = self.octets.split_off(end.next_multiple_of(4));
        let octets = self.octets[20..end].to_vec();
        let ticks = u64::from(high) << 32 | u64::from(low);
        Ok(Block::Packet { interface, ticks, original_length, octets, options })
    }

    fn simple_packet(self, interfaces: &[Interface]) -> Result<Block, CaptureError> {
        self.at_least(4, "16 or more for a simple packet")?;
        let Some(first) = interfaces.first() else {
            return Err(self.error("interface", 0, 0, "one of those there are"));
        };
        let original_length = self.u32(0);
        let most = if first.snap_length == 0 { u32::MAX } else { first.snap_length };
        let kept = original_length.min(most);
        if kept > MAX_PACKET_OCTETS || (kept as usize).next_multiple_of(4) != self.octets.len() - 4 {
            let allowed = "the octets of the block, or more with a snap length";
            return Err(self.error("original length", 0, original_length.into(), allowed));
        }
        self.padding(4 + kept as usize)?;
        Ok(Block::SimplePacket { original_length, octets: self.octets[4..4 + kept as usize].to_vec() })
    }

    /// Checks the octets from `end` to the next multiple of four.
    fn padding(&self, end: usize) -> Result<(), CaptureError> {
        match self.octets[end..end.next_multiple_of(4)].iter().find(|&&octet| octet != 0) {
            Some(&octet) => Err(self.error("padding", end, octet.into(), "0 in each octet")),
            None => Ok(()),
        }
    }
}

/// Writes a file block by block.
#[derive(Debug)]
pub struct Writer<W> {
    output: W,
    order: ByteOrder,
    ticks: Vec<ClockTick>,
    offset: u64,
}

impl<W: Write> Writer<W> {
    /// A writer to which blocks are given; the first must be a section.
    pub const fn bare(output: W) -> Self {
        Self { output, order: ByteOrder::Little, ticks: Vec::new(), offset: 0 }
    }

    /// Begins a file with a section.
    ///
    /// # Errors
    /// [`CaptureError`] where nothing can be written.
    pub fn new(output: W, order: ByteOrder) -> Result<Self, CaptureError> {
        let mut writer = Self::bare(output);
        writer.block(&Block::Section { order, minor: 0, length: u64::MAX, options: Vec::new() })?;
        Ok(writer)
    }

    /// Adds an interface and returns its number.
    ///
    /// # Errors
    /// Those of [`Writer::block`].
    pub fn interface(&mut self, name: &str, link: LinkType, tick: ClockTick) -> Result<u32, CaptureError> {
        let options = interface_options(self.order, name, tick);
        self.block(&Block::Interface { link, snap_length: 0, options })?;
        Ok(self.ticks.len() as u32 - 1)
    }

    /// Adds a packet of which all octets are there. What is finer than a tick is cut off its time.
    ///
    /// # Errors
    /// [`CaptureError`] for an interface that there is not, and for a time beyond 2^64 ticks; those of
    /// [`Writer::block`].
    pub fn packet(&mut self, interface: u32, time: Timestamp, octets: &[u8]) -> Result<(), CaptureError> {
        let Some(tick) = self.ticks.get(interface as usize) else {
            return Err(self.value("interface", interface.into(), "one of those there are"));
        };
        let Some(ticks) = tick.ticks(time) else {
            return Err(self.value("timestamp", time.seconds, "less than 2^64 ticks of the interface"));
        };
        let (octets, options) = (octets.to_vec(), Vec::new());
        let original_length = u32::try_from(octets.len()).unwrap_or(u32::MAX);
        self.block(&Block::Packet { interface, ticks, original_length, octets, options })
    }

    /// Writes a block as it stands.
    ///
    /// # Errors
    /// [`CaptureError`] for what no reader would take, or where nothing can be written.
    pub fn block(&mut self, block: &Block) -> Result<(), CaptureError> {
        if let Block::Section { order, .. } = block {
            self.order = *order;
            self.ticks.clear();
        }
        let order = self.order;
        let mut body = Vec::new();
        let kind = match block {
            Block::Section { minor, length, options, .. } => {
                order.put32(&mut body, BYTE_ORDER);
                order.put16(&mut body, 1);
                order.put16(&mut body, *minor);
                let halves = [*length as u32, (*length >> 32) as u32];
                let [first, second] = if order == ByteOrder::Big { [halves[1], halves[0]] } else { halves };
                order.put32(&mut body, first);
                order.put32(&mut body, second);
                body.extend(options);
                u32::from_le_bytes(SECTION_OCTETS)
            }
            Block::Interface { link, snap_length, options } => {
                order.put16(&mut body, link.0);
                order.put16(&mut body, 0);
                order.put32(&mut body, *snap_length);
                body.extend(options);
                let offset = self.offset;
                let tick = ClockTick::of(order, options, |_, field, found, allowed| {
                    let fault = CaptureFault::Value { found, allowed };
                    CaptureError { format: FORMAT, field, offset, fault }
                })?;
                self.ticks.push(tick);
                INTERFACE
            }
            Block::Packet { interface, ticks, original_length, octets, options } => {
                self.kept(octets, *original_length)?;
                let kept = octets.len() as u32;
                for word in [*interface, (*ticks >> 32) as u32, *ticks as u32, kept, *original_length] {
                    order.put32(&mut body, word);
                }
                body.extend(octets);
                body.resize(body.len().next_multiple_of(4), 0);
                body.extend(options);
                PACKET
            }
            Block::SimplePacket { original_length, octets } => {
                self.kept(octets, *original_length)?;
                order.put32(&mut body, *original_length);
                body.extend(octets);
                body.resize(body.len().next_multiple_of(4), 0);
                SIMPLE_PACKET
            }
            Block::Other { kind, body: other } => {
                body.extend(other);
                *kind
            }
        };
        let length = body.len() as u64 + u64::from(MIN_BLOCK_OCTETS);
        if !length.is_multiple_of(4) || length > u64::from(MAX_BLOCK_OCTETS) {
            return Err(self.value("block length", length, "a multiple of 4 up to 16777216"));
        }
        let mut octets = Vec::with_capacity(length as usize);
        order.put32(&mut octets, kind);
        order.put32(&mut octets, length as u32);
        octets.extend(body);
        order.put32(&mut octets, length as u32);
        match self.output.write_all(&octets) {
            Ok(()) => self.offset += length,
            Err(error) => return Err(self.error("block", CaptureFault::Io(error))),
        }
        Ok(())
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

    fn kept(&self, octets: &[u8], original: u32) -> Result<(), CaptureError> {
        let kept = octets.len() as u64;
        if kept > u64::from(MAX_PACKET_OCTETS) {
            return Err(self.value("captured length", kept, "0 to 262144"));
        }
        if u64::from(original) < kept {
            return Err(self.value("original length", original.into(), "the captured length or more"));
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

/// The type of a section, the same in either order.
pub(super) const SECTION_OCTETS: [u8; 4] = [0x0A, 0x0D, 0x0D, 0x0A];

const FORMAT: &str = "pcapng";
const BYTE_ORDER: u32 = 0x1A2B_3C4D;
const INTERFACE: u32 = 1;
const SIMPLE_PACKET: u32 = 3;
const PACKET: u32 = 6;
/// Type and two lengths.
const MIN_BLOCK_OCTETS: u32 = 12;
const MAX_BLOCK_OCTETS: u32 = 1 << 24;
const MAX_INTERFACES: usize = 1 << 16;

/// Reads arbitrary octets as a file and writes what was read; returns it, if they are one.
///
/// The fuzz target and the property test below are this function.
///
/// # Panics
/// If a file that was read to its end is not written back octet for octet: a bug here.
#[doc(hidden)]
pub fn round_trip(octets: &[u8]) -> Option<Vec<Block>> {
    let blocks = Reader::new(octets).blocks().ok()?;
    let mut writer = Writer::bare(Vec::new());
    blocks.iter().for_each(|block| writer.block(block).expect("a block that was read"));
    let written = writer.finish().expect("memory takes everything");
    assert_eq!(written, octets, "written back octet for octet");
    Some(blocks)
}

#[cfg(test)]
#[path = "pcapng_tests.rs"]
mod tests;
