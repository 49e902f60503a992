use proptest::prelude::*;

use crate::{Graph, NetworkPlan, NodeKind, Router};

fn graph(text: &str) -> Graph {
    NetworkPlan::from_text(text).unwrap().graph().unwrap()
}

fn wrong(text: &str) -> (String, String, String) {
    let error = NetworkPlan::from_text(text).and_then(|plan| plan.graph()).unwrap_err();
    (error.key, error.value, error.allowed)
}

/// Hosts, switches and lines, each way counted.
fn counts(text: &str) -> (usize, usize, usize) {
    let graph = graph(text);
    let switches = graph.nodes().iter().filter(|node| node.kind == NodeKind::Switch).count();
    (graph.hosts().len(), switches, graph.lines().len())
}

#[test]
fn each_topology_has_the_switches_and_lines_of_its_kind() {
    assert_eq!(counts("back-to-back:rate=1Gbit/s"), (2, 0, 2));
    assert_eq!(counts("star:hosts=5,rate=1Gbit/s"), (5, 1, 10));
    assert_eq!(counts("shared-cable:hosts=5,rate=10Mbit/s"), (5, 0, 10));
    assert_eq!(graph("shared-cable:hosts=5,rate=10Mbit/s").media().len(), 1);
    assert_eq!(counts("ring:hosts=5,rate=1Gbit/s"), (5, 5, 20));
    assert_eq!(counts("chain:hosts=6,hosts_per_switch=2,rate=1Gbit/s"), (6, 3, 16));
    assert_eq!(counts("dumbbell:hosts=6,rate=1Gbit/s,trunk_rate=100Mbit/s"), (6, 2, 14));
    assert_eq!(counts("parking-lot:hosts=8,rate=1Gbit/s"), (8, 4, 22));
    // 9 hosts below 3 leaves below 1 root.
    assert_eq!(counts("tree:hosts=9,fanout=3,rate=1Gbit/s"), (9, 4, 24));
    // 8 leaves with 8 hosts each, 8 spines.
    assert_eq!(counts("fat-tree:hosts=64,rate=100Gbit/s"), (64, 16, 2 * (64 + 64)));
    // 4 pods of 2 leaves and 2 spines, 4 cores.
    assert_eq!(counts("fat-tree:hosts=16,levels=3,radix=4,rate=1Gbit/s"), (16, 20, 2 * (16 + 16 + 16)));
    // 4 to 1: 8 leaves with 8 hosts, 2 spines.
    assert_eq!(counts("fat-tree:hosts=64,rate=1Gbit/s,oversubscription=4"), (64, 10, 2 * (64 + 16)));
    assert_eq!(counts("fat-tree:hosts=1024,levels=3,rate=1Gbit/s"), (1024, 320, 2 * 3 * 1024));
}

#[test]
fn a_network_that_cannot_be_is_rejected_with_key_value_and_what_is_allowed() {
    let cases = [
        ("cube:hosts=8", "topology", "\"cube\"", "back-to-back, star"),
        ("star:hosts=8", "rate", "nothing", "a rate above zero"),
        ("star:hosts=8,rate=0Gbit/s", "rate", "\"0Gbit/s\"", "a rate above zero"),
        ("star:hosts=8,rate=10", "rate", "10", "a rate above zero"),
        ("star:rate=1Gbit/s", "hosts", "nothing", "2 to 131072"),
        ("star:hosts=10000000,rate=1Gbit/s", "hosts", "10000000", "2 to 131072"),
        ("star:hosts=3,rate=1Gbit/s,radix=4", "radix", "4", "not with the topology \"star\""),
        ("star:hosts=3,rate=1Gbit/s,colour=4", "colour", "4", "no such key"),
        ("star:hosts=3,hosts=4,rate=1Gbit/s", "hosts", "`4`", "each key once"),
        ("star:hosts", "", "`star:hosts`", "key=value"),
        ("star:hosts=3,rate=1Gbit/s,mtu=52B", "mtu", "52 B", "more than the 52 B of the headers"),
        ("star:hosts=3,rate=1Gbit/s,delay=900000s", "delay", "900000 s", "a day at most"),
        ("dumbbell:hosts=5,rate=1Gbit/s", "hosts", "5", "even numbers"),
        ("ring:hosts=5,hosts_per_switch=0,rate=1Gbit/s", "hosts_per_switch", "0", "1 to the 5 hosts"),
        ("tree:hosts=5,rate=1Gbit/s", "fanout", "nothing", "2 and above"),
        ("fat-tree:hosts=5,levels=4,rate=1Gbit/s", "levels", "4", "2 or 3"),
        ("fat-tree:hosts=5,radix=5,rate=1Gbit/s", "radix", "5", "even numbers"),
        ("fat-tree:hosts=65,levels=2,radix=8,rate=1Gbit/s", "hosts", "65", "32 at most"),
        ("fat-tree:hosts=64,oversubscription=3,rate=1Gbit/s", "oversubscription", "3", "a divisor of 8"),
    ];
    for (text, key, value, allowed) in cases {
        let found = wrong(text);
        assert_eq!((found.0.as_str(), found.1.as_str()), (key, value), "{text}");
        assert!(found.2.contains(allowed), "{text}: {}", found.2);
    }
}

