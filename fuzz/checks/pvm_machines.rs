//! Arbitrary octets as a stream of PVM's fragments, as a datagram, and as a message that is unpacked.

use wiretwin_msg::pvm::fuzz;

/// Panics if fragments depend on how their stream was cut, if what is read is not what is written, or if
/// an empty buffer gives an item.
pub fn check(octets: &[u8]) {
    let step = usize::from(octets.first().copied().unwrap_or(0));
    fuzz::same_however_cut(octets, step);
    fuzz::read_arbitrary(octets);
}
