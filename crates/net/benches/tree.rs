//! Packets over a three-level fat tree of 1024 hosts, all of which send: host time per packet-hop, and memory.
//!
//! 16 pods of 8 edge and 8 aggregation switches, 64 switches at the core, lines of 100 Gbit/s and 1 us. Each host sends
//! to one other, and is sent to by one, without end: the real TCP machine at both ends, packets of 4000 octets, a window
//! of 200 kB. Of equal ways a connection takes one by a hash, so that some lines have several; nothing is lost. A hop is a packet that reached the end of
//! a link. The reference is the bare loop of the same, with windows of 50 packets, no TCP, and ways that do not
//! meet. Left out of ours are
//! what hosts cost, payloads and checksums. Measured in turns; `ns` and `reference_ns` are medians over them.
//!
//! Arguments: words that the name of a workload must have; `--quick` for fewer turns.

#![allow(clippy::disallowed_types)] // a bench reads the clock; the crate beside it may not

use std::sync::Arc;
use std::time::Instant;

use peak_alloc::PeakAlloc;
use wiretwin_benches::{Arguments, Turns, bare_tree, partners};
use wiretwin_net::packet::{Application, Simulation};
use wiretwin_plan::NetworkPlan;
use wiretwin_proto::tcp::Config;
use wiretwin_units::{Bytes, SimTime, Span};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const TREE: &str = "fat-tree:hosts=1024,levels=3,radix=16,rate=100Gbit/s,delay=1us,mtu=4000B,framing=0B";
const WINDOW: Bytes = Bytes::new(200_000);

/// The tree, and a connection from each host to its partner.
fn tree() -> Simulation {
    let plan = NetworkPlan::from_text(TREE).expect("a plan");
    let mut simulation = Simulation::new(&plan, 1).expect("a tree that can be");
    let config = Config { work: false, ..Config::linux_modern() };
    let config = Arc::new(config.with_buffers(WINDOW, WINDOW).expect("within the limit"));
    for (from, to) in (0..).zip(partners()) {
        simulation.connect([from, to], [&config, &config], Application::Endless, SimTime::ZERO);
    }
    simulation
}

fn main() {
    let arguments = Arguments::of_process();
    let name = "net/fat-tree 1024 hosts, tcp";
    if !arguments.wanted(name) {
        return;
    }
    let turns = arguments.turns(9, 3);
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let mut simulation = tree();
    // Past the slow start, and until what grows has its size.
    simulation.run_until(simulation.now() + Span::from_us(1_000));
    let mut measured = Turns::default();
    for _ in 0..turns {
        let (hops, until) = (simulation.network().hops(), simulation.now() + Span::from_us(TURN_US));
        let start = Instant::now();
        simulation.run_until(until);
        let ns = start.elapsed().as_secs_f64() * 1e9 / (simulation.network().hops() - hops) as f64;
        measured.push(ns, bare_tree(50, TURN_US));
    }
    let memory = (ALLOCATOR.peak_usage() - before) as f64 / 1e6;
    let (ns, bare, ratio) = measured.medians();
    println!(
        r#"{{"bench":"{name}","unit":"ns per packet-hop","ns":{ns:.1},"reference":"bare loop","reference_ns":{bare:.1},"ratio":{ratio:.2},"target_ratio":4.4,"turns":{turns}}}"#
    );
    println!(r#"{{"bench":"{name}, memory","unit":"MB","value":{memory:.0},"target_value":100}}"#);
}

/// Simulated time of a turn: some 700 000 hops.
const TURN_US: u64 = 100;
