//! Who gets what, beside what would be fair.

use wiretwin_units::BitRate;

use super::*;
use crate::fairness::{Session, max_min_shares};

/// Switches in a row, and circuits that go from one to another of them.
struct Row {
    matching: Matching,
    /// How quick the switches are inside.
    inside: u8,
    /// Of the lines between them.
    rates: Vec<BitRate>,
    /// From and to which switch each circuit goes; with a station of its own at both ends.
    circuits: Vec<(usize, usize)>,
}

impl Row {
    /// What each circuit gets and what would be fair, in Mbit/s.
    fn shares(&self, ms: u64) -> Vec<(f64, f64)> {
        let mut plan = Plan::new();
        let credits = Credits { window: Window::Loop, ..Credits::cells(1) };
        let spec = |line| credited(line, credits);
        let node = match crossbar(32) {
            Node::Crossbar(spec) => {
                Node::Crossbar(Crossbar { matching: self.matching, inside: self.inside, ..spec })
            }
            other => other,
        };
        let switches: Vec<_> = (0..=self.rates.len()).map(|_| plan.node(node)).collect();
        for (place, &rate) in self.rates.iter().enumerate() {
            plan.line(switches[place], switches[place + 1], spec(Line::plain(rate, Span::from_us(20))));
        }
        let mut circuits = Vec::new();
        for &(from, to) in &self.circuits {
            let ends = [0, 1].map(|_| plan.node(STATION));
            plan.line(ends[0], switches[from], spec(near()));
            plan.line(switches[to], ends[1], spec(near()));
            let mut nodes = vec![ends[0]];
            nodes.extend(&switches[from..=to]);
            nodes.push(ends[1]);
            circuits.push(plan.circuit_along(&nodes).unwrap());
        }
        let mut fabric = plan.build(1).unwrap();
        for &circuit in &circuits {
            fabric.greedy(circuit).unwrap();
        }
        fabric.run_until(at(Span::from_ms(ms / 4)));
        let before: Vec<_> = circuits.iter().map(|&circuit| fabric.circuit(circuit).received).collect();
        fabric.run_until(at(Span::from_ms(ms + ms / 4)));
        fabric.audit().unwrap();
        let capacities: Vec<f64> = self.rates.iter().map(|rate| rate.get() as f64 / 1e6).collect();
        let sessions: Vec<_> = self
            .circuits
            .iter()
            .map(|&(from, to)| Session {
                demand: Some(OC3.get() as f64 / 1e6),
                ..Session::greedy((from..to).collect::<Vec<_>>())
            })
            .collect();
        let fair = max_min_shares(&capacities, &sessions);
        let got = circuits.iter().zip(before).map(|(&circuit, before)| {
            (fabric.circuit(circuit).received - before) as f64 * 424.0 / (ms as f64 * 1e3)
        });
        got.zip(fair).collect()
    }
}

fn assert_fair(shares: &[(f64, f64)], within: f64) {
    for (number, (got, fair)) in shares.iter().enumerate() {
        assert!((got / fair - 1.0).abs() < within, "circuit {number}: {got:.2} of {fair:.2} in {shares:.2?}");
    }
}

#[test]
fn a_parking_lot_is_fair_with_one_circuit_a_port() {
    // Chen, Brandt and Armstrong (1996), figure 9: A, B and C over the first line, C and D over the second.
    let circuits = vec![(0, 1), (0, 1), (0, 2), (1, 2)];
    let row = Row { matching: Matching::Pim, inside: 5, rates: vec![OC3; 2], circuits };
    assert_fair(&row.shares(40), 0.03);
    // Not where an input sends one cell a slot: C leaves its port in turns with A and B, and only where D does
    // not. What Anderson and others (1993, 5) say of matching: it can be unfair.
    let shares = Row { inside: 1, ..row }.shares(40);
    assert!(shares[2].0 < 0.7 * shares[2].1 && shares[3].0 > 1.15 * shares[3].1, "{shares:.2?}");
}

#[test]
fn ports_share_alike_with_matching_and_circuits_by_turns() {
    // Eight come to the second switch by one port, one by its own.
    let circuits: Vec<_> = (0..8).map(|_| (0, 2)).chain([(1, 2)]).collect();
    let rates = vec![OC3; 2];
    let row = |matching| Row { matching, inside: 1, rates: rates.clone(), circuits: circuits.clone() };
    let by_port = row(Matching::Pim).shares(40);
    assert!((by_port[8].0 / (OC3.get() as f64 / 2e6) - 1.0).abs() < 0.02, "{by_port:.2?}");
    let by_islip = row(Matching::Islip).shares(40);
    assert!((by_islip[8].0 / (OC3.get() as f64 / 2e6) - 1.0).abs() < 0.02, "{by_islip:.2?}");
    assert_fair(&row(Matching::ByCircuit).shares(40), 0.02);
}

/// Switches in a row with lines of these rates, Mbit/s, and by group how many circuits go from which switch to
/// which, and what each of them is to get.
fn assert_configuration(rates: &[u64], groups: &[(usize, usize, usize, f64)]) {
    let rates = rates.iter().map(|&rate| BitRate::mbit_s(rate)).collect();
    let each = |of: &dyn Fn(usize, usize, f64) -> (usize, usize, f64)| {
        groups
            .iter()
            .flat_map(|&(count, from, to, share)| vec![of(from, to, share); count])
            .collect::<Vec<_>>()
    };
    let all = each(&|from, to, share| (from, to, share));
    let circuits = all.iter().map(|&(from, to, _)| (from, to)).collect();
    let row = Row { matching: Matching::ByCircuit, inside: 4, rates, circuits };
    let shares = row.shares(60);
    for (&(_, fair), &(.., said)) in shares.iter().zip(&all) {
        assert!((fair / said - 1.0).abs() < 1e-3, "{fair:.3} computed, {said:.3} published");
    }
    assert_fair(&shares, 0.03);
}

// R. Simcoe, "Test configurations for fairness and other tests", ATM Forum/94-0557 (1994): which lines each
// group crosses; the shares are those of R. Jain and others, and of the arithmetic.

#[test]
fn the_first_generic_fairness_configuration_ends_at_its_shares() {
    let (a, b) = (50.0 / 9.0, 100.0 / 9.0);
    let groups =
        [(3, 0, 3, a), (3, 1, 4, b), (3, 2, 3, 100.0 / 3.0), (6, 0, 1, a), (6, 3, 4, b), (2, 1, 2, 50.0)];
    assert_configuration(&[50, 150, 150, 100], &groups);
}

#[test]
fn the_second_generic_fairness_configuration_ends_at_its_shares() {
    let groups = [
        // A and B begin at several switches.
        (1, 0, 5, 10.0),
        (1, 1, 5, 10.0),
        (1, 2, 5, 10.0),
        (1, 0, 6, 5.0),
        (1, 1, 6, 5.0),
        (1, 3, 6, 5.0),
        (3, 4, 5, 35.0),
        (1, 0, 1, 35.0),
        (2, 1, 2, 35.0),
        (1, 2, 3, 10.0),
        (7, 5, 6, 5.0),
        (2, 3, 4, 52.5),
    ];
    assert_configuration(&[50, 100, 50, 150, 150, 50], &groups);
}
