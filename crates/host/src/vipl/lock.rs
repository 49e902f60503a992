//! The lock of an adapter, which costs the thread that takes it again and again no atomic exchange.
//!
//! An exchange waits until all that the thread has stored has left the processor: of a message, until its line has
//! come from the other core. Most programs make all calls from one thread. After [`STREAK`] times in a row that thread
//! is the *favourite* and says with a plain store that it holds the lock. Any other thread takes that right back
//! first, with a barrier on all processors that run this process (membarrier(2)), which costs some microseconds: the
//! thread of the adapter does it when it looks, some hundred times a second.

use std::cell::{Cell, UnsafeCell};
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, compiler_fence};

/// Looks between which others may run.
const BURST: u32 = 64;
/// How often in a row a thread takes the lock until it is the favourite.
const STREAK: u32 = 256;

/// Commands of membarrier(2).
const REGISTER: libc::c_int = 1 << 4;
const BARRIER: libc::c_int = 1 << 3;

fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: a command without memory.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

/// A number of this thread that no other has while it runs; never 0.
#[inline(always)]
fn this_thread() -> usize {
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    // SAFETY: the first word of the thread's control block is its own address (ELF Handling for Thread-Local Storage,
    // §3.4.6), which pthread_self(3) would return too, by a call that every call of a program would wait for.
    unsafe {
        let block: usize;
        std::arch::asm!("mov {}, fs:0", out(reg) block, options(pure, readonly, nostack, preserves_flags));
        block
    }
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
    // SAFETY: a plain query.
    unsafe {
        libc::pthread_self() as usize
    }
}

#[derive(Debug)]
pub(super) struct Lock<T> {
    is_held: AtomicBool,
    /// The favourite, or none (0).
    favourite: AtomicUsize,
    /// Whether the favourite holds the lock by that right.
    is_busy: AtomicBool,
    /// Whether there is a barrier to take the right back with.
    has_barrier: bool,
    /// Who has taken the lock last with an exchange, and how often in a row.
    last: Cell<(usize, u32)>,
    value: UnsafeCell<T>,
}

// SAFETY: the value is only reached through the lock, by one thread at a time, and so is `last`.
unsafe impl<T: Send> Send for Lock<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    pub fn new(value: T) -> Self {
        Self {
            is_held: AtomicBool::new(false),
            favourite: AtomicUsize::new(0),
            is_busy: AtomicBool::new(false),
            has_barrier: membarrier(REGISTER),
            last: Cell::new((0, 0)),
            value: UnsafeCell::new(value),
        }
    }

    #[inline(always)]
    pub fn lock(&self) -> Held<'_, T> {
        let thread = this_thread();
        if self.favourite.load(Ordering::Relaxed) == thread {
            self.is_busy.store(true, Ordering::Relaxed);
            // The processor may do the look before the store is seen, but not across the barrier of who takes the
            // right back: either that thread sees the store, or this one sees that the right is gone.
            compiler_fence(Ordering::SeqCst);
            if self.favourite.load(Ordering::Relaxed) == thread {
                return Held { lock: self, by_right: true };
            }
            self.is_busy.store(false, Ordering::Release);
        }
        self.exchange(thread)
    }

    #[inline(never)]
    fn exchange(&self, thread: usize) -> Held<'_, T> {
        let mut looks = 0_u32;
        let mut pause = || {
            looks += 1;
            if looks.is_multiple_of(BURST) {
                std::thread::yield_now();
            }
            std::hint::spin_loop();
        };
        while self.is_held.swap(true, Ordering::Acquire) {
            pause();
        }
        if self.favourite.load(Ordering::Relaxed) != 0 {
            self.favourite.store(0, Ordering::Relaxed);
            // A child of the process that registered is not registered.
            let passed = membarrier(BARRIER) || (membarrier(REGISTER) && membarrier(BARRIER));
            assert!(passed, "the kernel has this barrier: it was registered for");
            while self.is_busy.load(Ordering::Acquire) {
                pause();
            }
        }
        let (last, streak) = self.last.get();
        let streak = if last == thread { streak.saturating_add(1) } else { 0 };
        self.last.set((thread, streak));
        if streak >= STREAK && self.has_barrier {
            self.last.set((0, 0));
            self.favourite.store(thread, Ordering::Relaxed);
        }
        Held { lock: self, by_right: false }
    }
}

/// The value, while the lock is held.
#[derive(Debug)]
pub(super) struct Held<'a, T> {
    lock: &'a Lock<T>,
    by_right: bool,
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the lock is held.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Held<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the lock is held, and this is the one value that stands for it.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Held<'_, T> {
    #[inline]
    fn drop(&mut self) {
        let held = if self.by_right { &self.lock.is_busy } else { &self.lock.is_held };
        held.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_at_a_time_holds_it_whoever_is_the_favourite() {
        const TIMES: u64 = 3_000;
        let lock = Lock::new(0_u64);
        std::thread::scope(|scope| {
            // One takes it without a pause, and the others in between.
            for others in [0, 1, 1] {
                let lock = &lock;
                scope.spawn(move || {
                    for time in 0..TIMES {
                        let mut held = lock.lock();
                        let before = *held;
                        *held = std::hint::black_box(before) + 1;
                        drop(held);
                        if others > 0 && time % 100 == 0 {
                            std::thread::yield_now();
                        }
                    }
                });
            }
        });
        assert_eq!(*lock.lock(), 3 * TIMES);
    }

    #[test]
    fn a_thread_that_takes_it_again_and_again_is_the_favourite_until_another_takes_it() {
        let lock = Lock::new(0);
        for _ in 0..=STREAK + 1 {
            drop(lock.lock());
        }
        if !lock.has_barrier {
            return;
        }
        assert!(lock.lock().by_right);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| lock.lock().by_right);
            assert!(!other.join().expect("a thread"));
        });
        assert!(!lock.lock().by_right, "it was taken back");
    }
}
