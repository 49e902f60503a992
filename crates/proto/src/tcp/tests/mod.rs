//! Tests of the whole machine.

mod anomaly;
mod faults;
mod pair;
mod states;
mod transfer;
