//! Sans-I/O message layers: matching, message protocols, collective schedules, remote procedure
//! calls.
#![no_std]

extern crate alloc;

pub mod matching;
pub mod protocol;
pub mod rpc;
pub mod schedule;
pub mod table;
