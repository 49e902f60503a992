//! Tests of the whole machine.

mod anomaly;
mod ecn;
mod faults;
mod pair;
mod rules;
mod states;
mod transfer;
