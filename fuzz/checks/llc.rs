//! Arbitrary octets as an LLC header.

use wiretwin_wire::llc::round_trip;

/// Panics if a header that can be read is not written back octet for octet.
pub fn check(octets: &[u8]) {
    round_trip(octets);
}
