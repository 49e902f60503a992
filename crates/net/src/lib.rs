//! Simulated endpoints, cores, links and networks.
//!
//! The program-level world: [`World`] takes the operations of ranks and says when they complete.

pub mod layer;
mod link;
pub mod model;
mod queue;
pub mod world;

pub use model::{Model, ModelError};
pub use world::World;
