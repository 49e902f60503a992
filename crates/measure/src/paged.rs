//! Memory of messages that begins with a page.

use std::ops::{Deref, DerefMut};

/// Bytes in a page of the machines that wiretwin runs on.
const PAGE: usize = 4096;

/// Bytes that begin with a page, as the buffers of the OSU micro-benchmarks do. An allocator gives an address
/// 16 bytes into a page, at which a message of 64 KiB over MPICH's shared memory takes 1.1 times as long.
///
/// They grow and never shrink; all of them have been written to.
#[derive(Debug, Default)]
pub(crate) struct Paged {
    memory: Vec<u8>,
    skipped: usize,
    length: usize,
}

impl Paged {
    /// Makes it at least `bytes` long, filled with `byte` where it had to be made anew.
    pub fn grow(&mut self, bytes: usize, byte: u8) {
        if self.length < bytes {
            self.memory = vec![byte; bytes + PAGE];
            self.skipped = self.memory.as_ptr().align_offset(PAGE).min(PAGE);
            self.length = bytes;
        }
    }
}

impl Deref for Paged {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.skipped..self.skipped + self.length]
    }
}

impl DerefMut for Paged {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.skipped..self.skipped + self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_begins_with_a_page_and_is_filled() {
        let mut paged = Paged::default();
        for bytes in [1, 100, 4096, 70_000, 5, 1 << 20] {
            paged.grow(bytes, 0x5a);
            assert!(paged.len() >= bytes);
            assert_eq!(paged.as_ptr() as usize % PAGE, 0);
            assert!(paged.iter().all(|byte| *byte == 0x5a));
        }
    }
}
