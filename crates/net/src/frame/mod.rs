//! Ethernet frame by frame: cables, a switch with queues by class, one shared medium by turns or with collisions,
//! faults by rule.
//!
//! [`Wire`] joins any number of ports. It is a sans-I/O machine: [`Wire::handle_frame`] takes what a
//! port's host sends, [`Wire::poll_output`] says what each port receives and when, and every instant
//! is exact to the picosecond whenever it is asked. The simulator drives it by virtual time, `emu` by
//! the clock on the wall.
//!
//! Source: IEEE 802.3 for what a frame costs on the line ([`Frame::line_bits`]), 802.1D for a bridge
//! that learns. Left out: pause frames, VLANs, spanning trees, autonegotiation.

mod counters;
mod queues;
mod read;
mod switch;
#[cfg(test)]
mod tests;
mod wire;

use std::fmt;

use wiretwin_units::{Bits, Bytes};

pub use crate::fault::{Action, Filter, Hold, Rule, When};
pub use crate::port::PortId;
pub use counters::{Counters, Totals};
pub use queues::{Background, MOST_QUEUES, QueueCounters, Queues};
pub use read::{KEYS, read_mtu, read_wire};
pub use wire::{Medium, Output, Wire, WireConfig};
pub use wiretwin_engine::Probability;

/// Octets of an Ethernet header: destination, source, type.
pub const HEADER: usize = 14;
/// The shortest frame, its check sequence apart: shorter ones are padded on the line.
pub const SHORTEST: u64 = 60;
/// Preamble and start delimiter, in octets.
const PREAMBLE: u64 = 8;
/// The frame check sequence, in octets.
const CHECK: u64 = 4;
/// The gap between frames, in octets: 96 bit times.
const GAP: u64 = 12;

/// An Ethernet address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// All stations.
    pub const BROADCAST: Self = Self([0xFF; 6]);

    /// Whether it names a group of stations, all of them included.
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 == 1
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// A frame: what the models look at, and a handle to the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame<P> {
    /// Where it goes.
    pub destination: Mac,
    /// Where it is from.
    pub source: Mac,
    /// The type field; a value below 0x0600 is a length.
    pub ethertype: u16,
    /// The protocol field of an IPv4 or IPv6 packet inside.
    pub protocol: Option<u8>,
    /// Its differentiated services codepoint (RFC 2474).
    pub dscp: Option<u8>,
    /// From the destination address to the end of the data: header and data, no check sequence.
    pub length: Bytes,
    /// Bits that have been flipped on the way: bit 0 is the least significant of octet 0.
    pub flipped: Vec<u32>,
    /// The octets, or what stands for them. The models never look.
    pub payload: P,
}

impl<P> Frame<P> {
    /// What `octets` say of themselves, with `payload` to stand for them; `None` if there is not even
    /// an Ethernet header.
    pub fn of(octets: &[u8], payload: P) -> Option<Self> {
        let header = octets.first_chunk::<HEADER>()?;
        let six = |at: usize| Mac(std::array::from_fn(|octet| header[at + octet]));
        let ethertype = u16::from_be_bytes([header[12], header[13]]);
        let protocol = match ethertype {
            // RFC 791: protocol is the tenth octet. RFC 8200: next header is the seventh.
            0x0800 => octets.get(HEADER + 9).copied(),
            0x86DD => octets.get(HEADER + 6).copied(),
            _ => None,
        };
        // The upper six bits of the second octet; of the traffic class, which begins in the first.
        let first = || octets.get(HEADER..HEADER + 2);
        let dscp = match ethertype {
            0x0800 => first().map(|octets| octets[1] >> 2),
            0x86DD => first().map(|octets| (octets[0] & 0x0F) << 2 | octets[1] >> 6),
            _ => None,
        };
        Some(Self {
            destination: six(0),
            source: six(6),
            ethertype,
            protocol,
            dscp,
            length: Bytes::new(octets.len() as u64),
            flipped: Vec::new(),
            payload,
        })
    }

    /// Bits on the line from the first of the preamble to the last of the check sequence: padded to
    /// the least there may be.
    pub fn line_bits(&self) -> Bits {
        Bytes::new(PREAMBLE + self.length.get().max(SHORTEST) + CHECK).bits()
    }

    /// Bits for which the line must be silent after any frame.
    pub const fn gap_bits() -> Bits {
        Bytes::new(GAP).bits()
    }
}
