//! Services that share a line: output ports with two priorities, circuits of every service category, and
//! tasks that move between two of them.
//!
//! A [`Plan`] is ports, circuits with sources of their own, and tasks; [`Plan::build`] checks it and admits
//! the circuits, and the [`Network`] runs cell by cell. A port has one buffer for all categories, UBR gives way,
//! and tells ABR its rates by ERICA ([`port`]); what is guaranteed goes first. A task
//! plays the messages of a program through [`pcaal`](wiretwin_proto::pcaal), over an ordinary circuit of UBR,
//! a backup circuit of ABR and a control circuit of VBR ([`task`]).
//!
//! Left out: policing (every source keeps to its contract), switching latency, hosts that cost, and queues in the direction back, where resource management
//! and control cells meet nobody.

mod network;
pub mod port;
mod scenario;
pub mod task;
#[cfg(test)]
mod tests;
mod tournament;

pub use network::{Category, CircuitPlan, CircuitReport, Network, Plan};
pub use port::{PortPlan, Reserve};
pub use scenario::Scenario;
pub use task::{Mechanism, Message, TaskPlan, TaskReport, Trace};
