//! Scenarios as data: networks, their topologies, routes and checks.
//!
//! A plan says what is to be simulated and is checked as a whole before anything runs. What is wrong with one is
//! a [`PlanError`]: the key, the value found there, and what is allowed, each on its own.
//!
//! | item | what it is |
//! |---|---|
//! | [`NetworkPlan`] | a network as a user writes it: `fat-tree:hosts=64,rate=100Gbit/s`, or a table of a scenario |
//! | [`Graph`] | the nodes and lines that a plan stands for |
//! | [`Router`] | the path that a packet takes through a graph, equal paths shared out by a hash |
//! | [`SessionsPlan`] | streams and echoes over a network, and how long to look at them |
//! | [`read`] | serde values out of JSON whose errors carry the path |

mod cells;
mod error;
mod graph;
mod network;
mod quantity;
pub mod read;
mod route;
mod sessions;
mod text;
mod topology;

pub use cells::{ByCells, CreditPlan, Discard, Matching, Scheme, Service, Share, Switch, SwitchPlan, Window};
pub use error::PlanError;
pub use graph::{Graph, Line, LineId, Medium, MediumId, Node, NodeId, NodeKind};
pub use network::{
    Below, ByPackets, Fidelity, Forwarding, LLC, NetworkPlan, Packets, TRAILER, Topology, Transport, cells_of,
};
pub use quantity::{Duration, Queue, Rate, Size};
pub use route::Router;
pub use sessions::{SessionKind, SessionPlan, SessionsPlan, TcpPlan};
