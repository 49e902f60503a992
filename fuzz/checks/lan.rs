//! Arbitrary text as the configuration of a local network, which is then built and echoes once.

use wiretwin_net::lan::config::NetworkConfig;
use wiretwin_net::lan::echo::round_trips;
use wiretwin_net::lan::{Config, Lan};
use wiretwin_units::Bytes;

/// Panics if a network that is read cannot be built and run, or if a text is refused without naming what
/// is allowed.
pub fn check(octets: &[u8]) {
    let Ok(text) = str::from_utf8(octets) else { return };
    match Config::from_json(text) {
        Ok(config) => {
            assert!((2..=64).contains(&config.hosts.len()), "hosts that talk");
            let back_to_back = matches!(config.network, NetworkConfig::BackToBack(_));
            assert!(!back_to_back || config.hosts.len() == 2, "a fibre has two ends");
            let mut lan = Lan::new(config, 1, false);
            // It ends, whatever is lost; and no cell is made or forgotten.
            let _ = round_trips(&mut lan, Bytes::new(100), 1);
            for (name, passed) in lan.passed() {
                assert_eq!(passed.taken, passed.given + passed.lost + passed.held, "{name}");
            }
        }
        Err(error) => assert!(!error.allowed.is_empty(), "{text:?} is refused without a word: {error}"),
    }
}
