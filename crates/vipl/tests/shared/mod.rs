//! Memory that the other process can map: a file in memory that never becomes shorter.

use std::ffi::c_int;

/// A mapping, and its file, which is open as long as the memory is there.
pub struct Shared {
    file: c_int,
    base: *mut u8,
    bytes: usize,
}

impl Shared {
    /// So many octets, zeroed, on a page of their own.
    pub fn new(bytes: usize) -> Self {
        // SAFETY: plain calls, whose outcomes are looked at.
        unsafe {
            let file = libc::memfd_create(c"vipl-test".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING);
            assert_eq!(libc::ftruncate(file, bytes.try_into().expect("a length")), 0);
            assert_eq!(libc::fcntl(file, libc::F_ADD_SEALS, libc::F_SEAL_SHRINK), 0);
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let base = libc::mmap(std::ptr::null_mut(), bytes, access, libc::MAP_SHARED, file, 0);
            assert_ne!(base, libc::MAP_FAILED);
            Self { file, base: base.cast(), bytes }
        }
    }

    pub const fn base(&self) -> *mut u8 {
        self.base
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: mapped and opened by `new`.
        unsafe {
            libc::munmap(self.base.cast(), self.bytes);
            libc::close(self.file);
        }
    }
}
