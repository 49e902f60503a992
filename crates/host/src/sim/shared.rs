//! What lies where in the memory that ranks and their simulator share, and how a turn is handed over.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// What a file of this version begins with.
pub(super) const MARK: u64 = u64::from_be_bytes(*b"wtsim\0\0\x04");
/// How much of the address space the file takes; what is not used takes no memory.
const BYTES: usize = 1 << 36;
/// Things asked or answered in one turn.
pub(super) const ROOM: usize = 128;
/// In place of a rank, a request or bytes: none.
pub(super) const NONE: u64 = u64::MAX;
/// In place of a request: another rank has done something in memory that both see.
pub const TOLD: u64 = u64::MAX - 1;

/// What holds for a whole run; set by the simulator before the first rank looks.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Given {
    /// How many ranks there are, at most.
    pub ranks: u32,
    /// How many of them the launcher starts; the others are spawned.
    pub launched: u32,
    /// How many lowest bits of a tag the library gives to its program; a receive names all of them or none.
    pub tag_bits: u32,
    /// Bits of a tag that every receive of the library's programs ignores.
    pub ignored: u64,
    /// Bits of a tag that the library's own messages have, which are never meant for a receive that ignores them.
    pub apart: u64,
    /// Sends of fewer bytes than this are complete as soon as they have left.
    pub eager_below: u64,
    /// What a call of the library costs, picoseconds.
    pub call_ps: u64,
    /// What a look at the clock costs, picoseconds.
    pub look_ps: u64,
    /// What each stretch of computation takes, picoseconds; `u64::MAX`: what is measured.
    pub compute_ps: u64,
    /// Whether operations of ranks may have to wait for a core, so that only the simulator knows the time.
    pub is_behind: u32,
    /// How often a library that waits asks in vain before everything that could help it has been tried.
    pub patience: u32,
    /// Whether its windows are in memory that the ranks of a host reach without messages.
    pub windows_in_memory: u32,
    /// Whether each rank has a core of its own, and looks there for its turn as a library does that waits.
    pub own_cores: u32,
    /// The rank whose core the simulator has, too, if any.
    pub disturbed_rank: u32,
    /// How much of what that rank's work takes is due to that, in millionths.
    pub disturbed_ppm: u32,
}

/// What a rank asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum AskKind {
    /// To compute for `length` picoseconds.
    Compute,
    /// To begin the call whose name is in the number fields.
    Enter,
    /// To end it.
    Exit,
    /// To send `length` bytes with `tag` to `peer`; the bytes lie at `place`.
    Send,
    /// To receive what `tag`, `ignore` and `peer` accept, at most `length` bytes.
    Receive,
    /// To withdraw the receive of this token.
    Cancel,
    /// To wait until anything has ended or, where `place` is not [`u64::MAX`], a message has come that `tag`,
    /// `ignore` and `peer` accept; or, where `length` is not 0, another rank tells what it has done in memory.
    Watch,
    /// The same, but in a call that only looks: it may go on without anything where nothing else happens.
    Seek,
    /// To be told what has ended by now, and of such a message.
    Look,
    /// To have those told who wait that something has been done in memory; `length` says after how many other such words.
    Tell,
    /// To be told the time.
    Now,
    /// To note the time: first as that at which the library has begun, then as that at which it begins to end.
    Mark,
    /// To start `length` processes of the program's own, which are ranks, too.
    Spawn,
    /// To leave the world.
    Finish,
}

/// One thing that a rank asks for; see [`AskKind`].
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Ask {
    /// What is asked for.
    pub kind: AskKind,
    /// Whether it is a message with a tag.
    pub tagged: u32,
    /// The other rank; `u64::MAX` for any.
    pub peer: u64,
    /// The rank's own number of the operation; `u64::MAX` where it wants to hear no more of it.
    pub token: u64,
    /// The tag.
    pub tag: u64,
    /// Bits of it that do not count.
    pub ignore: u64,
    /// A length in bytes, or picoseconds.
    pub length: u64,
    /// Where bytes lie.
    pub place: u64,
}

impl Ask {
    /// An operation of this kind, all else nothing.
    #[must_use]
    pub const fn new(kind: AskKind) -> Self {
        Self { kind, tagged: 0, peer: NONE, token: NONE, tag: 0, ignore: 0, length: 0, place: NONE }
    }

    /// The name of a call; what is longer than its fields is cut.
    #[must_use]
    pub fn enter(name: &[u8]) -> Self {
        let mut fields = [0; 6];
        for (field, chunk) in fields.iter_mut().zip(name.chunks(8)) {
            let mut bytes = [0; 8];
            bytes[..chunk.len()].copy_from_slice(chunk);
            *field = u64::from_le_bytes(bytes);
        }
        let [peer, token, tag, ignore, length, place] = fields;
        Self { kind: AskKind::Enter, tagged: 0, peer, token, tag, ignore, length, place }
    }

