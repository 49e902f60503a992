//! What cannot be is rejected by name; what is said and cannot be is counted.

use super::*;

fn refused(plan: &Plan) -> String {
    plan.build(1).err().expect("a plan that cannot be").to_string()
}

/// Two stations at a switch.
fn pair(node: Node, line: Line) -> (Plan, [NodeId; 3]) {
    let mut plan = Plan::new();
    let nodes = [STATION, node, STATION].map(|node| plan.node(node));
    plan.line(nodes[0], nodes[1], line);
    plan.line(nodes[1], nodes[2], line);
    (plan, nodes)
}

#[test]
fn switches_that_cannot_be() {
    assert_eq!(refused(&pair(crossbar(0), near()).0), "nodes[1].switch.ports is 0; allowed: 2 to 64");
    assert_eq!(refused(&pair(crossbar(65), near()).0), "nodes[1].switch.ports is 65; allowed: 2 to 64");
    let idle = Crossbar {
        ports: 2,
        matching: Matching::Islip,
        iterations: 0,
        inside: 1,
        latency: Span::ZERO,
        queue: None,
        discard: Discard::Tail,
        circuits: 1,
    };
    let of = |spec| refused(&pair(Node::Crossbar(spec), near()).0);
    assert_eq!(of(idle), "nodes[1].switch.iterations is 0; allowed: 1 and above");
    let idle = Crossbar { iterations: 1, ..idle };
    assert_eq!(of(Crossbar { inside: 0, ..idle }), "nodes[1].switch.inside is 0; allowed: 1 and above");
    assert_eq!(
        of(Crossbar { queue: Some(Cells::new(0)), ..idle }),
        "nodes[1].switch.queue is 0; allowed: 1 and above"
    );
    assert_eq!(
        refused(&pair(Node::SharedBuffer(shared(2, 0)), near()).0),
        "nodes[1].switch.buffer is 0; allowed: 1 and above"
    );
    let (mut plan, nodes) = pair(crossbar(2), near());
    let third = plan.node(STATION);
    plan.line(third, nodes[1], near());
    assert_eq!(refused(&plan), "nodes[1].switch.ports is 2; allowed: the 3 lines of the node, or more");
    let (mut plan, nodes) = pair(Node::Crossbar(idle), near());
    for _ in 0..2 {
        plan.circuit_along(&nodes).unwrap();
    }
    assert_eq!(refused(&plan), "nodes[1].switch.circuits is 1; allowed: the 2 that pass, or more");
    let (mut plan, nodes) = pair(Node::SharedBuffer(shared(2, 20)), credited(near(), Credits::cells(6)));
    for _ in 0..4 {
        plan.circuit_along(&nodes).unwrap();
    }
    assert_eq!(refused(&plan), "nodes[1].switch.buffer is 20; allowed: the 24 that credits promise, or more");
}

#[test]
fn lines_that_cannot_be() {
    let of = |line| refused(&pair(crossbar(2), line).0);
    assert_eq!(
        of(credited(near(), Credits::cells(0))),
        "lines[0].credits.cells is 0; allowed: 1 and above, or cells that circuits share"
    );
    let never = Credits { resync: Some(Span::ZERO), ..Credits::cells(1) };
    assert_eq!(of(credited(near(), never)), "lines[0].credits.resync is 0; allowed: above 0");
    let rates = [OC3, BitRate::mbit_s(25)];
    let unequal = Line { rates, ..near() };
    assert_eq!(
        of(credited(unequal, Credits::cells(3))),
        "lines[0].back_rate is 25 Mbit/s; allowed: 150.336 Mbit/s, for a credit for every cell needs one rate"
    );
    // Without credits such a line is a line like any other.
    let (mut plan, nodes) = pair(crossbar(2), unequal);
    let circuit = plan.circuit_along(&nodes).unwrap();
    let mut fabric = plan.build(1).unwrap();
    fabric.greedy(circuit).unwrap();
    // Its last station looks once in a cell time of its own slow way back.
    assert!(received(&mut fabric, circuit, 100, 500).abs_diff(500) <= 6);
    let faults = Faults { cells: 1.5, credits: 0.0 };
    assert_eq!(of(Line { faults, ..near() }), "lines[0].cells_lost is 1.5; allowed: a probability of 0 to 1");
    assert_eq!(
        of(Line::plain(OC3, Span::from_s(1))),
        "lines[0].delay is 354568 cell times of the fastest line, from end to end; allowed: 262144 at most"
    );
    let mut plan = Plan::new();
    let node = plan.node(STATION);
    plan.line(node, node, near());
    assert_eq!(refused(&plan), "lines[0] is one from node 0 to node 0; allowed: two nodes of the network");
}

#[test]
fn circuits_that_cannot_be() {
    let mut plan = Plan::new();
    let switches = [0, 1, 2].map(|_| plan.node(crossbar(4)));
    let stations = [0, 1].map(|_| plan.node(STATION));
    let ring = [(0, 1), (1, 2), (2, 0)].map(|(a, b)| plan.line(switches[a], switches[b], near()));
    let first = plan.line(stations[0], switches[0], near());
    let last = plan.line(switches[0], stations[1], near());
    let with = |path: Vec<LineId>, from| {
        let mut plan = plan.clone();
        plan.circuit(Circuit { from, path });
        refused(&plan)
    };
    let round = vec![first, ring[0], ring[1], ring[2], last];
    assert_eq!(with(round, stations[0]), "circuits[0] is node 0 again; allowed: each node once");
    assert_eq!(
        with(vec![first, ring[1]], stations[0]),
        "circuits[0] is line 1; allowed: a line that goes on where it is"
    );
    assert_eq!(with(vec![], stations[0]), "circuits[0] is one to nowhere; allowed: a station at each end");
    let short = vec![first, ring[0]];
    assert_eq!(with(short, stations[0]), "circuits[0] is at node 1; allowed: a station at each end");
    let begun = vec![last];
    assert_eq!(with(begun, switches[0]), "circuits[0] is at node 0; allowed: a station at each end");
    assert_eq!(
        plan.along(&[stations[0], switches[1]]).unwrap_err().to_string(),
        "circuits is nodes 3 and 1; allowed: nodes with a line between them"
    );
}

