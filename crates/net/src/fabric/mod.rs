//! Networks of cell switches: any topology, a route for each circuit, lines with light's delay and rates of
//! their own; cells held back by credits, or lost where there are none.
//!
//! | element | what |
//! |---|---|
//! | [`Crossbar`] | queues for each circuit at the inputs, matched anew each slot |
//! | [`SharedBuffer`] | queues for each circuit at the outputs, in one buffer |
//! | [`Station`] | a host's adapter: circuits begin and end there |
//! | [`Line`] | two directions, with [`Credits`] or without |
//! | [`Circuit`] | a way from one station to another |
//!
//! Time is in slots within a clock: all nodes whose fastest line has one rate share its cell times. Between
//! slots nothing is looked at but nodes to which something comes, so that a quiet network costs nothing;
//! between clocks and to the outside there are events. Cells lie in one pool, and a steady network does not
//! allocate.
//!
//! Credits: a sender counts what each circuit has under way on a line, and stops at its window; a receiver
//! tells it, on the cells that go back or on cells without data, of every cell that has left its queue. So
//! no cell is ever lost for want of room, whatever is lost of what is said. Sources: Chen, Brandt and Armstrong
//! (1996) for the switch; H. Kung, T. Blackwell, A. Chapman (1994) for totals; C. Ozveren, R. Simcoe, G. Varghese
//! (1994) for taking the count.
//!
//! A discipline of service or of discarding is a variant of [`Service`] or [`Discard`], a cell's fields are in
//! one place (`state.rs`), and what comes to a queue passes one function (`receive` in `node.rs`): priorities,
//! push-out, marks and explicit rates go there.

mod audit;
mod build;
mod clock;
mod credit;
mod cross;
mod lane;
mod network;
mod node;
mod pdus;
mod plan;
mod report;
mod state;
#[cfg(test)]
mod tests;

pub use network::Fabric;
pub(crate) use pdus::Pdus;
pub use plan::{
    Circuit, CircuitId, Credits, Crossbar, Discard, Faults, Line, LineId, Matching, Node, NodeId, Plan,
    Scheme, Service, SharedBuffer, Station, Window, loop_cells,
};
pub use report::{CircuitReport, Delivery};
pub use state::LineCounters;
