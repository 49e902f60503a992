//! One cell to several outputs.

use proptest::prelude::*;

use super::*;

/// A switch between stations, and circuits from one station to several, those whose bits are set.
fn around(node: Node, stations: usize, line: Line, circuits: &[(usize, u16)]) -> (Plan, Vec<LineId>) {
    let mut plan = Plan::new();
    let switch = plan.node(node);
    let lines: Vec<_> = (0..stations)
        .map(|_| {
            let station = plan.node(STATION);
            plan.line(station, switch, line)
        })
        .collect();
    for &(from, to) in circuits {
        let ends = (0..stations).filter(|&end| end != from && to >> end & 1 == 1);
        let paths = ends.map(|end| vec![lines[from], lines[end]]).collect();
        plan.circuit(Circuit { from: NodeId(1 + from as u32), paths });
    }
    (plan, lines)
}

/// Cells that went out over a line, so far.
fn gone(fabric: &Fabric, line: LineId) -> u64 {
    fabric.line(line)[1].cells
}

#[test]
fn one_slot_carries_a_cell_to_all_of_its_outputs() {
    for node in [crossbar(6), an2(6)] {
        let (plan, lines) = around(node, 6, near(), &[(0, 0b111_110)]);
        let mut fabric = plan.build(1).unwrap();
        fabric.offer(SimTime::ZERO, CircuitId(0), Cells::new(1), 1).unwrap();
        // In the slot in which the first copy leaves, all have left.
        let mut seen = Vec::new();
        for slot in 1..30 {
            fabric.run_until(at(slots(slot)));
            fabric.audit().unwrap();
            seen.push(lines[1..].iter().map(|&line| gone(&fabric, line)).sum::<u64>());
        }
        seen.dedup();
        assert_eq!(seen, [0, 5]);
        assert_eq!(fabric.circuit(CircuitId(0)).received, 5);
    }
}

#[test]
fn a_circuit_with_five_ends_fills_five_lines() {
    let loop_of = Credits { window: Window::Loop, ..Credits::cells(1) };
    for line in [near(), credited(near(), loop_of)] {
        let (plan, _) = around(crossbar(6), 6, line, &[(0, 0b111_110)]);
        let mut fabric = plan.build(1).unwrap();
        fabric.load(CircuitId(0), Load::Greedy, Cells::new(1)).unwrap();
        assert_eq!(received(&mut fabric, CircuitId(0), 50, 1_000), 5_000);
    }
}

#[test]
fn what_is_left_of_a_cell_goes_when_its_output_is_free() {
    // Another circuit always wants one of the outputs. Its line stays full; the others wait with it for their part.
    let loop_of = Credits { window: Window::Loop, ..Credits::cells(1) };
    let (plan, lines) = around(crossbar(6), 6, credited(near(), loop_of), &[(0, 0b001_110), (4, 0b000_010)]);
    let mut fabric = plan.build(1).unwrap();
    for circuit in [0, 1].map(CircuitId) {
        fabric.load(circuit, Load::Greedy, Cells::new(1)).unwrap();
    }
    fabric.run_until(at(slots(100)));
    let cells = |fabric: &Fabric| [1, 2, 3].map(|end| gone(fabric, lines[end]));
    let before = cells(&fabric);
    fabric.run_until(at(slots(4_100)));
    fabric.audit().unwrap();
    let after = cells(&fabric);
    let [wanted, other, third] = [0, 1, 2].map(|at| (after[at] - before[at]) as f64 / 4_000.0);
    assert!(wanted > 0.99, "{wanted}");
    // One by one, each of three outputs would get less than a third.
    assert!((other - third).abs() < 0.01 && other > 0.34, "{other}, {third}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_end_gets_every_cell_and_the_books_balance(
        circuits in prop::collection::vec((0_usize..8, 1_u16..256), 1..12),
        arbiter in prop_oneof![
            Just(Arbiter::Pim { iterations: 4 }), Just(Arbiter::Islip { iterations: 2 }),
            Just(Arbiter::ByCircuit { iterations: 3 }),
        ],
        (inside, window, shared, seed) in (1_u8..4, 1_u64..6, 0_u64..4, any::<u64>()),
    ) {
        let circuits: Vec<_> =
            circuits.into_iter().filter(|&(from, to)| to & !(1 << from) != 0).collect();
        let credits = Credits { shared: Cells::new(shared), ..Credits::cells(window) };
        let node = match crossbar(8) {
            Node::Crossbar(spec) => Node::Crossbar(Crossbar { arbiter, inside, ..spec }),
            other => other,
        };
        let (plan, _) = around(node, 8, credited(near(), credits), &circuits);
        let mut fabric = plan.build(seed).unwrap();
        for number in 0..circuits.len() as u32 {
            fabric.offer(SimTime::ZERO, CircuitId(number), Cells::new(20), 1).unwrap();
        }
        for step in 1..=60 {
            fabric.run_until(at(slots(step)));
            let books = fabric.audit();
            prop_assert!(books.is_ok(), "{:?}", books);
        }
        fabric.run_until(at(slots(20_000)));
        fabric.audit().unwrap();
        for (number, &(from, to)) in (0..).zip(&circuits) {
            let ends = u64::from((to & !(1 << from)).count_ones());
            let report = fabric.circuit(CircuitId(number));
            prop_assert_eq!((report.sent, report.received, report.pdus), (20, 20 * ends, ends));
        }
    }
}
