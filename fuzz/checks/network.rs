//! Arbitrary text as a network of hosts, switches and lines.

use wiretwin_plan::{NetworkPlan, Router};

/// The most hosts of a network whose every path is walked.
const WALKED: usize = 24;

/// Panics if a network is rejected without a word of what is allowed, or if one that is accepted lacks a path
/// between two of its hosts, or is another one when it is read from what was written.
pub fn check(octets: &[u8]) {
    let Ok(text) = str::from_utf8(octets) else { return };
    let read = NetworkPlan::table(text).and_then(|table| NetworkPlan::from_value(&table));
    let graph = match read.as_ref().map(NetworkPlan::graph) {
        Ok(Ok(graph)) => graph,
        Ok(Err(error)) => return assert!(!error.allowed.is_empty(), "{text:?}: {error}"),
        Err(error) => return assert!(!error.allowed.is_empty(), "{text:?}: {error}"),
    };
    if let Ok(plan) = read {
        let written = serde_json::to_string(&plan).expect("a plan is written as JSON");
        let again = NetworkPlan::table(&written).and_then(|table| NetworkPlan::from_value(&table));
        assert_eq!(again.as_ref(), Ok(&plan), "{written}");
    }
    if graph.hosts().len() > WALKED {
        return;
    }
    let mut router = Router::new(graph);
    let hosts = router.graph().hosts().to_vec();
    let mut path = Vec::new();
    for from in &hosts {
        for to in hosts.iter().filter(|to| *to != from) {
            path.clear();
            assert!(router.path(*from, *to, &mut path), "{text:?}: no way from {from:?} to {to:?}");
        }
    }
}
