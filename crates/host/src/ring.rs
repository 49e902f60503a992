//! A one-way ring between two processes in shared memory: single producer, single consumer, no
//! locks and no system calls.
//!
//! A message of up to [`INLINE`] bytes travels in one cache line together with the mark that
//! announces it, so that one line moves between the cores per message. The mark and the first bytes
//! are one word, stored at once and last: a message of up to [`SHORT`] bytes is a single store and a
//! single load. A longer one than fits is cut into chunks in the bulk area, each announced by a line of
//! its own: the consumer copies a chunk out while the producer copies the next one in.
//!
//! A line is free again when the consumer has said so; it says so seldom (a quarter of the ring at
//! a time, or with a chunk), on a line of its own. Neither end waits for that line to cross while the
//! other waits for a message: the consumer writes to it when it begins to wait itself, and the
//! producer reads it behind a message that it has just sent.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes a line carries beside its mark.
pub(crate) const INLINE: usize = LINE - 1;
/// Bytes that lie in one word with the mark.
const SHORT: usize = 7;
/// The head of a frame of one line, and the most bytes behind it.
pub(crate) const SHORT_HEAD: usize = 3;
pub(crate) const SHORT_FRAME: usize = INLINE - SHORT_HEAD;
/// A cache line, in bytes.
const LINE: usize = 64;
/// Lines in a ring.
const LINES: u64 = 128;
/// The consumer reports after so many lines: with the last of them or when it next asks for one.
const REPORT: u64 = LINES / 4;
/// The producer asks what is free after so many lines that it does not know to be.
const ASK: u64 = LINES / 2;
/// The bulk area, in bytes.
const BULK: usize = 1 << 18;
/// The longest chunk, in bytes.
const CHUNK: usize = 1 << 14;
/// The longest frame, in bytes.
pub(crate) const FRAME: usize = CHUNK;
/// The consumer's two counters; two lines, since some processors fetch lines in pairs.
const REPORTS: usize = 2 * LINE;
/// Bytes of shared memory for one ring, a multiple of the page size.
pub(crate) const RING_BYTES: usize = (REPORTS + LINES as usize * LINE + BULK).next_multiple_of(4096);

/// The lowest byte of a line's first word is its mark: the length of the message; or this bit, and the length
/// of a chunk in the bulk area above; and [`lap`].
const IN_BULK: u64 = 1 << 6;
const LENGTH: u64 = IN_BULK - 1;
const MARK: u64 = 0xff;

/// The shared memory of one ring.
#[derive(Clone, Copy, Debug)]
struct Area(NonNull<u8>);

impl Area {
    fn counter(&self, at: usize) -> &AtomicU64 {
        debug_assert!(at.is_multiple_of(8) && at + 8 <= RING_BYTES);
        // SAFETY: `at` is a multiple of 8 inside the ring's memory, which is page-aligned, lives as
        // long as the ring's owner keeps its mapping, and is accessed as an atomic by both sides.
        unsafe { AtomicU64::from_ptr(self.0.as_ptr().add(at).cast()) }
    }

    /// How many lines the consumer has done with.
    fn lines_done(&self) -> &AtomicU64 {
        self.counter(0)
    }

    /// How many bytes of the bulk area the consumer has done with.
    fn bulk_done(&self) -> &AtomicU64 {
        self.counter(8)
    }

    const fn line_at(number: u64) -> usize {
        REPORTS + (number % LINES) as usize * LINE
    }

    /// The word that is stored last: the mark and up to [`SHORT`] bytes.
    fn word(&self, number: u64) -> &AtomicU64 {
        self.counter(Self::line_at(number))
    }

    fn payload(&self, number: u64) -> *mut u8 {
        // SAFETY: the payload of any line lies inside the ring's memory.
        unsafe { self.0.as_ptr().add(Self::line_at(number) + 1) }
    }

    fn bulk(&self, position: u64) -> *mut u8 {
        // SAFETY: the position is taken modulo the bulk area, which ends inside the ring's memory.
        unsafe { self.0.as_ptr().add(REPORTS + LINES as usize * LINE + position as usize % BULK) }
    }
}

/// The lap of a line, one bit of its mark: differs from that of the line's last use, and at first from the
/// zero of fresh memory. One bit is enough, for no line is used again before its consumer has done with it.
const fn lap(number: u64) -> u64 {
    (!(number / LINES) & 1) << 7
}

