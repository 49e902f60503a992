//! Streams and echoes over a network of switches.

use serde_json::{Value, json};

use super::*;

/// Two AN2 switches; so many streams from one to the other, each with hosts of its own, and an echo.
fn scenario(streams: usize, packet_us: u64, credits: &Value, queue: &Value) -> Value {
    let switch = |name: &str| {
        json!({
            "name": name, "kind": "crossbar", "ports": 16, "matching": "pim", "iterations": 4, "inside": 5,
            "latency_ns": 12_000, "queue_cells": queue, "discard": "tail", "circuits": 4096,
        })
    };
    let mut nodes = vec![switch("s1"), switch("s2")];
    let line = |a: &str, b: &str| json!({"between": [a, b], "bit_s": 150_336_000, "delay_ns": 500, "credits": credits});
    let mut lines = vec![line("s1", "s2")];
    let mut sessions = Vec::new();
    for number in 0..=streams {
        let [from, to] = ["a", "b"].map(|side| format!("{side}{number}"));
        for name in [&from, &to] {
            nodes.push(json!({
                "name": name, "kind": "host", "packet_ns": packet_us * 1000, "sar_ns": 200,
            }));
        }
        lines.push(line(&from, "s1"));
        lines.push(line("s2", &to));
        let path = [&from, "s1", "s2", &to];
        sessions.push(if number == 0 {
            json!({
                "name": "echo", "kind": "echo", "path": path, "start_ns": 0, "bytes": 1024,
                "pause_ns": 2_000_000, "timeout_ns": 2_000_000_000,
            })
        } else {
            json!({"name": from, "kind": "ttcp", "path": path, "start_ns": 1_000_000 * number})
        });
    }
    json!({
        "seed": 1, "warm_up_ns": 500_000_000, "run_ns": 1_000_000_000_u64,
        "nodes": nodes, "lines": lines, "sessions": sessions,
        "tcp": {
            "preset": "bsd43_tahoe", "window_bytes": 65_536, "mss_bytes": 8_192, "mtu_bytes": 9_180,
            "delayed_ack": false,
        },
    })
}

fn run(scenario: &Value) -> Value {
    Scenario::from_json(&scenario.to_string()).unwrap().run()
}

fn number(session: &Value, key: &str) -> f64 {
    session[key].as_f64().unwrap()
}

