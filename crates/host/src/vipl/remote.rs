//! Reading the memory of another process: data come in one copy, which the process that receives them makes into
//! its own memory, so that no process ever writes into another's.
//!
//! process_vm_readv(2); the kernel allows it between processes of one user that may trace each other. Where it
//! does not, data go through the ring.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::OnceLock;

/// Segments of one call.
const MOST: usize = 256;

/// Part of a memory: where, and octets.
pub(super) type Range = (u64, u32);

/// A number that this process keeps at a known place, by which another finds out whether it can read here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cookie {
    pub address: u64,
    pub number: u64,
}

impl Cookie {
    /// That of this process.
    pub fn ours() -> Self {
        static NUMBER: OnceLock<u64> = OnceLock::new();
        let number = NUMBER.get_or_init(|| RandomState::new().build_hasher().finish());
        Self { address: std::ptr::from_ref(number) as u64, number: *number }
    }

    /// Whether the memory of the process that keeps it can be read.
    pub fn is_readable(self, process: libc::pid_t) -> bool {
        let mut found = 0_u64;
        let to = [(std::ptr::from_mut(&mut found) as u64, 8)];
        // SAFETY: the range is the variable.
        process > 0 && unsafe { read(process, &to, &[(self.address, 8)]) } == 8 && found == self.number
    }
}

/// Copies from these parts of another process's memory into these of this one's; the octets that came.
///
/// # Safety
/// The parts of this process's memory may be written.
pub(super) unsafe fn read(process: libc::pid_t, to: &[Range], from: &[Range]) -> u64 {
    let vector = |ranges: &[Range]| {
        let mut vector = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; MOST];
        for (slot, (address, length)) in vector.iter_mut().zip(ranges) {
            *slot = libc::iovec { iov_base: *address as *mut _, iov_len: *length as usize };
        }
        vector
    };
    let (local, remote) = (vector(to), vector(from));
    let (to, from) = (to.len().min(MOST) as libc::c_ulong, from.len().min(MOST) as libc::c_ulong);
    // SAFETY: the caller's; the kernel checks the rest.
    let came = unsafe { libc::process_vm_readv(process, local.as_ptr(), to, remote.as_ptr(), from, 0) };
    u64::try_from(came).unwrap_or(0)
}
