//! What a network of cell switches is made of.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use wiretwin_units::{BitRate, Cells, Span};

use super::error::PlanError;
use crate::fairness::{FairnessError, Session, max_min_shares};

/// Which node of a network: a switch or a station.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeId(pub u32);

/// Which line of a network: both directions of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineId(pub u32);

/// Which circuit of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CircuitId(pub u32);

/// Who may cross a crossbar in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arbiter {
    /// Parallel iterative matching, every choice uniform among ports, so many rounds; at least 1.
    Pim {
        /// Rounds.
        iterations: u8,
    },
    /// iSLIP, so many rounds; at least 1.
    Islip {
        /// Rounds.
        iterations: u8,
    },
    /// As PIM, but an output grants the circuit that has had the fewest turns: ports with many circuits get
    /// more. So many rounds; at least 1.
    ByCircuit {
        /// Rounds.
        iterations: u8,
    },
}

impl Arbiter {
    pub(super) const fn iterations(self) -> u8 {
        match self {
            Self::Pim { iterations } | Self::Islip { iterations } | Self::ByCircuit { iterations } => {
                iterations
            }
        }
    }
}

/// Whose cell an output of an output-queued switch sends next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Circuits take turns.
    InTurn,
    /// The cell that came first.
    InOrder,
}

/// Which cells are refused where a queue is, or grows, full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discard {
    /// The cell that finds no room.
    Tail,
    /// And all further cells of its PDU but the last, so that the border is seen.
    Partial,
    /// As partial; and whole PDUs, the last cell too, whose first cell finds more cells in the switch than
    /// this (A. Romanow, S. Floyd 1995).
    Early {
        /// Cells in the switch.
        threshold: Cells,
    },
}

/// A switch with queues for each circuit at its inputs and a crossbar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossbar {
    /// Ports: 2 to 64.
    pub ports: u8,
    /// Who crosses.
    pub arbiter: Arbiter,
    /// Cells that an input may send in a slot, each to another output and in a round of its own: how much
    /// quicker the inside is than a line. At least 1.
    pub inside: u8,
    /// From the queue to the line.
    pub latency: Span,
    /// Cells of a circuit that may wait where its line has no credits; `None` for any number.
    pub queue: Option<Cells>,
    /// What is refused.
    pub discard: Discard,
    /// The most circuits that the switch has room for.
    pub circuits: u32,
}

/// A switch with queues for each circuit at its outputs, in one buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedBuffer {
    /// Ports: 2 to 64.
    pub ports: u8,
    /// Whose cell goes next.
    pub service: Service,
    /// From the queue to the line.
    pub latency: Span,
    /// Cells that the switch holds, all circuits together.
    pub buffer: Cells,
    /// Cells of a circuit that may wait; `None` for any number.
    pub queue: Option<Cells>,
    /// What is refused.
    pub discard: Discard,
    /// The most circuits that the switch has room for.
    pub circuits: u32,
}

/// A host's adapter: where circuits begin and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Station {
    /// From host memory to the line, and back, for a cell.
    pub sar: Span,
}

/// A node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Node {
    /// Queues at the inputs.
    Crossbar(Crossbar),
    /// Queues at the outputs.
    SharedBuffer(SharedBuffer),
    /// A host's adapter.
    Station(Station),
}

impl Node {
    /// How many lines it may have.
    pub const fn ports(&self) -> u8 {
        match self {
            Self::Crossbar(spec) => spec.ports,
            Self::SharedBuffer(spec) => spec.ports,
            Self::Station(_) => 1,
        }
    }

    pub(super) const fn latency(&self) -> Span {
        match self {
            Self::Crossbar(spec) => spec.latency,
            Self::SharedBuffer(spec) => spec.latency,
            Self::Station(spec) => spec.sar,
        }
    }
}

/// How many cells a circuit may have under way on a line and in the queue behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// So many; at least 1, or 0 where there are shared ones.
    Cells(Cells),
    /// As many as fill the line while a credit comes back: see [`loop_cells`].
    Loop,
}

/// How credits say what they say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// A credit is worth so many cells. One that is lost is lost until the count is taken again.
    Increments,
    /// A credit carries the number of cells forwarded since the start: any later one makes up for one that
    /// was lost (H. Kung, T. Blackwell, A. Chapman 1994).
    Totals,
}

