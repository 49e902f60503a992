//! Arbitrary octets as an ATM cell; the first octet says at which interface.

use wiretwin_wire::cell::{Interface, header_error_control, round_trip};

/// Panics if a cell that can be read is not written back as it was, octet for octet.
pub fn check(octets: &[u8]) {
    let Some((&which, octets)) = octets.split_first() else { return };
    let interface = if which & 1 == 0 { Interface::Uni } else { Interface::Nni };
    round_trip(interface, octets);
    // A random header passes its check once in 256 times: also with the octet that makes it pass.
    let mut valid = octets.to_vec();
    if let [a, b, c, d, hec, ..] = &mut valid[..] {
        *hec = header_error_control([*a, *b, *c, *d]);
        round_trip(interface, &valid);
    }
}
