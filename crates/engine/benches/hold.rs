//! The event queue in the hold model: pop the earliest event, push one an increment later.
//!
//! Each workload runs on [`EventQueue`] and on a plain `BinaryHeap` of the same 24-byte events, in
//! turns; a turn takes at least as many events as are pending, so that the queue's rare large moves
//! are in every figure. One JSON line per workload: `ns` and `reference` are medians over the turns,
//! `ratio` that of the turns' ratios; `least_` is the quickest turn.
//!
//! Arguments: words that the name of a workload must have; `--quick` for fewer turns.

#![allow(clippy::disallowed_types)] // a bench reads the clock; the crate beside it may not

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;
use std::time::Instant;

use peak_alloc::PeakAlloc;
use wiretwin_benches::{Arguments, Turns};
use wiretwin_engine::EventQueue;
use wiretwin_units::SimTime;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Increments are drawn before the clock starts, so that neither queue pays for a logarithm.
const INCREMENTS: usize = 1 << 12;

/// Mean increment, ps.
const MEAN_PS: f64 = 1e6;

#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Exponential,
    Uniform,
    Bimodal,
    Triangular,
    Constant,
}

impl Shape {
    const ALL: [Self; 5] =
        [Self::Exponential, Self::Uniform, Self::Bimodal, Self::Triangular, Self::Constant];

    fn name(self) -> &'static str {
        match self {
            Self::Exponential => "exponential",
            Self::Uniform => "uniform",
            Self::Bimodal => "bimodal",
            Self::Triangular => "triangular",
            Self::Constant => "constant",
        }
    }

    /// One increment from a number in [0, 1): the distributions of Jones (1986), mean 1.
    fn draw(self, u: f64) -> f64 {
        match self {
            Self::Exponential => -(1.0 - u).ln(),
            Self::Uniform => 2.0 * u,
            Self::Bimodal => 0.95238 * (u + if u < 0.1 { 9.5 } else { 0.0 }),
            Self::Triangular => 1.5 * u.sqrt(),
            Self::Constant => 1.0,
        }
    }

    fn increments(self) -> Vec<u64> {
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        (0..INCREMENTS)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                let u = (state >> 11) as f64 / (1_u64 << 53) as f64;
                (self.draw(u) * MEAN_PS) as u64
            })
            .collect()
    }
}

/// What is compared.
trait Queue {
    fn push(&mut self, time: u64, index: u64);
    fn pop(&mut self) -> (u64, u64);
}

impl Queue for EventQueue {
    fn push(&mut self, time: u64, index: u64) {
        EventQueue::push(self, SimTime::from_ps(time), index);
    }

    fn pop(&mut self) -> (u64, u64) {
        let event = EventQueue::pop(self).expect("the hold model never empties a queue");
        (event.time.as_ps(), event.what)
    }
}

/// The reference: what one would write first.
#[derive(Default)]
struct PlainHeap {
    heap: BinaryHeap<Reverse<(u64, u64, u64)>>,
    next_seq: u64,
}

impl Queue for PlainHeap {
    fn push(&mut self, time: u64, index: u64) {
        self.heap.push(Reverse((time, self.next_seq, index)));
        self.next_seq += 1;
    }

    fn pop(&mut self) -> (u64, u64) {
        let Reverse((time, _, index)) = self.heap.pop().expect("the hold model never empties a queue");
        (time, index)
    }
}

/// A queue under load and where it is in the table of increments.
struct Bench<'a, Q> {
    queue: Q,
    increments: &'a [u64],
    cursor: usize,
}

impl<'a, Q: Queue> Bench<'a, Q> {
    fn new(queue: Q, increments: &'a [u64], pending: usize) -> Self {
        let mut bench = Self { queue, increments, cursor: 0 };
        for index in 0..pending as u64 {
            let time = bench.increment();
            bench.queue.push(time, index);
        }
        bench
    }

    fn increment(&mut self) -> u64 {
        // A stride prime to the table's length, moved on once round, so that the pairing of events
        // with increments does not repeat.
        self.cursor += 1;
        self.increments[(self.cursor + self.cursor / INCREMENTS * 7) % INCREMENTS]
    }

