//! Whole virtual machines of PVM: messages, groups, faults, and the packets and errors of the real one.

mod calls;
mod faults;
mod golden;
mod messages;
mod states;
mod testbed;
