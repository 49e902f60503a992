//! Arbitrary octets as an IPv4 packet.

use wiretwin_wire::checksum::Sum;
use wiretwin_wire::ipv4::round_trip;

/// Panics if a packet that can be read is not written back with the same fields and payload.
pub fn check(octets: &[u8]) {
    let mut scratch = vec![0; octets.len()];
    round_trip(octets, &mut scratch);
    // A random checksum holds once in 65536 times: also with the one that does.
    let mut valid = octets.to_vec();
    let header = octets.first().map_or(0, |first| usize::from(first & 0xF) * 4);
    if header >= 20 && header <= valid.len() {
        valid[10..12].fill(0);
        let checksum = Sum::ZERO.octets(&valid[..header]).checksum();
        valid[10..12].copy_from_slice(&checksum.to_be_bytes());
        round_trip(&valid, &mut scratch);
    }
}
