//! Every cell and every credit is somewhere, whatever is lost of what is said.

use proptest::prelude::*;
use wiretwin_units::BitRate;

use super::*;

/// A row of switches with stations at each, and circuits between them.
#[derive(Clone, Debug)]
struct Case {
    /// By switch: whether it is a crossbar, and its stations.
    switches: Vec<(bool, usize)>,
    /// The window, the shared cells, totals, markers.
    credits: (u64, u64, bool, bool),
    delay_ns: u64,
    lost_credits: f64,
    slow: bool,
    /// From and to, by numbers to be taken modulo, and what they send.
    circuits: Vec<(usize, usize, u8)>,
    seed: u64,
}

fn cases() -> impl Strategy<Value = Case> {
    let switches = prop::collection::vec((any::<bool>(), 1_usize..4), 1..4);
    let credits = (0_u64..7, 0_u64..7, any::<bool>(), any::<bool>());
    let circuits = prop::collection::vec((0_usize..12, 0_usize..12, 0_u8..4), 1..10);
    let lost = prop_oneof![Just(0.0), 0.0..0.3];
    (switches, credits, 0_u64..30_000, lost, any::<bool>(), circuits, any::<u64>()).prop_map(
        |(switches, mut credits, delay_ns, lost_credits, slow, circuits, seed)| {
            credits.0 += u64::from(credits.0 + credits.1 == 0);
            Case { switches, credits, delay_ns, lost_credits, slow, circuits, seed }
        },
    )
}

