//! The service specific connection oriented protocol: assured data with selective retransmission.
//!
//! Q.2110 (1994), one end of one connection: [`Endpoint`]. Connections are begun, ended, resynchronized
//! and recovered; numbered data are sent again only where they are missing, by STAT on each POLL and by
//! USTAT on each gap that is seen; credit bounds what may be under way. Numbers wrap. Left out: Q.2110's
//! later annexes on use over connectionless networks (Q.2111), and priorities of the layer below.
//!
//! The standard was read through two public implementations, and where these are silent the text says
//! `Choice:`. One departure can be switched on, [`Faults::Ignored`]: on paths that reorder or duplicate
//! PDUs, what the standard answers with a recovery, which loses data, is ignored and counted.

mod config;
mod connection;
mod endpoint;
mod event;
mod pdu;
mod receiver;
#[cfg(test)]
mod sdl;
mod sender;
mod state;
#[cfg(test)]
pub(crate) mod testbed;
mod timers;
mod transfer;

pub use config::{Config, ConfigError, Credit, Faults};
pub use endpoint::Machine;
pub use event::{Counters, Delivered, Event, ManagementError, RequestError, Retrieval, Source};
pub use pdu::Pdu;
pub(crate) use receiver::{Receiver, Sd};
pub(crate) use sender::{Missing, Sender};
pub use state::State;

use crate::Output;

/// The bits of a number of the standard.
pub const NUMBER_BITS: u32 = 24;

/// One end of a connection, with the numbers of the standard.
pub type Endpoint = Machine<NUMBER_BITS>;

/// What an [`Endpoint`] asks of its driver.
pub type SscopOutput<const BITS: u32 = NUMBER_BITS> = Output<Pdu<BITS>, Delivered<BITS>, Event>;
