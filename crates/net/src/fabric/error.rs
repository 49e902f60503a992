//! Why there is no such network.

use std::fmt;

use wiretwin_units::{BitRate, Cells};

use super::plan::{CircuitId, LineId, NodeId};

/// A plan that cannot be.
#[derive(Clone, Debug, PartialEq)]
pub enum PlanError {
    /// A switch with too few ports or too many.
    Ports {
        /// Which node.
        node: NodeId,
        /// Its ports.
        ports: u8,
    },
    /// More lines than ports.
    Lines {
        /// Which node.
        node: NodeId,
        /// Its lines.
        lines: usize,
        /// Its ports.
        ports: u8,
    },
    /// A number that must be at least 1.
    Zero {
        /// Where.
        place: String,
        /// Which.
        name: &'static str,
    },
    /// A probability that is none.
    Probability {
        /// Which line.
        line: LineId,
        /// Which fault.
        name: &'static str,
        /// Its value.
        value: f64,
    },
    /// A line joins a node to itself or to none.
    Ends {
        /// Which line.
        line: LineId,
        /// The node.
        node: NodeId,
    },
    /// A line that is too long, or a switch too slow, for the fastest clock of the network.
    Long {
        /// Which line.
        line: LineId,
        /// Slots of that clock from one end to the other.
        slots: u64,
        /// How many there may be.
        most: u64,
    },
    /// Credits over a line whose directions differ.
    Rates {
        /// Which line.
        line: LineId,
        /// Its rates.
        rates: [BitRate; 2],
    },
    /// More circuits than a switch has room for.
    Circuits {
        /// Which node.
        node: NodeId,
        /// How many pass.
        circuits: usize,
        /// How many may.
        most: u32,
    },
    /// Credits for more cells than a switch's buffer holds.
    Memory {
        /// Which node.
        node: NodeId,
        /// Cells that credits promise room for.
        cells: u64,
        /// Cells that there is room for.
        buffer: Cells,
    },
    /// Two nodes without a line between them.
    Apart {
        /// The one.
        from: NodeId,
        /// The other.
        to: NodeId,
    },
    /// A circuit that does not go on where its last line ended.
    Broken {
        /// Which circuit.
        circuit: CircuitId,
        /// The line that does not follow.
        line: LineId,
    },
    /// A circuit that comes to a node again.
    Loop {
        /// Which circuit.
        circuit: CircuitId,
        /// The node.
        node: NodeId,
    },
    /// A circuit that does not begin or end at a station, or goes nowhere.
    NoStation {
        /// Which circuit.
        circuit: CircuitId,
        /// Where it begins or ends.
        node: Option<NodeId>,
    },
    /// Lines whose circuits may wait for each other for ever: they share all their cells, and each cell of
    /// one may wait for room behind the next.
    Deadlock {
        /// The lines in the order in which they wait, each with the node it leads to.
        lines: Vec<(LineId, NodeId)>,
    },
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ports { node, ports } => {
                write!(f, "node {}: ports = {ports}: a switch has 2 to 64", node.0)
            }
            Self::Lines { node, lines, ports } => {
                write!(f, "node {}: {lines} lines: it has {ports} ports", node.0)
            }
            Self::Zero { place, name } => write!(f, "{place}: {name} = 0: at least 1"),
            Self::Probability { line, name, value } => {
                write!(f, "line {}: {name} lost with {value}: a probability of 0 to 1", line.0)
            }
            Self::Ends { line, node } => {
                write!(f, "line {}: an end at node {}: two nodes of the network", line.0, node.0)
            }
            Self::Long { line, slots, most } => {
                write!(
                    f,
                    "line {}: {slots} cell times of the fastest line from end to end: at most {most}",
                    line.0
                )
            }
            Self::Rates { line, rates: [there, back] } => write!(
                f,
                "line {}: {there} there and {back} back: a credit for every cell needs one rate",
                line.0
            ),
            Self::Circuits { node, circuits, most } => {
                write!(f, "node {}: {circuits} circuits: it has room for {most}", node.0)
            }
            Self::Memory { node, cells, buffer } => {
                write!(f, "node {}: credits for {cells} cells: its buffer holds {}", node.0, buffer.get())
            }
            Self::Apart { from, to } => write!(f, "nodes {} and {} have no line between them", from.0, to.0),
            Self::Broken { circuit, line } => {
                write!(f, "circuit {}: line {} does not go on where it is", circuit.0, line.0)
            }
            Self::Loop { circuit, node } => {
                write!(f, "circuit {}: it comes to node {} again", circuit.0, node.0)
            }
            Self::NoStation { circuit, node: Some(node) } => {
                write!(f, "circuit {}: node {} is no station to begin or end at", circuit.0, node.0)
            }
            Self::NoStation { circuit, node: None } => {
                write!(f, "circuit {}: it goes nowhere", circuit.0)
            }
            Self::Deadlock { lines } => {
                f.write_str("a loop that may wait for ever, as all its cells are shared: ")?;
                for (place, (line, node)) in lines.iter().enumerate() {
                    let arrow = if place == 0 { "" } else { ", " };
                    write!(f, "{arrow}line {} to node {}", line.0, node.0)?;
                }
                f.write_str(", and round again; a cell of each circuit's own breaks it")
            }
        }
    }
}

impl std::error::Error for PlanError {}
