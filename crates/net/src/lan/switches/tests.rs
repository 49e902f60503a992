//! Latencies by hand; mapped memory; programs beside each other; what cannot be.

use std::collections::BTreeMap;

use wiretwin_prog::Rank;
use wiretwin_prog::Reference;
use wiretwin_prog::echo::{EchoParams, echo};
use wiretwin_prog::ring::{RingParams, ring};
use wiretwin_units::{Bytes, Span};

use super::super::activity::Activity;
use super::super::echo::round_trips;
use super::super::tests::{PLAIN, Want, json};
use super::super::{Config, Lan, Losses, Op, OpError};
use crate::SimComm;
use crate::local::mixed::{Done, Job, run_together};
use crate::local::run;
use crate::ranks::Ranks;

const FRAMES: &str = r#"{"kind": "frames"}"#;
/// A cell takes 1 us, a line 200 ns, a switch 10 us, an adapter 300 ns.
const STAR: &str = r#""cut_messages": true,
    "socket": {"tcp": "bsd43_reno", "buffer_bytes": 65536, "nodelay": true, "mtu_bytes": 9188, "encapsulation_bytes": 8}"#;

fn star(hosts: usize, line: &str) -> String {
    let nodes: String =
        (0..hosts).map(|at| format!(r#", {{"name": "h{at}", "kind": "host", "delay": "300 ns"}}"#)).collect();
    let lines: Vec<String> =
        (0..hosts).map(|at| format!(r#"{{"from": "h{at}", "to": "s"{line}}}"#)).collect();
    format!(
        r#""switches": {{"topology": "listed", "fidelity": "cell", "rate": "424 Mbit/s", "delay": "200 ns",
        "credits": "none", "nodes": [{{"name": "s", "kind": "switch", "delay": "10 us",
        "switch": {{"kind": "crossbar", "ports": 8, "queue": 256, "circuits": 200}}}}{nodes}],
        "lines": [{}]}}"#,
        lines.join(", ")
    )
}

const CREDITS: &str = r#", "credits": {"cells": "loop"}"#;

fn text(stack: &'static str, hosts: usize, line: &str, more: &str) -> String {
    let all: &'static str = Box::leak(format!("{STAR}, {}{more}", star(hosts, line)).into_boxed_str());
    json(&Want { stack, hosts, adapter: FRAMES, more: all, ..PLAIN })
}

fn lan(stack: &'static str, hosts: usize) -> Lan {
    let config = Config::from_json(&text(stack, hosts, CREDITS, "")).expect("a network that can be");
    Lan::new(config, 7, false)
}

fn refusal(stack: &'static str, line: &str, more: &str) -> String {
    Config::from_json(&text(stack, 2, line, more)).expect_err("a refusal").to_string()
}

const fn price(activity: Activity, bytes: u64) -> u64 {
    (activity as u64 + 1) * (1_000_000 + 1_000 * bytes)
}

#[test]
fn a_message_through_mapped_memory_takes_what_the_sum_of_its_parts_says() {
    use Activity::*;
    // XDR octets: 64 of the program, packed as opaque; heads of PVM: 16 of a fragment, 32 of a message.
    let (bytes, pdu) = (64, 64 + 48);
    let times = round_trips(&mut lan("pvm-mapped/aal5", 2), Bytes::new(bytes), 4).expect("an echo");
    // Packing, PVM's own work, a look, the driver's call, its PDU.
    let send = price(UserCopy, bytes)
        + price(Library, bytes)
        + price(Select, 0)
        + price(Trap, 0)
        + price(PacketOut, pdu);
    // Three cells: each leaves in the slot after the one in which it came.
    let receive = price(Interrupt, 0) + price(PacketIn, pdu) + price(ContextSwitch, 0) + price(Select, 0);
    let read = price(UserCopy, bytes) + price(Library, bytes);
    let hosts = send + receive + read;
    let time = times[2].as_ps() / 2;
    let wire = time.checked_sub(hosts).expect("hosts take no more than all");
    // Cells 3 us, two lines 0.4 us, a switch 10 us, two adapters 0.6 us; slots waited for, one a node and line.
    let straight = 3_000_000 + 400_000 + 10_000_000 + 600_000 + 1_000_000;
    assert!((straight..straight + 4_000_000).contains(&wire), "{wire} ps, at least {straight}");
}

#[test]
fn lists_of_few_buffers_make_writers_wait_and_lose_nothing() {
    let times: Vec<_> = [1, 2, 16]
        .map(|buffers| {
            let more: &'static str = Box::leak(format!(r#", "mapped_buffers": {buffers}"#).into_boxed_str());
            let config = Config::from_json(&text("pvm-mapped/aal5", 3, CREDITS, more)).expect("a network");
            // Each sends what is longer than any of the lists.
            let params = RingParams { elements: 60_000, rounds: 1 };
            let program = async move |comm: &mut SimComm| ring(comm, &params, &Reference::default()).await;
            let net = Lan::new(config, 7, false);
            let (net, outcomes) = run(net, BTreeMap::new(), program).expect("a ring");
            assert!(outcomes.iter().all(|outcome| outcome.verified), "{buffers} buffers");
            assert_eq!(net.losses(), Losses::default(), "{buffers} buffers");
            outcomes[0].elapsed
        })
        .into();
    assert!(times[0] > times[1] && times[1] > times[2], "{times:?}");
}

#[test]
fn what_is_not_read_keeps_its_buffers_and_nobody_elses() {
    use wiretwin_prog::{Comm, Outcome, Source, Tag, TagMatch, Work};
    // Rank 2 computes for a second before it looks; 0 sends to it, then to 1, which answers at once.
    let more = r#", "mapped_buffers": 4"#;
    let config = Config::from_json(&text("pvm-mapped/aal5", 3, CREDITS, more)).expect("a network");
    let net = Lan::new(config, 7, false);
    let program = async |comm: &mut SimComm| {
        let start = comm.now();
        let short = vec![3; 30_000];
        let mut buffer = vec![0; 600_000];
        match comm.rank().0 {
            0 => {
                comm.send(Rank(2), Tag(0), &short).await?;
                comm.send(Rank(1), Tag(0), &short).await?;
                comm.recv(Source::Rank(Rank(1)), TagMatch::Any, &mut buffer).await?;
                assert!(comm.now() - start < Span::from_ms(900), "rank 2 holds back what goes to 1");
                // More than there are buffers for: who sends it waits until it is read.
                comm.send(Rank(2), Tag(0), &vec![4; 600_000]).await?;
                assert!(comm.now() - start > Span::from_s(1), "it went where nobody reads");
            }
            1 => {
                comm.recv(Source::Rank(Rank(0)), TagMatch::Any, &mut buffer).await?;
                comm.send(Rank(0), Tag(0), &[1]).await?;
            }
            _ => {
                comm.compute(Work { kind: "wait", count: 1 }, || ()).await;
                for length in [30_000, 600_000] {
                    let status = comm.recv(Source::Any, TagMatch::Any, &mut buffer).await?;
                    assert_eq!(status.bytes, Bytes::new(length));
                }
            }
        }
        Ok(Outcome::new(Span::ZERO, 0, true))
    };
    let costs = BTreeMap::from([("wait".to_string(), Span::from_s(1).as_ps())]);
    run(net, costs, program).expect("a run that ends");
}

#[test]
fn mapped_memory_is_quicker_than_tcp_at_every_size() {
    for bytes in [4, 1000, 4096, 20_000] {
        let of = |stack| round_trips(&mut lan(stack, 2), Bytes::new(bytes), 4).expect("an echo")[3];
        assert!(of("pvm-mapped/aal5") < of("pvm-advise/tcp/aal5"), "{bytes} octets");
    }
}

#[test]
fn programs_get_the_right_result_over_switches_on_every_stack() {
    for stack in
        ["pvm-mapped/aal5", "pvm-advise/tcp/aal5", "pvm-normal/udp/aal5", "framed/tcp/aal5", "rpc/tcp/aal5"]
    {
        let params = EchoParams { bytes: 20_000, rounds: 2 };
        let program = async move |comm: &mut SimComm| echo(comm, &params).await;
        let (net, outcomes) = run(lan(stack, 2), BTreeMap::new(), program).expect(stack);
        assert!(outcomes.iter().all(|outcome| outcome.verified), "{stack}");
        assert_eq!(net.losses(), Losses::default(), "{stack}");
    }
    let params = RingParams { elements: 40_000, rounds: 1 };
    let program = async move |comm: &mut SimComm| ring(comm, &params, &Reference::default()).await;
    let (net, outcomes) = run(lan("pvm-mapped/aal5", 4), BTreeMap::new(), program).expect("a ring");
    assert!(outcomes.iter().all(|outcome| outcome.verified));
    let passed = net.passed().into_iter().find(|(name, _)| name == "medium").expect("a medium").1;
    assert_eq!((passed.taken, passed.held, passed.lost), (passed.given, 0, 0));
}

#[test]
fn queues_that_lose_are_made_up_for_by_tcp() {
    // Three send to one, through queues of 256 cells.
    let config = Config::from_json(&text("framed/tcp/aal5", 4, "", "")).expect("a network that can be");
    let program = async |comm: &mut SimComm| {
        use wiretwin_prog::{Comm, Outcome, Source, Tag, TagMatch};
        let message = vec![7; 200_000];
        if comm.rank() == Rank(0) {
            let mut buffer = vec![0; message.len()];
            for _ in 0..3 {
                comm.recv(Source::Any, TagMatch::Any, &mut buffer).await?;
                assert_eq!(buffer, message);
            }
        } else {
            comm.send(Rank(0), Tag(0), &message).await?;
        }
        Ok(Outcome::new(Span::ZERO, 0, true))
    };
    let net = Lan::new(config, 7, false);
    let (net, _) = run(net, BTreeMap::new(), program).expect("TCP repeats what is lost");
    let losses = net.losses();
    assert_eq!(losses.in_switches > 0, net.segments().1 > 0, "{losses:?}");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| {
        let config = Config::from_json(&text("pvm-advise/tcp/aal5", 3, CREDITS, "")).expect("a network");
        let params = RingParams { elements: 5000, rounds: 1 };
        let program = async move |comm: &mut SimComm| ring(comm, &params, &Reference::default()).await;
        let net = Lan::new(config, seed, false);
        run(net, BTreeMap::new(), program).expect("a ring").0.digest()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2), "timers lie elsewhere");
}

const CALLS: &str = r#"{"name": "calls", "stack": "rpc/tcp/aal5", "places": [0, 1],
    "parameters": {"bytes": 100, "reply": 1000, "pause_ps": 1000000000}}"#;

