//! Network models paced by a real clock, and real processes in virtual time; the one crate in which `net` and `host` meet.
//!
//! [`Pacer`] moves real frames between devices as a [`Wire`](wiretwin_net::frame::Wire) of the simulated
//! world says, each at its time. [`wire_main`] is the process that does so between TAP devices. [`Simulator`] lets
//! real processes be the ranks of a simulated world, under an MPI library whose network and time are simulated.

mod capture;
mod device;
mod lateness;
mod output;
mod pacer;
mod process;
mod simulator;
mod spec;

pub use capture::{Capture, CaptureFailure, Direction};
pub use device::Device;
pub use lateness::Lateness;
pub use pacer::{End, Pacer, PacerError, PortCounts};
pub use process::wire_main;
pub use simulator::{Marked, Simulator, SimulatorError, SimulatorOptions};
pub use spec::{PortSpec, WireSpec};