/// At most [`SHORT`] bytes as the low bytes of a word, without a call.
#[inline(always)]
fn pack(bytes: &[u8]) -> u64 {
    let half = |at: usize| u64::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]));
    let word = |at: usize| half(at) | half(at + 2) << 16;
    match bytes.len() {
        length @ 4..=SHORT => word(0) | word(length - 4) << (8 * (length - 4)),
        length @ 2..4 => half(0) | half(length - 2) << (8 * (length - 2)),
        1 => u64::from(bytes[0]),
        _ => 0,
    }
}

/// The reverse of [`pack`].
#[inline(always)]
fn unpack(word: u64, buffer: &mut [u8]) {
    let length = buffer.len();
    match length {
        4..=SHORT => {
            buffer[..4].copy_from_slice(&(word as u32).to_le_bytes());
            buffer[length - 4..].copy_from_slice(&((word >> (8 * (length - 4))) as u32).to_le_bytes());
        }
        2..4 => {
            buffer[..2].copy_from_slice(&(word as u16).to_le_bytes());
            buffer[length - 2..].copy_from_slice(&((word >> (8 * (length - 2))) as u16).to_le_bytes());
        }
        1 => buffer[0] = word as u8,
        _ => {}
    }
}

/// Copies at most [`INLINE`] bytes without a call: two overlapping moves of half the length or more.
///
/// # Safety
/// As for [`std::ptr::copy_nonoverlapping`]; `length` is at most [`INLINE`].
#[inline(always)]
pub(crate) unsafe fn copy_short(from: *const u8, to: *mut u8, length: usize) {
    /// Moves the first and the last of `length` bytes, each a `T`.
    ///
    /// # Safety
    /// As for [`std::ptr::copy_nonoverlapping`] of `length` bytes, which are at least a `T`.
    #[inline(always)]
    unsafe fn ends<T: Copy>(from: *const u8, to: *mut u8, length: usize) {
        let last = length - size_of::<T>();
        // SAFETY: both lie within `length` bytes; unaligned access is allowed.
        unsafe {
            let (first, second) =
                (from.cast::<T>().read_unaligned(), from.add(last).cast::<T>().read_unaligned());
            to.cast::<T>().write_unaligned(first);
            to.add(last).cast::<T>().write_unaligned(second);
        }
    }
    // SAFETY: the caller's, and each size is at most the length.
    unsafe {
        match length {
            4..8 => ends::<u32>(from, to, length),
            8..16 => ends::<u64>(from, to, length),
            16..32 => ends::<[u64; 2]>(from, to, length),
            32.. => ends::<[u64; 4]>(from, to, length),
            2..4 => ends::<u16>(from, to, length),
            1 => to.write(from.read()),
            0 => {}
        }
    }
}

/// Copies without a call what may be short.
///
/// # Safety
/// As for [`std::ptr::copy_nonoverlapping`].
#[inline(always)]
pub(crate) unsafe fn copy_few(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: the caller's.
    unsafe {
        if length <= INLINE {
            copy_short(from, to, length);
        } else {
            std::ptr::copy_nonoverlapping(from, to, length);
        }
    }
}

/// The bulk position after a chunk: chunks begin on lines.
const fn after(position: u64, length: usize) -> u64 {
    position + length.next_multiple_of(LINE) as u64
}

/// The sending end of a ring.
#[derive(Debug)]
pub(crate) struct Producer {
    area: Area,
    line: u64,
    lines_done: u64,
    position: u64,
    bulk_done: u64,
}

/// The receiving end of a ring.
#[derive(Debug)]
pub(crate) struct Consumer {
    area: Area,
    line: u64,
    reported: u64,
    position: u64,
    /// How much of the current line's payload has been taken.
    taken: usize,
}

/// What the next line holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Announced {
    length: usize,
    in_bulk: bool,
}

impl Producer {
    /// The sending end of the ring at `base`.
    ///
    /// # Safety
    /// `base` must point to [`RING_BYTES`] bytes of page-aligned memory that was zero when shared,
    /// that outlives this value, and whose only other users are one [`Consumer`], in this process
    /// or another.
    pub unsafe fn new(base: NonNull<u8>) -> Self {
        Self { area: Area(base), line: 0, lines_done: 0, position: 0, bulk_done: 0 }
    }

