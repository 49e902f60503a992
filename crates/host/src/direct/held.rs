//! Frames that wait a moment for those that may follow, so that all go with one system call; and a thread that sends them
//! where nothing has followed.
//!
//! A library that sends says nothing of what it will send next. Where it has sent several messages to one peer without
//! asking for what has come, more of them are likely to follow, and frames are held until it asks, or there are many.
//! A program may also compute for long, or wait for something else, before it calls the library again: then a thread sends
//! its frames, which looks every millisecond for as long as frames are held now and then, and sleeps otherwise. (To set
//! a timer for each would take longer than to send them.) One word says whose the device is: it changes for frames that
//! are held, and for no others.

use std::cell::UnsafeCell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use wiretwin_units::Span;

use crate::clock::Clock;

/// Frames that go together: the receiver looks at these while the next are written.
const TOGETHER: usize = 16;
/// Frames that were held for longer than this should have gone: a hundred times as long as it takes to write one.
const LATE: Span = Span::from_us(20);
/// How many frames are sent at once, instead of being held, after some were held too long.
const AT_ONCE: u32 = 1024;
/// The time from one look of the thread to the next. How long a frame has been held is only known by looking twice.
const LOOK: Duration = Duration::from_millis(1);
/// After so many looks in a row that found no newly held frames, the thread sleeps until a frame is held.
const IDLE_LOOKS: u32 = 16;

/// A device that collects frames.
pub(super) trait Collects: Send {
    /// Sends the frames that wait.
    fn flush(&mut self);

    /// How many frames wait.
    fn waiting(&self) -> usize;
}

/// Whose the device is: the owner's; the first one's of both who takes it; the thread's.
const OWNED: u32 = 0;
const HELD: u32 = 1;
const TAKEN: u32 = 2;

struct Shared<D> {
    whose: AtomicU32,
    device: UnsafeCell<D>,
    /// How often frames have begun to be held.
    begun: AtomicU32,
    is_asleep: AtomicBool,
    is_over: AtomicBool,
}

// SAFETY: the device is used by whom `whose` says alone, and it may be sent to another thread.
unsafe impl<D: Collects> Sync for Shared<D> {}

/// A device whose frames may be held.
pub(super) struct Held<D> {
    shared: Arc<Shared<D>>,
    clock: Clock,
    /// Frames have been left for whoever is first, since then.
    is_left: bool,
    since: Span,
    begun: u32,
    /// So many frames more that would be held go at once.
    at_once: u32,
    thread: Option<JoinHandle<()>>,
}

impl<D> fmt::Debug for Held<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("is_left", &self.is_left).finish_non_exhaustive()
    }
}

impl<D: Collects + 'static> Held<D> {
    pub(super) fn new(device: D) -> Self {
        let shared = Shared {
            whose: AtomicU32::new(OWNED),
            device: UnsafeCell::new(device),
            begun: AtomicU32::new(0),
            is_asleep: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        };
        Self {
            shared: Arc::new(shared),
            clock: Clock::start(),
            is_left: false,
            since: Span::ZERO,
            begun: 0,
            at_once: 0,
            thread: None,
        }
    }

    /// The device, which nobody else uses until the next [`Held::hold`].
    #[inline]
    pub(super) fn device(&mut self) -> &mut D {
        if self.is_left {
            self.take_back();
        }
        // SAFETY: it is the owner's.
        unsafe { &mut *self.shared.device.get() }
    }

    fn take_back(&mut self) {
        self.is_left = false;
        loop {
            let whose = &self.shared.whose;
            match whose.compare_exchange(HELD, OWNED, Ordering::Acquire, Ordering::Acquire) {
                // The thread is sending; on this core it needs to be let.
                Err(TAKEN) => thread::yield_now(),
                Err(_) => return self.at_once = AT_ONCE,
                Ok(_) => return,
            }
        }
    }

    /// Sends the frames that wait.
    #[inline]
    pub(super) fn flush(&mut self) {
        if self.is_left && self.clock.now() - self.since > LATE {
            self.at_once = AT_ONCE;
        }
        self.device().flush();
    }

    /// Leaves the frames that wait for those that may follow, if they are few.
    #[inline]
    pub(super) fn hold(&mut self) {
        let device = self.device();
        let waiting = device.waiting();
        if waiting >= TOGETHER || self.at_once > 0 {
            self.at_once = self.at_once.saturating_sub(1);
            return self.device().flush();
        }
        if waiting == 1 && !self.begin() {
            // Without the thread nothing is held.
            self.at_once = u32::MAX;
            return self.device().flush();
        }
        if waiting > 0 {
            self.is_left = true;
            self.shared.whose.store(HELD, Ordering::Release);
        }
    }

    /// Frames begin to be held: whether the thread knows.
    fn begin(&mut self) -> bool {
        if self.thread.is_none() {
            let shared = Arc::clone(&self.shared);
            let thread = thread::Builder::new().name("wiretwin-held".to_owned());
            self.thread = thread.spawn(move || send_late(&shared)).ok();
        }
        let Some(thread) = &self.thread else { return false };
        self.since = self.clock.now();
        self.begun = self.begun.wrapping_add(1);
        self.shared.begun.store(self.begun, Ordering::SeqCst);
        if self.shared.is_asleep.load(Ordering::SeqCst) {
            thread.thread().unpark();
        }
        true
    }
}

impl<D> Drop for Held<D> {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.shared.is_over.store(true, Ordering::SeqCst);
            thread.thread().unpark();
            // It has nothing to say of how it ended.
            let _ = thread.join();
        }
    }
}

/// The thread: sends what was held at its last look and is held still, until the owner is dropped.
fn send_late<D: Collects>(shared: &Shared<D>) {
    let (mut seen, mut idle) = (0, 0);
    while !shared.is_over.load(Ordering::SeqCst) {
        let begun = shared.begun.load(Ordering::SeqCst);
        idle = if begun == seen { idle + 1 } else { 0 };
        let is_late = std::mem::replace(&mut seen, begun) == begun;
        if is_late && shared.whose.compare_exchange(HELD, TAKEN, Ordering::Acquire, Ordering::Relaxed).is_ok()
        {
            // SAFETY: it is this thread's until it says that it is not.
            unsafe { (*shared.device.get()).flush() };
            shared.whose.store(OWNED, Ordering::Release);
        }
        if idle < IDLE_LOOKS {
            thread::sleep(LOOK);
            continue;
        }
        idle = 0;
        shared.is_asleep.store(true, Ordering::SeqCst);
        if shared.begun.load(Ordering::SeqCst) == seen {
            thread::park();
        }
        shared.is_asleep.store(false, Ordering::SeqCst);
    }
}
