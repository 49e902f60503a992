//! Descriptors: a control segment, an address segment for RDMA, data segments.
//!
//! VI Architecture 1.0, descriptor format; little endian, as on the PCs it was made for. A descriptor lies
//! in registered memory on a multiple of 64 octets.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use super::MemoryHandle;

/// Octets of the control segment.
pub const CONTROL_SEGMENT: usize = 32;
/// Octets of an address segment.
pub const ADDRESS_SEGMENT: usize = 16;
/// Octets of a data segment.
pub const DATA_SEGMENT: usize = 16;

/// Bits of the control field.
pub mod control {
    /// The operation.
    pub const OPERATION: u16 = 3;
    /// Immediate data are present.
    pub const IMMEDIATE: u16 = 4;
    /// Wait until the RDMA reads before it are done.
    pub const QUEUE_FENCE: u16 = 8;
    /// Those that are defined.
    pub const DEFINED: u16 = OPERATION | IMMEDIATE | QUEUE_FENCE;
}

/// Bits of the status field.
pub mod status {
    /// Completed.
    pub const DONE: u32 = 0x1;
    /// The descriptor is not well formed.
    pub const FORMAT_ERROR: u32 = 0x2;
    /// It names memory that its VI may not use.
    pub const PROTECTION_ERROR: u32 = 0x4;
    /// Too long: for the VI, or for the buffers.
    pub const LENGTH_ERROR: u32 = 0x8;
    /// Part of a message came.
    pub const PARTIAL_ERROR: u32 = 0x10;
    /// Not carried out: there is no connection.
    pub const FLUSHED_ERROR: u32 = 0x20;
    /// The network failed.
    pub const TRANSPORT_ERROR: u32 = 0x40;
    /// The remote memory may not be written, or read.
    pub const RDMA_PROTECTION_ERROR: u32 = 0x80;
    /// The remote receive descriptor was in error.
    pub const REMOTE_DESCRIPTOR_ERROR: u32 = 0x100;
    /// All the errors.
    pub const ERRORS: u32 = 0x1fe;
    /// What completed: a send is 0.
    pub const OPERATION: u32 = 0x7_0000;
    /// A receive.
    pub const OP_RECEIVE: u32 = 0x1_0000;
    /// An RDMA write.
    pub const OP_RDMA_WRITE: u32 = 0x2_0000;
    /// A receive, by the immediate data of an RDMA write of the remote end.
    pub const OP_REMOTE_RDMA_WRITE: u32 = 0x3_0000;
    /// An RDMA read.
    pub const OP_RDMA_READ: u32 = 0x4_0000;
    /// Immediate data came.
    pub const IMMEDIATE: u32 = 0x8_0000;
}

/// What a descriptor asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A send on a send queue, a receive on a receive queue.
    SendReceive,
    /// A write into remote memory.
    RdmaWrite,
    /// A read of remote memory.
    RdmaRead,
}

/// Remote memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressSegment {
    /// The remote virtual address.
    pub address: u64,
    /// The remote memory handle.
    pub handle: MemoryHandle,
}

/// Local memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataSegment {
    /// The virtual address.
    pub address: u64,
    /// The memory handle.
    pub handle: MemoryHandle,
    /// Octets.
    pub length: u32,
}

/// The head of a descriptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControlSegment {
    /// Number of segments that follow.
    pub segments: u16,
    /// Bits of [`control`].
    pub control: u16,
    /// Immediate data.
    pub immediate: u32,
    /// In: of all data segments together. Out: octets moved.
    pub length: u32,
    /// Bits of [`status`]; out.
    pub status: u32,
}

/// A descriptor that is well formed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// What it asks for.
    pub operation: Operation,
    /// Whether it waits for the RDMA reads before it.
    pub fence: bool,
    /// Immediate data to send.
    pub immediate: Option<u32>,
    /// Its length field.
    pub length: u32,
    /// Remote memory: there for RDMA, and only then.
    pub remote: Option<AddressSegment>,
    /// Local memory.
    pub data: Arc<[DataSegment]>,
}

/// Why a descriptor is not well formed: it completes with [`status::FORMAT_ERROR`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatError {
    /// More octets than there are.
    Short {
        /// Octets that its segment count calls for.
        needed: usize,
        /// Octets that there are.
        found: usize,
    },
    /// The operation is none.
    Operation {
        /// Its number.
        found: u16,
    },
    /// Bits of the control field that are not defined.
    Control {
        /// The field.
        found: u16,
    },
    /// RDMA without an address segment.
    NoAddressSegment,
    /// More segments than the NIC takes.
    Segments {
        /// How many.
        found: u16,
        /// How many it takes.
        allowed: u16,
    },
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short { needed, found } => write!(f, "a descriptor of {needed} octets in {found}"),
            Self::Operation { found } => write!(f, "operation {found}: 0 to 2 are defined"),
            Self::Control { found } => write!(f, "control {found:#06x}: bits of 0x000f are defined"),
            Self::NoAddressSegment => f.write_str("RDMA without an address segment"),
            Self::Segments { found, allowed } => write!(f, "{found} segments, the NIC takes {allowed}"),
        }
    }
}

