//! Arbitrary text as the specification of a wire process.

use wiretwin_emu::WireSpec;
use wiretwin_net::frame::Wire;

/// Panics if a specification that is read makes no wire, or if a text is refused without naming what
/// is allowed.
pub fn check(octets: &[u8]) {
    let Ok(text) = str::from_utf8(octets) else { return };
    match WireSpec::parse(text) {
        Ok(spec) => {
            let count = spec.ports.len();
            assert!(spec.ports.iter().all(|port| !port.tap.is_empty() && !port.name.is_empty()));
            let wire = Wire::<()>::new(spec.wire, count);
            assert!(wire.is_ok_and(|wire| wire.ports() == count), "{text}");
        }
        Err(error) => assert!(!error.allowed.is_empty(), "{text:?} is refused without a word: {error}"),
    }
}
