//! Protection tags and registered memory.
//!
//! A VI reaches a range of memory if the range lies in the region of the handle, and tag of VI and region
//! are the same; a remote end only if both region and VI allow it.

use alloc::collections::{BTreeMap, BTreeSet};
use core::fmt;

use super::{MemoryAttributes, MemoryHandle, NicAttributes, Ptag, ViplError};

/// What for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A descriptor, or one of its data segments.
    Local,
    /// An RDMA write of the remote end.
    RdmaWrite,
    /// An RDMA read of the remote end.
    RdmaRead,
}

/// Why memory cannot be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// No such handle.
    Handle(MemoryHandle),
    /// Not in the region of the handle.
    Range {
        /// First octet.
        address: u64,
        /// Octets.
        length: u64,
    },
    /// Tag of another.
    Tag {
        /// That of the region.
        region: Ptag,
        /// That of the VI.
        vi: Ptag,
    },
    /// The region does not allow it.
    Access(Access),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Handle(handle) => write!(f, "memory handle {}: not registered", handle.0),
            Self::Range { address, length } => {
                write!(f, "{length} octets at {address:#x}: not in the region of the handle")
            }
            Self::Tag { region, vi } => write!(f, "a region of tag {}, a VI of tag {}", region.0, vi.0),
            Self::Access(access) => write!(f, "the region does not allow {access:?}"),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Region {
    address: u64,
    length: u64,
    attributes: MemoryAttributes,
}

/// The tags and regions of one NIC.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    tags: BTreeSet<u32>,
    regions: BTreeMap<u32, Region>,
    octets: u64,
    next_tag: u32,
    next_region: u32,
}

impl Memory {
    pub(crate) fn create_tag(&mut self, nic: &NicAttributes) -> Result<Ptag, ViplError> {
        if self.tags.len() >= nic.max_ptag as usize {
            return Err(ViplError::ErrorResource);
        }
        self.next_tag += 1;
        self.tags.insert(self.next_tag);
        Ok(Ptag(self.next_tag))
    }

    /// Gives a tag back; `in_use` is whether a VI has it.
    pub(crate) fn destroy_tag(&mut self, tag: Ptag, in_use: bool) -> Result<(), ViplError> {
        if !self.tags.contains(&tag.0) {
            return Err(ViplError::InvalidParameter);
        }
        if in_use || self.regions.values().any(|region| region.attributes.ptag == tag) {
            return Err(ViplError::ErrorResource);
        }
        self.tags.remove(&tag.0);
        Ok(())
    }

    pub(crate) fn has_tag(&self, tag: Ptag) -> bool {
        self.tags.contains(&tag.0)
    }

    pub(crate) fn register(
        &mut self,
        nic: &NicAttributes,
        address: u64,
        length: u64,
        attributes: MemoryAttributes,
    ) -> Result<MemoryHandle, ViplError> {
        if length == 0 || address.checked_add(length).is_none() {
            return Err(ViplError::InvalidParameter);
        }
        self.check_attributes(nic, attributes)?;
        if length > nic.max_register_block
            || self.octets.saturating_add(length) > nic.max_register_bytes
            || self.regions.len() >= nic.max_register_regions as usize
        {
            return Err(ViplError::ErrorResource);
        }
        self.next_region += 1;
        self.octets += length;
        self.regions.insert(self.next_region, Region { address, length, attributes });
        Ok(MemoryHandle(self.next_region))
    }

    /// `VipDeregisterMem`; the length of the region.
    pub(crate) fn deregister(&mut self, address: u64, handle: MemoryHandle) -> Result<u64, ViplError> {
        match self.regions.get(&handle.0) {
            Some(region) if region.address == address => {
                let length = region.length;
                self.octets -= length;
                self.regions.remove(&handle.0);
                Ok(length)
            }
            _ => Err(ViplError::InvalidParameter),
        }
    }

    pub(crate) fn attributes(
        &self,
        address: u64,
        handle: MemoryHandle,
    ) -> Result<MemoryAttributes, ViplError> {
        let region = self.regions.get(&handle.0).filter(|region| region.holds(address, 1));
        region.map(|region| region.attributes).ok_or(ViplError::InvalidParameter)
    }

    pub(crate) fn set_attributes(
        &mut self,
        nic: &NicAttributes,
        address: u64,
        handle: MemoryHandle,
        attributes: MemoryAttributes,
    ) -> Result<(), ViplError> {
        self.attributes(address, handle)?;
        self.check_attributes(nic, attributes)?;
        if let Some(region) = self.regions.get_mut(&handle.0) {
            region.attributes = attributes;
        }
        Ok(())
    }

