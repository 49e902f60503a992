//! Arbitrary octets as an SSCOP PDU.

use wiretwin_wire::sscop::round_trip;

/// Panics if a PDU that can be read is not written back with the same fields.
pub fn check(octets: &[u8]) {
    let mut scratch = vec![0; octets.len()];
    round_trip(octets, &mut scratch);
    // Also as whole words.
    round_trip(&octets[octets.len() % 4..], &mut scratch);
}
