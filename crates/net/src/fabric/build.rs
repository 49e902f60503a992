//! From a plan to a network that runs.

use std::collections::{BTreeMap, VecDeque};

use wiretwin_engine::{Probability, Stream};
use wiretwin_plan::PlanError;
use wiretwin_units::{BitRate, Cells, SimTime, Span, Transmitter};

use super::clock::Domain;
use super::cross::{ByCircuit, Matcher};
use super::lane::Lane;
use super::network::Fabric;
use super::node::{Kind, Node as Running};
use super::plan::{
    Circuit, CircuitId, Credits, Discard, LineId, Matching, Node, NodeId, Plan, Scheme, Service, Window,
    loop_cells, slots_of,
};
use super::state::{Branch, Direction, END, End, Faulty, Hop, LineCounters, More, NONE, Pool, Store};
use crate::cell_switch::MOST_PORTS;
use crate::cell_switch::crossbar::{self, Islip, Pim, Requests};

/// Slots that a cell may be under way on a line: what wheels are sized by.
const MOST_SLOTS: u64 = 1 << 18;

/// A circuit at a node while it is laid.
struct Place {
    node: NodeId,
    port: u8,
    /// The direction it comes by; none at its beginning.
    from: Option<u32>,
    /// The port by which it goes on; none at its end.
    onward: Option<u8>,
}

impl Plan {
    /// The network of this plan; `seed` is that of all random choices.
    ///
    /// # Errors
    /// [`PlanError`] where it cannot be.
    pub fn build(&self, seed: u64) -> Result<Fabric, PlanError> {
        self.check_nodes()?;
        self.check_lines()?;
        let ports = self.ports()?;
        let ways = (0..).zip(&self.circuits).map(|(number, _)| self.places(CircuitId(number), &ports));
        let ways = ways.collect::<Result<Vec<_>, _>>()?;
        self.check_room(&ways)?;
        self.check_deadlock(&ways)?;
        let mut store = Store {
            domains: Vec::new(),
            cells: Pool::new(),
            hops: Vec::new(),
            refused: Vec::new(),
            branches: Vec::new(),
            links: Vec::new(),
            directions: Vec::new(),
            offered: Vec::new(),
            ends: Vec::new(),
            kept: Vec::new(),
            delivered: Vec::new(),
            hops_made: 0,
        };
        let mut nodes = self.running(&ports, seed);
        self.lay_lines(&mut nodes, &mut store, seed);
        let circuits =
            (0..).zip(&ways).map(|(number, way)| self.lay_circuit(number, way, &nodes, &mut store)).collect();
        Ok(Fabric::new(nodes, store, circuits, self.resyncs(), seed))
    }

    /// Adds a circuit to this plan and, set up at once, to the network that was made from it. Switches are taken to have
    /// room for it.
    ///
    /// # Errors
    /// [`PlanError`] where the circuit cannot be.
    pub(crate) fn open(&mut self, fabric: &mut Fabric, circuit: Circuit) -> Result<CircuitId, PlanError> {
        let id = self.circuit(circuit);
        let way = self.places(id, &self.ports()?)?;
        let hops = self.lay_circuit(id.0, &way, &fabric.nodes, &mut fabric.store);
        fabric.circuits.push(hops);
        Ok(id)
    }

    fn check_nodes(&self) -> Result<(), PlanError> {
        for (number, node) in self.nodes.iter().enumerate() {
            let zero = |name| Err(PlanError::new(format!("nodes[{number}].switch.{name}"), 0, "1 and above"));
            let ports = node.ports();
            if !matches!(node, Node::Station(_)) && !(2..=MOST_PORTS).contains(&ports) {
                let key = format!("nodes[{number}].switch.ports");
                return Err(PlanError::new(key, ports, format!("2 to {MOST_PORTS}")));
            }
            let queue = match node {
                Node::Crossbar(spec) => {
                    if spec.iterations == 0 {
                        return zero("iterations");
                    }
                    if spec.inside == 0 {
                        return zero("inside");
                    }
                    spec.queue
                }
                Node::SharedBuffer(spec) => {
                    if spec.buffer.get() == 0 {
                        return zero("buffer");
                    }
                    spec.queue
                }
                Node::Station(_) => None,
            };
            if queue == Some(Cells::new(0)) {
                return zero("queue");
            }
        }
        Ok(())
    }

