//! How fast: the line or the credits, whichever is less.

use super::*;

/// A station, a switch and a station in a row.
fn row(line: Line, node: Node) -> (Plan, CircuitId, [LineId; 2]) {
    let mut plan = Plan::new();
    let nodes = [STATION, node, STATION].map(|node| plan.node(node));
    let lines = [plan.line(nodes[0], nodes[1], line), plan.line(nodes[1], nodes[2], line)];
    let circuit = plan.circuit_along(&nodes).unwrap();
    (plan, circuit, lines)
}

#[test]
fn throughput_is_that_of_the_line_or_credits_over_their_loop() {
    // 100 m and 4 km of fibre, at 5 ns a metre.
    for (delay, needed) in [(Span::ZERO, 2), (Span::from_ns(500), 4), (Span::from_us(20), 18)] {
        let line = Line::plain(OC3, delay);
        assert_eq!(loop_cells(OC3, Span::ZERO, delay).get(), needed);
        for credits in 1..=needed + 2 {
            for node in [crossbar(2), Node::SharedBuffer(shared(2, 1_000))] {
                for scheme in [Scheme::Increments, Scheme::Totals] {
                    let credits = Credits { scheme, ..Credits::cells(credits) };
                    let (plan, circuit, _) = row(credited(line, credits), node);
                    let mut fabric = plan.build(1).unwrap();
                    fabric.greedy(circuit).unwrap();
                    let Window::Cells(cells) = credits.window else { unreachable!("as made") };
                    let expected = 3_600 * cells.get().min(needed) / needed;
                    let found = received(&mut fabric, circuit, 100, 3_600);
                    assert!(found.abs_diff(expected) <= cells.get(), "{credits:?}: {found} for {expected}");
                    assert_eq!(fabric.circuit(circuit).refused, 0);
                }
            }
        }
        let whole = Credits { window: Window::Loop, ..Credits::cells(1) };
        let (plan, circuit, _) = row(credited(line, whole), crossbar(2));
        let mut fabric = plan.build(1).unwrap();
        fabric.greedy(circuit).unwrap();
        assert_eq!(received(&mut fabric, circuit, 100, 1_000), 1_000);
    }
}

#[test]
fn the_latency_of_a_switch_is_part_of_the_loop_behind_it() {
    // 12 us are 5 slots more: of five credits there is work for five slots in eight.
    assert_eq!(loop_cells(OC3, Span::from_us(12), Span::from_ns(500)).get(), 8);
    for (credits, expected) in
        [(Credits::cells(5), 625), (Credits { window: Window::Loop, ..Credits::cells(1) }, 1_000)]
    {
        let (plan, circuit, _) = row(credited(near(), credits), an2(2));
        let mut fabric = plan.build(1).unwrap();
        fabric.greedy(circuit).unwrap();
        assert!(received(&mut fabric, circuit, 100, 1_000).abs_diff(expected) <= 5);
    }
}

#[test]
fn a_cell_takes_its_time_on_every_line_and_the_latency_of_every_switch() {
    let (plan, circuit, _) = row(near(), an2(2));
    let mut fabric = plan.build(1).unwrap();
    fabric.tell(circuit, true).unwrap();
    fabric.offer(SimTime::ZERO, circuit, Cells::new(3), 7).unwrap();
    fabric.run_until(at(Span::from_ms(1)));
    let mut delivered = Vec::new();
    fabric.take_delivered(&mut delivered);
    // Over the first line 1 slot and the delay, begun slots counted: 2. Over the second 12 us more: 6. The
    // last of three cells is two slots later.
    let time = at(slots(2 + 6 + 2));
    assert_eq!(
        delivered,
        [Delivery { time, circuit, tag: 7, cells: 3, mixed: false }],
        "{:?}",
        fabric.circuit(circuit)
    );
    fabric.take_delivered(&mut delivered);
    assert_eq!(delivered, []);
    assert_eq!(fabric.next_time(), None);
}

#[test]
fn a_slow_line_gives_what_it_has_and_a_fast_one_waits() {
    // 150 Mbit/s in, a quarter of it out; back pressure reaches the source.
    let slow = BitRate::bit_s(37_584_000);
    let mut plan = Plan::new();
    let nodes = [STATION, crossbar(2), STATION].map(|node| plan.node(node));
    let whole = Credits { window: Window::Loop, ..Credits::cells(1) };
    plan.line(nodes[0], nodes[1], credited(near(), whole));
    plan.line(nodes[1], nodes[2], credited(Line::plain(slow, Span::from_us(3)), whole));
    let circuit = plan.circuit_along(&nodes).unwrap();
    let mut fabric = plan.build(1).unwrap();
    fabric.greedy(circuit).unwrap();
    let found = received(&mut fabric, circuit, 400, 4_000);
    assert!(found.abs_diff(1_000) <= 1, "{found}");
    assert_eq!(fabric.circuit(circuit).refused, 0);
    let held = fabric.most_held_of(circuit, nodes[1]).unwrap();
    assert!(held <= loop_cells(OC3, Span::ZERO, Span::from_ns(500)), "{held}");
    // And from slow to fast: what comes goes.
    let mut plan = Plan::new();
    let nodes = [STATION, crossbar(2), STATION].map(|node| plan.node(node));
    plan.line(nodes[0], nodes[1], credited(Line::plain(slow, Span::from_us(3)), whole));
    plan.line(nodes[1], nodes[2], credited(near(), whole));
    let circuit = plan.circuit_along(&nodes).unwrap();
    let mut fabric = plan.build(1).unwrap();
    fabric.greedy(circuit).unwrap();
    let found = received(&mut fabric, circuit, 400, 4_000);
    assert!(found.abs_diff(1_000) <= 1, "{found}");
}

#[test]
fn credits_ride_on_cells_or_go_alone_and_shared_ones_go_where_they_are_used() {
    // Two circuits of one line, one of them silent: 2 cells of its own and 6 shared fill a loop of 8.
    let line = Line::plain(OC3, Span::from_us(7));
    assert_eq!(loop_cells(OC3, Span::ZERO, line.delay).get(), 8);
    let credits = Credits { shared: Cells::new(6), ..Credits::cells(2) };
    let mut plan = Plan::new();
    let nodes = [STATION, crossbar(2), STATION].map(|node| plan.node(node));
    plan.line(nodes[0], nodes[1], credited(line, credits));
    let last = plan.line(nodes[1], nodes[2], credited(line, credits));
    let both = [0, 1].map(|_| plan.circuit_along(&nodes).unwrap());
    let mut fabric = plan.build(1).unwrap();
    fabric.greedy(both[0]).unwrap();
    assert_eq!(received(&mut fabric, both[0], 100, 800), 800);
    // With both, 10 cells are enough for a loop of 8, and they take turns.
    fabric.greedy(both[1]).unwrap();
    let found = received(&mut fabric, both[1], 1_000, 800);
    assert!(found.abs_diff(400) < 40, "{found}");
    let counters = fabric.line(last);
    assert!(counters[1].credits >= 1_500 && counters[0].credits_lost == 0, "{counters:?}");
    // Without cells of their own shared ones do as well.
    let all = Credits { window: Window::Cells(Cells::new(0)), shared: Cells::new(8), ..credits };
    let (plan, circuit, _) = row(credited(line, all), crossbar(2));
    let mut fabric = plan.build(1).unwrap();
    fabric.greedy(circuit).unwrap();
    assert_eq!(received(&mut fabric, circuit, 100, 800), 800);
}
