//! Packets over a dumbbell: host time per packet-hop, with the real TCP machine at both ends.
//!
//! Six connections share a line of 155 Mbit/s; a hop is a packet that reached the end of a link, with all
//! that brought it about: events, queues, and what six senders and six receivers do. The reference is one
//! push and one pop of a plain `BinaryHeap` with 1024 events pending, measured in turns with each
//! workload. `all-155-mbit-s` is what other simulators are run with: all lines of 155 Mbit/s and 500 ns, windows of
//! 64 KiB and no losses; its reference is the bare loop of the same, with windows and without TCP. One JSON line per workload: `ns` and `reference_ns` are medians over the turns, `ratio` that
//! of the turns' ratios.
//!
//! Where nothing is lost, a steady turn must not allocate: the peak of the allocator may not rise above
//! what was in use when the turn began. The bench fails otherwise.
//!
//! Arguments: words that the name of a workload must have; `--quick` for fewer turns.

#![allow(clippy::disallowed_types)] // a bench reads the clock; the crate beside it may not

use std::sync::Arc;
use std::time::Instant;

use peak_alloc::PeakAlloc;
use wiretwin_benches::{Arguments, PlainHeap, Turns, bare_dumbbell};
use wiretwin_net::packet::{Application, Costs, Simulation};
use wiretwin_plan::{LineId, NetworkPlan};
use wiretwin_proto::tcp::Config;
use wiretwin_units::{Bytes, SimTime, Span};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

struct Workload {
    name: &'static str,
    mtu: u16,
    /// Socket buffers.
    buffer: Bytes,
    costs: Option<Costs>,
    /// Whether all lines are as the shared one, 500 ns long, without a bound to their queues.
    alike: bool,
    /// Whether the windows fit the line and its queue, so that nothing is lost.
    lossless: bool,
    target_ns: Option<f64>,
    target_ratio: Option<f64>,
}

fn workloads() -> [Workload; 5] {
    let costs = Costs {
        per_segment: Span::from_us(20),
        per_octet_copied: Span::from_ps(500),
        per_octet_summed: Span::from_ps(500),
        per_event: Span::from_us(1),
    };
    let wide = Workload {
        name: "net/dumbbell six-tcp mss-1448",
        mtu: 1_500,
        buffer: Bytes::mib(4),
        costs: None,
        alike: false,
        lossless: false,
        target_ns: Some(45.0),
        target_ratio: Some(TARGET_RATIO),
    };
    [
        Workload {
            name: "net/dumbbell six-tcp mss-1448 all-155-mbit-s",
            buffer: Bytes::new(65_535),
            alike: true,
            lossless: true,
            target_ns: None,
            target_ratio: Some(3.7),
            ..wide
        },
        Workload { ..wide },
        Workload { name: "net/dumbbell six-tcp mss-8192", mtu: 8_244, ..wide },
        Workload {
            name: "net/dumbbell six-tcp mss-1448 lossless",
            buffer: Bytes::new(65_535),
            lossless: true,
            ..wide
        },
        Workload {
            name: "net/dumbbell six-tcp mss-1448 hosts-cost",
            costs: Some(costs),
            target_ns: None,
            target_ratio: None,
            ..wide
        },
    ]
}

/// 45 ns on a machine on which a push and a pop of the reference take 31 ns.
const TARGET_RATIO: f64 = 1.45;

impl Workload {
    /// Six connections, each from a host on the left to one on the right.
    fn build(&self) -> Simulation {
        let config = Config { work: self.costs.is_some(), ..Config::linux_modern() };
        let config = Arc::new(config.with_buffers(self.buffer, self.buffer).expect("within the limit"));
        let lines = if self.alike {
            "rate=155Mbit/s,delay=500ns"
        } else {
            "rate=1Gbit/s,delay=10us,trunk_rate=155Mbit/s,trunk_delay=5ms,fidelity=packet,queue=256packets"
        };
        let plan = NetworkPlan::from_text(&format!("dumbbell:hosts=12,mtu={}B,framing=8B,{lines}", self.mtu));
        let mut simulation = Simulation::new(&plan.expect("a plan"), 1).expect("a dumbbell that can be");
        if let Some(costs) = self.costs {
            simulation.set_costs(costs);
        }
        for pair in 0..6 {
            let start = SimTime::ZERO + Span::from_ms(7 * u64::from(pair));
            simulation.connect([2 * pair, 2 * pair + 1], [&config, &config], Application::Endless, start);
        }
        simulation
    }

    /// ns per hop of a turn.
    fn turn(&self, simulation: &mut Simulation) -> f64 {
        let hops = simulation.network().hops();
        let until = simulation.now() + TURN;
        ALLOCATOR.reset_peak_usage();
        let before = ALLOCATOR.current_usage();
        let start = Instant::now();
        simulation.run_until(until);
        let elapsed = start.elapsed();
        let grown = ALLOCATOR.peak_usage().saturating_sub(before);
        assert!(!self.lossless || grown == 0, "{}: a steady turn allocated {grown} octets", self.name);
        let lost = simulation.network().line(FORWARD).port.dropped;
        assert!(!self.lossless || lost == 0, "{}: {lost} packets lost", self.name);
        elapsed.as_secs_f64() * 1e9 / (simulation.network().hops() - hops) as f64
    }
}

/// The shared line, from left to right.
const FORWARD: LineId = LineId(0);

/// Virtual time of a turn.
const TURN: Span = Span::from_ms(2_000);

/// Turns before the first that counts.
const WARM_UP: usize = 3;

fn main() {
    let arguments = Arguments::of_process();
    let turns = arguments.turns(21, 5);
    let mut heap = PlainHeap::default();
    for workload in workloads() {
        if !arguments.wanted(workload.name) {
            continue;
        }
        let mut simulation = workload.build();
        simulation.run_until(simulation.now() + Span::from_s(4));
        let mut measured = Turns::default();
        for turn in 0..WARM_UP + turns {
            // The warm-up is for what grows to its size once.
            if turn < WARM_UP {
                simulation.run_until(simulation.now() + TURN);
                heap.turn();
                continue;
            }
            let ns = workload.turn(&mut simulation);
            // 45 segments of 1448 octets fill a window.
            let reference = if workload.alike { bare_dumbbell(45, 2_000) } else { heap.turn() };
            measured.push(ns, reference);
        }
        let (ns, reference, ratio) = measured.medians();
        let of = if workload.alike { "bare loop" } else { "push and pop of a BinaryHeap of 1024" };
        let mut line = format!(
            "{{\"bench\": \"{}\", \"unit\": \"ns per packet-hop\", \"ns\": {ns:.1}, \"reference\": \
             \"{of}\", \"reference_ns\": {reference:.1}, \"ratio\": {ratio:.3}",
            workload.name,
        );
        if let Some(target) = workload.target_ratio {
            line += &format!(", \"target_ratio\": {target}");
        }
        if let Some(target) = workload.target_ns {
            line += &format!(", \"target_ns\": {target}");
        }
        println!("{line}}}");
    }
}
