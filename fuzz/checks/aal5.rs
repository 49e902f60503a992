//! Arbitrary octets as an AAL5 CPCS-PDU.

use wiretwin_wire::aal5::{CpcsPdu, round_trip};

/// Panics if a PDU that can be read is not written back with the same fields and payload.
pub fn check(octets: &[u8]) {
    let mut scratch = vec![0; octets.len()];
    round_trip(octets, &mut scratch);
    // A random CRC-32 never holds: also with the one that does.
    let mut valid = octets.to_vec();
    if let Ok(pdu) = CpcsPdu::new_checked(octets) {
        let at = valid.len() - 4;
        valid[at..].copy_from_slice(&pdu.computed_crc().to_be_bytes());
        round_trip(&valid, &mut scratch);
    }
}
