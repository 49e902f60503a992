//! The parallel-computing adaptation layer: SSCOP's selective retransmission, one cell a PDU, whole values
//! in each, and two circuits to choose from.
//!
//! Vila-Sallent and Solé-Pareta (1998). One end of one connection between two tasks: [`Endpoint`]. Data
//! go by the *ordinary* circuit, which is cheap and may be congested, while its latency is low, and by the
//! *backup* circuit, which is protected, while it is high (the *enhanced connection element*, ECE). The
//! receiver watches the ordinary circuit (the *latency monitoring element*, LME: [`Watch`]) and tells with
//! an LSTAT which it is to be. POLLs go with the data; STAT, USTAT and LSTAT by the *control* circuit.
//!
//! Deviation: the two circuits overtake each other, for which Q.2110 was not made. Cells from both are
//! accepted in one window; what would be errors Q, R, S and T is ignored and counted, a cell that came
//! before is dropped, and no variable goes back. Connections are those of the circuits: SSCOP's states but
//! Data Transfer Ready are left out.

mod cell;
mod config;
mod endpoint;
mod monitor;
mod queue;
#[cfg(test)]
mod testbed;
mod train;

pub use cell::{Cell, Circuit, Pdu, Values};
pub use config::{ClockSync, Config, ConfigError, LocalClock, Watch};
pub use endpoint::{Counters, Endpoint, Event, Run, SendError};
pub use train::Train;
pub use wiretwin_wire::pcaal::Kind;

use crate::Output;

/// What an [`Endpoint`] asks of its driver.
pub type PcaalOutput = Output<Cell, Values, Event>;
