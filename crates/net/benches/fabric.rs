//! Networks of cell switches: host time per cell-hop, and six TCP sessions over two switches.
//!
//! A crossbar of 16 or 64 ports with PIM in 4 rounds between as many stations, each of which has a cell for any
//! station in 0.9 of its slots: without credits, and with a loop of them on every line. A hop is a cell that
//! reached the end of a line, so that every cell makes two. The reference is a bare loop over 16 rings, as of
//! the bench of cell switches: xorshift for the arrivals, the waits summed, nothing else; measured in turns.
//!
//! `output-queued` is what other simulators are run with: 16 hosts around a switch with queues at its outputs, on
//! lines of 500 ns. Its reference is the bare loop of the same: an event for each cell that is made, reaches the
//! switch and reaches its host. Left out of ours are payloads and checksums; what is in the reference no more than
//! the times are the adapters, the circuits, the counters and the books.
//!
//! `six-sessions` is both variants of 10 simulated seconds, in seconds.
//!
//! A steady turn must not allocate: the bench fails where the allocator's peak rises above what was in use when
//! the turn began.
//!
//! Arguments: words that the name of a workload must have; `--quick` for fewer turns.

#![allow(clippy::disallowed_types)] // a bench reads the clock; the crate beside it may not

use std::time::Instant;

use peak_alloc::PeakAlloc;
use serde_json::{Value, json};
use wiretwin_benches::{Arguments, Turns, bare_cells, bare_switch, median};
use wiretwin_net::fabric::{
    Credits, Crossbar, Discard, Fabric, Line, Matching, Node, NodeId, Plan, Service, SharedBuffer, Station,
    Window,
};
use wiretwin_net::packet::Sessions;
use wiretwin_units::{BitRate, Cells, Span};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const OC3: BitRate = BitRate::bit_s(150_336_000);

fn crossbar(ports: u8) -> Node {
    Node::Crossbar(Crossbar {
        ports,
        matching: Matching::Pim,
        iterations: 4,
        inside: 1,
        latency: Span::from_us(12),
        queue: None,
        discard: Discard::Tail,
        circuits: u32::MAX,
    })
}

fn output_queued(ports: u8) -> Node {
    Node::SharedBuffer(SharedBuffer {
        ports,
        service: Service::InOrder,
        latency: Span::ZERO,
        buffer: Cells::new(16 * 256),
        queue: None,
        discard: Discard::Tail,
        circuits: u32::MAX,
    })
}

/// A switch between stations, each with a circuit to every station.
fn uniform(ports: u8, switch: Node, rate: BitRate, credits: Option<Credits>) -> Fabric {
    let mut plan = Plan::new();
    let switch = plan.node(switch);
    let line = Line { credits, ..Line::plain(rate, Span::from_ns(500)) };
    // A port is a station that sends and one that receives: lines are duplex.
    let stations: Vec<NodeId> = (0..ports)
        .map(|_| {
            let station = plan.node(Node::Station(Station { sar: Span::from_ns(200) }));
            plan.line(station, switch, line);
            station
        })
        .collect();
    for &from in &stations {
        for &to in stations.iter().filter(|&&to| to != from) {
            plan.circuit_along(&[from, switch, to]).expect("all are joined to the switch");
        }
    }
    let mut fabric = plan.build(1).expect("a network that can be");
    for &station in &stations {
        fabric.load_slots(station, 0.9).expect("circuits begin there");
    }
    fabric
}

struct Workload {
    name: &'static str,
    ports: u8,
    credits: bool,
    switch: fn(u8) -> Node,
    rate: BitRate,
    /// What it is held against, nanoseconds per hop or cell.
    bare: fn() -> f64,
    /// The most times the bare loop that it may take.
    most: f64,
}

/// Of a crossbar, whose loop says nothing of hosts and lines: 40, 60 and 80 ns in an hour in which it takes 3.8.
const WORKLOADS: [Workload; 4] = [
    Workload {
        name: "net/16-port fabric output-queued",
        ports: 16,
        credits: false,
        switch: output_queued,
        rate: BitRate::mbit_s(155),
        bare: || bare_switch(50_000),
        most: 2.6,
    },
    Workload {
        name: "net/16-port fabric pim-4",
        ports: 16,
        credits: false,
        switch: crossbar,
        rate: OC3,
        bare: || bare_cells(50_000),
        most: 10.5,
    },
    Workload {
        name: "net/16-port fabric pim-4 credits",
        ports: 16,
        credits: true,
        switch: crossbar,
        rate: OC3,
        bare: || bare_cells(50_000),
        most: 15.8,
    },
    Workload {
        name: "net/64-port fabric pim-4 credits",
        ports: 64,
        credits: true,
        switch: crossbar,
        rate: OC3,
        bare: || bare_cells(50_000),
        most: 21.0,
    },
];

