//! The direct transport: messages between endpoints, without the kernel's protocols and without loss.
//!
//! [`Machine`] is one end of one pair of endpoints. It cuts messages into numbered frames, sends again only
//! what is missing (POLL, STAT and USTAT in the manner of Q.2110, whose sending and receiving halves it
//! shares), and keeps to two limits: the credit that the receiver grants, which stands for buffers that it
//! has, and a window that falls as the measured delay rises. A message of up to [`Config::eager`] bytes is
//! sent at once. A longer one is offered, and sent when the receiver has asked for it; its frames then say
//! where their bytes belong, so that they need not wait for each other.
//!
//! An endpoint has a random key, which every frame to it carries, and an epoch, which every frame from it
//! carries. An endpoint that comes back with a later epoch is another one: [`Event::Returned`]. Silence is
//! never taken for death: a peer that computes for a minute is asked again and again, ever more seldom, and
//! that it has died is for the driver to know.
//!
//! Left out: authentication. Whoever can read the frames can forge them.

mod config;
mod event;
mod machine;
mod rtt;
mod service;
#[cfg(test)]
mod testbed;
mod transfer;
mod window;

pub use config::{Config, Services, Thresholds};
pub use event::{Counters, Delivered, Event, Frame, Kept, Message, SendError};
pub use machine::{Local, Machine, State};
pub use service::Service;

use crate::Output;

/// What a [`Machine`] asks of its driver.
pub type DirectOutput = Output<Frame, Delivered, Event>;
