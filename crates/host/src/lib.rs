//! Real clocks, sockets, shared memory and pinning.
