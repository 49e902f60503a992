//! Arbitrary octets as an Ethernet frame.

use wiretwin_wire::ethernet::round_trip;

/// Panics if a frame that can be read is not written back octet for octet.
pub fn check(octets: &[u8]) {
    let mut scratch = vec![0; octets.len()];
    round_trip(octets, &mut scratch);
}
