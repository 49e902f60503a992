//! Time, bytes and rates as types: parsing, printing, exact serialization time.
#![no_std]

extern crate alloc;

mod time;

pub use time::{SimTime, Span};

mod size;

pub use size::Bytes;
