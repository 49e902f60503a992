//! Networks at the level of packets: any plan's switches and lines, with the real TCP machine at the hosts.
//!
//! A packet waits at the [port](crate::port) of each line on its way, is sent, and is passed on when the line and the
//! switch at its end have taken their time. Where the plan asks for cells, each direction of a connection is a circuit
//! of a [`fabric`](crate::fabric) instead, and a packet a PDU of AAL 5: a piece of a message where credits keep every
//! cell, else an IP packet of TCP. Hosts take no time unless [`Costs`] says so.
//!
//! [`Network`] is sans-I/O: it puts its events on an [`EventSink`](wiretwin_engine::EventSink) and is told when they happen,
//! so that a world of ranks drives it with its own clock. [`Simulation`] is a network with a clock.

mod cells;
mod connection;
mod costs;
mod direct;
mod echo;
mod loss;
mod network;
mod reader;
mod sessions;
mod simulation;
mod slab;
mod tcp;
#[cfg(test)]
mod tests;

pub use connection::{ConnectionId, EndId, StreamReport};
pub use costs::Costs;
pub use echo::{Echo, EchoId};
pub use network::{Event, Kind, LineReport, Network};
pub use sessions::Sessions;
pub use simulation::{Application, Simulation};