    /// Sends the whole message if it fits in a line and a line is known to be free; false if not.
    ///
    /// The way of nearly every short message: no more than a word, and what does not fit in it.
    #[inline(always)]
    pub fn push_line(&mut self, bytes: &[u8]) -> bool {
        if bytes.len() > INLINE || self.line.wrapping_sub(self.lines_done) >= LINES {
            return false;
        }
        self.put(bytes);
        if self.line.wrapping_sub(self.lines_done) >= ASK {
            // Nothing waits for this until the next message, nor then if it has come.
            self.lines_done = self.area.lines_done().load(Ordering::Acquire);
        }
        true
    }

    /// Sends the whole message if it fits in a line, else its beginning; the number of bytes sent.
    /// `None` if there is no room now.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) -> Option<usize> {
        if self.line - self.lines_done >= LINES {
            self.lines_done = self.area.lines_done().load(Ordering::Acquire);
            if self.line.wrapping_sub(self.lines_done) >= LINES {
                return None;
            }
        }
        if bytes.len() > INLINE {
            return self.push_chunk(bytes);
        }
        self.put(bytes);
        Some(bytes.len())
    }

    /// Sends a frame of `length` bytes, which `write` writes, if it fits in a line and a line is known to be free; false if
    /// not.
    #[inline]
    pub fn push_written(&mut self, length: usize, write: impl FnOnce(&mut [u8])) -> bool {
        if length > INLINE || self.line.wrapping_sub(self.lines_done) >= LINES {
            return false;
        }
        let mut line = [0; INLINE];
        write(&mut line[..length]);
        self.put(&line[..length]);
        true
    }

    /// Puts a message of up to [`INLINE`] bytes into the line, which is free.
    #[inline(always)]
    fn put(&mut self, bytes: &[u8]) {
        let length = bytes.len();
        let first = if length <= SHORT {
            pack(bytes)
        } else {
            // SAFETY: both hold INLINE bytes, of which SHORT go with the mark; the line is free, and the consumer
            // reads it only after the mark is stored.
            unsafe {
                let rest = self.area.payload(self.line).add(SHORT);
                copy_short(bytes.as_ptr().add(SHORT), rest, length - SHORT);
            }
            pack(&bytes[..SHORT])
        };
        self.announce(first << 8 | length as u64);
    }

    #[inline(always)]
    fn announce(&mut self, what: u64) {
        let word = what | lap(self.line);
        // In memory the mark comes first, whatever the order of bytes here: the payload follows it.
        self.area.word(self.line).store(word.to_le(), Ordering::Release);
        self.line += 1;
    }

    fn push_chunk(&mut self, bytes: &[u8]) -> Option<usize> {
        let to_end = BULK - self.position as usize % BULK;
        let length = bytes.len().min(CHUNK).min(to_end);
        let room = |done: u64| after(self.position, length).wrapping_sub(done) <= BULK as u64;
        if !room(self.bulk_done) {
            self.bulk_done = self.area.bulk_done().load(Ordering::Acquire);
            if !room(self.bulk_done) {
                return None;
            }
        }
        // SAFETY: `length` bytes from this position are inside the bulk area and free (checked
        // above); the consumer reads them only after the mark is stored.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.area.bulk(self.position), length);
        }
        self.position = after(self.position, length);
        self.announce((length as u64) << 8 | IN_BULK);
        Some(length)
    }

    /// Whether a frame of up to [`FRAME`] bytes has room now.
    #[inline]
    pub fn has_room(&mut self) -> bool {
        // A frame that would run over the end of the bulk area begins at its beginning.
        let needed = self.position + 2 * FRAME as u64;
        let room = |lines: u64, bytes: u64| {
            self.line.wrapping_sub(lines) < LINES && needed.wrapping_sub(bytes) <= BULK as u64
        };
        if room(self.lines_done, self.bulk_done) {
            return true;
        }
        let (lines, bytes) =
            (self.area.lines_done().load(Ordering::Acquire), self.area.bulk_done().load(Ordering::Acquire));
        let has_room = room(lines, bytes);
        (self.lines_done, self.bulk_done) = (lines, bytes);
        has_room
    }

    /// Sends a head of [`SHORT_HEAD`] bytes and `rest` as one frame if both fit in a line and one is known to be free.
    #[inline(always)]
    pub fn push_short(&mut self, head: u64, rest: &[u8]) -> bool {
        const BESIDE: usize = SHORT - SHORT_HEAD;
        if rest.len() > SHORT_FRAME || self.line.wrapping_sub(self.lines_done) >= LINES {
            return false;
        }
        let first = match rest.split_first_chunk::<BESIDE>() {
            Some((first, rest)) => {
                // SAFETY: as in `put`.
                unsafe { copy_short(rest.as_ptr(), self.area.payload(self.line).add(SHORT), rest.len()) };
                u32::from_le_bytes(*first).into()
            }
            None => pack(rest),
        };
        self.announce((first << 24 | head & 0xff_ffff) << 8 | (rest.len() + SHORT_HEAD) as u64);
        if self.line.wrapping_sub(self.lines_done) >= ASK {
            self.lines_done = self.area.lines_done().load(Ordering::Acquire);
        }
        true
    }

    /// Sends `head` and `rest` as one frame, which is in one piece when it comes; `None` without
    /// [`Producer::has_room`].
    ///
    /// # Panics
    /// If they are more than [`FRAME`] bytes.
    #[inline]
    pub fn push_frame(&mut self, head: &[u8], rest: &[u8]) -> Option<()> {
        let length = head.len() + rest.len();
        assert!(length <= FRAME, "a frame of {length} bytes");
        if !self.has_room() {
            return None;
        }
        if length <= INLINE {
            let mut line = [0; INLINE];
            // SAFETY: together they fit in the line.
            unsafe {
                copy_short(head.as_ptr(), line.as_mut_ptr(), head.len());
                copy_short(rest.as_ptr(), line.as_mut_ptr().add(head.len()), rest.len());
            }
            self.put(&line[..length]);
            return Some(());
        }
        self.position = start_of_frame(self.position, length);
        // SAFETY: as for a chunk; `has_room` left space for a frame and for what is skipped before it.
        unsafe {
            let to = self.area.bulk(self.position);
            std::ptr::copy_nonoverlapping(head.as_ptr(), to, head.len());
            std::ptr::copy_nonoverlapping(rest.as_ptr(), to.add(head.len()), rest.len());
        }
        self.position = after(self.position, length);
        self.announce((length as u64) << 8 | IN_BULK);
        Some(())
    }
}

