//! Simulated endpoints, cores, links and networks.
//!
//! The program-level world: [`World`] takes the operations of ranks and says when they complete. Below
//! it, [`frame`] joins ports by Ethernet, frame by frame, [`csma_cd`] is the cable on which stations
//! collide, and [`lan`] is a local network made of its parts, cell by cell, with hosts that pay; [`packet`] is a
//! network of queues and rates with the TCP machine at its edges.

mod comm;
pub mod csma_cd;
pub mod frame;
pub mod json;
pub mod lan;
pub mod layer;
mod link;
pub mod model;
pub mod packet;
mod queue;
pub mod run;
pub mod world;

pub use comm::{Fault, SimComm};
pub use json::JsonError;
pub use model::Model;
pub use world::World;
