//! A plain heap of events.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

/// A `BinaryHeap` in which 1024 events are always pending.
pub struct PlainHeap {
    heap: BinaryHeap<Reverse<(u64, u64)>>,
    state: u64,
    seq: u64,
}

impl Default for PlainHeap {
    fn default() -> Self {
        let mut new = Self { heap: BinaryHeap::new(), state: 1, seq: 0 };
        for _ in 0..Self::PENDING {
            let time = new.draw();
            new.push(time);
        }
        new
    }
}

impl PlainHeap {
    const PENDING: u64 = 1_024;
    const OPERATIONS: u64 = 200_000;

    /// Up to 2^20, evenly.
    fn draw(&mut self) -> u64 {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.state >> 44
    }

    fn push(&mut self, time: u64) {
        self.seq += 1;
        self.heap.push(Reverse((time, self.seq)));
    }

    /// ns per push and pop.
    pub fn turn(&mut self) -> f64 {
        let start = Instant::now();
        for _ in 0..Self::OPERATIONS {
            // As many are pushed as popped.
            let Some(Reverse((time, _))) = self.heap.pop() else { continue };
            let later = time + self.draw();
            self.push(later);
        }
        start.elapsed().as_secs_f64() * 1e9 / Self::OPERATIONS as f64
    }
}
