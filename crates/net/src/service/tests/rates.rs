//! Explicit rates over several ports against max-min fair shares.

use wiretwin_proto::abr::{CellRate, QueueControl};
use wiretwin_units::{BitRate, Cells, SimTime, Span};

use super::super::{CircuitPlan, Plan};
use super::{LINE, available, circuit, constant, port};
use crate::fairness::{Session, max_min_shares};
use crate::load::Law;
use crate::service::network::cell_time;

/// Cells of data that each circuit carries from `start` to `end`, as a share of `LINE`, and the shares that
/// would be fair of the targets of the ports.
fn shares(plan: &Plan, start: Span, end: Span) -> (Vec<f64>, Vec<f64>) {
    let mut network = plan.build(1).expect("a network that can be");
    network.run_until(SimTime::ZERO + start);
    let delivered = |network: &super::super::Network| -> Vec<u64> {
        network.circuits().map(|(_, report)| report.delivered).collect()
    };
    let before = delivered(&network);
    network.run_until(SimTime::ZERO + end);
    network.audit().expect("the books balance");
    let seconds = (end.as_ps() - start.as_ps()) as f64 / 1e12;
    let line = LINE.get() as f64 / 424.0;
    let got = delivered(&network).into_iter().zip(before);
    let got = got.map(|(after, before)| (after - before) as f64 / seconds / line).collect();
    let capacities: Vec<f64> =
        plan.ports.iter().map(|port| 0.9 * port.rate.get() as f64 / LINE.get() as f64).collect();
    let sessions: Vec<Session> = plan
        .circuits
        .iter()
        .map(|circuit| Session {
            demand: match circuit.law {
                Some(Law::Constant { interval }) => {
                    Some(cell_time(LINE).as_ps() as f64 / interval.as_ps() as f64)
                }
                _ => None,
            },
            ..Session::greedy(circuit.path.clone())
        })
        .collect();
    (got, max_min_shares(&capacities, &sessions))
}

fn greedy(name: &str, path: &[usize]) -> CircuitPlan {
    circuit(name, path, available(LINE), None)
}

/// With every load but 1 as a load that is off: where any up to 1 + delta will do, shares may rest beside.
fn close(plan: &mut Plan, within: f64) {
    for port in &mut plan.ports {
        port.erica.as_mut().expect("a port that tells rates").equality = 0.0;
    }
    let (got, fair) = shares(plan, Span::from_ms(200), Span::from_ms(300));
    let worst = got.iter().zip(&fair).map(|(got, fair)| (got / fair - 1.0).abs()).fold(0.0, f64::max);
    assert!(worst < within, "{worst:.3} off:\n{got:.3?}\n{fair:.3?}");
}

#[test]
fn greedy_sources_at_one_port_share_its_target() {
    for (count, share) in [(2, 0.45), (5, 0.18)] {
        let circuits = (0..count).map(|number| greedy(&format!("c{number}"), &[0])).collect();
        let plan = Plan { ports: vec![port(LINE, 30)], circuits, tasks: vec![] };
        let (got, _) = shares(&plan, Span::from_ms(30), Span::from_ms(90));
        assert!(got.iter().all(|got| (got / share - 1.0_f64).abs() < 0.02), "{got:.3?}");
    }
}

/// A row of ports, a circuit over all of them and one over each: the long one is no worse off.
#[test]
fn a_parking_lot_is_fair() {
    let ports = vec![port(LINE, 100); 3];
    let mut circuits = vec![greedy("long", &[0, 1, 2])];
    circuits.extend((0..3).map(|number| greedy(&format!("short{number}"), &[number])));
    close(&mut Plan { ports, circuits, tasks: vec![] }, 0.01);
}

/// What one cannot use because of a narrow line goes to those that share its wide one.
#[test]
fn a_bottleneck_elsewhere_leaves_room_upstream() {
    let narrow = BitRate::bit_s(LINE.get() / 5);
    let ports = vec![port(LINE, 100), port(narrow, 100)];
    let circuits = vec![greedy("through", &[0, 1]), greedy("beside", &[1]), greedy("here", &[0])];
    close(&mut Plan { ports, circuits, tasks: vec![] }, 0.01);
}

/// Generic fairness configuration 1 of the ATM Forum: six groups over five lines of several rates.
#[test]
fn the_first_generic_configuration_is_max_min_fair() {
    let rates = [50, 150, 150, 100, 50];
    let ports = rates.map(|rate| port(BitRate::bit_s(LINE.get() * rate / 150), 100)).to_vec();
    let groups: [(&str, &[usize], usize); 6] = [
        ("a", &[0, 1], 3),
        ("b", &[1, 2, 3], 3),
        ("c", &[2, 3, 4], 3),
        ("d", &[0, 1, 2], 1),
        ("e", &[1, 2, 3, 4], 1),
        ("f", &[2, 3], 2),
    ];
    let mut circuits = Vec::new();
    for (group, path, count) in groups {
        circuits.extend((0..count).map(|number| greedy(&format!("{group}{number}"), path)));
    }
    close(&mut Plan { ports, circuits, tasks: vec![] }, 0.01);
}

