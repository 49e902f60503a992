//! Arbitrary octets as a TCP segment.

use std::net::Ipv4Addr;

use wiretwin_wire::ipv4::{Ends, Protocol};
use wiretwin_wire::tcp::round_trip;

const ENDS: Ends = Ends { source: Ipv4Addr::new(10, 0, 0, 1), destination: Ipv4Addr::new(10, 0, 0, 2) };

/// Panics if a segment that can be read is not written back with the same fields and payload.
pub fn check(octets: &[u8]) {
    let mut scratch = vec![0; octets.len()];
    round_trip(&ENDS, octets, &mut scratch);
    // A random checksum holds once in 65536 times: also with the one that does.
    let mut valid = octets.to_vec();
    if let (20.., Ok(length)) = (valid.len(), u16::try_from(valid.len())) {
        valid[16..18].fill(0);
        let sum = ENDS.pseudo_header(Protocol::TCP, length).octets(&valid);
        valid[16..18].copy_from_slice(&sum.checksum().to_be_bytes());
        round_trip(&ENDS, &valid, &mut scratch);
    }
}
