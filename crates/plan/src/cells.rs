//! A network of ATM cell switches as a user writes it, and its checks.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wiretwin_units::{Bytes, Cells, Span};

use crate::error::PlanError;
use crate::graph::{Graph, NodeKind};
use crate::network::{
    Fidelity, Forwarding, HEADERS, LEAST_MTU, ListedLine, ListedNode, NetworkPlan, SLOWEST, Topology,
};
use crate::quantity::{Duration, Queue};

/// Where the cells of a switch wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Switch {
    /// At its outputs, in a buffer that they share.
    #[default]
    OutputQueued,
    /// At its inputs, one queue for each circuit, crossing as parallel iterative matching finds.
    Crossbar,
}

/// Who may cross a crossbar in a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Matching {
    /// Parallel iterative matching, every choice uniform among ports.
    #[default]
    Pim,
    /// iSLIP: the choices take turns.
    Islip,
    /// As `Pim`, but an output grants the circuit that has had the fewest turns.
    ByCircuit,
}

/// Whose cell an output of an output-queued switch sends next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Service {
    /// Circuits take turns.
    #[default]
    InTurn,
    /// The cell that came first.
    InOrder,
}

/// Which cells are rejected where a queue is, or grows, full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Discard {
    /// The cell that finds no room.
    #[default]
    Tail,
    /// And all further cells of its PDU but the last.
    Partial,
    /// As `Partial`; and whole PDUs whose first cell finds more than `early` cells in the switch.
    Early,
}

/// A switch of cells; what is left out has the default of its kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwitchPlan {
    /// Where cells wait.
    pub kind: Switch,
    /// Lines that it has room for, 2 to 64; 64 if it is left out.
    pub ports: Option<u8>,
    /// Of a crossbar, who crosses.
    pub matching: Option<Matching>,
    /// Of a crossbar, rounds of the matching, 1 to 64; 4 if it is left out.
    pub iterations: Option<u8>,
    /// Of a crossbar, cells that an input may send in a slot, 1 and above; 1 if it is left out.
    pub inside: Option<u8>,
    /// Of queues at outputs, whose cell goes next.
    pub service: Option<Service>,
    /// Of queues at outputs, cells that the switch holds; any number if it is left out.
    pub buffer: Option<u32>,
    /// Cells of a circuit that may wait where its line has no credits; any number if it is left out.
    pub queue: Option<u32>,
    /// What is rejected where a queue is full.
    pub discard: Option<Discard>,
    /// Of `discard` `early`, the cells in the switch from which on PDUs are rejected; 0 if it is left out.
    pub early: Option<u32>,
    /// Circuits that the switch has room for; any number if it is left out.
    pub circuits: Option<u32>,
}

/// How credits say what they say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scheme {
    /// Cells granted by one credit.
    #[default]
    Increments,
    /// A credit carries the number of cells forwarded since the start.
    Totals,
}

/// Credits of a line, in both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreditPlan {
    /// What each circuit has for itself.
    pub cells: Window,
    /// Cells that all circuits of a direction share besides; 0 if it is left out.
    #[serde(default)]
    pub shared: u32,
    /// What a credit says.
    #[serde(default)]
    pub scheme: Scheme,
    /// How often the sender takes the count of circuits that lack credits, above 0; never if it is left out.
    pub resync: Option<Duration>,
}

/// A probability, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Value")]
pub struct Share(pub f64);

impl Eq for Share {}

impl TryFrom<Value> for Share {
    type Error = &'static str;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        let share = value.as_f64().or_else(|| value.as_str()?.parse().ok());
        share.filter(|share| (0.0..=1.0).contains(share)).map(Share).ok_or(SHARE)
    }
}

const SHARE: &str = "a number from 0 to 1";

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// How many cells a circuit may have under way on a line and in the queue behind it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub enum Window {
    /// As many as fill the line while a credit comes back.
    #[default]
    Loop,
    /// So many; 1 and above, or 0 where circuits share some.
    Cells(u32),
    /// Any number: what finds no room is lost.
    None,
}

const WINDOW: &str = "loop, none, or a number of cells below 1073741824";

impl TryFrom<Value> for Window {
    type Error = &'static str;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        match (value.as_str(), value.as_u64()) {
            (Some("loop"), _) => Ok(Self::Loop),
            (Some("none"), _) => Ok(Self::None),
            (_, Some(cells @ 0..0x4000_0000)) => Ok(Self::Cells(cells as u32)),
            _ => Err(WINDOW),
        }
    }
}

impl From<Window> for Value {
    fn from(window: Window) -> Self {
        match window {
            Window::Loop => "loop".into(),
            Window::Cells(cells) => cells.into(),
            Window::None => "none".into(),
        }
    }
}

