//! Arbitrary octets as a pcap file.

use wiretwin_record::capture::{open, pcap::round_trip};

/// Panics if a file that can be read is not written back octet for octet.
pub fn check(octets: &[u8]) {
    let whole = round_trip(octets).is_some();
    let Ok(mut capture) = open(octets) else { return };
    loop {
        match capture.next_packet() {
            Ok(Some(packet)) => assert!(packet.octets.len() <= octets.len(), "no octet that was not there"),
            Ok(None) => break,
            Err(error) => {
                assert!(!whole, "{error}, but all of it was read");
                break;
            }
        }
    }
}
