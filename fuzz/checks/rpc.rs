//! Arbitrary octets as an RPC message with the arguments of a port mapper behind its head.

use wiretwin_wire::rpc::round_trip;

/// Panics if a head, a credential or a mapping that can be read is not written back octet for octet.
pub fn check(octets: &[u8]) {
    round_trip(octets);
}
