//! Arbitrary octets as an ATMARP packet.

use wiretwin_wire::atmarp::round_trip;

/// Panics if a packet that can be read is not written back octet for octet.
pub fn check(octets: &[u8]) {
    round_trip(octets);
}