#[test]
fn a_loop_that_may_wait_for_ever_is_named_and_a_cell_of_its_own_breaks_it() {
    // Three switches in a ring, each circuit two lines on: every line waits for the next.
    let ring = |window| {
        let mut plan = Plan::new();
        let credits =
            Credits { window: Window::Cells(Cells::new(window)), shared: Cells::new(4), ..Credits::cells(1) };
        let line = credited(near(), credits);
        let switches = [0, 1, 2].map(|_| plan.node(crossbar(4)));
        for place in 0..3 {
            plan.line(switches[place], switches[(place + 1) % 3], line);
        }
        let stations = switches.map(|switch| {
            [0, 1].map(|_| {
                let station = plan.node(STATION);
                plan.line(station, switch, line);
                station
            })
        });
        for place in 0..3 {
            let on = [place, (place + 1) % 3, (place + 2) % 3];
            let nodes =
                [stations[place][0], switches[on[0]], switches[on[1]], switches[on[2]], stations[on[2]][1]];
            plan.circuit_along(&nodes).unwrap();
        }
        plan
    };
    assert_eq!(
        refused(&ring(0)),
        "lines is a loop that may wait for ever, as all its cells are shared: line 0 to node 1, line 1 to node 2, \
         line 2 to node 0; allowed: a cell of each circuit's own, on one of them"
    );
    let mut fabric = ring(1).build(1).unwrap();
    for circuit in 0..3 {
        fabric.greedy(CircuitId(circuit)).unwrap();
    }
    for circuit in 0..3 {
        let found = received(&mut fabric, CircuitId(circuit), 1_000 * (1 + u64::from(circuit)), 900);
        assert!(found > 200, "circuit {circuit}: {found}");
    }
}

#[test]
fn what_is_said_of_credits_and_cannot_be_is_counted_and_ignored() {
    let (mut plan, nodes) = pair(crossbar(2), credited(near(), Credits::cells(4)));
    let circuit = plan.circuit_along(&nodes).unwrap();
    let mut fabric = plan.build(1).unwrap();
    fabric.greedy(circuit).unwrap();
    fabric.run_until(at(slots(50)));
    let (first, second) = (LineId(0), LineId(1));
    // A branch that there is not, one of another line, more than is under way.
    for (line, branch, cells) in [(first, 99, 1), (first, u32::MAX, 1), (first, 1, 1), (second, 1, 5)] {
        fabric.forge_credit(line, false, branch, cells);
    }
    fabric.audit().unwrap();
    assert_eq!([first, second].map(|line| fabric.line(line)[1].credits_refused), [3, 1]);
    assert_eq!(received(&mut fabric, circuit, 60, 400), 400);
    // What is believed though it is not true makes the sender send too much: what finds no room is refused.
    let (mut plan, nodes) = pair(crossbar(2), credited(near(), Credits::cells(2)));
    let circuit = plan.circuit_along(&nodes).unwrap();
    let mut fabric = plan.build(1).unwrap();
    fabric.greedy(circuit).unwrap();
    for step in 0..2_000 {
        fabric.run_until(at(slots(step)));
        fabric.forge_credit(first, false, 0, 1);
    }
    let report = fabric.circuit(circuit);
    assert!(report.refused > 100, "{report:?}");
}

#[test]
fn loads_that_cannot_be() {
    let (mut plan, nodes) = pair(crossbar(2), near());
    let circuit = plan.circuit_along(&nodes).unwrap();
    let mut fabric = plan.build(1).unwrap();
    let error = fabric.greedy(CircuitId(7)).unwrap_err().to_string();
    assert_eq!(error, "circuit is 7; allowed: one of 1, counted from 0");
    assert_eq!(
        fabric.buffers(circuit, 3).unwrap_err().to_string(),
        "circuit is 0; allowed: one with credits on its last line"
    );
    let counted = fabric.give(SimTime::ZERO, circuit).unwrap_err().to_string();
    assert_eq!(counted, "circuit is 0; allowed: one whose buffers are counted");
    let (mut plan, ends) = pair(crossbar(2), credited(near(), Credits::cells(4)));
    let held = plan.circuit_along(&ends).unwrap();
    let mut other = plan.build(1).unwrap();
    assert_eq!(other.buffers(held, 0).unwrap_err().to_string(), "buffers is 0; allowed: above 0");
    assert!(other.buffers(CircuitId(7), 1).is_err() && other.buffers(held, 1).is_ok());
    for node in [nodes[1], nodes[2], NodeId(9)] {
        let error = fabric.load_slots(node, 0.5).unwrap_err().to_string();
        assert_eq!(error, format!("node is {}; allowed: a station where a circuit begins", node.0));
    }
    assert!(fabric.load_slots(nodes[0], 0.5).is_ok());
}
