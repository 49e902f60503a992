//! Byte layouts and checksums of cells, PDUs, frames and packets.
//!
//! Each format is a file with the same two halves: a checked *view* of the octets, which knows
//! where each field is, and a plain `Repr`, which is what the fields mean. `Repr::parse` reads a
//! view, `Repr::emit` writes one, and `parse(emit(x)) == x` for every `x` that can be emitted.
//! Octets that came from a peer never panic: they give a [`DecodeError`] with field and offset.
//!
//! This room allocates nothing: the caller owns the octets.
#![no_std]

pub mod aal5;
pub mod cell;
mod error;

pub use error::{DecodeError, Fault};

#[cfg(test)]
extern crate alloc;
