//! Tasks over a shared port: nothing lost, repeated or out of place, whatever the load.

use std::sync::Arc;

use wiretwin_proto::abr::Config;
use wiretwin_proto::pcaal::{self, Kind, LocalClock, Watch};
use wiretwin_units::{BitRate, Cells, SimTime, Span};

use super::super::network::{cell_time, cells_per_s};
use super::super::{Category, Mechanism, Message, Network, Plan, PortPlan, TaskPlan, TaskReport, Trace};
use super::{LINE, available, circuit, port};
use crate::load::Law;

fn trace(values: u32, each: Span) -> Arc<Trace> {
    let message = Message { at: Span::ZERO, values, kind: Kind::Eight };
    Arc::new(Trace { messages: vec![message], period: each })
}

fn task(mechanism: Mechanism, path: &[usize]) -> TaskPlan {
    TaskPlan {
        name: "task".into(),
        path: path.to_vec(),
        access: Span::from_us(5),
        line: LINE,
        mechanism,
        source: None,
        layer: pcaal::Config::default(),
        peer_clock: LocalClock::default(),
        backup: Config::new(cells_per_s(BitRate::mbit_s(50))),
        control: BitRate::mbit_s(1),
        trace: trace(100, Span::from_ms(10)),
        start: SimTime::ZERO,
    }
}

/// Sources of both kinds that together take this share of the line, in bursts of 5 ms.
fn background(rho: f64, path: &[usize], tag: &str) -> Vec<super::super::CircuitPlan> {
    let peak = BitRate::bit_s((rho * LINE.get() as f64 / 3.0) as u64);
    let (on, off) = (Span::from_ms(5), Span::from_ms(5));
    let law = Some(Law::OnOff { interval: cell_time(peak), on, off });
    (0..6)
        .map(|number| {
            let category = if number % 2 == 0 { Category::Ubr } else { available(BitRate::mbit_s(100)) };
            circuit(&format!("{tag}{number}"), path, category, law)
        })
        .collect()
}

fn plan(ports: usize, rho: f64, task: TaskPlan) -> Plan {
    let port = PortPlan { buffer: Cells::new(300), ..port(LINE, 30) };
    let circuits = (0..ports).flat_map(|number| background(rho, &[number], &format!("p{number}-"))).collect();
    Plan { ports: vec![port; ports], circuits, tasks: vec![task] }
}

fn run(plan: &Plan, seed: u64, ms: u64) -> (Network, TaskReport) {
    let mut network = plan.build(seed).expect("a network that can be");
    network.run_until(SimTime::ZERO + Span::from_ms(ms));
    network.audit().expect("the books balance");
    let report = network.tasks().next().expect("a task");
    (network, report)
}

#[test]
fn a_message_alone_takes_the_time_of_its_cells() {
    for (mechanism, cell_us) in
        [(Mechanism::Ubr, 2.831_197), (Mechanism::LmeEce, 2.831_197), (Mechanism::Abr, 8.48)]
    {
        let (_, report) = run(&plan(1, 0.0001, task(mechanism, &[0])), 1, 300);
        assert_eq!((report.lost_data, report.misplaced, report.counters.retransmitted), (0, 0, 0));
        assert!(report.latencies.len() >= 15);
        // 50 cells of two values, the last of which is on the line of the port once more, and 25 us of way;
        // with rates every 32nd cell is one of management.
        let expected = 49.0 * cell_us + 2.831 + 25.0;
        for latency in &report.latencies {
            let us = latency.as_ps() as f64 / 1e6;
            assert!((expected - 3.0..expected + 40.0).contains(&us), "{mechanism:?}: {us} us for {expected}");
        }
    }
}

#[test]
fn nothing_is_lost_repeated_or_out_of_place_over_changes_of_mode() {
    let (mut switches, mut lost) = (0, 0);
    for seed in 0..20 {
        for mechanism in [Mechanism::Ubr, Mechanism::Abr, Mechanism::LmeEce] {
            let path = if seed % 2 == 0 { &[0][..] } else { &[0, 1] };
            let rho = 0.8 + 0.02 * (seed % 16) as f64;
            let (_, report) = run(&plan(path.len(), rho, task(mechanism, path)), seed, 400);
            assert_eq!(report.misplaced, 0, "seed {seed}, {mechanism:?}");
            assert!(!report.peer_lost);
            let under_way = report.messages - report.latencies.len() as u64;
            assert!(under_way < 40, "seed {seed}, {mechanism:?}: {under_way} under way");
            if mechanism == Mechanism::LmeEce {
                switches += report.counters.switches;
                assert!(report.counters.data_backup > 0 || report.counters.switches == 0);
            } else {
                assert_eq!(report.counters.switches, 0);
            }
            lost += report.lost_data;
        }
    }
    assert!(switches > 20 && lost > 1000, "{switches} changes of mode, {lost} cells lost");
}

