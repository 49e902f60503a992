//! The buffers of one connection, posted beforehand: those that fill, and those that are sent.
//!
//! Each stands behind its descriptor, in memory that is registered once.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

use wiretwin_msg::mpi::Flow;
use wiretwin_msg::mpi::vias::HEAD_OCTETS;
use wiretwin_msg::via::{
    AddressSegment, CONTROL_SEGMENT, ControlSegment, DESCRIPTOR_ALIGNMENT, DataSegment, MemoryAttributes,
    MemoryHandle, Place, Ptag, ViplError,
};

use crate::ring::copy_few;
use crate::vipl::Adapter;

/// Receives beyond those that are counted: a buffer is returned while what came in it is looked at, and another before
/// it is posted again.
const SPARE_RECEIVES: u32 = 2;
/// Sends beyond those that are counted: RDMA writes take no buffer of the other end.
const SPARE_SENDS: u32 = 4;
/// Bytes before a buffer: its descriptor.
const DESCRIPTOR: usize = DESCRIPTOR_ALIGNMENT as usize;

/// The bit of a control segment that makes a descriptor an RDMA write.
const WRITE: u16 = 1;

#[derive(Debug)]
pub(super) struct Buffers {
    base: NonNull<u8>,
    layout: Layout,
    handle: MemoryHandle,
    /// Bytes of a buffer.
    room: usize,
    receives: u32,
    sends: u32,
    /// The next send, and how many are not done; they are done in their order.
    next: u32,
    open: u32,
}

impl Buffers {
    /// Room for a connection of this flow, registered with `tag`.
    ///
    /// # Errors
    /// As for [`Adapter::register_mem`].
    pub fn new(adapter: &Adapter, tag: Ptag, flow: &Flow) -> Result<Self, ViplError> {
        let (receives, sends) = (flow.buffers + SPARE_RECEIVES, flow.buffers + SPARE_SENDS);
        let room = usize::try_from(flow.buffer.get()).map_err(|_| ViplError::ErrorResource)?;
        let bytes = (receives + sends) as usize * (DESCRIPTOR + room.next_multiple_of(DESCRIPTOR));
        let layout = Layout::from_size_align(bytes, 4096).map_err(|_| ViplError::ErrorResource)?;
        // SAFETY: more than no bytes.
        let Some(base) = NonNull::new(unsafe { alloc_zeroed(layout) }) else { handle_alloc_error(layout) };
        let attributes = MemoryAttributes { ptag: tag, enable_rdma_write: false, enable_rdma_read: false };
        let registered = adapter.register_mem(base.as_ptr() as u64, bytes as u64, attributes);
        let mut buffers =
            Self { base, layout, handle: MemoryHandle(0), room, receives, sends, next: 0, open: 0 };
        buffers.handle = registered?;
        Ok(buffers)
    }

    /// The memory that they lie in.
    pub fn memory(&self) -> Place {
        Place { address: self.base.as_ptr() as u64, handle: self.handle }
    }

    const fn stride(&self) -> usize {
        DESCRIPTOR + self.room.next_multiple_of(DESCRIPTOR)
    }

    fn descriptor(&self, slot: u32) -> NonNull<u8> {
        assert!(slot < self.receives + self.sends, "a slot of this connection");
        // SAFETY: within the memory.
        unsafe { self.base.add(slot as usize * self.stride()) }
    }

    fn buffer(&self, slot: u32) -> NonNull<u8> {
        // SAFETY: within the memory: a buffer stands behind its descriptor.
        unsafe { self.descriptor(slot).add(DESCRIPTOR) }
    }

    /// Fills in the descriptor of a slot.
    fn describe(&self, slot: u32, remote: Option<AddressSegment>, data: DataSegment) -> Place {
        let (segments, control) = if remote.is_some() { (2, WRITE) } else { (1, 0) };
        let head = ControlSegment { segments, control, length: data.length, ..ControlSegment::default() };
        let mut octets = [0; DESCRIPTOR];
        octets[..CONTROL_SEGMENT].copy_from_slice(&head.emit());
        let (first, second) = octets[CONTROL_SEGMENT..].split_at_mut(16);
        match remote {
            Some(remote) => {
                first.copy_from_slice(&remote.emit());
                second.copy_from_slice(&data.emit());
            }
            None => first.copy_from_slice(&data.emit()),
        }
        let at = self.descriptor(slot);
        // SAFETY: a descriptor within the memory, which the adapter does not have.
        unsafe { at.cast().write(octets) };
        Place { address: at.as_ptr() as u64, handle: self.handle }
    }

    fn segment(&self, slot: u32, length: u32) -> DataSegment {
        DataSegment { address: self.buffer(slot).as_ptr() as u64, handle: self.handle, length }
    }

    /// The receives that are posted before anything comes.
    pub fn receives(&self) -> impl Iterator<Item = Place> {
        (0..self.receives).map(|slot| self.receive(slot))
    }

    /// The descriptor of a receive, to be posted.
    pub fn receive(&self, slot: u32) -> Place {
        self.describe(slot, None, self.segment(slot, self.room as u32))
    }

    /// Which receive this descriptor is, and the bytes that have come in its buffer.
    pub fn came(&self, place: Place, length: u32) -> Option<(u32, &[u8])> {
        let at = place.address.checked_sub(self.base.as_ptr() as u64)? as usize;
        let slot = u32::try_from(at).ok()? / self.stride() as u32;
        if slot >= self.receives {
            return None;
        }
        let length = (length as usize).min(self.room);
        // SAFETY: a buffer that the adapter has given back, and does not have again before it is posted.
        Some((slot, unsafe { std::slice::from_raw_parts(self.buffer(slot).as_ptr(), length) }))
    }

    /// Whether a send can be had without one being done first.
    pub const fn has_send(&self) -> bool {
        self.open < self.sends
    }

    /// Whether so many sends are open that those that are done should be taken off.
    pub const fn is_filling(&self) -> bool {
        self.open > self.sends / 2
    }

    /// Sends that are not done.
    pub const fn open(&self) -> u32 {
        self.open
    }

    /// The oldest send is done.
    pub const fn done(&mut self) {
        self.open = self.open.saturating_sub(1);
    }

    fn take(&mut self) -> u32 {
        debug_assert!(self.has_send(), "asked for before");
        let slot = self.receives + self.next;
        self.next = (self.next + 1) % self.sends;
        self.open += 1;
        slot
    }

    /// A send of these bytes, the head first.
    #[inline]
    pub fn send(&mut self, head: &[u8; HEAD_OCTETS], body: &[u8]) -> Place {
        let slot = self.take();
        let length = head.len() + body.len();
        assert!(length <= self.room, "{length} bytes in a buffer of {}", self.room);
        let to = self.buffer(slot).as_ptr();
        // SAFETY: a buffer that is long enough and that the adapter does not have.
        unsafe {
            std::ptr::copy_nonoverlapping(head.as_ptr(), to, head.len());
            copy_few(body.as_ptr(), to.add(head.len()), body.len());
        }
        self.describe(slot, None, self.segment(slot, length as u32))
    }

    /// An RDMA write of this memory into that one.
    pub fn write(&mut self, from: DataSegment, to: AddressSegment) -> Place {
        let slot = self.take();
        self.describe(slot, Some(to), from)
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        // SAFETY: allocated above with this layout. Whoever has it has closed the adapter before.
        unsafe { dealloc(self.base.as_ptr(), self.layout) };
    }
}
