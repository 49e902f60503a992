//! No allocation for a cell, a packet or a message once a network runs steadily: allocations are counted.

mod lan_of;

use std::alloc::System;
use std::sync::Arc;

use lan_of::{PLAIN, Want, lan};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use wiretwin_engine::Untraced;
use wiretwin_net::cell_switch::crossbar::{Scheduler, run_crossbar};
use wiretwin_net::cell_switch::{Config, run_by_slot};
use wiretwin_net::fabric::{Credits, Crossbar, Discard, Line, Matching, Node, Plan, Station, Window};
use wiretwin_net::lan::echo::round_trips;
use wiretwin_net::packet::{Application, Simulation};
use wiretwin_plan::NetworkPlan;
use wiretwin_proto::tcp;
use wiretwin_units::{BitRate, Bytes, Span};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Allocations, and those that grew, while something is done.
fn counted<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let region = Region::new(ALLOCATOR);
    let done = work();
    let change = region.change();
    (change.allocations + change.reallocations, done)
}

/// One test, for the allocator is one for all.
#[test]
fn a_steady_network_does_not_allocate() {
    // What each round trip of 20 000 octets may allocate. A library keeps the heads of its fragments, five of
    // 4 KiB a message here, on the heap; nothing is for cells and packets.
    let stacks = [
        ("fore/aal5", "series-100", false, 0),
        ("fore/aal5", "series-200", true, 0),
        ("fore/aal34", "series-200", true, 0),
        ("socket/tcp/aal5", "series-200", true, 0),
        ("socket/tcp/ethernet", "frames", false, 0),
        ("socket/tcp/fddi", "frames", false, 0),
        ("socket/udp/aal5", "series-200", true, 0),
        ("socket/udp/ethernet", "frames", false, 0),
        ("pvm-advise/tcp/aal5", "series-200", true, 20),
        ("pvm-normal/udp/aal5", "series-200", true, 137),
        ("pvm-normal/udp/ethernet", "frames", false, 137),
    ];
    for (stack, adapter, switch, of_heads) in stacks {
        let of = |rounds| {
            let mut lan = lan(&Want { stack, adapter, switch, ..PLAIN }, 7, false);
            let (count, times) = counted(|| round_trips(&mut lan, Bytes::new(20_000), rounds));
            times.expect("an echo that ends");
            (count, lan.events())
        };
        // Queues grow to what they need, and then no more: a few doublings, not one a cell or message.
        let (short, long) = (of(50), of(200));
        let moved = long.1 - short.1;
        assert!(moved >= 9_000, "{stack}: {moved} events");
        let more = long.0.saturating_sub(short.0);
        assert!(more <= 8 + 150 * of_heads, "{stack}, {adapter}: {more} more for {moved} events");
    }

    let of = |slots| {
        let config = Config { slots, ..Config::default() };
        let (count, totals) = counted(|| run_by_slot(&config, &mut Untraced));
        totals.expect("a valid configuration");
        count
    };
    // All the queues it will need it has early: a longer run adds a few doublings, not one a cell.
    let (short, long) = (of(20_000), of(200_000));
    assert!(long <= short + 32, "{short} in 20 000 slots, {long} in 200 000");

    for scheduler in [Scheduler::Pim { iterations: 4 }, Scheduler::Islip { iterations: 4 }] {
        let of = |slots| {
            let switch = Config { slots, ..Config::default() };
            let (count, totals) = counted(|| run_crossbar(&switch, scheduler, &mut Untraced));
            totals.expect("a valid configuration");
            count
        };
        // Each of 256 queues may still double once, for 2.6 million cells.
        let (short, long) = (of(20_000), of(200_000));
        assert!(long <= short + 256, "{scheduler:?}: {short} in 20 000 slots, {long} in 200 000");
    }

    let config = tcp::Config { work: false, ..tcp::Config::linux_modern() };
    let buffer = Bytes::new(65_535);
    let config = config.with_buffers(buffer, buffer).expect("within the limit");
    let config = Arc::new(config);
    let text = "dumbbell:hosts=12,rate=1Gbit/s,delay=10us,trunk_rate=155Mbit/s,trunk_delay=5ms,fidelity=packet,queue=256packets";
    let plan = NetworkPlan::from_text(text).expect("a plan");
    let mut simulation = Simulation::new(&plan, 1).expect("a dumbbell that can be");
    for pair in 0..6 {
        let start = simulation.now() + Span::from_ms(7 * u64::from(pair));
        simulation.connect([2 * pair, 2 * pair + 1], [&config, &config], Application::Endless, start);
    }
    simulation.run_until(simulation.now() + Span::from_s(2));
    let hops = simulation.network().hops();
    let (count, ()) = counted(|| simulation.run_until(simulation.now() + Span::from_s(1)));
    let hops = simulation.network().hops() - hops;
    assert!(hops > 10_000, "{hops} hops");
    assert_eq!(count, 0, "of {hops} packet-hops");

    a_steady_fabric_does_not_allocate();
}

/// Eight stations at a crossbar with credits, each with cells for the next in half of its slots.
fn a_steady_fabric_does_not_allocate() {
    let mut plan = Plan::new();
    let switch = plan.node(Node::Crossbar(Crossbar {
        ports: 8,
        matching: Matching::Pim,
        iterations: 4,
        inside: 4,
        latency: Span::from_us(12),
        queue: None,
        discard: Discard::Tail,
        circuits: 100,
    }));
    let credits = Credits { window: Window::Loop, resync: Some(Span::from_us(50)), ..Credits::cells(1) };
    let line = Line { credits: Some(credits), ..Line::plain(BitRate::mbit_s(150), Span::from_us(3)) };
    let stations: Vec<_> = (0..8)
        .map(|_| {
            let station = plan.node(Node::Station(Station { sar: Span::from_ns(200) }));
            plan.line(station, switch, line);
            station
        })
        .collect();
    for (place, &from) in stations.iter().enumerate() {
        for ahead in 1..4 {
            plan.circuit_along(&[from, switch, stations[(place + ahead) % 8]]).expect("all are joined");
        }
    }
    let mut fabric = plan.build(1).expect("a network that can be");
    for &station in &stations {
        fabric.load_slots(station, 0.5).expect("circuits begin there");
    }
    fabric.run_until(fabric.now() + Span::from_ms(500));
    let hops = fabric.hops();
    let (count, ()) = counted(|| fabric.run_until(fabric.now() + Span::from_ms(500)));
    let hops = fabric.hops() - hops;
    assert!(hops > 1_000_000, "{hops} hops");
    assert!(count <= 4, "{count} allocations in {hops} cell-hops");
}
