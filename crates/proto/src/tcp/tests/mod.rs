//! Tests of the whole machine.

mod faults;
mod pair;
mod transfer;
