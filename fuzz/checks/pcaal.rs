//! Arbitrary octets as a cell of the parallel-computing adaptation layer.

use wiretwin_wire::pcaal::round_trip;

/// Panics if a cell that can be read is not written back with the same fields.
pub fn check(octets: &[u8]) {
    round_trip(octets);
}
