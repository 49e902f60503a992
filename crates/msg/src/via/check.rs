//! Whether a descriptor can be carried out: the same for every provider, however it keeps descriptors.

use super::Ptag;
use super::attributes::{NicAttributes, ViAttributes};
use super::descriptor::{DataSegment, Descriptor, Operation, status};
use super::memory::{Access, Memory};

/// What is looked at of a descriptor that is well formed.
#[derive(Clone, Copy, Debug)]
pub struct DescriptorView<'a> {
    /// What it asks for.
    pub operation: Operation,
    /// Whether it has immediate data.
    pub immediate: bool,
    /// Its length field.
    pub length: u32,
    /// Local memory.
    pub data: &'a [DataSegment],
}

impl<'a> From<&'a Descriptor> for DescriptorView<'a> {
    fn from(descriptor: &'a Descriptor) -> Self {
        let Descriptor { operation, immediate, length, data, .. } = descriptor;
        Self { operation: *operation, immediate: immediate.is_some(), length: *length, data }
    }
}

impl DescriptorView<'_> {
    /// Octets of its data segments.
    #[inline]
    pub fn capacity(&self) -> u64 {
        self.data.iter().map(|segment| u64::from(segment.length)).sum()
    }

    /// Whether a send, or RDMA, of this VI can be carried out.
    ///
    /// # Errors
    /// Bits of [`status`]: the operation is not supported, the length is not that of the segments or above what the
    /// VI transfers, memory is not the VI's.
    #[inline]
    pub fn check_send(&self, nic: &NicAttributes, vi: &ViAttributes, memory: &Memory) -> Result<(), u32> {
        let level = vi.reliability;
        let supported = match self.operation {
            Operation::SendReceive => true,
            Operation::RdmaWrite => nic.rdma_write.has(level),
            Operation::RdmaRead => nic.rdma_read.has(level) && !self.immediate,
        };
        if !supported {
            return Err(status::FORMAT_ERROR);
        }
        let total = u64::from(self.length);
        if total != self.capacity() || total > vi.max_transfer.get() {
            return Err(status::LENGTH_ERROR);
        }
        check_segments(self.data, vi.ptag, memory)
    }

    /// Whether a message of so many octets can go into this receive.
    ///
    /// # Errors
    /// Bits of [`status`].
    #[inline]
    pub fn check_receive(&self, octets: u32, vi: &ViAttributes, memory: &Memory) -> Result<(), u32> {
        if self.operation != Operation::SendReceive {
            return Err(status::FORMAT_ERROR);
        }
        if u64::from(octets) > self.capacity() {
            return Err(status::LENGTH_ERROR);
        }
        check_segments(self.data, vi.ptag, memory)
    }
}

/// Whether a VI of this tag may use these segments.
///
/// # Errors
/// [`status::PROTECTION_ERROR`].
#[inline]
pub fn check_segments(data: &[DataSegment], tag: Ptag, memory: &Memory) -> Result<(), u32> {
    let reached = data.iter().all(|&DataSegment { address, handle, length }| {
        memory.check(address, length.into(), handle, tag, Access::Local).is_ok()
    });
    if reached { Ok(()) } else { Err(status::PROTECTION_ERROR) }
}