impl core::error::Error for FormatError {}

impl AddressSegment {
    /// Its octets.
    pub fn emit(&self) -> [u8; ADDRESS_SEGMENT] {
        let mut octets = [0; ADDRESS_SEGMENT];
        octets[..8].copy_from_slice(&self.address.to_le_bytes());
        octets[8..12].copy_from_slice(&self.handle.0.to_le_bytes());
        octets
    }
}

impl DataSegment {
    /// Its octets.
    pub fn emit(&self) -> [u8; DATA_SEGMENT] {
        let mut octets = [0; DATA_SEGMENT];
        octets[..8].copy_from_slice(&self.address.to_le_bytes());
        octets[8..12].copy_from_slice(&self.handle.0.to_le_bytes());
        octets[12..].copy_from_slice(&self.length.to_le_bytes());
        octets
    }
}

impl ControlSegment {
    /// The head of the descriptor in these octets; `None` if they are fewer than
    /// [`CONTROL_SEGMENT`].
    pub fn parse(octets: &[u8]) -> Option<Self> {
        let octets = octets.get(..CONTROL_SEGMENT)?;
        Some(Self {
            segments: half(octets, 12),
            control: half(octets, 14),
            immediate: word(octets, 20),
            length: word(octets, 24),
            status: word(octets, 28),
        })
    }

    /// Its octets.
    pub fn emit(&self) -> [u8; CONTROL_SEGMENT] {
        let mut octets = [0; CONTROL_SEGMENT];
        octets[12..14].copy_from_slice(&self.segments.to_le_bytes());
        octets[14..16].copy_from_slice(&self.control.to_le_bytes());
        octets[20..].copy_from_slice(&self.completion());
        octets
    }

    /// The octets of the fields that a provider fills in, which begin at octet 20: immediate data,
    /// length, status.
    pub fn completion(&self) -> [u8; 12] {
        let mut octets = [0; 12];
        octets[..4].copy_from_slice(&self.immediate.to_le_bytes());
        octets[4..8].copy_from_slice(&self.length.to_le_bytes());
        octets[8..].copy_from_slice(&self.status.to_le_bytes());
        octets
    }

    /// Octets of the whole descriptor.
    pub const fn descriptor_octets(&self) -> usize {
        CONTROL_SEGMENT + self.segments as usize * DATA_SEGMENT
    }
}

impl Descriptor {
    /// A send, or a receive, of these segments.
    pub fn new(data: &[DataSegment]) -> Self {
        Self {
            operation: Operation::SendReceive,
            fence: false,
            immediate: None,
            length: sum(data).min(u64::from(u32::MAX)) as u32,
            remote: None,
            data: Arc::from(data),
        }
    }

    /// An RDMA write or read of this memory.
    pub fn rdma(operation: Operation, remote: AddressSegment, data: &[DataSegment]) -> Self {
        Self { operation, remote: Some(remote), ..Self::new(data) }
    }

    /// With immediate data.
    #[must_use]
    pub fn with_immediate(mut self, immediate: u32) -> Self {
        self.immediate = Some(immediate);
        self
    }

    /// Waiting for the RDMA reads before it.
    #[must_use]
    pub const fn fenced(mut self) -> Self {
        self.fence = true;
        self
    }

    /// Octets of its data segments.
    pub fn capacity(&self) -> u64 {
        sum(&self.data)
    }

    /// Reads one.
    ///
    /// # Errors
    /// [`FormatError`].
    pub fn parse(octets: &[u8], max_segments: u16) -> Result<Self, FormatError> {
        let short = |needed| FormatError::Short { needed, found: octets.len() };
        let head = ControlSegment::parse(octets).ok_or(short(CONTROL_SEGMENT))?;
        if head.segments > max_segments {
            return Err(FormatError::Segments { found: head.segments, allowed: max_segments });
        }
        let needed = head.descriptor_octets();
        let segments = octets.get(CONTROL_SEGMENT..needed).ok_or(short(needed))?;
        if head.control & !control::DEFINED != 0 {
            return Err(FormatError::Control { found: head.control });
        }
        let operation = match head.control & control::OPERATION {
            0 => Operation::SendReceive,
            1 => Operation::RdmaWrite,
            2 => Operation::RdmaRead,
            found => return Err(FormatError::Operation { found }),
        };
        let (remote, segments) = if operation == Operation::SendReceive {
            (None, segments)
        } else {
            let (first, rest) =
                segments.split_at_checked(ADDRESS_SEGMENT).ok_or(FormatError::NoAddressSegment)?;
            let handle = MemoryHandle(word(first, 8));
            (Some(AddressSegment { address: long(first), handle }), rest)
        };
        let data: Vec<DataSegment> = segments
            .chunks_exact(DATA_SEGMENT)
            .map(|segment| DataSegment {
                address: long(segment),
                handle: MemoryHandle(word(segment, 8)),
                length: word(segment, 12),
            })
            .collect();
        Ok(Self {
            operation,
            fence: head.control & control::QUEUE_FENCE != 0,
            immediate: (head.control & control::IMMEDIATE != 0).then_some(head.immediate),
            length: head.length,
            remote,
            data: data.into(),
        })
    }

