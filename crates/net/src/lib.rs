//! Simulated endpoints, cores, links and networks.
//!
//! | module | what |
//! |---|---|
//! | [`op`] | what ranks ask of the simulated world, and what it answers |
//! | [`ranks`] | ranks, whatever carries their messages |
//! | [`local`] | programs on a local network; several at once on any |
//! | [`World`] | the program-level world: takes the operations of ranks and says when they complete |
//! | [`lan`] | a local network made of its parts, cell by cell, with hosts that pay |
//! | [`packet`] | any network of switches and lines packet by packet, with the TCP machine at its hosts |
//! | [`load`] | sources of background load |
//! | [`fault`] | wrong bits of a line, and rules that drop, corrupt, duplicate and hold back |
//! | [`port`] | what waits for a line, and the transmitter that sends it |
//! | [`frame`] | ports joined by Ethernet, frame by frame |
//! | [`direct`] | the direct transport between hosts of that Ethernet |
//! | [`station`] | what stations of any shared medium have in common |
//! | [`csma_cd`] | the cable on which stations collide |
//! | [`timed_token`] | the ring of FDDI |
//! | [`gige`] | Gigabit Ethernet: adapters, PAUSE, switches |
//! | [`service`] | ports that service categories share, and tasks that move between them |
//! | [`fabric`] | networks of cell switches, with credits or without |
//! | [`cell_switch`] | a switch under synthetic traffic |
//! | [`flow`] | messages as flows that share lines max-min fairly |

pub mod cell_switch;
mod comm;
pub mod csma_cd;
pub mod direct;
pub mod fabric;
pub mod fault;
pub mod flow;
pub mod frame;
mod future_events;
pub mod gige;
pub mod json;
pub mod lan;
pub mod layer;
pub mod load;
pub mod local;
pub mod model;
mod named;
pub mod op;
pub mod packet;
pub mod port;
mod queue;
pub mod ranks;
pub mod run;
pub mod service;
pub mod station;
pub mod timed_token;
pub mod world;

pub use comm::{Fault, SimComm};
pub use model::Model;
pub use world::World;

#[cfg(test)]
#[path = "tests/fairness.rs"]
mod fairness;
