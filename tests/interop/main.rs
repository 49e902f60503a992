//! Formats against programs that we did not write.
//!
//! What we write is dissected by `tshark` with every checksum looked at; what `tcpdump` and the tools
//! of Wireshark write is read by us, and written back octet for octet.

mod build;
mod dissect;
mod kernel;
mod simulated;
mod tools;
mod tshark;
