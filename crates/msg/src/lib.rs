//! Sans-I/O message layers: matching, message protocols, collective schedules.
#![no_std]

extern crate alloc;

pub mod matching;
pub mod protocol;
pub mod schedule;
pub mod table;