    fn check_lines(&self) -> Result<(), PlanError> {
        let rates = self.lines.iter().flat_map(|(line, _)| line.rates);
        let Some(fastest) = rates.max_by_key(|rate| rate.get()) else { return Ok(()) };
        for (number, (line, ends)) in self.lines.iter().enumerate() {
            let wrong = |key: &str, value: &dyn ToString, allowed: &str| {
                Err(PlanError::new(format!("lines[{number}]{key}"), value.to_string(), allowed))
            };
            if ends[0] == ends[1] || ends.iter().any(|end| end.0 as usize >= self.nodes.len()) {
                let found = format!("one from node {} to node {}", ends[0].0, ends[1].0);
                return wrong("", &found, "two nodes of the network");
            }
            for (key, value) in [(".cells_lost", line.faults.cells), (".credits_lost", line.faults.credits)] {
                if Probability::new(value).is_err() {
                    return wrong(key, &value, "a probability of 0 to 1");
                }
            }
            let latency = ends.iter().map(|end| self.nodes[end.0 as usize].latency()).max();
            let slowest = line.rates.iter().filter_map(|rate| rate.time_for(Cells::new(1).bits())).max();
            let ends_meet = line.delay + latency.unwrap_or_default() + slowest.unwrap_or_default();
            let slots = slots_of(fastest, ends_meet);
            if slots > MOST_SLOTS {
                let found = format!("{slots} cell times of the fastest line, from end to end");
                return wrong(".delay", &found, &format!("{MOST_SLOTS} at most"));
            }
            let Some(credits) = line.credits else { continue };
            if credits.window == Window::Cells(Cells::new(0)) && credits.shared.get() == 0 {
                return wrong(".credits.cells", &0, "1 and above, or cells that circuits share");
            }
            if credits.resync.is_some_and(|interval| interval.is_zero()) {
                return wrong(".credits.resync", &0, "above 0");
            }
            if line.rates[0] != line.rates[1] {
                let allowed = format!("{}, for a credit for every cell needs one rate", line.rates[0]);
                return wrong(".back_rate", &line.rates[1], &allowed);
            }
        }
        Ok(())
    }

    /// By node, its lines in the order of its ports, each with the side of the line that it is.
    fn ports(&self) -> Result<Vec<Vec<(LineId, u8)>>, PlanError> {
        let mut ports = vec![Vec::new(); self.nodes.len()];
        for (number, (_, ends)) in (0..).zip(&self.lines) {
            for (side, end) in (0..).zip(ends) {
                ports[end.0 as usize].push((LineId(number), side));
            }
        }
        for (number, (lines, node)) in ports.iter().zip(&self.nodes).enumerate() {
            if lines.len() > usize::from(node.ports()) {
                let allowed = format!("the {} lines of the node, or more", lines.len());
                return Err(PlanError::new(format!("nodes[{number}].switch.ports"), node.ports(), allowed));
            }
        }
        Ok(ports)
    }

    /// A circuit's nodes, from its beginning to its end.
    fn places(&self, id: CircuitId, ports: &[Vec<(LineId, u8)>]) -> Result<Vec<Place>, PlanError> {
        let Circuit { from, path } = &self.circuits[id.0 as usize];
        let wrong =
            |value: String, allowed: &str| Err(PlanError::new(format!("circuits[{}]", id.0), value, allowed));
        if path.is_empty() {
            return wrong("one to nowhere".into(), "a station at each end");
        }
        let mut places = vec![Place { node: *from, port: 0, from: None, onward: None }];
        for &line in path {
            let at = places.len() - 1;
            let here = places[at].node.0 as usize;
            let lines = ports.get(here).map_or(&[][..], Vec::as_slice);
            let Some(port) = lines.iter().position(|&(other, _)| other == line) else {
                return wrong(format!("line {}", line.0), "a line that goes on where it is");
            };
            let side = lines[port].1;
            let node = self.lines[line.0 as usize].1[usize::from(1 - side)];
            if places.iter().any(|place| place.node == node) {
                return wrong(format!("node {} again", node.0), "each node once");
            }
            let other = ports[node.0 as usize].iter().position(|&(other, _)| other == line);
            let arrives = other.expect("a line has a port at both ends") as u8;
            places[at].onward = Some(port as u8);
            places.push(Place {
                node,
                port: arrives,
                from: Some(line.0 * 2 + u32::from(side)),
                onward: None,
            });
        }
        for end in [0, places.len() - 1].map(|at| places[at].node) {
            if !matches!(self.nodes.get(end.0 as usize), Some(Node::Station(_))) {
                return wrong(format!("at node {}", end.0), "a station at each end");
            }
        }
        Ok(places)
    }

