//! Byte layouts and checksums of cells, PDUs, frames and packets.
#![no_std]

extern crate alloc;
