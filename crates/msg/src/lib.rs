//! Sans-I/O message layers: matching, message protocols, collective schedules, remote procedure
//! calls, libraries in a process, the Virtual Interface Architecture.
#![no_std]

extern crate alloc;

pub mod fore;
pub mod framed;
pub mod library;
pub mod matching;
pub mod mpi;
pub mod protocol;
pub mod pvm;
pub mod reliable;
pub mod rpc;
pub mod schedule;
pub mod table;
pub mod tagged;
pub mod via;
mod waiting;
