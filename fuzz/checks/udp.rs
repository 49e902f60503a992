//! Arbitrary octets as a UDP datagram.

use std::net::Ipv4Addr;

use wiretwin_wire::ipv4::{Ends, Protocol};
use wiretwin_wire::udp::round_trip;

const ENDS: Ends = Ends { source: Ipv4Addr::new(10, 0, 0, 1), destination: Ipv4Addr::new(10, 0, 0, 2) };

/// Panics if a datagram that can be read is not written back with the same fields and payload.
pub fn check(octets: &[u8]) {
    let mut scratch = vec![0; octets.len()];
    round_trip(&ENDS, octets, &mut scratch);
    // A random checksum holds once in 65536 times: also with the one that does.
    let mut valid = octets.to_vec();
    let Some(&[high, low]) = valid.get(4..6) else { return };
    let length = u16::from_be_bytes([high, low]);
    if usize::from(length) >= 8 && usize::from(length) <= valid.len() {
        valid[6..8].fill(0);
        let sum = ENDS.pseudo_header(Protocol::UDP, length).octets(&valid[..usize::from(length)]);
        valid[6..8].copy_from_slice(&sum.checksum().to_be_bytes());
        round_trip(&ENDS, &valid, &mut scratch);
    }
}
