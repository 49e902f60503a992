//! An output-queued switch of 16 ports at 0.9 of their rate: host time per cell that passes it.
//!
//! By event, every arrival and departure taken from the engine's schedule, and by slot. Both see the same
//! cells and give the same totals, or the bench fails. The reference is a bare loop over the same number
//! of ports: xorshift for the arrivals, a ring of slot numbers for each output, the waits summed, nothing
//! else; it is measured in turns with both. One JSON line per workload: `ns` and `reference_ns` are
//! medians over the turns, `ratio` that of the turns' ratios.
//!
//! Longer runs must not allocate more: the bench compares the allocator's peak of a run with that of one
//! ten times as long.
//!
//! Arguments: words that the name of a workload must have; `--quick` for fewer turns.

#![allow(clippy::disallowed_types)] // a bench reads the clock; the crate beside it may not

use std::hint::black_box;
use std::time::Instant;

use peak_alloc::PeakAlloc;
use wiretwin_engine::Untraced;
use wiretwin_net::cell_switch::{Config, Totals, run_by_event, run_by_slot};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const PORTS: usize = 16;
const RING: usize = 1024;

/// Nanoseconds per cell of the bare loop.
fn reference(slots: u32) -> f64 {
    let mut rings = vec![[0_u32; RING]; PORTS];
    let (mut heads, mut tails) = ([0_usize; PORTS], [0_usize; PORTS]);
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let (mut cells, mut waited) = (0_u64, 0_u64);
    let begins = (0.9 * 4_294_967_296.0) as u64;
    let start = Instant::now();
    for slot in 0..slots {
        for _ in 0..PORTS {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            if state >> 32 < begins {
                let output = (state as usize) % PORTS;
                rings[output][tails[output] % RING] = slot;
                tails[output] += 1;
            }
        }
        for output in 0..PORTS {
            if heads[output] != tails[output] {
                waited += u64::from(slot - rings[output][heads[output] % RING]);
                heads[output] += 1;
                cells += 1;
            }
        }
    }
    black_box(waited);
    start.elapsed().as_secs_f64() * 1e9 / cells as f64
}

/// A way to run a switch.
type Run = fn(&Config) -> Totals;

/// Nanoseconds per cell, and what was seen.
fn timed(run: Run, config: &Config) -> (f64, Totals) {
    let start = Instant::now();
    let totals = run(config);
    (start.elapsed().as_secs_f64() * 1e9 / totals.departed as f64, totals)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The most that a run had allocated at a time.
fn peak(run: Run, config: &Config) -> usize {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    run(config);
    ALLOCATOR.peak_usage() - before
}

fn main() {
    let arguments = std::env::args().skip(1).filter(|argument| argument != "--bench").collect::<Vec<_>>();
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let words = arguments.iter().filter(|argument| !argument.starts_with("--")).collect::<Vec<_>>();
    let wanted = |name: &str| words.iter().all(|word| name.contains(word.as_str()));
    let by_event: Run = |config| run_by_event(config, &mut Untraced).expect("a valid configuration");
    let by_slot: Run = |config| run_by_slot(config, &mut Untraced).expect("a valid configuration");
    let turns = if quick { 3 } else { 15 };
    let config = Config { slots: 50_000, ..Config::default() };
    let mut seen = None;
    for (name, run, target, stretch) in [
        ("net/16-port cell switch by event", by_event, 50, 25),
        ("net/16-port cell switch by slot", by_slot, 12, 6),
    ] {
        if !wanted(name) {
            continue;
        }
        timed(run, &config);
        let (mut ours, mut theirs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..turns {
            let (ns, totals) = timed(run, &config);
            let bare = reference(50_000);
            assert_eq!(seen.get_or_insert(totals.clone()), &totals, "{name}: another run saw other things");
            ours.push(ns);
            theirs.push(bare);
            ratios.push(ns / bare);
        }
        let (ns, bare, ratio) = (median(&mut ours), median(&mut theirs), median(&mut ratios));
        let longer = Config { slots: 10 * config.slots, ..config };
        let grown = peak(run, &longer).saturating_sub(2 * peak(run, &config));
        println!(
            r#"{{"bench":"{name}","unit":"ns per cell","ns":{ns:.1},"target_value":{target},"stretch_ns":{stretch},"reference":"bare loop","reference_ns":{bare:.1},"ratio":{ratio:.2},"least_ns":{:.1},"grown_bytes":{grown},"turns":{turns}}}"#,
            ours[0],
        );
        assert_eq!(grown, 0, "{name}: a longer run allocates {grown} bytes more than twice a short one's");
    }
}