/// What a network is made of cell by cell, besides its nodes and lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByCells {
    /// Every switch that is not listed otherwise.
    pub switch: SwitchPlan,
    /// What a switch takes from the queue to the line.
    pub switch_delay: Span,
    /// What holds cells back.
    pub credits: Window,
    /// Bytes of a PDU of AAL 5 without its trailer: of a message, or of an IP packet.
    pub mtu: u16,
    /// Of a listed network, what is said of its nodes and lines.
    pub nodes: Vec<ListedNode>,
    /// The same of its lines.
    pub lines: Vec<ListedLine>,
}

impl ByCells {
    /// Checks that switches have room for any circuit, as circuits are set up when ranks first talk.
    ///
    /// # Errors
    /// [`PlanError`] for a switch with a number of circuits, or with credits a buffer, of its own.
    pub fn check_any_circuit(&self) -> Result<(), PlanError> {
        for (number, node) in self.nodes.iter().enumerate() {
            let switch = node.switch.unwrap_or_default();
            let buffer = switch.buffer.filter(|_| self.keeps_all());
            for (key, value) in [("circuits", switch.circuits), ("buffer", buffer)] {
                if let Some(value) = value {
                    let allowed = "nothing, between ranks, whose circuits are set up as they talk";
                    return Err(PlanError::new(format!("nodes[{number}].switch.{key}"), value, allowed));
                }
            }
        }
        Ok(())
    }

    /// Whether nothing is lost, so that messages need no TCP.
    #[must_use]
    pub fn keeps_all(&self) -> bool {
        let none = Share::default();
        let is_kept = |line: &ListedLine| {
            let credits = line.credits.map_or(self.credits, |credits| credits.cells);
            let lost = [line.cells_lost, line.credits_lost].map(Option::unwrap_or_default);
            credits != Window::None && lost == [none, none]
        };
        if self.lines.is_empty() { self.credits != Window::None } else { self.lines.iter().all(is_kept) }
    }
}

/// The default of IP over AAL 5 (RFC 2225).
const MTU: u16 = 9180;
/// How far an end of a line is from the other, in cells of the fastest line.
const MOST_CELLS: u64 = 1 << 16;
/// Ports of a switch.
const MOST_PORTS: usize = 64;
/// The rounds after which a matching of 64 ports finds nothing more.
const MOST_ITERATIONS: u8 = 64;

impl NetworkPlan {
    /// What this network is made of cell by cell, whatever fidelity it asks for.
    ///
    /// # Errors
    /// [`PlanError`] for what is no network of cells: a shared cable, switches that cut through, frames around
    /// packets, lines that are too slow or too long.
    pub fn by_cells(&self) -> Result<ByCells, PlanError> {
        let reject = |key: &str, value: &dyn fmt::Display, allowed: &str| {
            Err(PlanError::new(key, value, format!("with fidelity cell, {allowed}")))
        };
        let credits = self.credits.unwrap_or_default();
        let keeps_all = credits != Window::None;
        if credits == Window::Cells(0) {
            return reject("credits", &0, WINDOW);
        }
        if self.topology == Topology::SharedCable {
            return reject("topology", &"\"shared-cable\"", "a topology of switches");
        }
        if self.forwarding == Some(Forwarding::CutThrough) {
            return reject("forwarding", &"\"cut-through\"", "\"store-and-forward\", of each cell");
        }
        if let Some(framing) = self.framing {
            return reject("framing", &framing, "nothing: a cell is 53 B, of which 48 B are its payload");
        }
        match self.headers {
            Some(headers) if keeps_all => {
                return reject(
                    "headers",
                    &headers,
                    "nothing, unless credits are none: TCP carries nothing here",
                );
            }
            Some(headers) if headers.0 != HEADERS => {
                return reject("headers", &headers, &format!("the {HEADERS} of IP and TCP"));
            }
            _ => {}
        }
        let least = if keeps_all { 1 } else { LEAST_MTU };
        let mtu = self.mtu.map_or(Bytes::new(MTU.into()), |size| size.0);
        // An IP packet stands behind 8 bytes of LLC and SNAP (RFC 2684) in at most 65535 (I.363.5).
        let most = if keeps_all { u16::MAX } else { u16::MAX - 8 };
        let Some(mtu) = u16::try_from(mtu.get()).ok().filter(|mtu| (least..=most).contains(mtu)) else {
            return reject("mtu", &mtu, &format!("{least} B to {most} B"));
        };
        let queue = match self.queue {
            None => None,
            Some(queue) if keeps_all => {
                return reject(
                    "queue",
                    &queue,
                    "nothing, unless credits are none: they keep room for each cell",
                );
            }
            Some(Queue::Cells(cells)) if cells > 0 => Some(cells),
            Some(queue) => {
                return reject("queue", &queue, "a number of cells above zero, such as \"1000 cells\"");
            }
        };
        let kind = self.switch.unwrap_or_default();
        match self.iterations {
            Some(iterations) if kind != Switch::Crossbar => {
                return reject("iterations", &iterations, "nothing, unless the switch is a crossbar");
            }
            Some(iterations) if !(1..=MOST_ITERATIONS).contains(&iterations) => {
                return reject("iterations", &iterations, &format!("1 to {MOST_ITERATIONS}"));
            }
            _ => {}
        }
        let (buffer, queue) = if kind == Switch::Crossbar { (None, queue) } else { (queue, None) };
        let switch = SwitchPlan { kind, iterations: self.iterations, buffer, queue, ..SwitchPlan::default() };
        self.check_cell_times()?;
        let switch_delay = self.switch_delay.map_or(Span::ZERO, |delay| delay.0);
        let (nodes, lines) = (self.nodes.clone().unwrap_or_default(), self.lines.clone().unwrap_or_default());
        Ok(ByCells { switch, switch_delay, credits, mtu, nodes, lines })
    }

