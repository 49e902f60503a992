//! Cell switches at 0.9 of their rate: host time per cell that passes.
//!
//! An output-queued switch of 16 ports by event, every arrival and departure taken from the engine's
//! schedule, and by slot: both see the same cells and give the same totals, or the bench fails. Crossbars
//! of 16 and 64 ports by parallel iterative matching in 4 rounds, and by iSLIP. The reference is a bare loop over the same number
//! of ports: xorshift for the arrivals, a ring of slot numbers for each output, the waits summed, nothing
//! else; it is measured in turns with both. One JSON line per workload: `ns` and `reference_ns` are
//! medians over the turns, `ratio` that of the turns' ratios.
//!
//! Longer runs must not allocate more: the bench compares the allocator's peak of a run with that of one
//! ten times as long.
//!
//! Arguments: words that the name of a workload must have; `--quick` for fewer turns.

#![allow(clippy::disallowed_types)] // a bench reads the clock; the crate beside it may not

use std::collections::BTreeMap;
use std::time::Instant;

use peak_alloc::PeakAlloc;
use wiretwin_benches::{Arguments, Turns, bare_cells};
use wiretwin_engine::Untraced;
use wiretwin_net::cell_switch::crossbar::{Scheduler, run_crossbar};
use wiretwin_net::cell_switch::{self, Config, Totals, run_by_slot};

#[path = "cells/by_event.rs"]
mod by_event;
use by_event::run_by_event;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// A way to run a switch for so many slots.
type Run = fn(u64) -> Totals;

fn output_queued(slots: u64) -> Config {
    Config { slots, ..Config::default() }
}

fn crossbar(ports: u8, slots: u64, scheduler: Scheduler) -> Totals {
    let switch = Config { ports, slots, ..Config::default() };
    run_crossbar(&switch, scheduler, &mut Untraced).expect("a valid configuration")
}

/// A workload: its name, how it runs, slots a turn, most nanoseconds a cell, and what one would like, both on a
/// machine on which the bare loop takes [`BARE_NS`]: what is judged is the ratio.
struct Workload(&'static str, Run, u64, u32, u32);

const BARE_NS: f64 = 3.5;

const BY_EVENT: &str = "net/16-port cell switch by event";
const BY_SLOT: &str = "net/16-port cell switch by slot";

const WORKLOADS: [Workload; 5] = [
    Workload(
        BY_EVENT,
        |slots| run_by_event(&output_queued(slots), &mut Untraced).expect("a valid configuration"),
        50_000,
        50,
        25,
    ),
    Workload(
        BY_SLOT,
        |slots| run_by_slot(&output_queued(slots), &mut Untraced).expect("a valid configuration"),
        50_000,
        12,
        6,
    ),
    Workload(
        "net/16-port crossbar pim-4",
        |slots| crossbar(16, slots, Scheduler::Pim { iterations: 4 }),
        20_000,
        40,
        25,
    ),
    Workload(
        "net/64-port crossbar pim-4",
        |slots| crossbar(64, slots, Scheduler::Pim { iterations: 4 }),
        5_000,
        80,
        80,
    ),
    Workload(
        "net/16-port crossbar islip-4",
        |slots| crossbar(16, slots, Scheduler::Islip { iterations: 4 }),
        20_000,
        40,
        25,
    ),
];

/// Nanoseconds per cell, and what was seen.
fn timed(run: Run, slots: u64) -> (f64, Totals) {
    let start = Instant::now();
    let totals = run(slots);
    (start.elapsed().as_secs_f64() * 1e9 / totals.departed as f64, totals)
}

/// The most that a run had allocated at a time.
fn peak(run: Run, slots: u64) -> usize {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    run(slots);
    ALLOCATOR.peak_usage() - before
}

fn main() {
    let arguments = Arguments::of_process();
    let turns = arguments.turns(15, 3);
    let mut seen = BTreeMap::new();
    for Workload(name, run, slots, target, stretch) in WORKLOADS {
        if !arguments.wanted(name) {
            continue;
        }
        timed(run, slots);
        let mut measured = Turns::default();
        for _ in 0..turns {
            let (ns, totals) = timed(run, slots);
            measured.push(ns, bare_cells(50_000));
            let first = seen.entry(name).or_insert_with(|| totals);
            assert_eq!(*first, totals, "{name}: another run saw other things");
        }
        let (ns, bare, ratio) = measured.medians();
        let grown = peak(run, 10 * slots).saturating_sub(2 * peak(run, slots));
        println!(
            r#"{{"bench":"{name}","unit":"ns per cell","ns":{ns:.1},"target_ratio":{:.1},"target_ns":{target},"stretch_ns":{stretch},"reference":"bare loop","reference_ns":{bare:.1},"ratio":{ratio:.2},"least_ns":{:.1},"grown_bytes":{grown},"turns":{turns}}}"#,
            f64::from(target) / BARE_NS,
            measured.least().0,
        );
        assert_eq!(grown, 0, "{name}: a longer run allocates {grown} bytes more than twice a short one's");
    }
    if let (Some(by_event), Some(by_slot)) = (seen.get(BY_EVENT), seen.get(BY_SLOT)) {
        assert_eq!(by_event, by_slot, "by event and by slot a switch is not the same");
    }
}