impl Case {
    fn plan(&self) -> (Plan, Vec<CircuitId>, Vec<LineId>) {
        let mut plan = Plan::new();
        let (window, pool, totals, markers) = self.credits;
        let line = Line {
            credits: Some(Credits {
                window: Window::Cells(Cells::new(window)),
                shared: Cells::new(pool),
                scheme: if totals { Scheme::Totals } else { Scheme::Increments },
                resync: markers.then_some(Span::from_us(150)),
            }),
            faults: Faults { cells: 0.0, credits: self.lost_credits },
            ..Line::plain(OC3, Span::from_ns(self.delay_ns))
        };
        let between = if self.slow { Line { rates: [BitRate::bit_s(50_000_000); 2], ..line } } else { line };
        let (mut switches, mut stations, mut lines) = (Vec::new(), Vec::new(), Vec::new());
        for &(is_crossbar, count) in &self.switches {
            let node = if is_crossbar { crossbar(6) } else { Node::SharedBuffer(shared(6, 1_000)) };
            let switch = plan.node(node);
            if let Some(&before) = switches.last() {
                lines.push(plan.line(before, switch, between));
            }
            switches.push(switch);
            for _ in 0..count {
                let station = plan.node(STATION);
                lines.push(plan.line(switch, station, line));
                stations.push((station, switches.len() - 1));
            }
        }
        let mut circuits = Vec::new();
        for &(from, to, _) in &self.circuits {
            let (from, to) = (stations[from % stations.len()], stations[to % stations.len()]);
            if from.0 == to.0 {
                continue;
            }
            let mut nodes = vec![from.0];
            if from.1 <= to.1 {
                nodes.extend(&switches[from.1..=to.1]);
            } else {
                nodes.extend(switches[to.1..=from.1].iter().rev());
            }
            nodes.push(to.0);
            circuits.push(plan.circuit_along(&nodes).unwrap());
        }
        (plan, circuits, lines)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn nothing_is_lost_and_every_credit_is_accounted_for(case in cases()) {
        let (plan, circuits, lines) = case.plan();
        let mut fabric = plan.build(case.seed).unwrap();
        let mut laws = Vec::new();
        for (&circuit, &(_, _, load)) in circuits.iter().zip(&case.circuits) {
            let law = match load {
                0 => {
                    fabric.greedy(circuit).unwrap();
                    continue;
                }
                1 => Law::Constant { interval: Span::from_us(7) },
                2 => Law::Poisson { mean: Span::from_us(40) },
                _ => Law::OnOff { interval: Span::from_us(3), on: Span::from_us(100), off: Span::from_us(200) },
            };
            laws.push((circuit, law, 1 + case.seed % 5));
        }
        let mut sources = Sources::new(laws, case.seed);
        for step in 1..=40 {
            sources.run_until(&mut fabric, at(Span::from_us(25 * step)));
            let books = fabric.audit();
            prop_assert!(books.is_ok(), "{:?}", books);
        }
        for &circuit in &circuits {
            prop_assert_eq!(fabric.circuit(circuit).refused, 0);
        }
        for &line in &lines {
            for side in fabric.line(line) {
                prop_assert_eq!((side.lost, side.credits_refused), (0, 0));
            }
        }
    }

    #[test]
    fn all_that_is_offered_comes_in_order_where_the_count_is_taken(case in cases()) {
        let case = Case { credits: (case.credits.0, case.credits.1, case.credits.2, true), ..case };
        let (plan, circuits, _) = case.plan();
        let mut fabric = plan.build(case.seed).unwrap();
        for &circuit in &circuits {
            fabric.tell(circuit, true).unwrap();
            for tag in 0..12 {
                fabric.offer(SimTime::ZERO, circuit, Cells::new(5), tag).unwrap();
            }
        }
        let mut next = vec![0; circuits.len()];
        let mut delivered = Vec::new();
        for step in 1..=400 {
            fabric.run_until(at(Span::from_us(500 * step)));
            fabric.take_delivered(&mut delivered);
            for delivery in &delivered {
                prop_assert!(!delivery.mixed && delivery.cells == 5);
                prop_assert_eq!(delivery.tag, next[delivery.circuit.0 as usize]);
                next[delivery.circuit.0 as usize] += 1;
            }
            if next.iter().all(|&tag| tag == 12) {
                break;
            }
        }
        fabric.audit().unwrap();
        prop_assert!(next.iter().all(|&tag| tag == 12), "{:?} of 12 each after 200 ms", next);
    }

    /// Cells are lost as well: what comes is in order, and the count brings every credit back.
    #[test]
    fn lost_cells_are_found_missing(
        lost in 0.0_f64..0.4, credits_lost in 0.0_f64..0.4, window in 1_u64..9, totals in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let mut plan = Plan::new();
        let nodes = [STATION, crossbar(2), STATION].map(|node| plan.node(node));
        let scheme = if totals { Scheme::Totals } else { Scheme::Increments };
        let credits = Credits { scheme, resync: Some(Span::from_us(200)), ..Credits::cells(window) };
        let faults = Faults { cells: lost, credits: credits_lost };
        let line = Line { faults, ..credited(near(), credits) };
        let lines = [plan.line(nodes[0], nodes[1], line), plan.line(nodes[1], nodes[2], line)];
        let circuit = plan.circuit_along(&nodes).unwrap();
        let mut fabric = plan.build(seed).unwrap();
        fabric.offer(SimTime::ZERO, circuit, Cells::new(300), 1).unwrap();
        for step in 1..=60 {
            fabric.run_until(at(Span::from_ms(10 * step)));
            let books = fabric.audit();
            prop_assert!(books.is_ok(), "{:?}", books);
        }
        let report = fabric.circuit(circuit);
        let on_lines: u64 = lines.iter().map(|&line| fabric.line(line)[0].lost).sum();
        prop_assert_eq!((report.sent, report.refused), (300, 0));
        prop_assert_eq!(report.received + on_lines, 300);
        // Nothing is under way any more, and no sender thinks so.
        let left: Vec<_> = fabric.store.branches.iter().map(|branch| branch.outstanding).collect();
        prop_assert_eq!(left, vec![0, 0]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A host that gives buffers when it likes: what comes waits for them, and holds back its own circuit alone.
    #[test]
    fn what_finds_no_buffer_waits_and_holds_nobody_else_back(
        buffers in 1_u32..5, cells in 1_u64..9, window in 1_u64..9, reads in prop::collection::vec(0_u32..4, 60),
        seed in any::<u64>(),
    ) {
        let mut plan = Plan::new();
        let nodes = [STATION, crossbar(3), STATION, STATION].map(|node| plan.node(node));
        let line = credited(near(), Credits::cells(window));
        for station in [0, 2, 3] {
            plan.line(nodes[station], nodes[1], line);
        }
        let [slow, free] = [2, 3].map(|to| plan.circuit_along(&[nodes[0], nodes[1], nodes[to]]).unwrap());
        let mut fabric = plan.build(seed).unwrap();
        fabric.buffers(slow, buffers).unwrap();
        fabric.tell(slow, true).unwrap();
        for tag in 0..40 {
            fabric.offer(SimTime::ZERO, slow, Cells::new(cells), tag).unwrap();
        }
        fabric.greedy(free).unwrap();
        let (mut came, mut given, mut delivered) = (0, 0, Vec::new());
        for (step, read) in (1..).zip(reads) {
            let now = at(Span::from_us(400 * step));
            fabric.run_until(now);
            fabric.take_delivered(&mut delivered);
            for delivery in &delivered {
                prop_assert_eq!((delivery.tag, u64::from(delivery.cells)), (came, cells));
                came += 1;
            }
            prop_assert!(came - given <= buffers, "{} came, {} given back", came, given);
            for _ in 0..read.min(came - given) {
                fabric.give(now, slow).unwrap();
                given += 1;
            }
            let books = fabric.audit();
            prop_assert!(books.is_ok(), "{:?}", books);
        }
        // The other has at least the half that is its own, of the slots of 60 times 400 us.
        let needed = loop_cells(OC3, Span::ZERO, Span::from_ns(500)).get();
        let share = 8_480 * window.min(needed) / needed / 2;
        prop_assert!(fabric.circuit(free).received + 20 >= share, "{:?}", fabric.circuit(free));
        // As many come as there are buffers for, and all once they are given back.
        for step in 61..=120 {
            let now = at(Span::from_us(1_000 * step));
            fabric.run_until(now);
            fabric.take_delivered(&mut delivered);
            came += delivered.len() as u32;
            prop_assert_eq!(came, 40.min(given + buffers));
            for _ in given..came {
                fabric.give(now, slow).unwrap();
            }
            given = came;
        }
        prop_assert_eq!((came, fabric.pdus_waiting(slow)), (40, 0));
        fabric.audit().unwrap();
    }
}

#[test]
fn a_lost_credit_is_gone_for_good_but_with_totals_or_where_the_count_is_taken() {
    let run = |scheme, resync| {
        let mut plan = Plan::new();
        let nodes = [STATION, crossbar(2), STATION].map(|node| plan.node(node));
        let credits = Credits { scheme, resync, ..Credits::cells(4) };
        let faults = Faults { cells: 0.0, credits: 0.01 };
        let line = Line { faults, ..credited(near(), credits) };
        let lines = [plan.line(nodes[0], nodes[1], line), plan.line(nodes[1], nodes[2], line)];
        let circuit = plan.circuit_along(&nodes).unwrap();
        let mut fabric = plan.build(5).unwrap();
        fabric.greedy(circuit).unwrap();
        let found = received(&mut fabric, circuit, 20_000, 20_000);
        (found, lines.map(|line| fabric.line(line)[0]))
    };
    let (stuck, _) = run(Scheme::Increments, None);
    assert_eq!(stuck, 0);
    let (healed, lines) = run(Scheme::Increments, Some(Span::from_us(500)));
    assert!(healed > 12_000 && lines[0].repaired > 50 && lines[0].markers > 50, "{healed}, {lines:?}");
    // A window of totals lost one after the other stops it as well: only the count helps then.
    let (totals, lines) = run(Scheme::Totals, Some(Span::from_us(500)));
    assert!(totals > 19_000 && totals > healed, "{totals} against {healed}, {lines:?}");
}

#[test]
fn a_run_is_the_same_every_time() {
    let run = |seed| {
        let case = Case {
            switches: vec![(true, 3), (false, 2), (true, 3)],
            credits: (3, 2, false, true),
            delay_ns: 700,
            lost_credits: 0.05,
            slow: true,
            circuits: vec![(0, 7, 0), (1, 6, 2), (4, 2, 3), (5, 0, 0), (3, 7, 2)],
            seed,
        };
        let (plan, circuits, _) = case.plan();
        let mut fabric = plan.build(seed).unwrap();
        let law = Law::Poisson { mean: Span::from_us(9) };
        let mut sources = Sources::new(circuits.iter().map(|&circuit| (circuit, law, 3)), seed);
        sources.run_until(&mut fabric, at(Span::from_ms(20)));
        circuits.iter().map(|&circuit| fabric.circuit(circuit)).collect::<Vec<_>>()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}
