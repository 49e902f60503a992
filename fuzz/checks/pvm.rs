//! Arbitrary octets as each header of PVM.

use wiretwin_wire::pvm::round_trip;

/// Panics if a header that can be read is not written back with the same fields.
pub fn check(octets: &[u8]) {
    round_trip(octets);
}
