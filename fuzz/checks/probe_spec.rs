//! Arbitrary text as the specification of a probe.

use wiretwin_probe::{Layer, Spec, Task};

/// Panics if a specification that is read breaks a bound that the probe relies on, or if a text is
/// refused without a word.
pub fn check(octets: &[u8]) {
    let Ok(text) = str::from_utf8(octets) else { return };
    match Spec::parse(text) {
        Ok(spec) => {
            match (&spec.layer, spec.seat) {
                (_, Some(seat)) => assert!(seat.rank < seat.size, "a rank among those there are"),
                (Layer::Shim(_), None) => {}
                (other, None) => panic!("{} must be told its rank", other.name()),
            }
            assert!(!spec.limit.is_zero(), "a probe has some time to live");
            assert!(!spec.directory.as_os_str().is_empty(), "the ranks meet somewhere");
            let Task::Measure(schedule) = &spec.task else { return };
            assert!(spec.seat.is_none_or(|seat| seat.size == 2), "two ranks measure");
            for step in schedule {
                assert!(step.bytes.get() <= 1 << 30, "a message that fits memory");
                assert!(step.messages >= 1, "an iteration sends something");
                assert!(1 <= step.min_samples && step.min_samples <= step.max_samples, "some samples");
            }
        }
        Err(error) => assert!(!error.to_string().is_empty(), "{text:?} is refused without a word"),
    }
}
