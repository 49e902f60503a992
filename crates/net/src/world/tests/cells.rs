//! Ranks on the hosts of a network that is followed cell by cell.

use proptest::prelude::*;

use super::packets::{on, shuffle};
use super::*;

/// What the ends of a message take: nothing.
fn nothing() -> Layer {
    let free = || flat(0);
    Layer {
        call: Span::ZERO,
        overhead_send: free(),
        overhead_recv: free(),
        latency: free(),
        rendezvous_from: None,
        ..plain_layer()
    }
}

/// A cell of 53 B takes 1 us at this rate, and a line and a switch less than that.
const STAR: &str = "star,rate=424Mbit/s,delay=300ns,switch_delay=400ns,fidelity=cell";
const CELL: u64 = 1_000_000;
/// What is cut into one PDU.
const MTU: u64 = 9180;

/// Cells of a message: each PDU with its trailer of 8 B, in payloads of 48 B.
fn cells(bytes: u64) -> u64 {
    let of = |pdu: u64| (pdu + 8).div_ceil(48);
    let rest = bytes % MTU;
    bytes / MTU * of(MTU) + if rest > 0 { of(rest) } else { 0 }
}

/// Every cell that was sent has come or is somewhere, and so has every credit. Cells that switches rejected.
fn refused(world: &World) -> u64 {
    let network = &world.network.as_ref().unwrap().carrier.as_ref().unwrap().network;
    assert_eq!(network.under_way(), 0, "nothing is left behind");
    let fabric = network.fabric().unwrap();
    fabric.audit().unwrap();
    fabric
        .circuits()
        .map(|circuit| {
            let report = fabric.circuit(circuit);
            assert_eq!(report.sent, report.received + report.refused);
            report.refused
        })
        .sum()
}

#[test]
fn a_message_alone_takes_its_cells_and_a_slot_for_each_line() {
    for switch in ["output-queued", "crossbar"] {
        for bytes in [1, 40, 41, 1000, MTU, MTU + 1, 100_000, 1 << 20] {
            let mut world = on(&format!("{STAR},switch={switch}"), 2, nothing());
            let found = shuffle(&mut world, &[(0, 1, bytes)]);
            // The last cell leaves in the last slot; a line of up to a cell's length takes it into the slot after next.
            assert_eq!(found, (cells(bytes) - 1 + 2 + 2) * CELL, "{bytes} B over {switch}");
            assert_eq!(refused(&world), 0);
        }
    }
}

#[test]
fn a_message_waits_for_its_sender_to_make_it() {
    let per_byte = Curve::new(vec![Segment { from_bytes: 0, base_ps: 0, per_byte_fs: 200_000_000 }]).unwrap();
    let layer = Layer { overhead_send: per_byte, ..nothing() };
    let found = shuffle(&mut on(STAR, 2, layer), &[(0, 1, 100_000)]);
    // Ten times what the line takes: the last PDU, and no more, crosses after it is made.
    let made = 100_000 * 200_000;
    let last = cells(100_000 % MTU) * CELL;
    assert!((made..=made + last + 5 * CELL).contains(&found), "{found} ps for {made} ps");
}

#[test]
fn credits_lose_nothing_of_an_incast_and_fill_the_line() {
    let incast: Vec<_> = (1..9).map(|source| (source, 0, 100_000)).collect();
    for credits in ["loop", "1", "40"] {
        for switch in ["output-queued", "crossbar"] {
            let mut world = on(&format!("{STAR},switch={switch},credits={credits}"), 9, nothing());
            let found = shuffle(&mut world, &incast);
            assert_eq!(refused(&world), 0);
            // All cells on the one line, and the first of them on its way there.
            let line = 8 * cells(100_000) * CELL;
            assert!((line..line + line / 50).contains(&found), "{found} ps of {line}: {switch}, {credits}");
        }
    }
}

#[test]
fn a_window_of_one_cell_holds_a_circuit_to_one_cell_a_round_trip() {
    let of = |credits: &str| {
        shuffle(&mut on(&format!("{STAR},credits={credits}"), 2, nothing()), &[(0, 1, 9000)]) as f64
    };
    // A cell is at the switch two slots later; its credit takes as long.
    let ratio = of("1") / of("loop");
    assert!((3.0..5.0).contains(&ratio), "{ratio}");
}

#[test]
fn without_credits_queues_lose_cells_and_tcp_no_message() {
    let incast: Vec<_> = (1..9).map(|source| (source, 0, 100_000)).collect();
    let of = |queue: &str| {
        let mut world = on(&format!("{STAR},mtu=1500B,credits=none{queue}"), 9, nothing());
        let time = shuffle(&mut world, &incast);
        (time, refused_so_far(&world))
    };
    let (free, none) = of("");
    let (tight, lost) = of(",queue=500cells");
    assert_eq!(none, 0);
    assert!(lost > 0 && tight > free, "{tight} and {free} ps, {lost} cells");
}

/// Cells that switches rejected, acknowledgments being under way.
fn refused_so_far(world: &World) -> u64 {
    let fabric = world.network.as_ref().unwrap().carrier.as_ref().unwrap().network.fabric().unwrap();
    fabric.audit().unwrap();
    fabric.circuits().map(|circuit| fabric.circuit(circuit).refused).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever the topology, the switches and the messages: all arrive, no cell is unaccounted for, and a run is the
    /// same every time, alone and beside others.
    #[test]
    fn every_message_arrives_and_a_run_is_the_same_every_time(
        kind in 0_usize..5,
        switch in prop_oneof![
            Just("output-queued"), Just("crossbar"), Just("crossbar,iterations=1")
        ],
        credits in prop_oneof![Just("loop"), Just("1"), Just("7"), Just("none"), Just("none,queue=300cells")],
        messages in prop::collection::vec((0_u32..8, 0_u32..8, 0_u64..30_000), 1..16),
    ) {
        let topology = ["star", "ring", "dumbbell", "parking-lot", "fat-tree"][kind];
        let topology =
            format!("{topology},rate=155Mbit/s,delay=2us,mtu=1000B,fidelity=cell,switch={switch},credits={credits}");
        let messages = messages.into_iter().filter(|found| found.0 != found.1).collect::<Vec<_>>();
        let run = || {
            let mut world = on(&topology, 8, plain_layer());
            let time = shuffle(&mut world, &messages);
            if messages.is_empty() {
                return (time, world.digest());
            }
            if credits.starts_with("none") { refused_so_far(&world) } else { refused(&world) };
            (time, world.digest())
        };
        let alone = run();
        let beside = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..3).map(|_| scope.spawn(run)).collect();
            workers.into_iter().map(|worker| worker.join().expect("a run that ends")).collect::<Vec<_>>()
        });
        prop_assert!(beside.iter().all(|one| *one == alone));
    }
}
