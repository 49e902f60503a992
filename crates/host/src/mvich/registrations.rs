//! Memory of the program that is registered, and stays so until room is needed: a buffer that is used again is not
//! registered again.

use wiretwin_msg::via::{DataSegment, MemoryAttributes, MemoryHandle, Ptag, ViplError};

use crate::vipl::Adapter;

#[derive(Debug)]
struct Region {
    address: u64,
    length: u64,
    handle: MemoryHandle,
    /// Transfers that it is needed for.
    uses: u32,
}

#[derive(Debug)]
pub(super) struct Registrations {
    tag: Ptag,
    most: usize,
    /// The one used last at the end.
    regions: Vec<Region>,
    /// How often memory was registered.
    pub made: u64,
}

impl Registrations {
    /// At most so many regions stay; more are there only while all are needed.
    pub fn new(tag: Ptag, most: usize) -> Self {
        Self { tag, most, regions: Vec::with_capacity(most + 1), made: 0 }
    }

    /// Registers a range, unless it is, until it was [`Registrations::release`]d as often as asked for.
    ///
    /// # Errors
    /// As for [`Adapter::register_mem`].
    pub fn acquire(
        &mut self,
        adapter: &Adapter,
        address: u64,
        length: u32,
    ) -> Result<DataSegment, ViplError> {
        let end = address + u64::from(length);
        let holds = |region: &Region| region.address <= address && end <= region.address + region.length;
        if let Some(at) = self.regions.iter().rposition(holds) {
            let mut region = self.regions.remove(at);
            region.uses += 1;
            let handle = region.handle;
            self.regions.push(region);
            return Ok(DataSegment { address, handle, length });
        }
        if self.regions.len() >= self.most
            && let Some(at) = self.regions.iter().position(|region| region.uses == 0)
        {
            let old = self.regions.remove(at);
            adapter.deregister_mem(old.address, old.handle)?;
        }
        let attributes =
            MemoryAttributes { ptag: self.tag, enable_rdma_write: true, enable_rdma_read: false };
        let handle = adapter.register_mem(address, length.into(), attributes)?;
        self.made += 1;
        self.regions.push(Region { address, length: length.into(), handle, uses: 1 });
        Ok(DataSegment { address, handle, length })
    }

    /// A transfer is over.
    pub fn release(&mut self, handle: MemoryHandle) {
        if let Some(region) = self.regions.iter_mut().find(|region| region.handle == handle) {
            region.uses = region.uses.saturating_sub(1);
        }
    }

    /// What a transfer that is given up needs is taken back: nobody writes there any more.
    pub fn revoke(&mut self, adapter: &Adapter, handle: MemoryHandle) {
        if let Some(at) = self.regions.iter().position(|region| region.handle == handle) {
            let region = self.regions.remove(at);
            // It was registered, and by this address.
            let _ = adapter.deregister_mem(region.address, handle);
        }
    }
}
