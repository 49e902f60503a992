//! Protection tags and registered memory.
//!
//! A VI reaches a range of memory if the range lies in the region of the handle, and tag of VI and region
//! are the same; a remote end only if both region and VI allow it.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::fmt;

use super::{MemoryAttributes, MemoryHandle, NicAttributes, Ptag, ViplError};

/// Regions that handles can tell apart.
const MOST_REGIONS: u32 = 1 << 16;

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

/// Memory that was registered.
#[derive(Clone, Copy, Debug)]
pub struct Region {
    address: u64,
    length: u64,
    attributes: MemoryAttributes,
}

/// Where a region is kept. Its place is the lower half of its handle, the number of the regions that have been
/// kept there the upper half, so that no handle is given twice.
#[derive(Clone, Copy, Debug)]
struct Slot {
    /// The handle of the region that is kept here; of none, one that leads to another place.
    handle: u32,
    number: u16,
    region: Region,
}

/// The tags and regions of one NIC.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    tags: BTreeSet<u32>,
    slots: Vec<Slot>,
    /// Slots without a region, the one that has been so for longest first.
    free: VecDeque<u16>,
    regions: usize,
    octets: u64,
    next_tag: u32,
    version: u64,
}

impl Memory {
    /// `VipCreatePtag`.
    ///
    /// # Errors
    /// [`ViplError::ErrorResource`] if there are too many.
    pub fn create_tag(&mut self, nic: &NicAttributes) -> Result<Ptag, ViplError> {
        if self.tags.len() >= nic.max_ptag as usize {
            return Err(ViplError::ErrorResource);
        }
        self.next_tag += 1;
        self.tags.insert(self.next_tag);
        Ok(Ptag(self.next_tag))
    }

    /// `VipDestroyPtag`; `in_use` is whether a VI has it.
    ///
    /// # Errors
    /// [`ViplError::InvalidParameter`], or [`ViplError::ErrorResource`] while a VI or a region has it.
    pub fn destroy_tag(&mut self, tag: Ptag, in_use: bool) -> Result<(), ViplError> {
        if !self.tags.contains(&tag.0) {
            return Err(ViplError::InvalidParameter);
        }
        if in_use
            || self
                .slots
                .iter()
                .enumerate()
                .any(|(place, slot)| slot.handle as u16 == place as u16 && slot.region.attributes.ptag == tag)
        {
            return Err(ViplError::ErrorResource);
        }
        self.tags.remove(&tag.0);
        Ok(())
    }

    /// Whether there is such a tag.
    pub fn has_tag(&self, tag: Ptag) -> bool {
        self.tags.contains(&tag.0)
    }

    /// `VipRegisterMem`.
    ///
    /// # Errors
    /// [`ViplError::InvalidParameter`] for no octets, or past the end of the address space;
    /// [`ViplError::InvalidPtag`], [`ViplError::InvalidRdmaread`], [`ViplError::ErrorResource`].
    pub fn register(
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
            || self.regions >= nic.max_register_regions.min(MOST_REGIONS) as usize
        {
            return Err(ViplError::ErrorResource);
        }
        let region = Region { address, length, attributes };
        let place = match self.free.pop_front() {
            Some(place) => place,
            None => {
                let place = u16::try_from(self.slots.len()).map_err(|_| ViplError::ErrorResource)?;
                self.slots.push(Slot { handle: 0, number: 0, region });
                place
            }
        };
        let slot = &mut self.slots[usize::from(place)];
        slot.number += 1;
        slot.region = region;
        slot.handle = u32::from(slot.number) << 16 | u32::from(place);
        self.regions += 1;
        self.octets += length;
        Ok(MemoryHandle(slot.handle))
    }

    #[inline(always)]
    fn region(&self, handle: MemoryHandle) -> Option<&Region> {
        let slot = self.slots.get((handle.0 & 0xffff) as usize)?;
        (slot.handle == handle.0).then_some(&slot.region)
    }

    /// The region of a handle, if a VI of this tag may use it for itself.
    #[inline(always)]
    pub fn region_of(&self, handle: MemoryHandle, tag: Ptag) -> Option<&Region> {
        self.region(handle).filter(|region| region.attributes.ptag == tag)
    }

    /// A number that is another as soon as what could be reached by a VI may not be any more.
    #[inline(always)]
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// `VipDeregisterMem`; the length of the region.
    ///
    /// # Errors
    /// [`ViplError::InvalidParameter`] if it is not what was registered.
    pub fn deregister(&mut self, address: u64, handle: MemoryHandle) -> Result<u64, ViplError> {
        let region = self.region(handle).filter(|region| region.address == address);
        let length = region.ok_or(ViplError::InvalidParameter)?.length;
        let place = handle.0 as u16;
        let slot = &mut self.slots[usize::from(place)];
        slot.handle = u32::from(!place);
        self.version += 1;
        // A slot whose numbers are used up stays empty.
        if slot.number < u16::MAX {
            self.free.push_back(place);
        }
        self.regions -= 1;
        self.octets -= length;
        Ok(length)
    }

    /// `VipQueryMem`.
    ///
    /// # Errors
    /// [`ViplError::InvalidParameter`] if the address is not in the region of the handle.
    pub fn attributes(&self, address: u64, handle: MemoryHandle) -> Result<MemoryAttributes, ViplError> {
        let region = self.region(handle).filter(|region| region.holds(address, 1));
        region.map(|region| region.attributes).ok_or(ViplError::InvalidParameter)
    }

    /// `VipSetMemAttributes`.
    ///
    /// # Errors
    /// [`ViplError::InvalidParameter`], [`ViplError::InvalidPtag`], [`ViplError::InvalidRdmaread`].
    pub fn set_attributes(
        &mut self,
        nic: &NicAttributes,
        address: u64,
        handle: MemoryHandle,
        attributes: MemoryAttributes,
    ) -> Result<(), ViplError> {
        self.attributes(address, handle)?;
        self.check_attributes(nic, attributes)?;
        self.slots[(handle.0 & 0xffff) as usize].region.attributes = attributes;
        self.version += 1;
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
    #[inline]
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
        let region = self.region(handle).ok_or(Fault::Handle(handle))?;
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

    /// Whether a VI of this tag reaches the range for itself: what [`Memory::check`] says, without why not.
    #[inline(always)]
    pub fn reaches(&self, address: u64, length: u64, handle: MemoryHandle, tag: Ptag) -> bool {
        length == 0 || self.region_of(handle, tag).is_some_and(|region| region.holds(address, length))
    }

    /// Regions registered.
    pub const fn regions(&self) -> usize {
        self.regions
    }
}

impl Region {
    /// Whether so many octets from this address on lie in it.
    #[inline(always)]
    pub const fn holds(&self, address: u64, length: u64) -> bool {
        // Before its beginning this is more than any length.
        let offset = address.wrapping_sub(self.address);
        offset <= self.length && length <= self.length - offset
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
        let check = |address, length, handle, tag, access| {
            let checked = memory.check(address, length, handle, tag, access);
            if access == Access::Local {
                assert_eq!(memory.reaches(address, length, handle, tag), checked.is_ok());
            }
            checked
        };
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
