//! What goes between NICs.
//!
//! *Choice*: the specification leaves the wire to the provider, and no layout of M-VIA's is public; this
//! one is ours. An Ethernet header with a type for local experiments, then the octets of [`Packet::emit`],
//! big endian. Addresses and sizes are those of the machines; nothing here is a pointer.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use wiretwin_units::Bytes;

use super::attributes::RemoteAttributes;
use super::{AddressSegment, DataSegment, HostAddress, MemoryHandle, Reliability, ViHandle, ViplError};

/// Octets of a fragment before its data, the Ethernet header not counted.
pub(crate) const FRAGMENT_HEADER: usize = 38;
const ETHERNET: usize = 14;
/// IEEE 802, local experimental EtherType 1.
const ETHER_TYPE: u16 = 0x88b5;
const VERSION: u8 = 1;

/// Where data that go out lie: so many octets of a list of segments, from a place in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gather {
    segments: Arc<[DataSegment]>,
    from: u64,
    length: u32,
}

impl Gather {
    pub(crate) fn new(segments: Arc<[DataSegment]>, from: u64, length: u32) -> Self {
        Self { segments, from, length }
    }

    /// Octets.
    pub const fn length(&self) -> Bytes {
        Bytes::new(self.length as u64)
    }

    /// Where the first segment begins, of a message of no octets too; `None` in a packet that was read.
    pub fn origin(&self) -> Option<u64> {
        self.segments.first().map(|segment| segment.address)
    }

    /// The ranges of memory, in order; none in a packet that was read.
    pub fn ranges(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        ranges(&self.segments, self.from, self.length)
    }
}

/// The ranges of memory that hold `length` octets of `segments` from `from`.
pub(crate) fn ranges(segments: &[DataSegment], from: u64, length: u32) -> impl Iterator<Item = (u64, u32)> {
    let mut skip = from;
    let mut left = length;
    segments.iter().filter_map(move |segment| {
        let passed = skip.min(segment.length.into());
        skip -= passed;
        let taken = left.min(segment.length - passed as u32);
        left -= taken;
        (taken > 0).then_some((segment.address + passed, taken))
    })
}

/// What a fragment is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FragmentKind {
    /// A send: it takes a receive descriptor.
    Send,
    /// A write into this memory.
    Write(AddressSegment),
    /// What was read, for the descriptor of this number.
    Response(u32),
}

/// Part of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Of what.
    pub kind: FragmentKind,
    /// Number of the packet in its direction of the connection.
    pub sequence: u32,
    /// Where in the message it begins.
    pub offset: u32,
    /// Octets of the message.
    pub total: u32,
    /// Immediate data of the message, in its last fragment.
    pub immediate: Option<u32>,
    /// The data.
    pub data: Gather,
}

impl Fragment {
    /// Whether the message begins here.
    pub const fn is_first(&self) -> bool {
        self.offset == 0
    }

    /// Whether the message ends here.
    pub fn is_last(&self) -> bool {
        u64::from(self.offset) + self.data.length().get() == u64::from(self.total)
    }
}

/// Why a reliable connection ended, as the end that saw it tells the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum NakReason {
    /// No receive was posted.
    ReceiveQueueEmpty = 1,
    /// The receive descriptor was in error, or too small.
    Descriptor,
    /// The memory may not be written, or read.
    RdmaProtection,
}

/// What a packet is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Part of a message.
    Fragment(Fragment),
    /// Asks for the octets of memory.
    ReadRequest {
        /// Number of the packet.
        sequence: u32,
        /// The memory.
        remote: AddressSegment,
        /// Octets.
        length: u32,
        /// The descriptor that they are for.
        number: u32,
    },
    /// All packets before this number are there.
    Ack {
        /// The number.
        next: u32,
    },
    /// The packet of this number ended the connection.
    Nak {
        /// The number.
        sequence: u32,
        /// The reason why the packet was rejected.
        reason: NakReason,
    },
    /// Asks for a connection.
    Connect {
        /// Whether both ends ask.
        peer: bool,
        /// Which request of the VI this is.
        attempt: u32,
        /// What is to agree.
        attributes: RemoteAttributes,
        /// The discriminator of who asks.
        from: Vec<u8>,
        /// The discriminator of who is asked.
        to: Vec<u8>,
    },
    /// The connection is made.
    Accept {
        /// The request.
        attempt: u32,
        /// Those of the other end.
        attributes: RemoteAttributes,
    },
    /// The connection is not made.
    Reject {
        /// The request.
        attempt: u32,
        /// What the request returns.
        error: ViplError,
    },
    /// The connection is at its end.
    Disconnect,
}