/// Where a frame begins that does not run over the end of the bulk area.
const fn start_of_frame(position: u64, length: usize) -> u64 {
    let to_end = BULK - position as usize % BULK;
    if length > to_end { position + to_end as u64 } else { position }
}

impl Consumer {
    /// The receiving end of the ring at `base`.
    ///
    /// # Safety
    /// As for [`Producer::new`], the only other user being one [`Producer`].
    pub unsafe fn new(base: NonNull<u8>) -> Self {
        Self { area: Area(base), line: 0, reported: 0, position: 0, taken: 0 }
    }

    /// Takes a message that fills `buffer` and came whole in one line, within so many looks for it;
    /// false if nothing came, or something else did.
    ///
    /// The way of nearly every short message: what is expected is known before it comes, so that
    /// only a comparison and a copy follow its coming.
    #[inline(always)]
    pub fn take_line(&mut self, buffer: &mut [u8], looks: u32) -> bool {
        if buffer.len() > INLINE || self.taken != 0 {
            return false;
        }
        if self.line - self.reported >= REPORT {
            // Not when the last of these lines was taken: stores leave in order, and the answer to that
            // message would have stood behind this one until its line had come.
            self.report();
        }
        let word = self.area.word(self.line);
        let expected = lap(self.line) | buffer.len() as u64;
        // Hidden from the compiler, which would unroll the loop: a processor would foretell the looks otherwise
        // than those of a plain loop, and a message take another time.
        let mut left = std::hint::black_box(looks);
        let first = loop {
            let word = u64::from_le(word.load(Ordering::Acquire));
            if word & MARK == expected {
                break word >> 8;
            }
            left -= 1;
            if left == 0 {
                return false;
            }
            std::hint::spin_loop();
        };
        if let Some((short, rest)) = buffer.split_at_mut_checked(SHORT) {
            unpack(first, short);
            // SAFETY: both hold INLINE bytes, of which SHORT came with the mark; it was stored (release) after
            // the rest was written, and seen (acquire).
            unsafe { copy_short(self.area.payload(self.line).add(SHORT), rest.as_mut_ptr(), rest.len()) };
        } else {
            unpack(first, buffer);
        }
        self.line += 1;
        true
    }

    /// What has come and not been taken, if anything.
    #[inline]
    pub fn peek(&self) -> Option<Announced> {
        let word = u64::from_le(self.area.word(self.line).load(Ordering::Acquire));
        if (word ^ lap(self.line)) & (MARK ^ IN_BULK ^ LENGTH) != 0 {
            return None;
        }
        let in_bulk = word & IN_BULK != 0;
        // Never more than the area holds, whatever the other process may have written.
        let length = if in_bulk {
            usize::try_from(word >> 8)
                .unwrap_or(usize::MAX)
                .min(CHUNK)
                .min(BULK - self.position as usize % BULK)
        } else {
            (word & LENGTH) as usize
        };
        Some(Announced { length, in_bulk })
    }