#[test]
fn abr_keeps_its_cells_where_ubr_loses_them() {
    let lost = |mechanism| run(&plan(1, 1.1, task(mechanism, &[0])), 5, 1_000).1.lost_data;
    let (ubr, abr) = (lost(Mechanism::Ubr), lost(Mechanism::Abr));
    // Where the whole buffer is of ABR nobody gives way.
    assert!(ubr > 100 && abr * 20 < ubr, "{ubr} {abr}");
}

#[test]
fn clocks_that_are_apart_are_seen_to_or_look_like_latency() {
    let apart = LocalClock { ahead_ns: 5_000_000, gains_ns_each_s: 10_000 };
    let high = |clock_sync| {
        let layer = pcaal::Config { clock_sync, ..pcaal::Config::default() };
        let task = TaskPlan { peer_clock: apart, layer, ..task(Mechanism::LmeEce, &[0]) };
        run(&plan(1, 0.1, task), 1, 900).1.high
    };
    assert!(high(None) > Span::from_ms(700), "5 ms look like latency");
    // Five us to the port, a cell of the line, 20 us to the peer.
    let sync = pcaal::ClockSync { interval: Span::from_ms(100), delay: Span::from_us(28) };
    assert!(high(Some(sync)) < Span::from_ms(200), "{}", high(Some(sync)));
}

#[test]
fn every_way_of_watching_finds_a_congested_circuit() {
    for watch in [Watch::EachCell, Watch::Average(8), Watch::OnDemand, Watch::RoundTrip, Watch::Network] {
        let layer = pcaal::Config { watch: Some(watch), ..pcaal::Config::default() };
        let mut plan = plan(1, 1.0, TaskPlan { layer, ..task(Mechanism::LmeEce, &[0]) });
        plan.ports[0].efci = Some(Cells::new(30));
        let (_, report) = run(&plan, 2, 1_000);
        assert!(report.counters.switches > 0 && report.misplaced == 0, "{watch:?}: {report:?}");
    }
}

#[test]
fn the_same_seed_is_the_same_run_and_another_is_another() {
    let digest = |seed| run(&plan(2, 0.9, task(Mechanism::LmeEce, &[0, 1])), seed, 200).1.digest;
    assert_eq!(digest(4), digest(4));
    assert_ne!(digest(4), digest(5));
}

#[test]
fn a_low_peak_rate_spaces_cells_and_makes_none_longer() {
    // Both ways take 5 + 20 us and a cell; a cell for each 424 us of the control circuit would look late.
    let layer = pcaal::Config { watch: Some(Watch::RoundTrip), ..pcaal::Config::default() };
    let (_, report) = run(&plan(1, 0.0001, TaskPlan { layer, ..task(Mechanism::LmeEce, &[0]) }), 1, 900);
    assert_eq!((report.high, report.counters.switches), (Span::ZERO, 0));
    assert!(report.back > 5, "{} echoes", report.back);
}

#[test]
fn polls_go_on_while_no_data_are_under_way_where_they_should() {
    let back = |timer_keep_alive| {
        let layer = pcaal::Config { timer_keep_alive, max_pd: 1024, ..pcaal::Config::default() };
        let task = TaskPlan { layer, trace: trace(100, Span::from_s(2)), ..task(Mechanism::Ubr, &[0]) };
        run(&plan(1, 0.0001, task), 1, 1_900).1.back
    };
    // One STAT for the message, and then one each 100 ms or none.
    assert_eq!(back(None), 1);
    assert!((17..=19).contains(&back(Some(Span::from_ms(100)))));
}

#[test]
fn a_host_makes_one_cell_after_another_and_a_change_of_mode_moves_the_rest() {
    let sent = |source, mechanism| {
        let trace = trace(1000, Span::from_ms(500));
        run(&plan(1, 0.5, TaskPlan { source, trace, ..task(mechanism, &[0]) }), 3, 400).1
    };
    let slow = Some(BitRate::mbit_s(20));
    let cells = cell_time(BitRate::mbit_s(20)) * 500;
    for mechanism in [Mechanism::Ubr, Mechanism::Abr] {
        let least = sent(None, mechanism).latencies[0];
        let latency = sent(slow, mechanism).latencies[0];
        assert!(least < cells && latency > cells && latency < cells + Span::from_us(500), "{latency}");
    }
    let report = sent(None, Mechanism::LmeEce);
    assert!(report.counters.data_backup > 100, "a message of 500 cells at once is late by itself");
    assert_eq!(sent(slow, Mechanism::LmeEce).counters.data_backup, 0, "one of 20 Mbit/s is not");
}