/// One packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The NIC it goes to.
    pub to: HostAddress,
    /// The NIC it comes from.
    pub from: HostAddress,
    /// The VI it is for; none is 0.
    pub to_vi: ViHandle,
    /// The VI it comes from.
    pub from_vi: ViHandle,
    /// What it is.
    pub body: Body,
}

/// Why octets are no packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketError {
    /// Fewer octets than its kind has.
    Short {
        /// What could not be read.
        field: &'static str,
        /// Where it begins.
        at: usize,
    },
    /// A field has a value that it cannot have.
    Value {
        /// The field.
        field: &'static str,
        /// Its value.
        found: u64,
    },
}

impl fmt::Display for PacketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short { field, at } => write!(f, "{field} at octet {at}: the packet ends before"),
            Self::Value { field, found } => write!(f, "{field}: {found} is not a value of it"),
        }
    }
}

impl core::error::Error for PacketError {}

const SEND: u8 = 0;
const WRITE: u8 = 1;
const RESPONSE: u8 = 2;
const READ: u8 = 3;
const ACK: u8 = 4;
const NAK: u8 = 5;
const CONNECT: u8 = 6;
const PEER: u8 = 7;
const ACCEPT: u8 = 8;
const REJECT: u8 = 9;
const DISCONNECT: u8 = 10;
const FLAG_IMMEDIATE: u8 = 1;

impl Packet {
    /// Octets of the packet, from the Ethernet header to the end of its data.
    pub fn length(&self) -> Bytes {
        let data = match &self.body {
            Body::Fragment(fragment) => FRAGMENT_HEADER as u64 + fragment.data.length().get(),
            Body::ReadRequest { .. } => FRAGMENT_HEADER as u64,
            Body::Ack { .. } => 14,
            Body::Nak { .. } => 15,
            Body::Connect { from, to, .. } => 27 + (from.len() + to.len()) as u64,
            Body::Accept { .. } => 23,
            Body::Reject { .. } => 15,
            Body::Disconnect => 10,
        };
        Bytes::new(ETHERNET as u64 + data)
    }

    /// Its octets; `memory` gives the octets of a range of it.
    pub fn emit(&self, mut memory: impl FnMut(u64, u32, &mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.length().get() as usize);
        out.extend_from_slice(&self.to.0);
        out.extend_from_slice(&self.from.0);
        out.extend_from_slice(&ETHER_TYPE.to_be_bytes());
        let kind = match &self.body {
            Body::Fragment(Fragment { kind: FragmentKind::Send, .. }) => SEND,
            Body::Fragment(Fragment { kind: FragmentKind::Write(_), .. }) => WRITE,
            Body::Fragment(Fragment { kind: FragmentKind::Response(_), .. }) => RESPONSE,
            Body::ReadRequest { .. } => READ,
            Body::Ack { .. } => ACK,
            Body::Nak { .. } => NAK,
            Body::Connect { peer: false, .. } => CONNECT,
            Body::Connect { peer: true, .. } => PEER,
            Body::Accept { .. } => ACCEPT,
            Body::Reject { .. } => REJECT,
            Body::Disconnect => DISCONNECT,
        };
        out.push(VERSION << 4 | kind);
        let immediate = matches!(&self.body, Body::Fragment(Fragment { immediate: Some(_), .. }));
        out.push(if immediate { FLAG_IMMEDIATE } else { 0 });
        word(&mut out, self.to_vi.0);
        word(&mut out, self.from_vi.0);
        match &self.body {
            Body::Fragment(fragment) => {
                let (address, handle) = match fragment.kind {
                    FragmentKind::Send => (0, 0),
                    FragmentKind::Write(remote) => (remote.address, remote.handle.0),
                    FragmentKind::Response(number) => (0, number),
                };
                word(&mut out, fragment.sequence);
                word(&mut out, fragment.offset);
                word(&mut out, fragment.total);
                word(&mut out, fragment.immediate.unwrap_or(0));
                out.extend_from_slice(&address.to_be_bytes());
                word(&mut out, handle);
                fragment.data.ranges().for_each(|(address, length)| memory(address, length, &mut out));
            }
            Body::ReadRequest { sequence, remote, length, number } => {
                word(&mut out, *sequence);
                word(&mut out, 0);
                word(&mut out, *length);
                word(&mut out, *number);
                out.extend_from_slice(&remote.address.to_be_bytes());
                word(&mut out, remote.handle.0);
            }
            Body::Ack { next } => word(&mut out, *next),
            Body::Nak { sequence, reason } => {
                word(&mut out, *sequence);
                out.push(*reason as u8);
            }
            Body::Connect { attempt, attributes, from, to, .. } => {
                word(&mut out, *attempt);
                put_attributes(&mut out, attributes);
                for discriminator in [from, to] {
                    let length = u16::try_from(discriminator.len()).unwrap_or(u16::MAX);
                    out.extend_from_slice(&length.to_be_bytes());
                    out.extend_from_slice(&discriminator[..usize::from(length)]);
                }
            }
            Body::Accept { attempt, attributes } => {
                word(&mut out, *attempt);
                put_attributes(&mut out, attributes);
            }
            Body::Reject { attempt, error } => {
                word(&mut out, *attempt);
                out.push(error.code());
            }
            Body::Disconnect => {}
        }
        out
    }

