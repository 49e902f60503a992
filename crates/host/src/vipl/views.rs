//! Memory of the process at the other end that both can map: long data are copied out of it without a system call.
//!
//! A program may register memory that is a shared mapping of a file. Where the file can never become shorter
//! (`F_SEAL_SHRINK`, memfd_create(2)) and the kernel hands it over (/proc/PID/fd), the receiver maps it, to be
//! read only, when data of a region come from it for the first time; all else is read by a system call
//! ([`super::remote`]). A region stays the mapping that it was when it was registered, as it does for an adapter of
//! hardware, and its handle is never given to another: what was found for a handle stays right.

use std::fs::{self, File, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};

use rustix::fs::{SealFlags, fcntl_get_seals, major, minor};
use wiretwin_msg::via::MemoryHandle;

use super::remote::Range;
use crate::mapping::Mapping;

/// Regions of one connection that are known at once; the one used longest ago is forgotten.
const MOST: usize = 64;

/// What is known of a region.
#[derive(Debug)]
struct View {
    handle: MemoryHandle,
    /// Where the other process has it.
    address: u64,
    /// None where it has to be read.
    mapping: Option<Mapping>,
}

/// The memory of the process at the other end.
#[derive(Debug)]
pub(super) struct Views {
    /// The process, if its memory can be read.
    pub process: Option<libc::pid_t>,
    /// The one used last at the end.
    known: Vec<View>,
}

/// Data in the memory of the other process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub address: u64,
    pub length: u32,
    /// The region, or none (0), which has to be read.
    pub handle: MemoryHandle,
}

impl Part {
    pub const NONE: Self = Self { address: 0, length: 0, handle: MemoryHandle(0) };

    /// As it stands in a frame.
    pub fn octets(self) -> [u8; 16] {
        let mut octets = [0; 16];
        octets[..8].copy_from_slice(&self.address.to_le_bytes());
        octets[8..12].copy_from_slice(&self.length.to_le_bytes());
        octets[12..].copy_from_slice(&self.handle.0.to_le_bytes());
        octets
    }

    /// The reverse of [`Part::octets`]; none of fewer octets.
    pub fn parse(octets: &[u8]) -> Self {
        let Some(octets) = octets.first_chunk::<16>() else { return Self::NONE };
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|octet| octets[at + octet]));
        let address = u64::from(word(0)) | u64::from(word(4)) << 32;
        Self { address, length: word(8), handle: MemoryHandle(word(12)) }
    }
}

impl Views {
    pub fn new(process: Option<libc::pid_t>) -> Self {
        Self { process, known: Vec::with_capacity(MOST) }
    }

    /// Where these parts can be copied from, in this process; false if one of them has to be read.
    pub fn find(&mut self, parts: &[Part], places: &mut [Range]) -> bool {
        let Some(process) = self.process else { return false };
        for part in parts {
            if !self.knows(part.handle) {
                self.learn(process, *part);
            }
        }
        // What was known at first may have been forgotten for the others.
        parts.iter().zip(places).all(|(part, place)| match self.place(*part) {
            Some(address) => {
                *place = (address, part.length);
                true
            }
            None => false,
        })
    }

    /// Whether it is known, which it stays for longest then.
    fn knows(&mut self, handle: MemoryHandle) -> bool {
        let at = self.known.iter().rposition(|view| view.handle == handle);
        if let Some(at) = at {
            self.known[at..].rotate_left(1);
        }
        handle.0 == 0 || at.is_some()
    }

    fn learn(&mut self, process: libc::pid_t, part: Part) {
        if self.known.len() == MOST {
            self.known.remove(0);
        }
        let (address, mapping) = map(process, part.address).map_or((0, None), |(at, map)| (at, Some(map)));
        self.known.push(View { handle: part.handle, address, mapping });
    }

    fn place(&self, part: Part) -> Option<u64> {
        let view = self.known.iter().rfind(|view| view.handle == part.handle)?;
        let mapping = view.mapping.as_ref()?;
        let offset = part.address.checked_sub(view.address)?;
        let end = offset.checked_add(part.length.into())?;
        (end <= mapping.bytes() as u64).then(|| mapping.address() + offset)
    }
}

/// Maps the file that a process has mapped around this address, with the address where its mapping begins.
fn map(process: libc::pid_t, address: u64) -> Option<(u64, Mapping)> {
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).ok()?;
    let found = maps.lines().find_map(|line| Line::parse(line).filter(|line| line.holds(address)))?;
    let file = open(process, &found)?;
    // It is as long as this for ever: beyond it a touch would be a signal.
    if !fcntl_get_seals(&file).ok()?.contains(SealFlags::SHRINK) {
        return None;
    }
    let left = file.metadata().ok()?.len().checked_sub(found.offset)?;
    let bytes = usize::try_from(left.min(found.end - found.first)).ok().filter(|bytes| *bytes > 0)?;
    Some((found.first, Mapping::to_read(file.as_fd(), found.offset, bytes).ok()?))
}

