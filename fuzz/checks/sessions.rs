//! Arbitrary text as sessions over a network of switches of cells.

use wiretwin_net::packet::Sessions;

/// Panics if sessions are rejected without a word of what is allowed; those that are read can be built, as reading
/// builds them.
pub fn check(octets: &[u8]) {
    let Ok(text) = str::from_utf8(octets) else { return };
    if let Err(error) = Sessions::from_json(text) {
        assert!(!error.allowed.is_empty(), "{text:?} is rejected without a word: {error}");
    }
}