    fn credits(&self, direction: u32) -> Option<Credits> {
        self.lines[direction as usize / 2].0.credits
    }

    /// Cells of its own that a circuit has on a line.
    fn window(&self, direction: u32) -> Option<u32> {
        let (line, ends) = &self.lines[direction as usize / 2];
        let cells = match line.credits?.window {
            Window::Cells(cells) => cells,
            Window::Loop => {
                let sender = ends[direction as usize % 2];
                loop_cells(line.rates[0], self.nodes[sender.0 as usize].latency(), line.delay)
            }
        };
        Some(cells.get().min(u64::from(NONE / 4)) as u32)
    }

    fn shared(&self, direction: u32) -> u32 {
        self.credits(direction).map_or(0, |credits| credits.shared.get().min(u64::from(NONE / 4)) as u32)
    }

    /// No switch has more circuits, or cells that it has promised room for, than it has.
    fn check_room(&self, ways: &[Vec<Place>]) -> Result<(), PlanError> {
        let mut circuits = vec![0; self.nodes.len()];
        let mut promised = vec![0_u64; self.nodes.len()];
        for place in ways.iter().flatten() {
            circuits[place.node.0 as usize] += 1;
            let window = place.from.and_then(|direction| self.window(direction));
            promised[place.node.0 as usize] += u64::from(window.unwrap_or(0));
        }
        for (number, (line, ends)) in (0..).zip(&self.lines) {
            if line.credits.is_some() {
                for end in ends {
                    promised[end.0 as usize] += u64::from(self.shared(number * 2));
                }
            }
        }
        for (number, node) in (0..).zip(&self.nodes) {
            let (passing, cells) = (circuits[number as usize], promised[number as usize]);
            let most = match node {
                Node::Crossbar(spec) => spec.circuits,
                Node::SharedBuffer(spec) => spec.circuits,
                Node::Station(_) => u32::MAX,
            };
            if passing > most as usize {
                let allowed = format!("the {passing} that pass, or more");
                return Err(PlanError::new(format!("nodes[{number}].switch.circuits"), most, allowed));
            }
            if let Node::SharedBuffer(spec) = node
                && cells > spec.buffer.get()
            {
                let (buffer, allowed) =
                    (spec.buffer.get(), format!("the {cells} that credits promise, or more"));
                return Err(PlanError::new(format!("nodes[{number}].switch.buffer"), buffer, allowed));
            }
        }
        Ok(())
    }

    /// No loop of lines on which circuits have no cell of their own.
    fn check_deadlock(&self, ways: &[Vec<Place>]) -> Result<(), PlanError> {
        let all_shared = |direction: u32| self.window(direction) == Some(0);
        let mut waits: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (place, next) in ways.iter().flat_map(|way| way.iter().zip(&way[1..])) {
            if let (Some(inward), Some(outward)) = (place.from, next.from)
                && all_shared(inward)
                && all_shared(outward)
            {
                waits.entry(inward).or_default().push(outward);
            }
        }
        // Depth first; a direction on the way that is met again closes a loop.
        let mut done: BTreeMap<u32, bool> = BTreeMap::new();
        for &start in waits.keys() {
            let mut way: Vec<(u32, usize)> = vec![(start, 0)];
            if done.contains_key(&start) {
                continue;
            }
            done.insert(start, false);
            while let Some((at, next)) = way.last_mut() {
                let onward = waits.get(at).map_or(&[][..], Vec::as_slice);
                let Some(&then) = onward.get(*next) else {
                    done.insert(*at, true);
                    way.pop();
                    continue;
                };
                *next += 1;
                match done.get(&then) {
                    Some(true) => {}
                    Some(false) => {
                        let begins = way.iter().position(|&(one, _)| one == then).expect("it is on the way");
                        let lines = way[begins..].iter().map(|&(direction, _)| {
                            let to = self.lines[direction as usize / 2].1[1 - direction as usize % 2];
                            format!("line {} to node {}", direction / 2, to.0)
                        });
                        let found = lines.collect::<Vec<_>>().join(", ");
                        let found =
                            format!("a loop that may wait for ever, as all its cells are shared: {found}");
                        let allowed = "a cell of each circuit's own, on one of them";
                        return Err(PlanError::new("lines", found, allowed));
                    }
                    None => {
                        done.insert(then, false);
                        way.push((then, 0));
                    }
                }
            }
        }
        Ok(())
    }