#[test]
fn a_listed_network_is_checked_line_by_line() {
    let read = |text: &str| {
        NetworkPlan::from_value(&serde_json::from_str(text).unwrap()).and_then(|plan| plan.graph())
    };
    let nodes =
        r#"[{"name": "a", "kind": "host"}, {"name": "b", "kind": "host"}, {"name": "s", "kind": "switch"}]"#;
    let plan = |lines: &str| format!(r#"{{"topology": "listed", "nodes": {nodes}, "lines": {lines}}}"#);
    let good =
        r#"[{"from": "a", "to": "s", "rate": "1 Gbit/s"}, {"from": "s", "to": "b", "rate": "10 Mbit/s"}]"#;
    assert_eq!(read(&plan(good)).unwrap().lines().len(), 4);
    for (lines, key, value) in [
        (r#"[{"from": "a", "to": "x", "rate": "1 Gbit/s"}]"#, "lines[0].to", "x"),
        (r#"[{"from": "a", "to": "a", "rate": "1 Gbit/s"}]"#, "lines[0].to", "a"),
        (r#"[{"from": "a", "to": "s"}]"#, "lines[0].rate", "nothing"),
        (r#"[{"from": "a", "to": "s", "rate": "0 bit/s"}]"#, "lines[0].rate", "\"0 bit/s\""),
        (r#"[{"from": "a", "to": "s", "rate": "1 Gbit/s"}]"#, "lines", "no way from a to b"),
    ] {
        let error = read(&plan(lines)).unwrap_err();
        assert_eq!((error.key.as_str(), error.value.as_str()), (key, value), "{lines}");
    }
}

#[test]
fn a_line_may_have_another_rate_back() {
    let text = r#"{"topology": "listed", "rate": "10 Mbit/s",
        "nodes": [{"name": "a", "kind": "host"}, {"name": "b", "kind": "host"}],
        "lines": [{"from": "a", "to": "b", "back_rate": "1 Mbit/s"}]}"#;
    let plan = NetworkPlan::from_value(&serde_json::from_str(text).unwrap()).unwrap();
    let rates: Vec<_> = plan.graph().unwrap().media().iter().map(|medium| medium.rate.get()).collect();
    assert_eq!(rates, [10_000_000, 1_000_000]);
}

#[test]
fn a_host_passes_nothing_on() {
    // Host b is joined to both others, which are not joined to each other.
    let text = r#"{"topology": "listed", "rate": "1 Gbit/s",
        "nodes": [{"name": "b", "kind": "host"}, {"name": "a", "kind": "host"}, {"name": "c", "kind": "host"}],
        "lines": [{"from": "a", "to": "b"}, {"from": "b", "to": "c"}]}"#;
    let plan = NetworkPlan::from_value(&serde_json::from_str(text).unwrap()).unwrap();
    assert_eq!(plan.graph().unwrap_err().value, "no way from a to c");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever the topology, every host reaches every other over switches, and no path visits a node twice.
    #[test]
    fn every_host_reaches_every_other(
        kind in 0_usize..9,
        hosts in 2_u32..40,
        each in 1_u32..5,
    ) {
        let pairs = (hosts / 2).max(2) * 2;
        let text = match kind {
            0 => "back-to-back:rate=1Gbit/s".to_string(),
            1 => format!("star:hosts={hosts},rate=1Gbit/s"),
            2 => format!("shared-cable:hosts={hosts},rate=1Gbit/s"),
            3 => format!("ring:hosts={hosts},hosts_per_switch={},rate=1Gbit/s", each.min(hosts)),
            4 => format!("chain:hosts={hosts},hosts_per_switch={},rate=1Gbit/s", each.min(hosts)),
            5 => format!("dumbbell:hosts={pairs},rate=1Gbit/s"),
            6 => format!("parking-lot:hosts={pairs},rate=1Gbit/s"),
            7 => format!("tree:hosts={hosts},fanout={},rate=1Gbit/s", each + 1),
            _ => format!("fat-tree:hosts={hosts},levels={},rate=1Gbit/s", 2 + each % 2),
        };
        let mut router = Router::new(graph(&text));
        let hosts = router.graph().hosts().to_vec();
        for from in &hosts {
            for to in hosts.iter().filter(|to| *to != from) {
                let mut path = Vec::new();
                prop_assert!(router.path(*from, *to, &mut path), "{text}: {from:?} to {to:?}");
                let graph = router.graph();
                let mut at = *from;
                let mut seen = vec![at];
                for line in path {
                    let line = graph.lines()[line.0 as usize];
                    prop_assert_eq!(line.from, at);
                    at = line.to;
                    prop_assert!(!seen.contains(&at), "{}: twice at {:?}", text, at);
                    seen.push(at);
                }
                prop_assert_eq!(at, *to);
                let between = &seen[1..seen.len() - 1];
                prop_assert!(between.iter().all(|n| graph.nodes()[n.0 as usize].kind != NodeKind::Host));
            }
        }
    }
}
