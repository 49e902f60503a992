//! Another core that reads memory of this process: afterwards the lines are in its cache as well,
//! and dearer to write again.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use crate::process::{PinError, pin};

/// Bytes of a cache line; one byte of each is read.
const LINE: usize = 64;
/// Looks for the end of a reading before the core is offered to others.
const LOOKS: u32 = 1 << 12;

/// A thread on another core that reads what it is told to.
///
/// It touches nothing but the memory it reads and one cell of orders, so that its reading is all
/// that the next stretch of computation on this core feels.
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
    loop {
        match orders.bytes.load(Ordering::Acquire) {
            0 => thread::park(),
            END => return,
            bytes => {
                let start = orders.start.load(Ordering::Relaxed);
                for at in (0..bytes).step_by(LINE) {
                    // SAFETY: `read` borrows these `bytes` from `start` until they are cleared below.
                    unsafe { start.add(at).read_volatile() };
                }
                orders.bytes.store(0, Ordering::Release);
            }
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
    fn a_core_that_is_not_there_is_an_error() {
        let error = Reader::start(100_000).expect_err("no such core");
        assert!(error.to_string().contains("100000"), "{error}");
    }
}
