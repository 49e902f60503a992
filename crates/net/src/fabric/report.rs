//! What is seen of a network.

use wiretwin_units::{SimTime, Span};

use super::plan::CircuitId;

/// A PDU, or what is left of it, that came to a station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// When its last cell was in host memory.
    pub time: SimTime,
    /// The circuit that the PDU came on.
    pub circuit: CircuitId,
    /// The tag of its first cell.
    pub tag: u32,
    /// How many cells came.
    pub cells: u32,
    /// Whether cells of another PDU are among them.
    pub mixed: bool,
}

/// What became of a circuit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CircuitReport {
    /// Cells that left host memory.
    pub sent: u64,
    /// Cells that came to its end.
    pub received: u64,
    /// Cells that a switch rejected.
    pub refused: u64,
    /// Ends of PDUs that came.
    pub pdus: u64,
    /// From host memory to host memory, the mean over cells.
    pub mean: Span,
    /// The same, the longest.
    pub longest: Span,
}
