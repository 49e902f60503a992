//! Room for the bytes of messages: classes of a power of two, freed to be given again.
//!
//! The process that has the turn uses it, but also ranks that are only being started: a lock holds them apart.

use std::sync::atomic::{AtomicU32, Ordering};

use super::shared::{Head, Memory, NONE};

const CLASSES: usize = 40;
/// The smallest room is of 2^7 bytes, its head among them.
const SMALLEST: u32 = 7;

#[repr(C)]
pub(super) struct Heap {
    lock: AtomicU32,
    next: u64,
    free: [u64; CLASSES],
}

impl Heap {
    pub(super) const fn new(first: u64) -> Self {
        Self { lock: AtomicU32::new(0), next: first, free: [NONE; CLASSES] }
    }
}

impl Memory {
    fn with_heap<R>(&self, act: impl FnOnce(&mut Heap) -> R) -> R {
        let heap = &raw const self.top().heap;
        // SAFETY: the lock is an atomic of its own.
        let lock = unsafe { &(*heap).lock };
        while lock.swap(1, Ordering::Acquire) != 0 {
            std::thread::yield_now();
        }
        // SAFETY: the lock is held, so that nobody else uses the rest.
        let done = act(unsafe { &mut *heap.cast_mut() });
        lock.store(0, Ordering::Release);
        done
    }

    /// Room for a message; none where the memory of the run is used up.
    pub(super) fn take(&self, head: Head) -> Option<u64> {
        let whole = size_of::<Head>() as u64 + head.length;
        let class = (64 - (whole - 1).leading_zeros()).max(SMALLEST) - SMALLEST;
        let limit = self.top().limit;
        let place = self.with_heap(|heap| {
            let free = *heap.free.get(class as usize)?;
            if free != NONE {
                // SAFETY: free room holds the place of the next in its first bytes.
                heap.free[class as usize] = unsafe { self.at(free).cast::<u64>().read() };
                return Some(free);
            }
            let size = 1u64 << (class + SMALLEST);
            let place = heap.next;
            (size <= limit - place.min(limit)).then(|| heap.next = place + size)?;
            Some(place)
        })?;
        // SAFETY: the room is ours and long enough.
        unsafe { self.at(place).cast::<Head>().write(Head { class: class as u8, ..head }) };
        Some(place)
    }

    /// Gives room back.
    pub(super) fn give(&self, place: u64) {
        let class = usize::from(self.head(place).class);
        self.with_heap(|heap| {
            // SAFETY: the room was given out and is not used any more.
            unsafe { self.at(place).cast::<u64>().write(heap.free[class]) };
            heap.free[class] = place;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::shared::{Ask, AskKind, Given};
    use super::super::{Arena, Turn};
    use super::*;

    fn arena(limit: u64, test: impl FnOnce(&Memory)) {
        let path = std::env::temp_dir().join(format!("wiretwin-heap-{}-{limit}", std::process::id()));
        let arena = Arena::make(&path, Given { ranks: 1, ..Given::default() }, limit).unwrap();
        let memory =
            Memory::map(&std::fs::File::options().read(true).write(true).open(&path).unwrap()).unwrap();
        std::fs::remove_file(&path).unwrap();
        test(&memory);
        drop(arena);
    }

    fn head(length: u64) -> Head {
        Head { length, tag: 1, data: 2, source: 3, is_tagged: true, has_data: false, class: 0 }
    }

    #[test]
    fn room_is_given_once_and_again_when_it_was_given_back() {
        arena(1 << 20, |memory| {
            let (first, second) = (memory.take(head(1000)).unwrap(), memory.take(head(1000)).unwrap());
            assert!(second >= first + 1000 + size_of::<Head>() as u64);
            assert_eq!((memory.head(first).length, memory.head(first).source), (1000, 3));
            memory.give(first);
            assert_eq!(memory.take(head(1500)), Some(first));
            assert_ne!(memory.take(head(1500)), Some(second));
        });
    }

    #[test]
    fn what_does_not_fit_any_more_is_not_given() {
        arena(1 << 18, |memory| {
            assert_eq!(memory.take(head(1 << 20)), None);
            assert_eq!(memory.take(head(u64::MAX >> 1)), None);
            assert!(memory.take(head(1 << 10)).is_some());
        });
    }

    #[test]
    fn the_name_of_a_call_goes_through_its_fields_and_is_cut_where_they_end() {
        let long = b"MPI_Neighbor_allgatherv_with_a_name_that_is_longer_than_48_bytes";
        assert_eq!(Ask::enter(b"MPI_Send").name(), "MPI_Send");
        assert_eq!(Ask::enter(long).name().as_bytes(), &long[..48]);
        assert_eq!(Ask::enter(b"x").kind, AskKind::Enter);
    }

    #[test]
    fn a_run_whose_ranks_do_not_come_is_given_up_when_nobody_waits_for_it() {
        let path = std::env::temp_dir().join(format!("wiretwin-absent-{}", std::process::id()));
        let mut arena = Arena::make(&path, Given { ranks: 2, ..Given::default() }, 1 << 20).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(!arena.gather(0..2, || false));
        assert_eq!(arena.come(), 0);
        assert_eq!(arena.turn(0, 0, &[], || false), Turn::Gone);
    }
}
