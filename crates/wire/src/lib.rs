//! Byte layouts and checksums of cells, PDUs, frames and packets.
//!
//! Each format is a file with the same two halves: a checked *view* of the octets, which knows
//! where each field is, and a plain `Repr`, which is what the fields mean. `Repr::parse` reads a
//! view, `Repr::emit` writes one (or octets, where a view wants lengths that are still to be
//! written), and `parse(emit(x)) == x` for every `x` that can be emitted. Octets that came from a
//! peer never panic: they give a [`DecodeError`] with field and offset.
//!
//! This crate allocates nothing: the caller owns the octets.
#![no_std]

pub mod aal34;
pub mod aal5;
pub mod arp;
pub mod atmarp;
pub mod cell;
pub mod checksum;
mod crc10;
pub mod direct;
mod error;
pub mod ethernet;
pub mod fddi;
pub mod icmp;
pub mod ipv4;
pub mod llc;
pub mod mac;
pub mod oam;
mod octets;
pub mod options;
pub mod pause;
pub mod pcaal;
pub mod pvm;
pub mod rm;
pub mod rpc;
pub mod spans;
pub mod sscop;
pub mod tcp;
pub mod udp;
pub mod xdr;

pub use error::{DecodeError, EmitError, Fault, Misfit};
pub use options::Options;

#[cfg(test)]
extern crate alloc;