/// A ring on all hosts, which have memory of the adapter mapped, with others beside it.
fn beside(elements: u64, rounds: u64, add: u64, others: &str) -> (Lan, Vec<Done>) {
    let model = format!(r#"{{"local": {}}}"#, text("pvm-mapped/aal5", 4, CREDITS, ""));
    let programs = format!(
        r#"[{{"name": "ring", "places": [0, 1, 2, 3], "parameters":
        {{"elements": {elements}, "rounds": {rounds}, "costs_ps": {{"add": {add}}}}}}}{others}]"#
    );
    let (ranks, done) = run_together(&model, &Job::list(&programs).expect("programs"), 1).expect("a run");
    let Ranks::Local(local) = ranks else { panic!("it is a local network") };
    (local.into_lan(), done)
}

fn slowest(done: &[Done]) -> Span {
    done[0].outcomes.iter().map(|outcome| outcome.elapsed).max().expect("four ranks")
}

#[test]
fn programs_of_other_stacks_run_beside_one() {
    let stream =
        r#"{"name": "ttcp", "stack": "framed/tcp/aal5", "places": [3, 2], "parameters": {"bytes": 20000}}"#;
    let (_, alone) = beside(20_000, 4, 1_000_000, "");
    let (net, done) = beside(20_000, 4, 1_000_000, &format!(", {CALLS}, {stream}"));
    assert!(done[0].outcomes.iter().all(|outcome| outcome.verified));
    assert!(slowest(&done) > slowest(&alone), "the others take of the hosts and lines");
    let calls = &done[1].seen[0].responses;
    assert!(calls.len() > 2, "calls go on while the program computes");
    // A call alone takes no longer than what one packet each way costs, and a turn of another process.
    assert!(calls.iter().all(|time| *time < Span::from_ms(20)), "{calls:?}");
    assert!(done[2].seen[0].received > 0 && done[2].seen[0].responses.is_empty());
    assert_eq!(net.losses(), Losses::default());
}

