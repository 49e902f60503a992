use crate::{Below, NetworkPlan};

fn wrong(text: &str) -> (String, String, String) {
    let error = NetworkPlan::from_text(text).and_then(|plan| plan.graph()).unwrap_err();
    (error.key, error.value, error.allowed)
}

const STAR: &str = "star:hosts=3,rate=155Mbit/s,fidelity=cell";

#[test]
fn a_network_of_cells_that_cannot_be_is_rejected_with_key_value_and_what_is_allowed() {
    let cases = [
        ("shared-cable:hosts=3,rate=10Mbit/s,fidelity=cell", "topology", "\"shared-cable\"", "of switches"),
        (",forwarding=cut-through", "forwarding", "\"cut-through\"", "\"store-and-forward\", of each cell"),
        (",framing=38B", "framing", "38 B", "a cell is 53 B"),
        (",headers=52B", "headers", "52 B", "nothing, unless credits are none"),
        (",headers=40B,credits=none", "headers", "40 B", "the 52 B of IP and TCP"),
        (",mtu=65536B", "mtu", "64 KiB", "1 B to 65535 B"),
        (",mtu=65528B,credits=none", "mtu", "65528 B", "104 B to 65527 B"),
        (",queue=100cells", "queue", "100 cells", "nothing, unless credits are none"),
        (",queue=100packets,credits=none", "queue", "100 packets", "\"1000 cells\""),
        (",queue=0cells,credits=none", "queue", "0 cells", "above zero"),
        (",switch=hub", "switch", "\"hub\"", "output-queued, crossbar"),
        (",iterations=2", "iterations", "2", "nothing, unless the switch is a crossbar"),
        (",switch=crossbar,iterations=0", "iterations", "0", "1 to 64"),
        (",credits=0", "credits", "0", "loop, none, or a number"),
        (",credits=some", "credits", "\"some\"", "loop, none, or a number"),
        (",delay=900ms", "delay", "900 ms", "cells of the fastest line"),
        (
            "star:hosts=65,rate=155Mbit/s,fidelity=cell",
            "hosts",
            "65, for which switch has 65 lines",
            "64 lines at most",
        ),
        ("star:hosts=3,rate=100bit/s,fidelity=cell", "rate", "100 bit/s", "a cell of 53 B in 1 s"),
        ("star:hosts=3,rate=1Gbit/s,switch=crossbar", "switch", "\"crossbar\"", "except with fidelity cell"),
        ("star:hosts=3,rate=1Gbit/s,credits=none", "credits", "\"none\"", "except with fidelity cell"),
        ("star:hosts=3,rate=1Gbit/s,fidelity=packet,iterations=4", "iterations", "4", "except with fidelity"),
        ("star:hosts=3,rate=1Gbit/s,fidelity=packet,queue=9cells", "queue", "9 cells", "one packet of"),
    ];
    for (words, key, value, allowed) in cases {
        let text = if words.starts_with(',') { format!("{STAR}{words}") } else { words.into() };
        let found = wrong(&text);
        assert_eq!((found.0.as_str(), found.1.as_str()), (key, value), "{text}: {}", found.2);
        assert!(found.2.contains(allowed), "{text}: {}", found.2);
    }
}

#[test]
fn a_listed_host_has_one_line_and_what_cells_are_is_said_of_cells_alone() {
    let list = |more: &str, credits: &str| {
        format!(
            r#"{{"topology": "listed", "rate": "155 Mbit/s"{more},
            "nodes": [{{"name": "a", "kind": "host"}}, {{"name": "b", "kind": "host"}}],
            "lines": [{{"from": "a", "to": "b"{credits}}}, {{"from": "a", "to": "b"}}]}}"#
        )
    };
    let read = |text: &str| {
        NetworkPlan::table(text)
            .and_then(|table| NetworkPlan::from_value(&table))
            .and_then(|plan| plan.graph())
    };
    let error = read(&list(r#", "fidelity": "cell""#, "")).unwrap_err();
    assert_eq!((error.key.as_str(), error.value.as_str()), ("lines", "2 lines of a"));
    let error = read(&list("", r#", "cells_lost": 0.5"#)).unwrap_err();
    assert_eq!(
        (error.key.as_str(), error.allowed.as_str()),
        ("lines[0]", "nothing, except with fidelity cell")
    );
    let error = read(&list(r#", "fidelity": "cell""#, r#", "cells_lost": 1.5"#)).unwrap_err();
    assert_eq!((error.key.as_str(), error.value.as_str()), ("lines[0].cells_lost", "1.5"));
}

#[test]
fn a_line_that_loses_cells_needs_tcp_whatever_its_credits() {
    let keeps = |line: &str| {
        let text = format!(
            r#"{{"topology": "listed", "fidelity": "cell", "rate": "155 Mbit/s",
            "nodes": [{{"name": "a", "kind": "host"}}, {{"name": "b", "kind": "host"}}],
            "lines": [{{"from": "a", "to": "b"{line}}}]}}"#
        );
        let plan = NetworkPlan::from_value(&NetworkPlan::table(&text).unwrap()).unwrap();
        match plan.below() {
            Ok(Below::Cells(cells)) => cells.keeps_all(),
            other => panic!("{other:?}"),
        }
    };
    assert!(keeps("") && keeps(r#", "credits": {"cells": 5}, "cells_lost": 0"#));
    assert!(!keeps(r#", "credits": {"cells": "none"}"#) && !keeps(r#", "credits_lost": 0.5"#));
}
