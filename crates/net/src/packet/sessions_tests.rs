//! Streams and echoes over a network of switches of cells.

use serde_json::{Value, json};

use super::*;

/// Two AN2 switches; so many streams from one to the other, each with hosts of its own, and an echo.
fn plan(streams: usize, packet_us: u64, credits: &Value, queue: &Value) -> Value {
    let switch = |name: &str| {
        json!({
            "name": name, "kind": "switch", "delay": "12 us",
            "switch": {"kind": "crossbar", "ports": 16, "inside": 5, "queue": queue, "circuits": 4096},
        })
    };
    let mut nodes = vec![switch("s1"), switch("s2")];
    let line = |a: &str, b: &str| json!({"from": a, "to": b, "credits": {"cells": credits}});
    let mut lines = vec![line("s1", "s2")];
    let mut sessions = Vec::new();
    for number in 0..=streams {
        let [from, to] = ["a", "b"].map(|side| format!("{side}{number}"));
        for name in [&from, &to] {
            nodes.push(json!({"name": name, "kind": "host", "delay": "200 ns"}));
        }
        lines.push(line(&from, "s1"));
        lines.push(line("s2", &to));
        sessions.push(if number == 0 {
            json!({
                "name": "echo", "kind": "echo", "from": from, "to": to, "start": "0 s", "bytes": "1 KiB",
                "pause": "2 ms", "timeout": "2 s",
            })
        } else {
            json!({"name": from, "kind": "ttcp", "from": from, "to": to, "start": format!("{number} ms")})
        });
    }
    json!({
        "seed": 1, "warm_up": "500 ms", "run": "1 s", "per_segment": format!("{packet_us} us"),
        "network": {
            "topology": "listed", "fidelity": "cell", "rate": "150336000 bit/s", "delay": "500 ns",
            "mtu": "9180 B", "nodes": nodes, "lines": lines,
        },
        "sessions": sessions,
        "tcp": {"preset": "bsd43_tahoe", "window": "64 KiB", "mss": "8 KiB", "delayed_ack": false, "tick": null},
    })
}

fn run(plan: &Value) -> Value {
    Sessions::from_json(&plan.to_string()).unwrap().run()
}

fn number(session: &Value, key: &str) -> f64 {
    session[key].as_f64().unwrap()
}

#[test]
fn one_stream_gets_what_its_processors_allow_and_an_echo_takes_the_sum_of_its_parts() {
    let whole = json!("loop");
    let report = run(&plan(1, 300, &whole, &Value::Null));
    // 300 us for a segment out and 300 us for its acknowledgment in.
    let mbit_s = number(&report["sessions"][1], "read_bytes") * 8.0 / 1e6;
    assert!((mbit_s - 8_192.0 * 8.0 / 600.0).abs() < 1.0, "{mbit_s}");
    assert_eq!(report["sessions"][1]["segments_again"], 0);
    // Alone: four times 300 us; 23 cells out and 23 back, of which each line adds one and its delay; two switches
    // each way; host memory at both ends.
    let mut alone = plan(1, 300, &whole, &Value::Null);
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
        let mut six = plan(6, 300, credits, &json!(256));
        (six["warm_up"], six["run"]) = (json!("0 s"), json!("3 s"));
        run(&six)
    };
    let (lossy, held) = (of(&json!("none")), of(&json!(5)));
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
fn a_finer_grain_of_timers_ends_silences_sooner() {
    let read_with = |tick: Value| {
        let mut six = plan(6, 300, &json!("none"), &json!(256));
        (six["warm_up"], six["run"], six["tcp"]["tick"]) = (json!("0 s"), json!("2 s"), tick);
        let report = run(&six);
        report["sessions"].as_array().unwrap()[1..].iter().map(|one| number(one, "timeouts")).sum::<f64>()
    };
    assert_eq!(read_with(Value::Null), read_with(json!("500 ms")), "4.3BSD's own");
    assert!(read_with(json!("10 ms")) > 4.0 * read_with(Value::Null));
    let mut fine = plan(1, 300, &json!(5), &Value::Null);
    (fine["tcp"]["preset"], fine["tcp"]["tick"]) = (json!("linux_modern"), json!("1 ms"));
    let error = Sessions::from_json(&fine.to_string()).unwrap_err().to_string();
    assert!(error.contains("tcp.tick is 1 ms; allowed: nothing"), "{error}");
}