    fn running(&self, ports: &[Vec<(LineId, u8)>], seed: u64) -> Vec<Running> {
        (0..)
            .zip(self.nodes.iter().zip(ports))
            .map(|(number, (node, lines))| {
                let count = lines.len().max(1);
                let stream = || Stream::derive(seed, &format!("fabric/node {number}/matching"));
                let kind = match node {
                    Node::Crossbar(spec) => {
                        let matcher = match spec.matching {
                            Matching::Pim => Matcher::Pim(Pim::new(count, stream())),
                            Matching::Islip => Matcher::Islip(Islip::new(count)),
                            Matching::ByCircuit => Matcher::ByCircuit(ByCircuit::new(count, stream())),
                        };
                        let (requests, matching) = (Requests::new(count), crossbar::Matching::new(count));
                        let (iterations, inside) = (spec.iterations, spec.inside);
                        Kind::Crossbar { requests, matching, matcher, iterations, inside }
                    }
                    Node::SharedBuffer(spec) => Kind::Shared {
                        in_order: (spec.service == Service::InOrder).then(|| vec![VecDeque::new(); count]),
                        outputs: 0,
                    },
                    Node::Station(_) => Kind::Station { slotted: None },
                };
                let mut running = Running::new(number, kind, count);
                (running.discard, running.buffer) = match node {
                    Node::Crossbar(spec) => (spec.discard, NONE),
                    Node::SharedBuffer(spec) => (spec.discard, spec.buffer.get().min(u64::from(NONE)) as u32),
                    Node::Station(_) => (Discard::Tail, NONE),
                };
                running.latency = node.latency();
                for &(line, side) in lines {
                    running.outward.push(line.0 * 2 + u32::from(side));
                    running.inward.push(line.0 * 2 + u32::from(1 - side));
                }
                running
            })
            .collect()
    }

    /// Makes the directions of all lines, and the slots that nodes share.
    fn lay_lines(&self, nodes: &mut [Running], store: &mut Store, seed: u64) {
        let rate = |direction: u32| self.lines[direction as usize / 2].0.rates[direction as usize % 2];
        let mut rates: Vec<BitRate> = Vec::new();
        let mut members: Vec<u32> = Vec::new();
        for node in nodes.iter_mut() {
            let fastest = node.outward.iter().map(|&direction| rate(direction)).max_by_key(|rate| rate.get());
            let Some(fastest) = fastest else { continue };
            let domain = rates.iter().position(|&known| known == fastest).unwrap_or_else(|| {
                rates.push(fastest);
                members.push(0);
                rates.len() - 1
            });
            (node.domain, node.local) = (domain as u32, members[domain]);
            members[domain] += 1;
            let cell = fastest.time_for(Cells::new(1).bits()).expect("a cell takes less than 213 days");
            node.slot = cell + Span::from_ps(1);
            for (port, &direction) in node.outward.iter().enumerate() {
                if rate(direction) != fastest {
                    node.slow |= 1 << port;
                }
            }
        }
        let mut furthest = vec![0_u64; rates.len()];
        for (number, (line, ends)) in (0_u32..).zip(&self.lines) {
            for side in 0..2_usize {
                let (from, to) = (ends[side].0, ends[1 - side].0);
                let (latency, rate) = (self.nodes[from as usize].latency(), line.rates[side]);
                let (ours, theirs) = (&nodes[from as usize], &nodes[to as usize]);
                let clock = rates[theirs.domain as usize];
                let same = rates[ours.domain as usize] == rate && clock == rate;
                let slots = |span| (1 + slots_of(rate, span)).min(u64::from(NONE)) as u32;
                let cell = rate.time_for(Cells::new(1).bits()).expect("a cell takes less than 213 days");
                let ahead = slots_of(clock, line.delay + latency + cell + cell) + 4;
                let furthest = &mut furthest[theirs.domain as usize];
                *furthest = ahead.max(*furthest);
                let shared = self.shared(number * 2);
                let faults = (line.faults.cells > 0.0 || line.faults.credits > 0.0).then(|| {
                    let path = format!("fabric/line {number}/side {side}");
                    let checked = |value| Probability::new(value).expect("checked with the line");
                    Faulty {
                        stream: Stream::derive(seed, &path),
                        cells: checked(line.faults.cells),
                        credits: checked(line.faults.credits),
                    }
                });
                store.directions.push(Direction {
                    from,
                    to_domain: theirs.domain,
                    to_local: theirs.local,
                    crossed: if same { slots(line.delay + latency) } else { 0 },
                    straight: if same { slots(line.delay) } else { 0 },
                    flying: Lane::new(),
                    notes: Lane::new(),
                    shared,
                    pool: shared,
                    scheme: line.credits.map_or(Scheme::Increments, |credits| credits.scheme),
                    faulty: faults.is_some(),
                    counters: LineCounters::default(),
                    more: Box::new(More {
                        rate,
                        transmitter: Transmitter::new(rate),
                        latency,
                        delay: line.delay,
                        marks: VecDeque::new(),
                        note_free: SimTime::ZERO,
                        blocked: VecDeque::new(),
                        faults,
                    }),
                });
            }
        }
        store.domains = rates
            .iter()
            .zip(members.iter().zip(&furthest))
            .map(|(&rate, (&members, &furthest))| Domain::new(rate, members as usize, furthest))
            .collect();
    }

