//! Sans-I/O protocol machines below the message.
//!
//! A machine is driven the same way in every world. The driver makes one call (`handle_*` for what
//! arrives, a command for what its user wants), then takes [`Output`]s from `poll_output` until one
//! is [`Output::Timeout`]: that ends the round and says when to call `handle_timeout`, if nothing
//! else happens first. Time arrives as an argument. Payload is a [`Payload`], a handle: a machine
//! never sees an octet of it, and only `emit` functions, given the octets, make bytes.
#![no_std]

extern crate alloc;

pub mod aal34;
pub mod aal5;
pub mod abr;
pub mod direct;
pub mod ip;
mod output;
mod parameter;
mod payload;
pub mod pcaal;
mod ranges;
pub mod sscop;
pub mod tcp;
pub mod udp;

pub use output::{Output, Work, WorkKind};
pub use payload::{MessageId, Payload};
