//! Oracles, conservation, rejections.

mod bad;
mod books;
mod fair;
mod queues;
mod rates;

use wiretwin_engine::Stream;
use wiretwin_units::{BitRate, Cells, SimTime, Span};

use super::state::Note;
use super::*;
use crate::load::{Generator, Law};

/// For each circuit the generator of its arrivals and the cells of a PDU; and how many PDUs have been posted.
struct Sources(Vec<(CircuitId, Generator, u64)>, u32);

impl Sources {
    fn new(circuits: impl IntoIterator<Item = (CircuitId, Law, u64)>, seed: u64) -> Self {
        let circuits = circuits.into_iter().map(|(circuit, law, cells)| {
            let stream = Stream::derive(seed, &format!("source {}", circuit.0));
            (circuit, Generator::new(law, stream), cells)
        });
        Self(circuits.collect(), 0)
    }

    fn run_until(&mut self, fabric: &mut Fabric, until: SimTime) {
        let Self(sources, tag) = self;
        while let Some((circuit, generator, cells)) =
            sources.iter_mut().min_by_key(|(_, source, _)| source.next())
            && generator.next() <= until
        {
            fabric.run_until(generator.next());
            fabric.offer(generator.next(), *circuit, Cells::new(*cells), *tag).unwrap();
            generator.advance();
            *tag += 1;
        }
        fabric.run_until(until);
    }
}

const OC3: BitRate = BitRate::bit_s(150_336_000);

fn crossbar(ports: u8) -> Node {
    Node::Crossbar(Crossbar {
        ports,
        matching: Matching::Pim,
        iterations: 4,
        inside: 1,
        latency: Span::ZERO,
        queue: None,
        discard: Discard::Tail,
        circuits: 1 << 16,
    })
}

/// A crossbar of 12 us that is five times as quick as its lines.
fn an2(ports: u8) -> Node {
    match crossbar(ports) {
        Node::Crossbar(spec) => Node::Crossbar(Crossbar { latency: Span::from_us(12), inside: 5, ..spec }),
        other => other,
    }
}

fn shared(ports: u8, buffer: u64) -> SharedBuffer {
    SharedBuffer {
        ports,
        service: Service::InTurn,
        latency: Span::ZERO,
        buffer: Cells::new(buffer),
        queue: None,
        discard: Discard::Tail,
        circuits: 1 << 16,
    }
}

const STATION: Node = Node::Station(Station { sar: Span::ZERO });

fn near() -> Line {
    Line::plain(OC3, Span::from_ns(500))
}

fn credited(line: Line, credits: Credits) -> Line {
    Line { credits: Some(credits), ..line }
}

fn at(span: Span) -> SimTime {
    SimTime::ZERO + span
}

/// When so many slots have passed.
fn slots(count: u64) -> Span {
    let ps = u128::from(Cells::new(count).bits().get()) * 1_000_000_000_000 / u128::from(OC3.get());
    Span::from_ps(ps as u64)
}

/// Cells that came over a circuit in so many slots after others.
fn received(fabric: &mut Fabric, circuit: CircuitId, warm_up: u64, count: u64) -> u64 {
    fabric.run_until(at(slots(warm_up)));
    let before = fabric.circuit(circuit).received;
    fabric.run_until(at(slots(warm_up + count)));
    fabric.audit().unwrap();
    fabric.circuit(circuit).received - before
}

impl Fabric {
    /// The most cells that a node has held at a time, hosts' memory not counted.
    fn most_held(&self, node: NodeId) -> Cells {
        Cells::new(u64::from(self.nodes[node.0 as usize].longest))
    }

    /// The most cells of a circuit that a node has held at a time; `None` where it does not pass.
    fn most_held_of(&self, circuit: CircuitId, node: NodeId) -> Option<Cells> {
        let hops = self.circuits[circuit.0 as usize].iter().map(|&hop| &self.store.hops[hop as usize]);
        hops.filter(|hop| hop.node == node.0).map(|hop| Cells::new(u64::from(hop.longest))).next()
    }

    /// Something is said of a circuit's credits on a line, as if it had come from the line's second node (or,
    /// with `back`, its first): that so many cells more have made room.
    fn forge_credit(&mut self, line: LineId, back: bool, branch: u32, cells: u32) {
        let direction = line.0 * 2 + u32::from(back);
        let (from, now) = (self.store.directions[direction as usize].from, self.now());
        self.nodes[from as usize].credit(direction, branch, Note::More(cells), &mut self.store);
        self.wake(from, now);
    }
}