/// Credits on a line, in both directions and for each circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credits {
    /// Cells that each circuit has for itself.
    pub window: Window,
    /// Cells that all circuits of a direction share besides, first come first served.
    pub shared: Cells,
    /// What a credit says.
    pub scheme: Scheme,
    /// How often the sender takes the count of circuits that lack credits, by a marker that the receiver
    /// answers (C. Ozveren, R. Simcoe, G. Varghese 1994); `None` for never.
    pub resync: Option<Span>,
}

impl Credits {
    /// So many cells for each circuit, none shared, by increments, never counted again.
    pub const fn cells(cells: u64) -> Self {
        Self {
            window: Window::Cells(Cells::new(cells)),
            shared: Cells::new(0),
            scheme: Scheme::Increments,
            resync: None,
        }
    }
}

/// What goes wrong on a line, each with a probability of 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Faults {
    /// A data cell is lost.
    pub cells: f64,
    /// What a cell says of credits is lost, markers and their answers included.
    pub credits: f64,
}

/// A line between two nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Line {
    /// From the first node to the second, and back.
    pub rates: [BitRate; 2],
    /// Of light, each way.
    pub delay: Span,
    /// Whether and how cells are held back.
    pub credits: Option<Credits>,
    /// What goes wrong.
    pub faults: Faults,
}

impl Line {
    /// A line of one rate, without credits or faults.
    pub const fn plain(rate: BitRate, delay: Span) -> Self {
        Self { rates: [rate, rate], delay, credits: None, faults: Faults { cells: 0.0, credits: 0.0 } }
    }
}

/// A circuit: from a station, along lines, to one or more stations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Circuit {
    /// Where it begins.
    pub from: NodeId,
    /// The lines to each station where it ends; what paths have in common is gone once.
    pub paths: Vec<Vec<LineId>>,
}

/// Nodes, lines and circuits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    pub(super) nodes: Vec<Node>,
    pub(super) lines: Vec<(Line, [NodeId; 2])>,
    pub(super) circuits: Vec<Circuit>,
}

impl Plan {
    /// Nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a node.
    pub fn node(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        NodeId((self.nodes.len() - 1) as u32)
    }

    /// Joins two nodes; each gives the next of its ports.
    pub fn line(&mut self, from: NodeId, to: NodeId, line: Line) -> LineId {
        self.lines.push((line, [from, to]));
        LineId((self.lines.len() - 1) as u32)
    }

    /// Adds a circuit.
    pub fn circuit(&mut self, circuit: Circuit) -> CircuitId {
        self.circuits.push(circuit);
        CircuitId((self.circuits.len() - 1) as u32)
    }

    /// The lines along these nodes, of several between two nodes the first.
    ///
    /// # Errors
    /// [`PlanError::Apart`] where two nodes have no line between them.
    pub fn along(&self, nodes: &[NodeId]) -> Result<Vec<LineId>, PlanError> {
        nodes
            .windows(2)
            .map(|pair| {
                let joins = |ends: &[NodeId; 2]| *ends == [pair[0], pair[1]] || *ends == [pair[1], pair[0]];
                let found = self.lines.iter().position(|(_, ends)| joins(ends));
                let found = found.ok_or(PlanError::Apart { from: pair[0], to: pair[1] })?;
                Ok(LineId(found as u32))
            })
            .collect()
    }

    /// How many circuits there are.
    pub(crate) fn circuits(&self) -> usize {
        self.circuits.len()
    }

    /// Whether no cell can be lost, nor what is said of credits.
    pub(crate) fn keeps_all(&self) -> bool {
        self.lines.iter().all(|(line, _)| line.credits.is_some() && line.faults == Faults::default())
    }

    /// Of a circuit with one end: the time of a cell on its slowest line, and what light and nodes delay.
    pub(crate) fn way(&self, circuit: CircuitId) -> (Span, Span) {
        let Circuit { from, paths } = &self.circuits[circuit.0 as usize];
        let (mut at, mut cell, mut delay) = (*from, Span::ZERO, Span::ZERO);
        for &line in paths.iter().flatten() {
            let (line, ends) = &self.lines[line.0 as usize];
            let side = usize::from(ends[1] == at);
            let sent = line.rates[side].time_for(Cells::new(1).bits()).unwrap_or(Span::MAX);
            (cell, delay) = (cell.max(sent), delay + line.delay + self.nodes[at.0 as usize].latency());
            at = ends[1 - side];
        }
        (cell, delay + self.nodes[at.0 as usize].latency())
    }