    /// Seconds for so many holds, and a sum of what left.
    fn turn(&mut self, holds: usize) -> (f64, u64) {
        let start = Instant::now();
        let mut sum = 0_u64;
        for _ in 0..holds {
            let (time, index) = self.queue.pop();
            sum = sum.wrapping_mul(31).wrapping_add(time ^ index);
            let by = self.increment();
            self.queue.push(time + by, index);
        }
        (start.elapsed().as_secs_f64(), sum)
    }
}

fn hold(shape: Shape, pending: usize, turns: usize, target: Option<(f64, f64)>) {
    let increments = shape.increments();
    let mut queue = Bench::new(EventQueue::new(), &increments, pending);
    let mut heap = Bench::new(PlainHeap::default(), &increments, pending);
    let holds = pending.max(200_000);
    // To the steady state, and a check that both are the same queue.
    let warm = (queue.turn(2 * holds).1, heap.turn(2 * holds).1);
    assert_eq!(warm.0, warm.1, "both queues give out the same events");
    let mut measured = Turns::default();
    for _ in 0..turns {
        let (a, sum_a) = queue.turn(holds);
        let (b, sum_b) = heap.turn(holds);
        assert_eq!(sum_a, sum_b, "both queues give out the same events");
        measured.push(a / holds as f64 * 1e9, b / holds as f64 * 1e9);
    }
    let (ns, reference, ratio) = measured.medians();
    let (least, least_reference) = measured.least();
    let target =
        target.map_or(String::new(), |(ratio, ns)| format!(r#","target_ratio":{ratio},"target_ns":{ns}"#));
    println!(
        r#"{{"bench":"engine/hold {} {pending}","unit":"ns per event","ns":{ns:.1},"reference":"BinaryHeap","reference_ns":{reference:.1},"ratio":{ratio:.3},"least_ns":{least:.1},"least_reference_ns":{least_reference:.1},"turns":{turns}{target}}}"#,
        shape.name(),
    );
}

/// Fills a queue to `pending` events and holds it there for as many again: the most bytes allocated
/// at any moment, per pending event.
fn bytes(pending: usize) {
    fn measured(queue: impl Queue, increments: &[u64], pending: usize) -> f64 {
        let before = ALLOCATOR.current_usage();
        ALLOCATOR.reset_peak_usage();
        let mut bench = Bench::new(queue, increments, pending);
        black_box(bench.turn(2 * pending));
        (ALLOCATOR.peak_usage() - before) as f64 / pending as f64
    }
    let increments = Shape::Exponential.increments();
    let resident = resident_bytes();
    let ours = measured(EventQueue::new(), &increments, pending);
    let grown = resident_peak_bytes().zip(resident).map_or(String::new(), |(peak, before)| {
        format!(r#","resident":{:.1}"#, (peak.saturating_sub(before)) as f64 / pending as f64)
    });
    let theirs = measured(PlainHeap::default(), &increments, pending);
    println!(
        r#"{{"bench":"engine/bytes exponential {pending}","unit":"bytes per pending event, at the peak","value":{ours:.1},"reference":"BinaryHeap","reference_value":{theirs:.1},"ratio":{:.3},"target_value":40{grown}}}"#,
        ours / theirs
    );
}

/// A line of `/proc/self/status` in bytes, where there is one.
fn status(key: &str) -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}

fn resident_bytes() -> Option<u64> {
    status("VmRSS:")
}

fn resident_peak_bytes() -> Option<u64> {
    status("VmHWM:")
}

fn main() {
    let arguments = Arguments::of_process();

    // First, while the process has touched little memory.
    if arguments.wanted("bytes exponential 1000000") {
        bytes(1_000_000);
    }
    for shape in Shape::ALL {
        for (pending, turns, target) in [(10_000, 21, (0.65, 70.0)), (1_000_000, 5, (0.27, 250.0))] {
            if arguments.wanted(&format!("hold {} {pending}", shape.name())) {
                hold(shape, pending, arguments.turns(turns, 3), Some(target));
            }
        }
    }
}
