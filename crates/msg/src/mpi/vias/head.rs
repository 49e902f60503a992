//! The head of a buffer.

use core::fmt;

use wiretwin_units::Bytes;

use super::super::packet::{HEAD, Kind, Packet};
use crate::library::Content;
use crate::matching::Envelope;
use crate::via::{AddressSegment, MemoryHandle};

const EAGER: u8 = 0;
const REQUEST: u8 = 1;
const REPLY: u8 = 2;
const DATA: u8 = 3;
const FETCHED: u8 = 4;
const MATCHED: u8 = 5;
const CANCEL: u8 = 6;
const CANCELLED: u8 = 7;
const CREDIT: u8 = 8;

/// Octets of a head.
pub const HEAD_OCTETS: usize = HEAD as usize;

/// The head of a buffer, read or to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// What it says.
    pub packet: Packet,
    /// Where in the message the octets behind it begin.
    pub start: u32,
    /// How many they are.
    pub length: u32,
}

/// Octets that are no head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadError {
    /// The field.
    pub field: &'static str,
    /// Its value.
    pub found: u64,
}

impl fmt::Display for HeadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} is not a value of it", self.field, self.found)
    }
}

impl Head {
    /// The head of a packet that nothing stands behind.
    pub const fn of(packet: Packet) -> Self {
        Self { packet, start: 0, length: 0 }
    }

    /// The head of a reply to a request, which tells into which memory the data are to be written.
    ///
    /// A reply has nothing behind it and no context of its own: those fields carry the address and the handle.
    pub fn granting(reply: Packet, memory: AddressSegment) -> Self {
        let AddressSegment { address, handle } = memory;
        let envelope = Envelope { context: handle.0, ..reply.envelope };
        Self { packet: Packet { envelope, ..reply }, start: (address >> 32) as u32, length: address as u32 }
    }

    /// The memory that [`Head::granting`] has named.
    pub const fn granted(&self) -> AddressSegment {
        let address = (self.start as u64) << 32 | self.length as u64;
        AddressSegment { address, handle: MemoryHandle(self.packet.envelope.context) }
    }

    /// Its octets.
    #[inline]
    pub fn octets(&self) -> [u8; HEAD_OCTETS] {
        let Packet { kind, envelope, bytes, send, receive, credit, .. } = self.packet;
        let (kind, flag) = match kind {
            Kind::Eager { synchronous } => (EAGER, synchronous),
            Kind::Request => (REQUEST, false),
            Kind::Reply => (REPLY, false),
            Kind::Data => (DATA, false),
            Kind::Fetched => (FETCHED, false),
            Kind::Matched => (MATCHED, false),
            Kind::Cancel => (CANCEL, false),
            Kind::Cancelled { done } => (CANCELLED, done),
            Kind::Credit => (CREDIT, false),
        };
        let mut octets = [0; HEAD_OCTETS];
        octets[..2].copy_from_slice(&[kind, u8::from(flag)]);
        // More buffers than that a policy does not have.
        octets[2..4].copy_from_slice(&u16::try_from(credit).unwrap_or(u16::MAX).to_be_bytes());
        octets[4..8].copy_from_slice(&envelope.context.to_be_bytes());
        octets[8..12].copy_from_slice(&envelope.source.to_be_bytes());
        octets[12..16].copy_from_slice(&envelope.tag.to_be_bytes());
        octets[16..24].copy_from_slice(&bytes.get().to_be_bytes());
        octets[24..32].copy_from_slice(&send.to_be_bytes());
        octets[32..40].copy_from_slice(&receive.to_be_bytes());
        octets[40..44].copy_from_slice(&self.start.to_be_bytes());
        octets[44..].copy_from_slice(&self.length.to_be_bytes());
        octets
    }

    /// Its octets, to be sent.
    pub(super) fn emit(&self) -> Content {
        let mut content = Content::new();
        content.push_octets(&self.octets());
        content
    }

    /// Takes one off what has come.
    ///
    /// # Errors
    /// [`HeadError`].
    pub(super) fn parse(content: &mut Content) -> Result<Self, HeadError> {
        let mut octets = [0; HEAD_OCTETS];
        if !content.take_octets(&mut octets) {
            return Err(HeadError { field: "head", found: content.octets_in_front() });
        }
        Self::read(&octets)
    }

    /// Reads one.
    ///
    /// # Errors
    /// [`HeadError`].
    #[inline]
    pub fn read(octets: &[u8; HEAD_OCTETS]) -> Result<Self, HeadError> {
        let word = |at: usize| u32::from_be_bytes(core::array::from_fn(|octet| octets[at + octet]));
        let double = |at: usize| u64::from(word(at)) << 32 | u64::from(word(at + 4));
        let flag = match octets[1] {
            0 => false,
            1 => true,
            other => return Err(HeadError { field: "flag", found: other.into() }),
        };
        let kind = match octets[0] {
            EAGER => Kind::Eager { synchronous: flag },
            REQUEST => Kind::Request,
            REPLY => Kind::Reply,
            DATA => Kind::Data,
            FETCHED => Kind::Fetched,
            MATCHED => Kind::Matched,
            CANCEL => Kind::Cancel,
            CANCELLED => Kind::Cancelled { done: flag },
            CREDIT => Kind::Credit,
            other => return Err(HeadError { field: "kind", found: other.into() }),
        };
        let mut packet = Packet::of(kind);
        packet.credit = u16::from_be_bytes([octets[2], octets[3]]).into();
        packet.envelope = Envelope { context: word(4), source: word(8), tag: word(12) };
        packet.bytes = Bytes::new(double(16));
        (packet.send, packet.receive) = (double(24), double(32));
        Ok(Self { packet, start: word(40), length: word(44) })
    }
}

/// Whatever octets come: they are a head that is written as it was read, or an error with a name.
pub fn round_trip(octets: &[u8]) {
    let mut content = Content::new();
    content.push_octets(octets);
    match Head::parse(&mut content) {
        Ok(head) => {
            let mut again = head.emit();
            assert_eq!(again.length().get(), HEAD);
            assert_eq!(Head::parse(&mut again), Ok(head));
        }
        Err(error) => assert!(!error.field.is_empty()),
    }
}