#[test]
fn one_stream_gets_what_its_processors_allow_and_an_echo_takes_the_sum_of_its_parts() {
    let whole = json!({"cells": "loop"});
    let report = run(&scenario(1, 300, &whole, &Value::Null));
    // 300 us for a segment out and 300 us for its acknowledgment in.
    let mbit_s = number(&report["sessions"][1], "read_bytes") * 8.0 / 1e6;
    assert!((mbit_s - 8_192.0 * 8.0 / 600.0).abs() < 1.0, "{mbit_s}");
    assert_eq!(report["sessions"][1]["segments_again"], 0);
    // Alone: four times 300 us; 23 cells out and 23 back, of which each line adds one and its delay; two switches
    // each way; host memory at both ends.
    let mut alone = scenario(1, 300, &whole, &Value::Null);
    alone["sessions"].as_array_mut().unwrap().truncate(1);
    let report = run(&alone);
    let times: Vec<f64> = report["sessions"][0]["round_trip_ps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|time| time.as_f64().unwrap() / 1e6)
        .collect();
    let cell = 424.0 / 150.336;
    let least = 4.0 * 300.0 + 2.0 * (22.0 * cell + 3.0 * (cell + 0.5) + 2.0 * 12.0 + 2.0 * 0.2);
    assert!(times.len() > 200);
    for time in times {
        // Every arrival waits for a slot.
        assert!((least..least + 8.0 * cell).contains(&time), "{time} for {least}");
    }
}

#[test]
fn credits_lose_nothing_where_queues_do() {
    // From the start: it is slow start that overruns the queues.
    let of = |credits: &Value| {
        let mut six = scenario(6, 300, credits, &json!(256));
        (six["warm_up_ns"], six["run_ns"]) = (json!(0), json!(3_000_000_000_u64));
        run(&six)
    };
    let (lossy, held) = (of(&Value::Null), of(&json!({"cells": 5})));
    let sum = |report: &Value, key: &str| {
        report["sessions"].as_array().unwrap()[1..].iter().map(|one| number(one, key)).sum::<f64>()
    };
    assert!(sum(&lossy, "cells_refused_there") > 100.0 && sum(&lossy, "segments_again") > 3.0);
    assert_eq!(sum(&held, "cells_refused_there") + sum(&held, "cells_refused_back"), 0.0);
    assert_eq!((sum(&held, "segments_again"), sum(&held, "pdus_lost")), (0.0, 0.0));
    // And fill the line: 48 of 53 octets, 8192 of 172 cells.
    let mbit_s = sum(&held, "read_bytes") * 8.0 / 3e6;
    let line = 150.336 * 8_192.0 / (172.0 * 53.0);
    assert!((0.95..1.0).contains(&(mbit_s / line)), "{mbit_s} of {line}");
    assert!(sum(&lossy, "read_bytes") < 0.8 * sum(&held, "read_bytes"));
}

#[test]
fn a_run_says_the_same_every_time() {
    let six = scenario(3, 100, &Value::Null, &json!(256));
    assert_eq!(run(&six), run(&six));
    let mut other = six.clone();
    other["seed"] = json!(2);
    assert_ne!(run(&six), run(&other));
}

#[test]
fn a_scenario_that_cannot_be_is_refused_by_name() {
    let fine = scenario(1, 300, &json!({"cells": 5}), &Value::Null);
    let with = |pointer: &str, value: Value| {
        let mut scenario = fine.clone();
        *scenario.pointer_mut(pointer).unwrap() = value;
        Scenario::from_json(&scenario.to_string()).unwrap_err().to_string()
    };
    for (pointer, value, said) in [
        ("/nodes/0/ports", json!(0), "node 0: ports = 0: a switch has 2 to 64"),
        ("/nodes/0/kind", json!("hub"), "nodes[0].kind is \"hub\"; allowed: crossbar, shared-buffer, host"),
        (
            "/nodes/0/matching",
            json!("luck"),
            "nodes[0].matching is \"luck\"; allowed: pim, islip, by-circuit",
        ),
        ("/nodes/1/name", json!("s1"), "a name of its own; there is another s1"),
        ("/nodes/0/circuits", json!(2), "node 0: 4 circuits: it has room for 2"),
        ("/lines/0/credits/cells", json!(0), "line 0: credits = 0: at least 1"),
        (
            "/lines/0/credits/cells",
            json!("many"),
            "lines[0].credits.cells is \"many\"; allowed: a number of cells, or loop",
        ),
        (
            "/lines/0/between",
            json!(["s1", "s9"]),
            "lines[0].between[1] is \"s9\"; allowed: the name of a node",
        ),
        ("/lines/0/bit_s", json!(0), "lines[0].bit_s is 0; allowed: an integer from 1000 to"),
        ("/sessions/1/path", json!(["a1", "s2", "b1"]), "nodes 4 and 1 have no line between them"),
        ("/sessions/1/path", json!(["a1", "s1", "s2", "s1"]), "from host to host"),
        ("/sessions/1/path", json!(["a1", "s1", "a1"]), "circuit 2: it comes to node 4 again"),
        ("/sessions/1/kind", json!("ftp"), "sessions[1].kind is \"ftp\"; allowed: ttcp, echo"),
        ("/tcp/preset", json!("vegas"), "allowed: bsd43_tahoe"),
        ("/tcp/delayed_ack", json!(3), "tcp.delayed_ack is 3; allowed: true or false"),
        ("/seed", json!(-1), "seed is -1"),
        ("/run_ns", Value::Null, "run_ns is null"),
    ] {
        let error = with(pointer, value);
        assert!(error.contains(said), "{pointer}: {error}");
    }
}

#[test]
fn lines_are_counted_after_the_warm_up_as_sessions_are() {
    let whole = json!({"cells": "loop"});
    let counts = |warm_up_ms: u64, run_ms: u64| {
        let mut asked = scenario(1, 300, &whole, &Value::Null);
        (asked["warm_up_ns"], asked["run_ns"]) = (json!(warm_up_ms * 1_000_000), json!(run_ms * 1_000_000));
        let report = run(&asked);
        let count = |side: &Value, key: &str| side[key].as_u64().unwrap();
        let lines = report["lines"].as_array().unwrap().iter();
        lines
            .flat_map(|line| line["directions"].as_array().unwrap())
            .map(|side| ["cells", "credits"].map(|key| count(side, key)))
            .collect::<Vec<_>>()
    };
    let (first, then, all) = (counts(0, 20), counts(20, 30), counts(0, 50));
    assert!(first.iter().zip(&then).all(|(first, then)| first[0] > 0 && then[0] > 0), "{first:?} {then:?}");
    let sums: Vec<_> = first.iter().zip(&then).map(|(a, b)| [a[0] + b[0], a[1] + b[1]]).collect();
    assert_eq!(sums, all);
}
