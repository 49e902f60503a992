//! What a network of cell switches is made of.

use wiretwin_plan::{ByCells, CreditPlan, Graph, NodeKind, PlanError, Share, Switch, SwitchPlan};
pub use wiretwin_plan::{Matching, Scheme, Service};
use wiretwin_units::{BitRate, Cells, Span};

use crate::cell_switch::MOST_PORTS;

/// Which node of a network: a switch or a station.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeId(pub u32);

/// Which line of a network: both directions of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineId(pub u32);

/// Which circuit of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CircuitId(pub u32);

/// Which cells are rejected where a queue is, or grows, full.
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
    pub matching: Matching,
    /// Rounds of the matching; at least 1.
    pub iterations: u8,
    /// Cells that an input may send in a slot, each to another output and in a round of its own: how much
    /// faster the inside is than a line. At least 1.
    pub inside: u8,
    /// From the queue to the line.
    pub latency: Span,
    /// Cells of a circuit that may wait where its line has no credits; `None` for any number.
    pub queue: Option<Cells>,
    /// What is rejected.
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
    /// What is rejected.
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
    fn switch(plan: SwitchPlan, latency: Span) -> Self {
        let any = |cells: Option<u32>| cells.map(|cells| Cells::new(cells.into()));
        let (ports, circuits) = (plan.ports.unwrap_or(MOST_PORTS), plan.circuits.unwrap_or(u32::MAX));
        let (queue, iterations) = (any(plan.queue), plan.iterations.unwrap_or(4));
        let discard = match plan.discard.unwrap_or_default() {
            wiretwin_plan::Discard::Tail => Discard::Tail,
            wiretwin_plan::Discard::Partial => Discard::Partial,
            wiretwin_plan::Discard::Early => {
                Discard::Early { threshold: any(plan.early).unwrap_or(Cells::ZERO) }
            }
        };
        match plan.kind {
            Switch::Crossbar => {
                let (matching, inside) = (plan.matching.unwrap_or_default(), plan.inside.unwrap_or(1));
                Self::Crossbar(Crossbar {
                    ports,
                    matching,
                    iterations,
                    inside,
                    latency,
                    queue,
                    discard,
                    circuits,
                })
            }
            Switch::OutputQueued => {
                let service = plan.service.unwrap_or_default();
                let buffer = any(plan.buffer).unwrap_or(Cells::new(u64::MAX));
                Self::SharedBuffer(SharedBuffer { ports, service, latency, buffer, queue, discard, circuits })
            }
        }
    }

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
    fn of(plan: CreditPlan) -> Option<Self> {
        let window = match plan.cells {
            wiretwin_plan::Window::Loop => Window::Loop,
            wiretwin_plan::Window::Cells(cells) => Window::Cells(Cells::new(cells.into())),
            wiretwin_plan::Window::None => return None,
        };
        let (scheme, resync) = (plan.scheme, plan.resync.map(|interval| interval.0));
        Some(Self { window, shared: Cells::new(plan.shared.into()), scheme, resync })
    }

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

/// A circuit: from a station, along lines, to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Circuit {
    /// Where it begins.
    pub from: NodeId,
    /// The lines to the station where it ends.
    pub path: Vec<LineId>,
}

impl Circuit {
    /// Along these lines of a graph, in a plan over the graph.
    pub(crate) fn over(graph: &Graph, path: &[wiretwin_plan::LineId]) -> Self {
        let from = NodeId(graph.lines()[path[0].0 as usize].from.0);
        Self { from, path: path.iter().map(|line| LineId(line.0 / 2)).collect() }
    }
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

    /// The nodes and lines of a graph; a line is both directions of a connection.
    pub(crate) fn over(graph: &Graph, spec: &ByCells) -> Self {
        let nodes = graph.nodes().iter().enumerate().map(|(at, node)| {
            let listed = spec.nodes.get(at);
            let delay = listed.and_then(|listed| listed.delay).map(|delay| delay.0);
            match node.kind {
                NodeKind::Host => Node::Station(Station { sar: delay.unwrap_or_default() }),
                NodeKind::Switch | NodeKind::Cable => {
                    let switch = listed.and_then(|listed| listed.switch).unwrap_or(spec.switch);
                    Node::switch(switch, delay.unwrap_or(spec.switch_delay))
                }
            }
        });
        let lines = graph.lines().chunks(2).enumerate().map(|(at, pair)| {
            let listed = spec.lines.get(at);
            let default = CreditPlan { cells: spec.credits, ..CreditPlan::default() };
            let credits = Credits::of(listed.and_then(|listed| listed.credits).unwrap_or(default));
            let share = |share: Option<Share>| share.unwrap_or_default().0;
            let faults = listed.map_or(Faults::default(), |listed| Faults {
                cells: share(listed.cells_lost),
                credits: share(listed.credits_lost),
            });
            let rates = [0, pair.len() - 1].map(|side| graph.media()[pair[side].medium.0 as usize].rate);
            let ends = [pair[0].from, pair[0].to].map(|end| NodeId(end.0));
            (Line { rates, delay: pair[0].delay, credits, faults }, ends)
        });
        Self { nodes: nodes.collect(), lines: lines.collect(), circuits: Vec::new() }
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
    /// [`PlanError`] where two nodes have no line between them.
    pub fn along(&self, nodes: &[NodeId]) -> Result<Vec<LineId>, PlanError> {
        nodes
            .windows(2)
            .map(|pair| {
                let joins = |ends: &[NodeId; 2]| *ends == [pair[0], pair[1]] || *ends == [pair[1], pair[0]];
                let found = self.lines.iter().position(|(_, ends)| joins(ends));
                let found = found.ok_or_else(|| {
                    let value = format!("nodes {} and {}", pair[0].0, pair[1].0);
                    PlanError::new("circuits", value, "nodes with a line between them")
                })?;
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

    /// Of a circuit: the time of a cell on its slowest line, and what light and nodes delay.
    pub(crate) fn way(&self, circuit: CircuitId) -> (Span, Span) {
        let Circuit { from, path } = &self.circuits[circuit.0 as usize];
        let (mut at, mut cell, mut delay) = (*from, Span::ZERO, Span::ZERO);
        for &line in path {
            let (line, ends) = &self.lines[line.0 as usize];
            let side = usize::from(ends[1] == at);
            let sent = line.rates[side].time_for(Cells::new(1).bits()).unwrap_or(Span::MAX);
            (cell, delay) = (cell.max(sent), delay + line.delay + self.nodes[at.0 as usize].latency());
            at = ends[1 - side];
        }
        (cell, delay + self.nodes[at.0 as usize].latency())
    }

    /// Adds a circuit along these nodes.
    ///
    /// # Errors
    /// [`PlanError`] where two nodes have no line between them.
    pub fn circuit_along(&mut self, nodes: &[NodeId]) -> Result<CircuitId, PlanError> {
        let path = self.along(nodes)?;
        let from = nodes.first().copied().unwrap_or(NodeId(u32::MAX));
        Ok(self.circuit(Circuit { from, path }))
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
