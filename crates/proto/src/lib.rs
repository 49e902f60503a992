//! Sans-I/O protocol machines below the message.
#![no_std]

extern crate alloc;