/// 20 s for 14.4 million cell-hops in an hour in which the bare loop takes 3.8 ns.
const SIX_SESSIONS_MOST: f64 = 365.0;

/// Six streams over one line between two switches.
fn six_sessions(credits: &Value) -> Sessions {
    let switch = |name: &str| {
        json!({
            "name": name, "kind": "switch", "delay": "12 us",
            "switch": {"kind": "crossbar", "ports": 16, "inside": 5, "queue": 256, "circuits": 4096},
        })
    };
    let line = |a: &str, b: &str| json!({"from": a, "to": b, "credits": {"cells": credits}});
    let mut nodes = vec![switch("s1"), switch("s2")];
    let mut lines = vec![line("s1", "s2")];
    let mut sessions = Vec::new();
    for number in 0..6 {
        let [from, to] = ["a", "b"].map(|side| format!("{side}{number}"));
        for name in [&from, &to] {
            nodes.push(json!({"name": name, "kind": "host", "delay": "200 ns"}));
        }
        lines.extend([line(&from, "s1"), line("s2", &to)]);
        let start = format!("{} ms", 10 * number);
        sessions.push(json!({"name": from, "kind": "ttcp", "from": from, "to": to, "start": start}));
    }
    let plan = json!({
        "seed": 1, "warm_up": "0 s", "run": "10 s", "per_segment": "300 us", "sessions": sessions,
        "network": {
            "topology": "listed", "fidelity": "cell", "rate": "150336000 bit/s", "delay": "500 ns",
            "mtu": "9188 B", "nodes": nodes, "lines": lines,
        },
        "tcp": {"preset": "bsd43_tahoe", "window": "64 KiB", "mss": "8192 B", "delayed_ack": false},
    });
    Sessions::from_json(&plan.to_string()).expect("sessions that can be")
}

fn main() {
    let arguments = Arguments::of_process();
    let turns = arguments.turns(15, 3);
    for Workload { name, ports, credits, switch, rate, bare, most } in WORKLOADS {
        if !arguments.wanted(name) {
            continue;
        }
        let credits = credits.then_some(Credits { window: Window::Loop, ..Credits::cells(1) });
        let mut fabric = uniform(ports, switch(ports), rate, credits);
        // 320 000 cells a turn, near enough.
        let turn = Span::from_us(2_820 * 20_000 / 1_000 * 16 / u64::from(ports));
        for _ in 0..10 {
            fabric.run_until(fabric.now() + turn);
        }
        let mut measured = Turns::default();
        let mut grown = 0;
        for _ in 0..turns {
            let (hops, until) = (fabric.hops(), fabric.now() + turn);
            ALLOCATOR.reset_peak_usage();
            let before = ALLOCATOR.current_usage();
            let start = Instant::now();
            fabric.run_until(until);
            let ns = start.elapsed().as_secs_f64() * 1e9 / (fabric.hops() - hops) as f64;
            grown += ALLOCATOR.peak_usage().saturating_sub(before);
            measured.push(ns, bare());
        }
        fabric.audit().expect("the books balance");
        let (ns, bare, ratio) = measured.medians();
        println!(
            r#"{{"bench":"{name}","unit":"ns per cell-hop","ns":{ns:.1},"reference":"bare loop","reference_ns":{bare:.1},"ratio":{ratio:.2},"target_ratio":{most},"least_ns":{:.1},"grown_bytes":{grown},"turns":{turns}}}"#,
            measured.least().0,
        );
        // Queues and lines grow to the most they have ever held; that is a few doublings, not one a cell.
        assert!(grown < 1 << 20, "{name}: steady turns allocated {grown} bytes");
    }
    let name = "net/six-sessions, 10 s, both variants";
    if arguments.wanted(name) {
        let variants = [six_sessions(&json!("none")), six_sessions(&json!(5))];
        let mut times = Vec::new();
        let mut hops = 0;
        for _ in 0..turns.min(3) {
            let start = Instant::now();
            hops = variants.iter().map(|one| one.run()["cell_hops"].as_u64().unwrap_or(0)).sum();
            times.push(start.elapsed().as_secs_f64());
        }
        let bare = bare_cells(50_000);
        let seconds = median(&mut times);
        let ns = seconds * 1e9 / hops as f64;
        let reference = bare * 1e-9 * hops as f64;
        println!(
            r#"{{"bench":"{name}","unit":"s","value":{seconds:.2},"reference":"bare loop of {hops} cells","reference_value":{reference:.4},"ratio":{:.1},"target_ratio":{SIX_SESSIONS_MOST},"ns_per_cell_hop":{ns:.1}}}"#,
            seconds / reference,
        );
    }
}
