//! Available bit rate: the two ends of a connection, and what a switch does to their rates.
//!
//! af-tm-0056.000 (Traffic Management 4.0) §5.10: [`Source`] is §5.10.4, [`Destination`] §5.10.5, with
//! the parameters of §5.10.2 in [`Config`]. [`Erica`] is one output port's explicit rates, after
//! Kalyanaraman, Jain, Fahmy, Goyal and Vandalore (ATM Forum 96-1172, "ERICA switch algorithm: a
//! complete description"), with the queue control of ERICA+. Left out: virtual sources and
//! destinations, segments of a connection, and binary rates inside a switch, which are a threshold
//! on its queue and need no machine.
//!
//! An end sees resource management cells as their [`Repr`](wiretwin_wire::rm::Repr) and data cells as
//! nothing but a chance to send one: which cell that is, the adaptation layer above knows.

mod config;
mod destination;
mod erica;
mod rate;
mod source;
#[cfg(test)]
mod tests;

pub use config::{Config, ConfigError};
pub use destination::{Destination, Notifier, TurnAround};
pub use erica::{ActiveCount, Erica, EricaConfig, EricaError, Interval, Load, QueueControl, VcIndex};
pub use rate::{CellRate, RateError};
pub use source::{Source, SourceCell, SourceEvent, SourceOutput};