/// The file of this mapping, from among those that the process has open.
fn open(process: libc::pid_t, line: &Line) -> Option<File> {
    let is_it = |about: &fs::Metadata| {
        let (device, kind) = (about.dev(), about.file_type());
        let plain = !kind.is_fifo() && !kind.is_socket() && kind.is_file();
        plain && about.ino() == line.inode && (major(device), minor(device)) == line.device
    };
    fs::read_dir(format!("/proc/{process}/fd")).ok()?.flatten().find_map(|entry| {
        // Through the link, to the file.
        let path = entry.path();
        fs::metadata(&path).ok().filter(is_it)?;
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&path).ok()?;
        // The process may have closed it meanwhile, and opened another.
        file.metadata().ok().filter(is_it).map(|_| file)
    })
}

/// A line of /proc/PID/maps that is a shared mapping of a file (proc_pid_maps(5)).
#[derive(Debug, PartialEq, Eq)]
struct Line {
    first: u64,
    end: u64,
    offset: u64,
    device: (u32, u32),
    inode: u64,
}

impl Line {
    fn parse(line: &str) -> Option<Self> {
        let hexadecimal = |word: &str| u64::from_str_radix(word, 16).ok();
        let half = |word: &str| u32::from_str_radix(word, 16).ok();
        let mut words = line.split_ascii_whitespace();
        let (first, end) = words.next()?.split_once('-')?;
        let shared = words.next()?.as_bytes().get(3) == Some(&b's');
        let offset = hexadecimal(words.next()?)?;
        let (high, low) = words.next()?.split_once(':')?;
        let inode = words.next()?.parse().ok()?;
        let (first, end, device) = (hexadecimal(first)?, hexadecimal(end)?, (half(high)?, half(low)?));
        (shared && inode != 0).then_some(Self { first, end, offset, device, inode })
    }

    const fn holds(&self, address: u64) -> bool {
        self.first <= address && address < self.end
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use rustix::fs::{MemfdFlags, fcntl_add_seals, ftruncate, memfd_create};

    use super::*;

    const BYTES: usize = 3 * 4096;

    /// A file in memory, shared with this process itself.
    fn shared(seals: SealFlags) -> (OwnedFd, Mapping) {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create("wiretwin-test", flags).unwrap();
        ftruncate(&file, BYTES as u64).unwrap();
        fcntl_add_seals(&file, seals).unwrap();
        let mapping = Mapping::new(file.as_fd(), BYTES).unwrap();
        (file, mapping)
    }

    fn views() -> Views {
        Views::new(libc::pid_t::try_from(std::process::id()).ok())
    }

    fn part(address: u64, length: u32, handle: u32) -> Part {
        Part { address, length, handle: MemoryHandle(handle) }
    }

    #[test]
    fn a_file_that_stays_as_long_as_it_is_is_mapped_to_be_read() {
        let (_file, mapping) = shared(SealFlags::SHRINK);
        let address = mapping.address();
        // SAFETY: within the mapping.
        unsafe { mapping.at(5000).as_ptr().write(7) };
        let (mut views, mut places) = (views(), [(0, 0); 2]);
        let parts = [part(address + 5000, 10, 1), part(address, BYTES as u32, 1)];
        assert!(views.find(&parts, &mut places));
        assert_eq!([places[0].1, places[1].1], [10, BYTES as u32]);
        assert_ne!(places[1].0, address, "a mapping of its own");
        // SAFETY: mapped just now.
        assert_eq!(unsafe { *(places[0].0 as *const u8) }, 7);
        for beyond in [part(address, BYTES as u32 + 1, 1), part(address - 1, 1, 1), part(u64::MAX, 1, 1)] {
            assert!(!views.find(&[beyond], &mut places), "{beyond:?}");
        }
    }

    #[test]
    fn what_is_private_or_may_become_shorter_or_is_unknown_is_read() {
        let private = [0_u64; 8];
        let (_file, unsealed) = shared(SealFlags::GROW);
        let (file, closed) = shared(SealFlags::SHRINK);
        drop(file);
        let (mut views, mut places) = (views(), [(0, 0)]);
        for (handle, address) in
            [(1, private.as_ptr() as u64), (2, unsealed.address()), (3, closed.address()), (0, 4096)]
        {
            assert!(!views.find(&[part(address, 8, handle)], &mut places), "region {handle}");
        }
    }

    #[test]
    fn the_region_used_longest_ago_is_forgotten_and_found_again() {
        let (_file, mapping) = shared(SealFlags::SHRINK);
        let (mut views, mut places) = (views(), [(0, 0); MOST + 1]);
        for handle in (1..=MOST as u32 + 1).chain([1]) {
            assert!(views.find(&[part(mapping.address(), 8, handle)], &mut places), "region {handle}");
            assert!(views.known.len() <= MOST);
        }
        let more: Vec<Part> =
            (1..=MOST as u32 + 1).map(|handle| part(mapping.address(), 8, handle)).collect();
        assert!(!views.find(&more, &mut places), "more of one message than are known at once");
    }
}