    /// Makes the hops and branches of a circuit; the numbers of its hops.
    fn lay_circuit(&self, circuit: u32, way: &[Place], nodes: &[Running], store: &mut Store) -> Vec<u32> {
        let begin = store.hops.len() as u32;
        for place in way {
            let (limit, discard) = match (&self.nodes[place.node.0 as usize], place.from) {
                (Node::Crossbar(spec), _) => (spec.queue, spec.discard),
                (Node::SharedBuffer(spec), _) => (spec.queue, spec.discard),
                (Node::Station(_), _) => (None, Discard::Tail),
            };
            let promised = place
                .from
                .and_then(|direction| self.window(direction).map(|window| window + self.shared(direction)));
            let limit = promised
                .unwrap_or_else(|| limit.map_or(NONE, |cells| cells.get().min(u64::from(NONE)) as u32));
            let discard = if promised.is_some() { Discard::Tail } else { discard };
            let end = if place.onward.is_none() {
                store.ends.push(End::new(store.hops.len() as u32, circuit));
                store.kept.push(VecDeque::new());
                (store.ends.len() - 1) as u32
            } else if place.from.is_none() {
                store.offered.push(VecDeque::new());
                (store.offered.len() - 1) as u32
            } else {
                NONE
            };
            store.refused.push(0);
            store.hops.push(Hop {
                node: place.node.0,
                port: place.port,
                branch: NONE,
                head: NONE,
                tail: NONE,
                held: 0,
                limit,
                feeder: NONE,
                freed: 0,
                owed: 0,
                owing: false,
                answers: false,
                at_start: true,
                refusing: false,
                wholly: false,
                plain: discard == Discard::Tail,
                end,
                arrived: 0,
                longest: 0,
            });
        }
        for ((hop, place), next) in (begin..).zip(way).zip(&way[1..]) {
            let (Some(port), Some(direction)) = (place.onward, next.from) else { continue };
            let window = self.window(direction);
            let number = store.branches.len() as u32;
            store.hops[hop as usize].branch = number;
            let end = store.hops[hop as usize + 1].end;
            if window.is_some() {
                store.hops[hop as usize + 1].feeder = number;
                if next.onward.is_none() {
                    store.ends[end as usize].has_feeder = true;
                }
            }
            store.branches.push(Branch {
                hop,
                input: place.port,
                port,
                direction,
                place: nodes[place.node.0 as usize].place(place.port, port),
                queued: false,
                next_hop: hop + 1,
                to: if next.onward.is_none() { END | end } else { hop + 1 },
                beginning: if place.from.is_none() { store.hops[hop as usize].end } else { NONE },
                has_offered: false,
                endless: false,
                tag: 0,
                waiting: 0,
                outstanding: 0,
                window: window.unwrap_or(NONE),
                sent: 0,
                turns: 0,
                blocked: false,
            });
            store.links.push(NONE);
        }
        (begin..store.hops.len() as u32).collect()
    }

    /// Directions whose count is taken, and how often.
    pub(crate) fn resyncs(&self) -> Vec<(u32, Span)> {
        (0..)
            .zip(&self.lines)
            .filter_map(|(number, (line, _))| Some((number, line.credits?.resync?)))
            .flat_map(|(number, interval): (u32, _)| [(number * 2, interval), (number * 2 + 1, interval)])
            .collect()
    }
}
