//! Memory shared with another process.

use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

/// A mapping of shared memory, unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    bytes: usize,
}

impl Mapping {
    /// Maps the first `bytes` of `memory`, at least that long, for reading and writing.
    pub(crate) fn new(memory: BorrowedFd<'_>, bytes: usize) -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        Self::of(memory, 0, bytes, access, MapFlags::SHARED | MapFlags::POPULATE)
    }

    /// Maps this number of bytes of `memory`, from `offset` on, for reading.
    pub(crate) fn to_read(memory: BorrowedFd<'_>, offset: u64, bytes: usize) -> io::Result<Self> {
        Self::of(memory, offset, bytes, ProtFlags::READ, MapFlags::SHARED)
    }

    fn of(
        memory: BorrowedFd<'_>,
        offset: u64,
        bytes: usize,
        access: ProtFlags,
        flags: MapFlags,
    ) -> io::Result<Self> {
        // SAFETY: a fresh shared mapping of a file of at least this size, at an address the kernel
        // chooses. Whoever maps it sees to it that the file is not made shorter.
        let base = unsafe { mmap(std::ptr::null_mut(), bytes, access, flags, memory, offset)? };
        let base = NonNull::new(base.cast()).ok_or_else(|| io::Error::other("mapped at address 0"))?;
        Ok(Self { base, bytes })
    }

    /// How long it is.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Where it begins.
    pub(crate) fn address(&self) -> u64 {
        self.base.as_ptr() as u64
    }

    /// The address of a byte of the mapping.
    pub(crate) fn at(&self, offset: usize) -> NonNull<u8> {
        assert!(offset < self.bytes);
        // SAFETY: inside the mapping.
        unsafe { self.base.add(offset) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length; the rings that use it are dropped with their
        // owner. A failure leaves the mapping to the end of the process.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}
