//! The direct transport in virtual time: the machine of the live world, its frames as long as they are there.
//!
//! An end is driven by whatever has the frames: hosts of a wire with classes and background load ([`Hosts`]), or a
//! [network of packets](crate::packet) between ranks.

mod end;
mod hosts;

pub(crate) use end::{DirectEnd, Step};
pub use hosts::{Came, Echo, Hosts, Incast, PROTECTED_DSCP, live_config};
