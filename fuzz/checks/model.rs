//! Arbitrary text as the model of a program-level world for two ranks.

use wiretwin_net::Model;

/// Panics if a model that is read breaks a bound that the world relies on, or if a text is refused
/// without naming what is allowed.
pub fn check(octets: &[u8]) {
    let Ok(text) = str::from_utf8(octets) else { return };
    match Model::from_json(text, RANKS) {
        Ok(model) => {
            assert_eq!(model.placement.len(), RANKS as usize, "a node for each rank");
            assert!(
                model.placement.iter().all(|&node| (node as usize) < model.nodes.len()),
                "nodes that exist"
            );
            assert!(model.nodes.iter().all(|node| node.cores > 0), "a core to run on");
            let apart = model.placement.iter().any(|node| *node != model.placement[0]);
            assert!(!apart || model.inter.is_some(), "a way between nodes");
            assert!(model.link.is_none_or(|link| link.rate.get() > 0), "a rate that moves something");
        }
        Err(error) => assert!(!error.allowed.is_empty(), "{text:?} is refused without a word: {error}"),
    }
}

const RANKS: u32 = 2;