    /// Reads one; the data of a fragment beside it.
    ///
    /// # Errors
    /// [`PacketError`].
    pub fn parse(octets: &[u8]) -> Result<(Self, &[u8]), PacketError> {
        let mut reader = Reader { octets, at: 0 };
        let to = HostAddress(reader.array("destination")?);
        let from = HostAddress(reader.array("source")?);
        let ether_type = u16::from_be_bytes(reader.array("type")?);
        if ether_type != ETHER_TYPE {
            return Err(PacketError::Value { field: "type", found: ether_type.into() });
        }
        let [first, flags] = reader.array("kind")?;
        if first >> 4 != VERSION {
            return Err(PacketError::Value { field: "version", found: u64::from(first >> 4) });
        }
        let to_vi = ViHandle(reader.word("destination VI")?);
        let from_vi = ViHandle(reader.word("source VI")?);
        let mut data: &[u8] = &[];
        let body = match first & 15 {
            kind @ (SEND | WRITE | RESPONSE) => {
                let sequence = reader.word("sequence")?;
                let (offset, total) = (reader.word("offset")?, reader.word("total")?);
                let immediate = reader.word("immediate")?;
                let address = reader.long("address")?;
                let handle = reader.word("handle")?;
                data = reader.rest();
                let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
                if u64::from(offset) + u64::from(length) > u64::from(total) {
                    return Err(PacketError::Value { field: "offset", found: offset.into() });
                }
                if length == 0 && total > 0 {
                    return Err(PacketError::Value { field: "total", found: total.into() });
                }
                let kind = match kind {
                    SEND => FragmentKind::Send,
                    WRITE => FragmentKind::Write(AddressSegment { address, handle: MemoryHandle(handle) }),
                    _ => FragmentKind::Response(handle),
                };
                let immediate = (flags & FLAG_IMMEDIATE != 0).then_some(immediate);
                let data = Gather { segments: Arc::from([]), from: 0, length };
                Body::Fragment(Fragment { kind, sequence, offset, total, immediate, data })
            }
            READ => {
                let sequence = reader.word("sequence")?;
                reader.word("offset")?;
                let (length, number) = (reader.word("length")?, reader.word("number")?);
                let address = reader.long("address")?;
                let handle = MemoryHandle(reader.word("handle")?);
                Body::ReadRequest { sequence, remote: AddressSegment { address, handle }, length, number }
            }
            ACK => Body::Ack { next: reader.word("next")? },
            NAK => {
                let sequence = reader.word("sequence")?;
                let reason = match reader.octet("reason")? {
                    1 => NakReason::ReceiveQueueEmpty,
                    2 => NakReason::Descriptor,
                    3 => NakReason::RdmaProtection,
                    found => return Err(PacketError::Value { field: "reason", found: found.into() }),
                };
                Body::Nak { sequence, reason }
            }
            kind @ (CONNECT | PEER) => {
                let attempt = reader.word("attempt")?;
                let attributes = reader.attributes()?;
                let from = reader.discriminator()?;
                let to = reader.discriminator()?;
                Body::Connect { peer: kind == PEER, attempt, attributes, from, to }
            }
            ACCEPT => Body::Accept { attempt: reader.word("attempt")?, attributes: reader.attributes()? },
            REJECT => {
                let attempt = reader.word("attempt")?;
                let code = reader.octet("error")?;
                let error = ViplError::ALL.into_iter().find(|error| error.code() == code);
                let error = error.ok_or(PacketError::Value { field: "error", found: code.into() })?;
                Body::Reject { attempt, error }
            }
            DISCONNECT => Body::Disconnect,
            found => return Err(PacketError::Value { field: "kind", found: found.into() }),
        };
        Ok((Self { to, from, to_vi, from_vi, body }, data))
    }
}

fn word(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_be_bytes());
}

fn put_attributes(out: &mut Vec<u8>, attributes: &RemoteAttributes) {
    out.push(attributes.reliability as u8);
    word(out, u32::try_from(attributes.max_transfer.get()).unwrap_or(u32::MAX));
    word(out, attributes.qos);
}