    fn check_attributes(&self, nic: &NicAttributes, attributes: MemoryAttributes) -> Result<(), ViplError> {
        if !self.has_tag(attributes.ptag) {
            return Err(ViplError::InvalidPtag);
        }
        if attributes.enable_rdma_read && nic.rdma_read == super::ReliabilitySupport::NONE {
            return Err(ViplError::InvalidRdmaread);
        }
        Ok(())
    }

    /// Whether a VI of this tag reaches the range.
    ///
    /// *Choice*: a range of no octets names no memory, and is not looked at.
    ///
    /// # Errors
    /// [`Fault`].
    pub fn check(
        &self,
        address: u64,
        length: u64,
        handle: MemoryHandle,
        tag: Ptag,
        access: Access,
    ) -> Result<(), Fault> {
        if length == 0 {
            return Ok(());
        }
        let region = self.regions.get(&handle.0).ok_or(Fault::Handle(handle))?;
        if !region.holds(address, length) {
            return Err(Fault::Range { address, length });
        }
        if region.attributes.ptag != tag {
            return Err(Fault::Tag { region: region.attributes.ptag, vi: tag });
        }
        let allowed = match access {
            Access::Local => true,
            Access::RdmaWrite => region.attributes.enable_rdma_write,
            Access::RdmaRead => region.attributes.enable_rdma_read,
        };
        if allowed { Ok(()) } else { Err(Fault::Access(access)) }
    }

    /// Regions registered.
    pub fn regions(&self) -> usize {
        self.regions.len()
    }
}

impl Region {
    fn holds(&self, address: u64, length: u64) -> bool {
        address >= self.address
            && address.checked_add(length).is_some_and(|end| end <= self.address + self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::super::HostAddress;
    use super::*;

    #[test]
    fn memory_is_reached_by_handle_range_tag_and_right() {
        let nic = NicAttributes::adapter(HostAddress([0; 6]));
        let mut memory = Memory::default();
        let (ours, theirs) = (memory.create_tag(&nic).expect("room"), memory.create_tag(&nic).expect("room"));
        let attributes = MemoryAttributes { ptag: ours, enable_rdma_write: true, enable_rdma_read: false };
        let handle = memory.register(&nic, 1000, 100, attributes).expect("room");
        let check = |address, length, handle, tag, access| memory.check(address, length, handle, tag, access);
        assert_eq!(check(1000, 100, handle, ours, Access::Local), Ok(()));
        assert_eq!(check(1000, 100, handle, ours, Access::RdmaWrite), Ok(()));
        assert_eq!(check(1000, 100, handle, ours, Access::RdmaRead), Err(Fault::Access(Access::RdmaRead)));
        assert_eq!(check(999, 1, handle, ours, Access::Local), Err(Fault::Range { address: 999, length: 1 }));
        assert_eq!(
            check(1099, 2, handle, ours, Access::Local),
            Err(Fault::Range { address: 1099, length: 2 })
        );
        assert!(check(u64::MAX, 2, handle, ours, Access::Local).is_err(), "no wrapping around");
        assert_eq!(
            check(1000, 1, handle, theirs, Access::Local),
            Err(Fault::Tag { region: ours, vi: theirs })
        );
        let other = MemoryHandle(handle.0 + 1);
        assert_eq!(check(1000, 1, other, ours, Access::Local), Err(Fault::Handle(other)));
        assert_eq!(check(0, 0, other, theirs, Access::Local), Ok(()), "no octets, no memory");
    }

    #[test]
    fn a_handle_given_back_is_never_given_again() {
        let nic = NicAttributes { max_register_regions: 1, ..NicAttributes::adapter(HostAddress([0; 6])) };
        let mut memory = Memory::default();
        let ptag = memory.create_tag(&nic).expect("room");
        let attributes = MemoryAttributes { ptag, enable_rdma_write: false, enable_rdma_read: false };
        let first = memory.register(&nic, 0, 10, attributes).expect("room");
        assert_eq!(memory.register(&nic, 0, 10, attributes), Err(ViplError::ErrorResource));
        assert_eq!(memory.destroy_tag(ptag, false), Err(ViplError::ErrorResource), "in use");
        assert_eq!(memory.deregister(1, first), Err(ViplError::InvalidParameter), "not where it begins");
        assert_eq!(memory.deregister(0, first), Ok(10));
        assert_eq!(memory.deregister(0, first), Err(ViplError::InvalidParameter));
        assert_ne!(memory.register(&nic, 0, 10, attributes), Ok(first));
    }
}