/// Generic fairness configuration 2: each of eight groups has a bottleneck of its own.
#[test]
fn the_second_generic_configuration_is_max_min_fair() {
    let rates = [50, 150, 50, 150, 50, 100, 50];
    let ports = rates.map(|rate| port(BitRate::bit_s(LINE.get() * rate / 150), 100)).to_vec();
    let groups: [(&str, &[usize], usize); 8] = [
        ("a", &[0, 1, 2, 3, 4, 5, 6], 1),
        ("b", &[2, 3, 4, 5, 6], 1),
        ("c", &[4, 5], 1),
        ("d", &[0], 1),
        ("e", &[1], 2),
        ("f", &[3], 2),
        ("g", &[4], 1),
        ("h", &[6], 1),
    ];
    let mut circuits = Vec::new();
    for (group, path, count) in groups {
        circuits.extend((0..count).map(|number| greedy(&format!("{group}{number}"), path)));
    }
    close(&mut Plan { ports, circuits, tasks: vec![] }, 0.01);
}

#[test]
fn guaranteed_traffic_is_taken_off_before_rates_are_told() {
    let half = BitRate::bit_s(LINE.get() / 2);
    let cbr = super::super::Category::Guaranteed(half);
    let circuits = vec![circuit("cbr", &[0], cbr, constant(half)), greedy("a", &[0]), greedy("b", &[0])];
    let plan = Plan { ports: vec![port(LINE, 100)], circuits, tasks: vec![] };
    let (got, _) = shares(&plan, Span::from_ms(60), Span::from_ms(160));
    assert!((got[0] / 0.5 - 1.0).abs() < 0.001, "{got:.3?}");
    // 0.9 of the half that is left, for two.
    assert!(got[1..].iter().all(|got| (got / 0.225 - 1.0_f64).abs() < 0.02), "{got:.3?}");
}

/// ERICA+ beside guaranteed traffic: the rest of the line is used up, behind a queue near its aim.
#[test]
fn queue_control_gives_away_what_guaranteed_traffic_leaves() {
    let third = BitRate::bit_s(LINE.get() / 3);
    let cbr = super::super::Category::Guaranteed(third);
    let circuits = vec![circuit("cbr", &[0], cbr, constant(third)), greedy("a", &[0]), greedy("b", &[0])];
    let mut plan = Plan { ports: vec![port(LINE, 100)], circuits, tasks: vec![] };
    let queue = QueueControl { delay: Span::from_us(500), above: 1.15, empty: 1.05, least: 0.5 };
    plan.ports[0].erica.as_mut().expect("it tells rates").queue = Some(queue);
    let (got, _) = shares(&plan, Span::from_ms(60), Span::from_ms(160));
    assert!((got[0] * 3.0 - 1.0).abs() < 0.002, "{got:.3?}");
    assert!(got[1..].iter().all(|got| (got * 3.0 - 1.0).abs() < 0.03), "{got:.3?}");
    assert!(got.iter().sum::<f64>() > 0.99, "{got:.3?}");
    let mut network = plan.build(1).expect("a network that can be");
    network.run_until(SimTime::ZERO + Span::from_ms(160));
    let (_, _, mean, _) = network.ports().next().expect("one port");
    // 500 us of the two thirds that are left are 117 cells.
    assert!((30.0..300.0).contains(&mean), "{mean} cells wait");
}

/// A port that notifies backward slows a source down that no explicit rate and no destination would.
#[test]
fn a_port_may_tell_sources_itself() {
    let run = |becn| {
        let mut ports = vec![port(LINE, 100), port(BitRate::bit_s(LINE.get() / 3), 100)];
        for port in &mut ports {
            // Explicit rates that never bind.
            let erica = port.erica.as_mut().expect("it tells rates");
            erica.line = CellRate::new(10.0 * erica.line.cells_per_s()).expect("a rate");
        }
        ports[1].becn = becn;
        let circuits = vec![greedy("through", &[0, 1]), greedy("here", &[0])];
        let mut network = Plan { ports, circuits, tasks: vec![] }.build(1).expect("a network");
        network.run_until(SimTime::ZERO + Span::from_ms(950));
        network.audit().expect("the books balance");
        let reports = network.circuits().map(|(_, report)| (report.sent, report.notified));
        reports.collect::<Vec<_>>()
    };
    let (silent, told) = (run(None), run(Some(Cells::new(100))));
    assert!(silent.iter().all(|&(_, notified)| notified == 0));
    assert_eq!([told[0].1, told[1].1], [10, 0], "one each tenth of a second, where the queue is");
    assert!(told[0].0 + 30 < silent[0].0, "{told:?}, not told {silent:?}");
    assert_eq!(told[1].0, silent[1].0, "the other is left alone");
}