#[test]
fn a_run_says_the_same_every_time() {
    let six = plan(3, 100, &json!("none"), &json!(256));
    assert_eq!(run(&six), run(&six));
    let mut other = six.clone();
    other["seed"] = json!(2);
    assert_ne!(run(&six), run(&other));
}

#[test]
fn sessions_that_cannot_be_are_rejected_by_name() {
    let fine = plan(1, 300, &json!(5), &Value::Null);
    let with = |pointer: &str, value: Value| {
        let mut plan = fine.clone();
        *plan.pointer_mut(pointer).unwrap() = value;
        Sessions::from_json(&plan.to_string()).unwrap_err().to_string()
    };
    for (pointer, value, said) in [
        ("/network/nodes/0/switch/ports", json!(0), "network.nodes[0].switch.ports is 0; allowed: 2 to 64"),
        (
            "/network/nodes/0/switch/kind",
            json!("hub"),
            "network.nodes[0].switch.kind is \"hub\"; allowed: output-queued, crossbar",
        ),
        ("/network/nodes/1/name", json!("s1"), "network.nodes[1].name is s1; allowed: each name once"),
        (
            "/network/nodes/0/switch/circuits",
            json!(2),
            "network.nodes[0].switch.circuits is 2; allowed: the 4 that pass",
        ),
        (
            "/network/lines/0/credits/cells",
            json!(0),
            "network.lines[0].credits.cells is 0; allowed: 1 and above",
        ),
        (
            "/network/lines/0/credits/cells",
            json!("many"),
            "lines[0].credits.cells is \"many\"; allowed: loop",
        ),
        ("/network/lines/0/to", json!("s9"), "network.lines[0].to is s9; allowed: the name of a node"),
        ("/network/rate", json!("0 bit/s"), "network.rate is \"0 bit/s\"; allowed: a rate above zero"),
        (
            "/network/fidelity",
            json!("message"),
            "nodes[0] is what a node of cells is; allowed: nothing, except",
        ),
        ("/sessions/1/to", json!("s2"), "sessions[1].to is s2; allowed: the name of a host"),
        ("/sessions/1/to", json!("a1"), "sessions[1].to is a1; allowed: another host"),
        ("/sessions/1/kind", json!("ftp"), "sessions[1].kind is \"ftp\"; allowed: ttcp, echo"),
        (
            "/sessions/0/timeout",
            Value::Null,
            "sessions[0].timeout is nothing; allowed: a pause, and a time-out",
        ),
        ("/sessions/0/start", json!("2 days"), "sessions[0].start is \"2 days\""),
        ("/tcp/preset", json!("vegas"), "allowed: bsd43_tahoe"),
        ("/tcp/window", json!("1 GiB"), "tcp.window is 1 GiB; allowed: 1 B to 16 MiB"),
        ("/tcp/tick", json!("1 us"), "tcp.tick is 1 us; allowed: 100 us to 1 s"),
        ("/tcp/delayed_ack", json!(3), "tcp.delayed_ack is 3; allowed: a boolean"),
        ("/seed", json!(-1), "seed is -1"),
        ("/run", Value::Null, "run is null"),
    ] {
        let error = with(pointer, value);
        assert!(error.contains(said), "{pointer}: {error}");
    }
}

#[test]
fn lines_are_counted_after_the_warm_up_as_sessions_are() {
    let whole = json!("loop");
    let counts = |warm_up_ms: u64, run_ms: u64| {
        let mut asked = plan(1, 300, &whole, &Value::Null);
        (asked["warm_up"], asked["run"]) = (json!(format!("{warm_up_ms} ms")), json!(format!("{run_ms} ms")));
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