struct Reader<'a> {
    octets: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize, field: &'static str) -> Result<&'a [u8], PacketError> {
        let short = PacketError::Short { field, at: self.at };
        let taken = self.octets.get(self.at..self.at + length).ok_or(short)?;
        self.at += length;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], PacketError> {
        Ok(core::array::from_fn({
            let taken = self.take(N, field)?;
            |index| taken[index]
        }))
    }

    fn octet(&mut self, field: &'static str) -> Result<u8, PacketError> {
        Ok(self.take(1, field)?[0])
    }

    fn word(&mut self, field: &'static str) -> Result<u32, PacketError> {
        self.array(field).map(u32::from_be_bytes)
    }

    fn long(&mut self, field: &'static str) -> Result<u64, PacketError> {
        self.array(field).map(u64::from_be_bytes)
    }

    fn rest(&mut self) -> &'a [u8] {
        let rest = &self.octets[self.at..];
        self.at = self.octets.len();
        rest
    }

    fn attributes(&mut self) -> Result<RemoteAttributes, PacketError> {
        let code = self.octet("reliability")?;
        let reliability = Reliability::from_code(code)
            .ok_or(PacketError::Value { field: "reliability", found: code.into() })?;
        let max_transfer = Bytes::new(self.word("maximum transfer size")?.into());
        Ok(RemoteAttributes { reliability, max_transfer, qos: self.word("quality of service")? })
    }

    fn discriminator(&mut self) -> Result<Vec<u8>, PacketError> {
        let length = u16::from_be_bytes(self.array("discriminator length")?);
        Ok(self.take(length.into(), "discriminator")?.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bodies() -> impl Strategy<Value = Body> {
        let remote = (any::<u64>(), any::<u32>())
            .prop_map(|(address, handle)| AddressSegment { address, handle: MemoryHandle(handle) });
        let kind = prop_oneof![
            Just(FragmentKind::Send),
            remote.clone().prop_map(FragmentKind::Write),
            any::<u32>().prop_map(FragmentKind::Response)
        ];
        let attributes = (prop::sample::select(&Reliability::ALL[..]), any::<u32>(), any::<u32>()).prop_map(
            |(reliability, size, qos)| RemoteAttributes {
                reliability,
                max_transfer: Bytes::new(size.into()),
                qos,
            },
        );
        let discriminator = || prop::collection::vec(any::<u8>(), 0..9);
        prop_oneof![
            (kind, any::<u32>(), 0..9_u32, 1..40_u32, 0..9_u32, any::<Option<u32>>()).prop_map(
                |(kind, sequence, offset, length, more, immediate)| {
                    let segment =
                        DataSegment { address: 100, handle: MemoryHandle(1), length: offset + length };
                    let data = Gather::new(Arc::from([segment]), offset.into(), length);
                    let total = offset + length + more;
                    Body::Fragment(Fragment { kind, sequence, offset, total, immediate, data })
                }
            ),
            (any::<u32>(), remote, any::<u32>(), any::<u32>()).prop_map(
                |(sequence, remote, length, number)| Body::ReadRequest { sequence, remote, length, number }
            ),
            any::<u32>().prop_map(|next| Body::Ack { next }),
            any::<u32>().prop_map(|sequence| Body::Nak { sequence, reason: NakReason::Descriptor }),
            (any::<bool>(), any::<u32>(), attributes.clone(), discriminator(), discriminator()).prop_map(
                |(peer, attempt, attributes, from, to)| Body::Connect { peer, attempt, attributes, from, to }
            ),
            (any::<u32>(), attributes).prop_map(|(attempt, attributes)| Body::Accept { attempt, attributes }),
            (any::<u32>(), prop::sample::select(&ViplError::ALL[..]))
                .prop_map(|(attempt, error)| Body::Reject { attempt, error }),
            Just(Body::Disconnect),
        ]
    }

    proptest! {
        #[test]
        fn packets_come_back_as_they_were(body in bodies(), to_vi: u32, from_vi: u32) {
            let packet = Packet {
                to: HostAddress([1; 6]), from: HostAddress([2; 6]), to_vi: ViHandle(to_vi),
                from_vi: ViHandle(from_vi), body,
            };
            let octets = packet.emit(|address, length, out| {
                out.extend((0..u64::from(length)).map(|index| (address + index) as u8));
            });
            prop_assert_eq!(octets.len() as u64, packet.length().get());
            let (read, data) = Packet::parse(&octets).expect("our own");
            let mut expected = packet;
            if let Body::Fragment(fragment) = &mut expected.body {
                let first = 100 + fragment.offset as usize;
                prop_assert!(data.iter().enumerate().all(|(index, octet)| *octet == (first + index) as u8));
                fragment.data = Gather { segments: Arc::from([]), from: 0, ..fragment.data.clone() };
            }
            prop_assert_eq!(read, expected);
        }
    }
}
