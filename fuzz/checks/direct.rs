//! Arbitrary octets as a frame of the direct transport.

use wiretwin_wire::direct::round_trip;

/// Panics if a frame that can be read is not written back with the same fields.
pub fn check(octets: &[u8]) {
    round_trip(octets);
}