    /// Takes what has come, up to the length of `buffer`; the number of bytes.
    #[inline]
    pub fn take(&mut self, announced: Announced, buffer: &mut [u8]) -> usize {
        let Announced { length, in_bulk } = announced;
        let count = (length - self.taken).min(buffer.len());
        let from = if in_bulk { self.area.bulk(self.position) } else { self.area.payload(self.line) };
        // SAFETY: `peek` saw the mark (acquire) that the producer stored after or with the `length`
        // bytes here, and it bounded `length` by the area; `taken + count <= length`.
        unsafe {
            std::ptr::copy_nonoverlapping(from.add(self.taken), buffer.as_mut_ptr(), count);
        }
        self.taken += count;
        if self.taken == length {
            self.taken = 0;
            self.line += 1;
            if in_bulk {
                self.position = after(self.position, length);
                self.area.bulk_done().store(self.position, Ordering::Release);
                self.report();
            } else if self.line - self.reported >= REPORT {
                self.report();
            }
        }
        count
    }

    /// Whether a frame has come.
    #[inline]
    pub fn has_frame(&self) -> bool {
        let word = u64::from_le(self.area.word(self.line).load(Ordering::Acquire));
        (word ^ lap(self.line)) & (MARK ^ IN_BULK ^ LENGTH) == 0
    }

    /// Polls at most `looks` times for a frame that lies in one line, and returns the first [`SHORT`] bytes of its payload as
    /// a word, and all of it; bytes of the word beyond the payload mean nothing. The caller releases the line with
    /// [`Consumer::pass_line`] when it has taken the payload.
    #[inline(always)]
    pub fn await_line(&self, looks: u32) -> Option<(u64, &[u8])> {
        let (word, expected) = (self.area.word(self.line), lap(self.line));
        // Hidden from the compiler, as in `take_line`.
        let mut left = std::hint::black_box(looks);
        let word = loop {
            let word = u64::from_le(word.load(Ordering::Acquire));
            if (word ^ expected) & (MARK ^ LENGTH) == 0 {
                break word;
            }
            left -= 1;
            if left == 0 {
                return None;
            }
            std::hint::spin_loop();
        };
        // SAFETY: as in `take_frame`.
        let payload =
            unsafe { std::slice::from_raw_parts(self.area.payload(self.line), (word & LENGTH) as usize) };
        Some((word >> 8, payload))
    }

    /// The frame of one line was taken.
    #[inline]
    pub fn pass_line(&mut self) {
        self.line += 1;
        if self.line - self.reported >= REPORT {
            self.report();
        }
    }

    /// Hands a frame that has come to `look`; false if none has.
    #[inline]
    pub fn take_frame(&mut self, look: impl FnOnce(&[u8])) -> bool {
        let word = u64::from_le(self.area.word(self.line).load(Ordering::Acquire));
        if (word ^ lap(self.line)) & (MARK ^ IN_BULK ^ LENGTH) != 0 {
            if self.line != self.reported {
                self.report();
            }
            return false;
        }
        let in_bulk = word & IN_BULK != 0;
        let (from, length) = if in_bulk {
            // Never more than a frame, whatever the other process may have written.
            let length = usize::try_from(word >> 8).unwrap_or(usize::MAX).min(FRAME);
            self.position = start_of_frame(self.position, length);
            (self.area.bulk(self.position), length)
        } else {
            (self.area.payload(self.line), (word & LENGTH) as usize)
        };
        // SAFETY: inside the area, written before the mark that was seen (acquire), and left alone by the
        // producer until the line or the bytes are reported.
        look(unsafe { std::slice::from_raw_parts(from, length) });
        self.line += 1;
        if in_bulk {
            self.position = after(self.position, length);
            self.area.bulk_done().store(self.position, Ordering::Release);
            self.report();
        } else if self.line - self.reported >= REPORT {
            self.report();
        }
        true
    }

    #[cold]
    fn report(&mut self) {
        self.reported = self.line;
        self.area.lines_done().store(self.line, Ordering::Release);
    }
}

impl Announced {
    /// A message of no bytes.
    pub const fn is_empty(self) -> bool {
        self.length == 0
    }
}

#[cfg(test)]
mod tests;
