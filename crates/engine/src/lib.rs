//! Virtual clock, event queue, random streams, probes, virtual-time executor.
#![no_std]

extern crate alloc;
