//! Queues without credits: what is rejected.

use super::*;

/// So many senders and one receiver at a switch, each with a circuit.
fn fan_in(node: Node, senders: usize, line: Line) -> (Fabric, Vec<CircuitId>, NodeId) {
    let mut plan = Plan::new();
    let switch = plan.node(node);
    let sink = plan.node(STATION);
    plan.line(switch, sink, line);
    let circuits = (0..senders).map(|_| {
        let station = plan.node(STATION);
        plan.line(station, switch, line);
        plan.circuit_along(&[station, switch, sink]).unwrap()
    });
    let circuits = circuits.collect();
    (plan.build(1).unwrap(), circuits, switch)
}

/// Of four senders that offer 1.6 of the line in PDUs of 20 cells at random: PDUs that came whole, PDUs that came
/// in part, and cells that were rejected.
fn overloaded(node: Node) -> (usize, usize, u64) {
    let (mut fabric, circuits, _) = fan_in(node, 4, near());
    for &circuit in &circuits {
        fabric.tell(circuit, true).unwrap();
    }
    let mut delivered = Vec::new();
    let law = Law::Poisson { mean: slots(50) };
    let mut sources = Sources::new(circuits.iter().map(|&circuit| (circuit, law, 20)), 1);
    sources.run_until(&mut fabric, at(Span::from_ms(100)));
    fabric.audit().unwrap();
    fabric.take_delivered(&mut delivered);
    let whole = delivered.iter().filter(|one| !one.mixed && one.cells == 20).count();
    let refused = circuits.iter().map(|&circuit| fabric.circuit(circuit).refused).sum();
    (whole, delivered.len() - whole, refused)
}

#[test]
fn a_full_queue_refuses_by_the_cell_by_the_rest_or_by_the_pdu() {
    let node = |discard| Node::SharedBuffer(SharedBuffer { discard, ..shared(8, 200) });
    let [tail, partial, early] =
        [Discard::Tail, Discard::Partial, Discard::Early { threshold: Cells::new(120) }]
            .map(|discard| overloaded(node(discard)));
    assert!(tail.0 < partial.0 && partial.0 < early.0, "{tail:?} {partial:?} {early:?}");
    // Where whole PDUs are refused all that goes is of use, and the line is full of it: 1772 PDUs in 100 ms.
    assert_eq!((early.1, early.2 % 20), (0, 0), "{early:?}");
    assert!(early.0 > 1_700, "{early:?}");
}

#[test]
fn a_circuit_has_its_limit_and_the_switch_its_buffer() {
    // Two senders of 100 cells each: half go as they come.
    let limited = SharedBuffer { queue: Some(Cells::new(7)), ..shared(4, 1_000) };
    let (mut fabric, circuits, switch) = fan_in(Node::SharedBuffer(limited), 2, near());
    for &circuit in &circuits {
        fabric.offer(SimTime::ZERO, circuit, Cells::new(100), 1).unwrap();
    }
    fabric.run_until(at(Span::from_ms(10)));
    for &circuit in &circuits {
        assert_eq!(fabric.most_held_of(circuit, switch), Some(Cells::new(7)));
        let report = fabric.circuit(circuit);
        assert_eq!(report.received + report.refused, 100);
        assert!(report.refused > 35, "{report:?}");
    }
    let (mut fabric, circuits, switch) = fan_in(Node::SharedBuffer(shared(4, 9)), 2, near());
    for &circuit in &circuits {
        fabric.offer(SimTime::ZERO, circuit, Cells::new(100), 1).unwrap();
    }
    fabric.run_until(at(Span::from_ms(10)));
    assert_eq!(fabric.most_held(switch), Cells::new(9));
    let queue = Node::Crossbar(Crossbar {
        ports: 4,
        matching: Matching::Pim,
        iterations: 4,
        inside: 1,
        latency: Span::ZERO,
        queue: Some(Cells::new(12)),
        discard: Discard::Tail,
        circuits: 4,
    });
    let (mut fabric, circuits, switch) = fan_in(queue, 2, near());
    for &circuit in &circuits {
        fabric.offer(SimTime::ZERO, circuit, Cells::new(100), 1).unwrap();
    }
    fabric.run_until(at(Span::from_ms(10)));
    assert_eq!(fabric.most_held_of(circuits[0], switch), Some(Cells::new(12)));
    assert!(fabric.circuit(circuits[0]).refused > 20);
}

#[test]
fn circuits_take_turns_or_cells_keep_their_order() {
    // One sends ten at once, the other one a little later, to one output.
    let run = |service| {
        let node = Node::SharedBuffer(SharedBuffer { service, ..shared(4, 100) });
        let (mut fabric, circuits, _) = fan_in(node, 3, near());
        for &circuit in &circuits {
            fabric.tell(circuit, true).unwrap();
        }
        for &circuit in &circuits[..2] {
            fabric.offer(SimTime::ZERO, circuit, Cells::new(10), 0).unwrap();
        }
        fabric.run_until(at(slots(9)));
        fabric.offer(at(slots(9)), circuits[2], Cells::new(1), 0).unwrap();
        fabric.run_until(at(Span::from_ms(1)));
        let mut delivered = Vec::new();
        fabric.take_delivered(&mut delivered);
        delivered.iter().position(|delivery| delivery.circuit == circuits[2]).unwrap()
    };
    assert_eq!((run(Service::InTurn), run(Service::InOrder)), (0, 2));
}
