//! Arbitrary octets as the data of a PAUSE frame.

use wiretwin_wire::pause::round_trip;

/// Panics if a frame that can be read is not written back octet for octet.
pub fn check(octets: &[u8]) {
    round_trip(octets);
}
