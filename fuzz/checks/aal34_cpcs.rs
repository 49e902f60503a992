//! Arbitrary octets as an AAL3/4 CPCS-PDU.

use wiretwin_wire::aal34::cpcs::round_trip;

/// Panics if a PDU that can be read is not written back with the same fields and payload.
pub fn check(octets: &[u8]) {
    let mut scratch = vec![0; octets.len()];
    round_trip(octets, &mut scratch);
    // Tags seldom agree, nor are octets a multiple of four: also with those that do.
    let mut valid = octets[..octets.len() & !3].to_vec();
    if let [0, tag, _, _, .., end, closing, _, _] = &mut valid[..] {
        (*end, *closing) = (0, *tag);
        round_trip(&valid, &mut scratch);
    }
}