#[test]
fn a_library_beside_another_has_prices_of_its_own() {
    let mut net: serde_json::Value =
        serde_json::from_str(&text("pvm-mapped/aal5", 4, CREDITS, "")).expect("a network");
    let mut response = |head_ps: u64| {
        for host in net["hosts"].as_array_mut().expect("hosts") {
            host["prices"]["rpc_head"]["call_ps"] = head_ps.into();
        }
        let calls = CALLS.replacen('{', &format!(r#"{{"hosts": {}, "#, net["hosts"]), 1);
        let (_, done) = beside(20_000, 4, 1_000_000, &format!(", {calls}"));
        done[1].seen[0].responses[0]
    };
    let (cheap, dear) = (response(0), response(1_000_000_000));
    // A head is made and read for a request, and for its reply.
    assert!(dear >= cheap + Span::from_ms(4), "{dear}, {cheap} where heads are free");
}

#[test]
fn calls_are_answered_and_streams_go_on_beside_a_program_that_computes() {
    // Each rank computes 300 ms at a time; prices of the host leave a stream less than all of it.
    let stream =
        r#"{"name": "ttcp", "stack": "framed/tcp/aal5", "places": [0, 2], "parameters": {"bytes": 65536}}"#;
    let (_, alone) = beside(3_000, 1, 400_000_000, "");
    let (net, done) = beside(3_000, 1, 400_000_000, &format!(", {CALLS}, {stream}"));
    let (alone, beside) = (slowest(&alone), slowest(&done));
    assert!(alone > Span::from_ms(800), "{alone}");
    // A call waits for no more than the steps of other processes, not until somebody has computed.
    let calls = &done[1].seen[0].responses;
    assert!(calls.len() > 20 && calls.iter().all(|time| *time < Span::from_ms(150)), "{calls:?}");
    let rate = done[2].seen[0].received as f64 * 8.0 / net.now().since_start().as_ps() as f64 * 1e6;
    assert!(rate > 2.0, "{rate} Mbit/s");
    assert!(beside > alone && beside < alone * 6, "{beside} of {alone} alone");
}

#[test]
fn programs_that_end_have_ranks_and_stacks_of_their_own() {
    let ring = r#"{"name": "ring", "stack": "STACK", "places": [2, 0],
        "parameters": {"elements": 500, "rounds": 2, "costs_ps": {"add": 1000}}}"#;
    for stack in ["mpi-mpich/tcp/aal5", "pvm-advise/tcp/aal5", "framed/tcp/aal5"] {
        let one = ring.replace("STACK", stack);
        // Two of one stack on the same hosts are processes apart.
        let (_, done) = beside(300, 1, 1000, &format!(", {one}, {one}"));
        let digests = |at: usize| done[at].outcomes.iter().map(|one| one.digest).collect::<Vec<_>>();
        assert_eq!((digests(1).len(), digests(1)), (2, digests(2)), "{stack}");
        assert_ne!(done[1].processes, done[2].processes);
        assert!(done.iter().flat_map(|one| &one.outcomes).all(|outcome| outcome.verified));
    }
}

#[test]
fn programs_share_hosts_as_a_twin_has_them() {
    let line = r#"[{"from_bytes": 0, "base_ps": 1000000, "per_byte_fs": 0}]"#;
    let layer = format!(
        r#"{{"call_ps": 0, "overhead_send": {line}, "overhead_recv": {line}, "latency": {line}, "gap": {line},
        "rendezvous_from_bytes": null}}"#
    );
    let model = |placement: &str| {
        format!(
            r#"{{"nodes": [{{"cores": 2, "idle": "spin", "quantum_ps": 1000000}}], "placement": {placement},
            "intra": {layer}, "inter": null, "link": null}}"#
        )
    };
    let ring = |places: &str| {
        format!(
            r#"{{"name": "ring", "places": {places}, "parameters": {{"elements": 50, "rounds": 9, "costs_ps": {{"add": 100000}}}}}}"#
        )
    };
    let calls =
        r#"{"name": "calls", "places": [4, 1], "parameters": {"bytes": 8, "reply": 8, "pause_ps": 5000}}"#;
    let run = |placement, programs: String| {
        run_together(&model(placement), &Job::list(&programs).expect("programs"), 1)
    };
    let (_, alone) = run("[0, 0, 0]", format!("[{}]", ring("[0, 2, 1]"))).expect("a run");
    let five = "[0, 0, 0, 0, 0]";
    let (ranks, done) = run(five, format!("[{}, {calls}]", ring("[3, 0, 2]"))).expect("a run");
    assert!(done[0].outcomes.iter().all(|outcome| outcome.verified) && done[1].seen[0].responses.len() > 5);
    assert!(slowest(&done) > slowest(&alone), "five ranks share two cores");
    assert_eq!(ranks.size(), 5);
    let clash = run("[0, 0, 0]", format!("[{}, {}]", ring("[0, 1]"), ring("[1, 2]"))).err().expect("a clash");
    assert_eq!(clash.to_string(), "programs.places is 1; allowed: a rank of the model to one program alone");
}

