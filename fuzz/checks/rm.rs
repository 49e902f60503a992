//! Arbitrary octets as the payload of an RM cell.

use wiretwin_wire::aal34::sar::SarPdu;
use wiretwin_wire::rm::round_trip;

/// Panics if what can be read is not written back with the same fields.
pub fn check(octets: &[u8]) {
    round_trip(octets);
    // A random CRC-10 holds once in 1024 times: also with the one that does.
    let mut valid = octets.to_vec();
    if let Ok(pdu) = SarPdu::new_checked(octets) {
        let crc = pdu.computed_crc().to_be_bytes();
        valid[46] = valid[46] & 0xFC | crc[0];
        valid[47] = crc[1];
        round_trip(&valid);
    }
}
