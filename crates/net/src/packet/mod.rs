//! Networks at the level of packets: any plan's switches and lines, with the real TCP machine at the hosts.
//!
//! A packet waits at the [port](crate::port) of each line on its way, is sent, and is passed on when the line and the
//! switch at its end have taken their time. What happens below the packet (cells, collisions, adapters) belongs to
//! other models; hosts take no time unless [`Costs`] says so.
//!
//! [`Network`] is sans-I/O: it puts its events on an [`Agenda`](wiretwin_engine::Agenda) and is told when they happen,
//! so that a world of ranks drives it with its own clock. [`Simulation`] is a network with a clock.

mod connection;
mod costs;
mod network;
mod simulation;
mod slab;
mod tcp;
#[cfg(test)]
mod tests;

pub use connection::{ConnectionId, EndId, StreamReport};
pub use costs::Costs;
pub(crate) use costs::Processor;
pub use network::{Event, Kind, LineReport, Network};
pub use simulation::{Application, Simulation};
pub(crate) use tcp::{Step, TcpEnd};