    /// Its octets.
    pub fn emit(&self) -> Vec<u8> {
        let operation = match self.operation {
            Operation::SendReceive => 0,
            Operation::RdmaWrite => 1,
            Operation::RdmaRead => 2,
        };
        let immediate = if self.immediate.is_some() { control::IMMEDIATE } else { 0 };
        let fence = if self.fence { control::QUEUE_FENCE } else { 0 };
        let segments = self.data.len() + usize::from(self.remote.is_some());
        let head = ControlSegment {
            segments: u16::try_from(segments).unwrap_or(u16::MAX),
            control: operation | immediate | fence,
            immediate: self.immediate.unwrap_or(0),
            length: self.length,
            status: 0,
        };
        let mut octets = Vec::with_capacity(CONTROL_SEGMENT + segments * DATA_SEGMENT);
        octets.extend_from_slice(&head.emit());
        octets.extend(self.remote.iter().flat_map(AddressSegment::emit));
        octets.extend(self.data.iter().flat_map(DataSegment::emit));
        octets
    }
}

fn sum(data: &[DataSegment]) -> u64 {
    data.iter().map(|segment| u64::from(segment.length)).sum()
}

fn half(octets: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([octets[at], octets[at + 1]])
}

fn word(octets: &[u8], at: usize) -> u32 {
    u32::from(half(octets, at)) | u32::from(half(octets, at + 2)) << 16
}

fn long(octets: &[u8]) -> u64 {
    u64::from(word(octets, 0)) | u64::from(word(octets, 4)) << 32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn segment(address: u64, length: u32) -> DataSegment {
        DataSegment { address, handle: MemoryHandle(7), length }
    }

    #[test]
    fn a_send_of_a_hundred_octets_is_these_octets() {
        let mut octets = [0; 48];
        octets[12] = 1;
        octets[24] = 100;
        octets[32..40].copy_from_slice(&0x1000_u64.to_le_bytes());
        octets[40] = 7;
        octets[44] = 100;
        let descriptor = Descriptor::new(&[segment(0x1000, 100)]);
        assert_eq!(descriptor.emit(), octets);
        assert_eq!(Descriptor::parse(&octets, 252), Ok(descriptor));
    }

    #[test]
    fn what_is_not_well_formed_is_named() {
        let good = Descriptor::new(&[segment(0, 8)]).emit();
        assert_eq!(Descriptor::parse(&good[..31], 9), Err(FormatError::Short { needed: 32, found: 31 }));
        assert_eq!(Descriptor::parse(&good[..47], 9), Err(FormatError::Short { needed: 48, found: 47 }));
        assert_eq!(Descriptor::parse(&good, 0), Err(FormatError::Segments { found: 1, allowed: 0 }));
        let with = |control: u8| {
            let mut octets = good.clone();
            octets[14] = control;
            Descriptor::parse(&octets, 9)
        };
        assert_eq!(with(3), Err(FormatError::Operation { found: 3 }));
        assert_eq!(with(16), Err(FormatError::Control { found: 16 }));
        let mut bare = Descriptor::new(&[]).emit();
        bare[14] = 1;
        assert_eq!(Descriptor::parse(&bare, 9), Err(FormatError::NoAddressSegment));
    }

    proptest! {
        #[test]
        fn descriptors_come_back_as_they_were(
            operation in 0_u8..3, fence: bool, immediate: Option<u32>, address: u64, handle: u32,
            lengths in prop::collection::vec(any::<u32>(), 0..5),
        ) {
            let data: Vec<_> = lengths.iter().map(|&length| segment(address ^ u64::from(length), length)).collect();
            let remote = AddressSegment { address, handle: MemoryHandle(handle) };
            let mut descriptor = match operation {
                0 => Descriptor::new(&data),
                1 => Descriptor::rdma(Operation::RdmaWrite, remote, &data),
                _ => Descriptor::rdma(Operation::RdmaRead, remote, &data),
            };
            descriptor.fence = fence;
            descriptor.immediate = immediate;
            prop_assert_eq!(Descriptor::parse(&descriptor.emit(), 6), Ok(descriptor));
        }
    }
}
