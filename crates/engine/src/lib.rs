//! Virtual clock, event queue, random streams, probes, virtual-time executor.
#![no_std]

extern crate alloc;

mod event;
mod queue;

pub use event::Event;
pub use queue::EventQueue;
