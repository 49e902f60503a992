//! Arbitrary text as a port that service categories share, with tasks.

use wiretwin_net::service::Scenario;

/// Panics if a scenario is refused without naming what is allowed; what is read can be built, as reading
/// builds it.
pub fn check(octets: &[u8]) {
    let Ok(text) = str::from_utf8(octets) else { return };
    if let Err(error) = Scenario::from_json(text) {
        assert!(!error.allowed.is_empty(), "{text:?} is refused without a word: {error}");
    }
}