    /// No line is so slow that a cell takes a second, and none so long that very many cells are on it.
    fn check_cell_times(&self) -> Result<(), PlanError> {
        let lines = self.lines.iter().flatten();
        let rates = [("rate", self.rate), ("trunk_rate", self.trunk_rate)];
        let both = lines.clone().flat_map(|line| [line.rate, line.back_rate]);
        let rates = rates.into_iter().chain(both.map(|rate| ("lines", rate)));
        let mut shortest = SLOWEST;
        for (key, rate) in rates.filter_map(|(key, rate)| Some((key, rate?))) {
            match rate.0.time_for(Cells::new(1).bits()).filter(|time| *time <= SLOWEST) {
                Some(time) => shortest = shortest.min(time),
                None => {
                    let allowed = format!("with fidelity cell, a cell of 53 B in {SLOWEST} or faster");
                    return Err(PlanError::new(key, rate, allowed));
                }
            }
        }
        let most = (shortest * MOST_CELLS).min(SLOWEST);
        let nodes = self.nodes.iter().flatten().map(|node| ("nodes", node.delay));
        let delays =
            [("delay", self.delay), ("trunk_delay", self.trunk_delay), ("switch_delay", self.switch_delay)];
        for (key, delay) in delays.into_iter().chain(lines.map(|line| ("lines", line.delay))).chain(nodes) {
            if let Some(delay) = delay.filter(|delay| delay.0 > most) {
                let allowed =
                    format!("with fidelity cell, {most} at most: {MOST_CELLS} cells of the fastest line");
                return Err(PlanError::new(key, delay, allowed));
            }
        }
        Ok(())
    }

    /// Rejects the keys that are those of cells alone.
    pub(crate) fn check_no_cells(&self) -> Result<(), PlanError> {
        let given = [
            ("switch", self.switch.and_then(|switch| serde_json::to_string(&switch).ok())),
            ("iterations", self.iterations.map(|rounds| rounds.to_string())),
            ("credits", self.credits.and_then(|credits| serde_json::to_string(&credits).ok())),
        ];
        let reject =
            |key: &str, value: &str| Err(PlanError::new(key, value, "nothing, except with fidelity cell"));
        if let Some((key, value)) = given.into_iter().find_map(|(key, value)| Some((key, value?))) {
            return reject(key, &value);
        }
        for (number, node) in self.nodes.iter().flatten().enumerate() {
            if node.switch.is_some() || node.delay.is_some() {
                return reject(&format!("nodes[{number}]"), "what a node of cells is");
            }
        }
        for (number, line) in self.lines.iter().flatten().enumerate() {
            if line.credits.is_some() || line.cells_lost.is_some() || line.credits_lost.is_some() {
                return reject(&format!("lines[{number}]"), "what a line of cells is");
            }
        }
        Ok(())
    }

    /// Rejects nodes with more lines than a node of a network of cells has.
    pub(crate) fn check_ports(&self, graph: &Graph) -> Result<(), PlanError> {
        if self.fidelity != Some(Fidelity::Cell) {
            return Ok(());
        }
        for (node, lines) in graph.nodes().iter().zip(graph.leaving_all()) {
            let (most, what) = match node.kind {
                NodeKind::Host => (1, "one line for each host"),
                NodeKind::Switch | NodeKind::Cable => (MOST_PORTS, "64 lines at most for each switch"),
            };
            if lines.len() > most {
                let key = if self.hosts.is_some() { "hosts" } else { "lines" };
                let found = match (self.hosts, lines.len()) {
                    (Some(hosts), lines) => format!("{hosts}, for which {} has {lines} lines", node.name),
                    (None, lines) => format!("{lines} lines of {}", node.name),
                };
                return Err(PlanError::new(key, found, format!("with fidelity cell, {what}")));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "cells_tests.rs"]
mod tests;
