//! Arbitrary octets as a SPANS message.

use wiretwin_wire::spans::round_trip;

/// Panics if a message that can be read is not written back with the same fields.
pub fn check(octets: &[u8]) {
    round_trip(octets);
}