    /// That name.
    #[must_use]
    pub fn name(&self) -> String {
        let fields = [self.peer, self.token, self.tag, self.ignore, self.length, self.place];
        let bytes: Vec<u8> =
            fields.iter().flat_map(|field| field.to_le_bytes()).take_while(|&byte| byte != 0).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// What has become of something.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Answer {
    /// The token of what has ended; `u64::MAX` for a message that was found, [`TOLD`] where another rank has told of
    /// memory, `place` being after how many other such words.
    pub token: u64,
    /// Where the bytes of the message lie; `u64::MAX` of a send, or of a receive that was withdrawn.
    pub place: u64,
}

/// What stands before the bytes of a message.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Head {
    /// How many bytes follow.
    pub length: u64,
    /// The tag.
    pub tag: u64,
    /// Remote data.
    pub data: u64,
    /// The sender.
    pub source: u32,
    /// The message has a tag.
    pub is_tagged: bool,
    /// It has remote data.
    pub has_data: bool,
    /// The size class of the memory that holds its bytes.
    pub(super) class: u8,
}

#[repr(C)]
pub(super) struct Top {
    pub mark: AtomicU64,
    pub given: Given,
    /// Counted up by a rank that gives its turn back or has come.
    pub bell: AtomicU32,
    /// The run has ended: ranks that wait for a turn end themselves.
    pub over: AtomicU32,
    /// The first of the ranks that were spawned last.
    pub spawned_from: AtomicU32,
    /// Bytes that the file may take.
    pub limit: u64,
    pub heap: super::heap::Heap,
}

/// The place of one rank.
#[repr(C)]
pub(super) struct Slot {
    /// 0: the simulator has the turn; 1: the rank.
    pub turn: AtomicU32,
    /// 0: it has not come; 1: it has; 2: it has left.
    pub phase: AtomicU32,
    pub process: AtomicU32,
    /// The simulator goes on without the rank, which sleeps outside its library: its clock is not known there.
    pub is_passed_over: AtomicU32,
    /// The host that the rank lives on.
    pub host: u32,
    pub asked: u32,
    pub answered: u32,
    pub clock_ps: u64,
    pub asks: [Ask; ROOM],
    pub answers: [Answer; ROOM],
}

/// The memory as mapped by one process.
#[derive(Debug)]
pub(super) struct Memory {
    base: *mut u8,
}

// SAFETY: the memory is shared between processes anyway; whose turn it is says who may touch what.
unsafe impl Send for Memory {}

impl Memory {
    pub(super) fn map(file: &File) -> io::Result<Self> {
        // SAFETY: a fresh mapping at an address of the kernel's choice; pages are made when they are touched.
        let base = unsafe {
            let (access, flags) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_NORESERVE);
            libc::mmap(null_mut(), BYTES, access, flags, file.as_raw_fd(), 0)
        };
        if base == libc::MAP_FAILED {
            Err(io::Error::last_os_error())
        } else {
            Ok(Self { base: base.cast() })
        }
    }

    /// Makes the file, as long as it may become.
    pub(super) fn make(path: &Path) -> io::Result<Self> {
        let file = File::options().read(true).write(true).create_new(true).open(path)?;
        file.set_len(BYTES as u64)?;
        Self::map(&file)
    }

    pub(super) fn top(&self) -> &Top {
        // SAFETY: the file begins with it; what is not atomic is written before the first rank comes.
        unsafe { &*self.base.cast::<Top>() }
    }

    pub(super) fn top_mut(&mut self) -> &mut Top {
        // SAFETY: as above; nobody else has mapped the file yet.
        unsafe { &mut *self.base.cast::<Top>() }
    }

    /// The place of a rank. What is not atomic in it belongs to whoever has the turn.
    pub(super) fn slot(&self, rank: u32) -> *mut Slot {
        assert!(rank < self.top().given.ranks);
        let first = size_of::<Top>().next_multiple_of(64);
        // SAFETY: inside the file, whose length is far above that of all slots.
        unsafe { self.base.add(first).cast::<Slot>().add(rank as usize) }
    }

    /// Where the slots of so many ranks end.
    pub(super) const fn after(ranks: u32) -> u64 {
        let slots = size_of::<Slot>() * ranks as usize;
        (size_of::<Top>().next_multiple_of(64) + slots).next_multiple_of(4096) as u64
    }

    /// A place of the heap.
    pub(super) fn at(&self, place: u64) -> *mut u8 {
        assert!(place < BYTES as u64, "a place in the memory of the run");
        // SAFETY: inside the mapping.
        unsafe { self.base.add(place as usize) }
    }

    /// What stands before the message at a place that the heap has given.
    pub(super) fn head(&self, place: u64) -> Head {
        // SAFETY: places come from the heap, and their heads are written before they are handed on.
        unsafe { self.at(place).cast::<Head>().read() }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: mapped with this length; nothing that points into it outlives its owner.
        unsafe { libc::munmap(self.base.cast(), BYTES) };
    }
}

/// Sleeps until `word` is no more `seen`, for so long at most.
pub(super) fn sleep_on(word: &AtomicU32, seen: u32, limit: Duration) {
    let time = libc::timespec { tv_sec: limit.as_secs() as _, tv_nsec: limit.subsec_nanos() as _ };
    // SAFETY: the word lives as long as the mapping; the call reads it and the time.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT,
            seen,
            &raw const time,
            null::<u32>(),
            0,
        )
    };
}

/// Changes a word and wakes whoever sleeps on it.
pub(super) fn wake(word: &AtomicU32, change: impl FnOnce(&AtomicU32)) {
    change(word);
    // SAFETY: as above.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE,
            i32::MAX,
            null::<u8>(),
            null::<u32>(),
            0,
        )
    };
}

/// Rings the simulator's bell.
pub(super) fn ring(top: &Top) {
    wake(&top.bell, |bell| {
        bell.fetch_add(1, Ordering::Release);
    });
}
