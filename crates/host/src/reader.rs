//! Another core that copies memory of this process, as a receiver on that core would: afterwards the lines
//! are in its cache as well, and dearer to write again.
//!
//! The copy is made as MPI libraries make it between processes of one host, by the kernel and page by page
//! (process_vm_readv(2)). That matters: a loop of loads over the same memory fetches ahead beyond its end,
//! where the owner is about to write, and leaves lines behind that the kernel's copy does not.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use crate::process::{PinError, pin};

/// Bytes of a cache line; one byte of each is read where the kernel does not copy.
const LINE: usize = 64;
/// Looks for the end of a reading before the core is offered to others.
const LOOKS: u32 = 1 << 12;

/// A thread on another core that reads what it is told to.
///
/// It touches nothing but the memory it reads, memory of its own that it copies to and one cell of orders,
/// so that its reading is all that the next stretch of computation on this core feels.
#[derive(Debug)]
pub struct Reader {
    orders: Arc<Orders>,
    thread: Option<JoinHandle<()>>,
}

/// What to read: `bytes` is set last and cleared when all has been read.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Orders {
    start: AtomicPtr<u8>,
    bytes: AtomicUsize,
}

/// In `bytes`: there will be no more orders.
const END: usize = usize::MAX;

/// Why there is no reader.
#[derive(Debug)]
pub enum ReaderError {
    /// No thread could be started.
    Start(io::Error),
    /// It could not be put on its core.
    Pin(PinError),
}

impl std::fmt::Display for ReaderError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Start(error) => write!(formatter, "no thread to read on another core: {error}"),
            Self::Pin(error) => write!(formatter, "a thread to read on another core: {error}"),
        }
    }
}

impl std::error::Error for ReaderError {}

impl Reader {
    /// Starts a reader on a core.
    ///
    /// # Errors
    /// [`ReaderError`].
    pub fn start(cpu: u32) -> Result<Self, ReaderError> {
        let orders = Arc::new(Orders::default());
        let (tell, told) = std::sync::mpsc::sync_channel(1);
        let thread = thread::Builder::new()
            .name("wiretwin reader".into())
            .spawn({
                let orders = Arc::clone(&orders);
                move || {
                    let pinned = pin(cpu);
                    let ready = pinned.is_ok();
                    if tell.send(pinned).is_ok() && ready {
                        obey(&orders);
                    }
                }
            })
            .map_err(ReaderError::Start)?;
        match told.recv() {
            Ok(Ok(())) => Ok(Self { orders, thread: Some(thread) }),
            Ok(Err(error)) => Err(ReaderError::Pin(error)),
            Err(_) => unreachable!("the thread tells before it ends"),
        }
    }

    /// Has every cache line of `data` read, and waits until that is done.
    pub fn read(&mut self, data: &[u8]) {
        let Some(reader) = self.thread.as_ref().filter(|_| !data.is_empty()) else { return };
        self.orders.start.store(data.as_ptr().cast_mut(), Ordering::Relaxed);
        self.orders.bytes.store(data.len(), Ordering::Release);
        reader.thread().unpark();
        // It may need the core of another process that waits like this one: give way now and then.
        loop {
            for _ in 0..LOOKS {
                if self.orders.bytes.load(Ordering::Acquire) == 0 {
                    return;
                }
            }
            assert!(!reader.is_finished(), "a reader ends only when it is told to");
            thread::yield_now();
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.orders.bytes.store(END, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It does nothing that can panic.
            let _ = thread.join();
        }
    }
}

fn obey(orders: &Orders) {
    let mut copy: Vec<u8> = Vec::new();
    loop {
        match orders.bytes.load(Ordering::Acquire) {
            0 => thread::park(),
            END => return,
            bytes => {
                let start = orders.start.load(Ordering::Relaxed);
                if copy.len() < bytes {
                    copy.resize(bytes, 0);
                }
                // SAFETY: `read` borrows these `bytes` from `start` until they are cleared below.
                unsafe { take(start, &mut copy[..bytes]) };
                orders.bytes.store(0, Ordering::Release);
            }
        }
    }
}

/// Copies memory of this process as if it were another's; only reads it where that is not allowed (a sandbox
/// may forbid the call).
///
/// # Safety
/// As many bytes as `into` has can be read from `start`.
unsafe fn take(start: *mut u8, into: &mut [u8]) {
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let remote = libc::iovec { iov_base: start.cast(), iov_len: into.len() };
    // SAFETY: both vectors have one element, and describe memory that is borrowed for the call.
    let copied =
        unsafe { libc::process_vm_readv(libc::getpid(), &raw const local, 1, &raw const remote, 1, 0) };
    if usize::try_from(copied).ok() != Some(into.len()) {
        for at in (0..into.len()).step_by(LINE) {
            // SAFETY: the caller's promise.
            unsafe { start.add(at).read_volatile() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pinned;

    #[test]
    fn reading_ends_and_a_reader_can_be_told_again() {
        let cpu = pinned().first().copied().expect("a core");
        let mut reader = Reader::start(cpu).expect("a reader");
        for bytes in [0, 1, 63, 64, 65, 1 << 20] {
            reader.read(&vec![7; bytes]);
        }
        assert_eq!(Arc::strong_count(&reader.orders), 2);
        let orders = Arc::clone(&reader.orders);
        drop(reader);
        assert_eq!(Arc::strong_count(&orders), 1, "the thread has ended");
    }

    #[test]
    fn what_is_taken_is_what_was_there() {
        let mut data: Vec<u8> = (0..100_001u32).map(|at| (at % 251) as u8).collect();
        let mut into = vec![0; data.len()];
        // SAFETY: as long as `into`, and alive.
        unsafe { take(data.as_mut_ptr(), &mut into) };
        assert_eq!(into, data);
    }

    #[test]
    fn a_core_that_is_not_there_is_an_error() {
        let error = Reader::start(100_000).expect_err("no such core");
        assert!(error.to_string().contains("100000"), "{error}");
    }
}