#[test]
fn programs_that_cannot_be_together_are_refused() {
    let model = format!(r#"{{"local": {}}}"#, text("pvm-mapped/aal5", 4, CREDITS, ""));
    let ring = r#"{"name": "ring", "places": [0, 1], "parameters": {"elements": 9, "rounds": 1, "costs_ps": {"add": 1}}}"#;
    for (others, part) in [
        (CALLS.to_string(), "programs is calls and ttcp alone"),
        (format!("{ring}, {CALLS}, {CALLS}"), "its ports are fixed"),
        (
            format!("{ring}, {}", CALLS.replace("[0, 1]", "[0, 9]")),
            "programs[1].places is 9; allowed: hosts 0 to 3",
        ),
        (format!("{ring}, {}", CALLS.replace("[0, 1]", "[0]")), "two or more of calls and ttcp"),
        (format!("{ring}, {}", CALLS.replace("[0, 1]", "[0, 0]")), "each once"),
        (
            format!("{ring}, {}", CALLS.replace("rpc/tcp/aal5", "pvm-fore/aal5")),
            "stack is pvm-fore/aal5; allowed: stacks over IP where there are several: a circuit between two hosts",
        ),
        (
            format!("{ring}, {}", CALLS.replace("rpc/tcp/aal5", "via/gige")),
            "over sockets of the same network",
        ),
        (
            format!("{ring}, {}", CALLS.replace("rpc/tcp", "pigeon")),
            "[1].stack is pigeon/aal5; allowed: fore/aal5",
        ),
        (format!("{ring}, {}", ring.replace("ring", "sort")), "program is sort; allowed: "),
    ] {
        let jobs = Job::list(&format!("[{others}]"));
        let error = jobs
            .map_err(Into::into)
            .and_then(|jobs| run_together(&model, &jobs, 1))
            .err()
            .expect("a refusal");
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn a_pause_is_for_ranks_with_a_message_layer() {
    let mut net = lan("framed/tcp/aal5", 2);
    net.post(0, Op::Pause(Span::from_us(5))).expect("it may sleep");
    assert!(net.step());
    assert_eq!((net.resumed(), net.now().since_start()), (&[0][..], Span::from_us(5)));
    let fore = Want { stack: "fore/aal5", ..PLAIN };
    let mut net = super::super::tests::lan(&fore, false);
    assert!(matches!(net.post(0, Op::Pause(Span::from_us(5))), Err(OpError::Unsupported(_))));
}

#[test]
fn what_cannot_be_is_refused_with_the_reason() {
    for (stack, line, more, part) in [
        ("pvm-mapped/aal5", "", "", "repeats nothing that is lost"),
        (
            "pvm-mapped/aal5",
            r#", "credits": {"cells": "loop"}, "cells_lost": 0.1"#,
            "",
            "repeats nothing that is lost",
        ),
        ("pvm-mapped/aal5", CREDITS, r#", "mapped_buffers": 0"#, "1 to 65536"),
        ("framed/tcp/aal5", CREDITS, r#", "mapped_buffers": 4"#, "nothing but of pvm-mapped"),
        ("framed/tcp/aal5", r#", "credits": {"cells": 0}"#, "", "credits"),
        ("framed/tcp/aal5", r#", "credits": {"cells": 5, "resync": "1 us"}"#, "", "resync"),
        ("framed/tcp/aal5", CREDITS, r#", "cell_loss": 0.1"#, "cells_lost"),
        ("framed/tcp/aal5", CREDITS, r#", "reassembly_timer_ps": 1000000000"#, "no cells"),
        ("framed/tcp/aal5", CREDITS, r#", "load": []"#, "not modelled there"),
        ("framed/tcp/aal5", CREDITS, r#", "reservations": []"#, "adapters with cells"),
        ("framed/tcp/aal5", CREDITS, r#", "link": {}"#, "nothing beside switches"),
    ] {
        let refusal = refusal(stack, line, more);
        assert!(refusal.contains(part), "{stack}{line}{more}: {refusal}");
    }
    let three = text("framed/tcp/aal5", 3, CREDITS, "")
        .replace(r#", {"name": "h2", "kind": "host", "delay": "300 ns"}"#, "");
    let error = Config::from_json(&three).expect_err("a refusal").to_string();
    assert!(error.contains("h2"), "{error}");
    let apart = text("framed/tcp/aal5", 2, CREDITS, "")
        .replace(r#""from": "h1", "to": "s""#, r#""from": "h1", "to": "t""#)
        .replace(r#"{"name": "s", "#, r#"{"name": "t", "kind": "switch"}, {"name": "s", "#);
    let error = Config::from_json(&apart).expect_err("a refusal").to_string();
    assert!(error.contains("no way from h0 to h1"), "{error}");
}
