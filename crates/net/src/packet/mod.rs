//! Networks at the level of packets: links with queues that drop their tail, routers without a cost, and
//! at the edges the real TCP machine.
//!
//! For questions of transport (throughput, fairness, loss, delay) on networks whose links are rates and
//! delays. What happens below the packet (cells, collisions, adapters) belongs to other models; hosts
//! take no time unless [`Costs`] says so.
//!
//! An event is a time, a sequence number and an index: a packet that reaches the end of a link, a timer,
//! or a host's processor that is free for the next packet. Packets lie in an arena; a link keeps those
//! on their way in order, and the first of each alone waits for its time. Of one instant, packets arrive
//! before anything else happens, each kind in the order in which it was scheduled.

mod arena;
mod costs;
mod dumbbell;
mod flow;
mod heads;
mod link;
mod network;
#[cfg(test)]
mod tests;

pub use costs::Costs;
pub(crate) use costs::Processor;
pub use dumbbell::{Dumbbell, DumbbellError, Side};
pub use flow::{Application, FlowId, FlowReport};
pub use link::{LinkCounters, LinkSpec};
pub use network::{LinkId, Network, NodeId};