    /// What each circuit would get of the lines, bits per second with headers, were it fair (max-min) and had
    /// those of `greedy` always more to send, the others nothing.
    ///
    /// # Errors
    /// [`FairnessError`] for circuits that are not of this plan.
    pub fn fair_shares(&self, greedy: &[CircuitId]) -> Result<Vec<f64>, FairnessError> {
        let capacities: Vec<f64> =
            self.lines.iter().flat_map(|(line, _)| line.rates.map(|rate| rate.get() as f64)).collect();
        let sessions: Vec<Session> = greedy
            .iter()
            .map(|&circuit| {
                let mut directions = BTreeSet::new();
                for path in self.circuits.get(circuit.0 as usize).iter().flat_map(|circuit| &circuit.paths) {
                    let mut at = self.circuits[circuit.0 as usize].from;
                    for &line in path {
                        let ends = self.lines[line.0 as usize].1;
                        let side = usize::from(ends[1] == at);
                        directions.insert(line.0 as usize * 2 + side);
                        at = ends[1 - side];
                    }
                }
                Session::greedy(directions.into_iter().collect::<Vec<_>>())
            })
            .collect();
        max_min_shares(&capacities, &sessions)
    }

    /// The way with the fewest lines from one node to another, of several the first in the order of lines;
    /// hosts are not passed through. `None` where there is none.
    pub fn shortest(&self, from: NodeId, to: NodeId) -> Option<Vec<LineId>> {
        let mut reached: BTreeMap<NodeId, Option<(NodeId, LineId)>> = BTreeMap::from([(from, None)]);
        let mut next = VecDeque::from([from]);
        while let Some(at) = next.pop_front().filter(|&at| at != to) {
            if at != from && matches!(self.nodes.get(at.0 as usize), Some(Node::Station(_))) {
                continue;
            }
            for (number, (_, ends)) in (0..).zip(&self.lines) {
                let Some(side) = ends.iter().position(|&end| end == at) else { continue };
                let there = ends[1 - side];
                reached.entry(there).or_insert_with(|| {
                    next.push_back(there);
                    Some((at, LineId(number)))
                });
            }
        }
        let mut lines = Vec::new();
        let mut at = to;
        while let Some((before, line)) = *reached.get(&at)? {
            lines.push(line);
            at = before;
        }
        lines.reverse();
        Some(lines)
    }

    /// Adds a circuit along these nodes.
    ///
    /// # Errors
    /// [`PlanError::Apart`] where two nodes have no line between them.
    pub fn circuit_along(&mut self, nodes: &[NodeId]) -> Result<CircuitId, PlanError> {
        let path = self.along(nodes)?;
        let from = nodes.first().copied().unwrap_or(NodeId(u32::MAX));
        Ok(self.circuit(Circuit { from, paths: vec![path] }))
    }
}

/// Cells that a circuit needs to fill a line of this rate and delay, behind a node of this latency, while credits
/// come back from a node that passes on what it gets at once.
///
/// A cell takes its time, the latency and the delay, and waits for the next slot of the receiver; its credit does
/// the same on its way back, but for the latency.
pub fn loop_cells(rate: BitRate, latency: Span, delay: Span) -> Cells {
    Cells::new(2 + slots_of(rate, latency + delay) + slots_of(rate, delay))
}

/// Slots of this rate that a span takes, begun ones counted.
pub(super) fn slots_of(rate: BitRate, span: Span) -> u64 {
    let cell_ps = u128::from(CELL_BITS) * PS_PER_S;
    (u128::from(span.as_ps()) * u128::from(rate.get())).div_ceil(cell_ps) as u64
}

/// Bits of a cell.
pub(super) const CELL_BITS: u64 = 53 * 8;
/// Picoseconds in a second.
pub(super) const PS_PER_S: u128 = 1_000_000_000_000;
