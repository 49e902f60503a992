//! Runs with trains against runs cell by cell: what ranks see, what came over every link, what was lost, how full
//! queues were, how long processors worked.

use wiretwin_engine::Stream;
use wiretwin_units::{Bytes, SimTime};

use super::super::config::{Config, priced};
use super::super::signalling::Signalled;
use super::super::{Lan, Losses, Op, RequestId};
use super::*;

const STACKS: [&str; 7] = [
    "fore/aal5",
    "fore/aal34",
    "fore+reliable/aal5",
    "socket/tcp/aal5",
    "framed/tcp/aal5",
    "pvm-advise/tcp/aal5",
    "pvm-fore/aal5",
];
/// Those whose circuits may be set up by calls.
const SWITCHED: [&str; 2] = ["fore+reliable/aal5", "pvm-fore/aal5"];
const NETWORKS: u64 = 240;
const LIMIT: SimTime = SimTime::from_ps(4_000_000_000_000);

/// A number between two, both included.
fn between(stream: &mut Stream, first: u64, last: u64) -> u64 {
    stream.within(first..=last)
}

struct Scenario {
    json: String,
    hosts: u32,
    /// By rank, one after the other: how long to compute, whom to send to, how much.
    plans: Vec<Vec<(u64, Vec<u32>, u64)>>,
}

/// Prices to the picosecond, so that nothing coincides but what has to: where a processor takes in a cell as fast as
/// it sends one, a cell comes in the picosecond in which the one before is done with.
fn scenario(seed: u64) -> Scenario {
    let mut stream = Stream::derive(seed, "scenario");
    let stack = STACKS[between(&mut stream, 0, STACKS.len() as u64 - 1) as usize];
    // Of more than two hosts every cell goes by itself.
    let hosts = [2, 2, 2, 2, 2, 2, 3, 4][between(&mut stream, 0, 7) as usize];
    let send = between(&mut stream, 500_000, 9_000_000);
    let receive =
        if between(&mut stream, 0, 1) == 0 { send } else { between(&mut stream, 500_000, 9_000_000) };
    let (send_pdu, receive_pdu) =
        (between(&mut stream, 1_000, 30_000_000), between(&mut stream, 1_000, 30_000_000));
    let prices = format!(
        r#"{{"send_pdu_ps": {send_pdu}, "send_cell_ps": {send}, "receive_cell_ps": {receive}, "receive_pdu_ps": {receive_pdu}}}"#
    );
    let (out, into) = (between(&mut stream, 1, 40), between(&mut stream, 30, 300));
    let adapter = format!(
        r#"{{"kind": "series-200", "send_fifo_cells": {out}, "receive_fifo_cells": {into}, "pace_ps": {}, "aal5": {prices},
            "aal34": {prices}}}"#,
        between(&mut stream, 0, 1) * between(&mut stream, 0, 12_000_000)
    );
    let works = priced()
        .map(|activity| {
            let (call, byte) = (between(&mut stream, 100_000, 20_000_000), between(&mut stream, 100, 20_000));
            format!(r#""{activity}": {{"call_ps": {call}, "byte_ps": {byte}}}"#)
        })
        .collect::<Vec<_>>()
        .join(",");
    let background = if between(&mut stream, 0, 2) == 0 {
        r#", "background": {"tick_ps": 10000000000, "tick_work_ps": 50000017, "wake_ps": 5000000000, "wake_work_ps": 200000033}"#
    } else {
        ""
    };
    let bus = (between(&mut stream, 10_000, 400_000), between(&mut stream, 5_000, 60_000));
    let host = format!(
        r#"{{"name": "h", "cache_bytes": 1000000, "prices": {{{works}}},
            "bus": {{"setup_ps": {}, "byte_ps": {}}}, "adapter": {adapter}{background}}}"#,
        bus.0, bus.1
    );
    let has_switch = hosts > 2 || between(&mut stream, 0, 2) > 0;
    let switch = if has_switch {
        format!(
            r#", "switch": {{"fabric_bit_s": 2400000000, "delay_ps": {}, "queue_cells": {}, "module_bit_s": 622080000,
                "modules": 4}}"#,
            between(&mut stream, 0, 6_000_000),
            between(&mut stream, 2, 300)
        )
    } else {
        String::new()
    };
    let is_switched = has_switch && SWITCHED.contains(&stack) && between(&mut stream, 0, 3) > 0;
    let circuits = if is_switched {
        let topology = ["demand", "all", "mesh", "tree"][between(&mut stream, 0, 3) as usize];
        let (processing, peak) = (between(&mut stream, 0, 300_000_000), between(&mut stream, 0, 20_000));
        format!(
            r#", "circuits": {{"topology": "{topology}", "processing_ps": {processing}, "peak_kbit_s": {peak},
                "minimum_kbit_s": 0}}"#
        )
    } else {
        String::new()
    };
    let disturbed = match between(&mut stream, 0, 15) {
        0 => r#", "cell_loss": 0.003"#,
        1 => r#", "bit_error": 0.00001"#,
        2 if has_switch => {
            r#", "load": [{"law": "poisson", "share": 0.2, "octets": 4096, "to": 1, "reserved": false}]"#
        }
        3 | 4 => {
            r#", "reservations": [{"from": 1, "to": 0, "target_bit_s": 9000000, "minimum_bit_s": 1000000}]"#
        }
        _ => "",
    };
    let timer = if between(&mut stream, 0, 2) == 0 { r#", "reassembly_timer_ps": 50000000000"# } else { "" };
    let socket = if stack.starts_with("fore") {
        ""
    } else {
        r#", "socket": {"tcp": "sunos41", "buffer_bytes": 32768, "nodelay": true, "mtu_bytes": 9188, "encapsulation_bytes": 8}"#
    };
    let json = format!(
        r#"{{"stack": "{stack}", "hosts": [{}], "pdu_bytes": 4096, "stream_bytes": 10000000, "cut_messages": {},
            "link": {{"rate_bit_s": {}, "cell_bits": 432, "propagation_ps": {}}}{switch}{timer}{socket}{circuits}{disturbed}}}"#,
        vec![host; hosts as usize].join(","),
        !SWITCHED.contains(&stack),
        [100_000_000, 140_000_000, 155_520_000][between(&mut stream, 0, 2) as usize],
        between(&mut stream, 0, 3_000_000),
    );
    let plans = (0..hosts)
        .map(|rank| {
            (0..between(&mut stream, 0, 12))
                .map(|_| {
                    let to = (rank + 1 + between(&mut stream, 0, u64::from(hosts) - 2) as u32) % hosts;
                    let to_all = is_switched && hosts > 2 && between(&mut stream, 0, 3) == 0;
                    let to = if to_all { (0..hosts).filter(|one| *one != rank).collect() } else { vec![to] };
                    let bytes = match between(&mut stream, 0, 2) {
                        0 => between(&mut stream, 1, 100),
                        1 => between(&mut stream, 1, 5_000),
                        _ => between(&mut stream, 1, 30_000),
                    };
                    (between(&mut stream, 0, 1_000_000_000), to, bytes)
                })
                .collect()
        })
        .collect();
    Scenario { json, hosts, plans }
}

/// When which rank went on, and what had come: from whom, how much, whether it failed.
type Resumed = (u64, u32, Vec<(u32, u64, bool)>);

/// What a run can tell of itself.
#[derive(Debug, PartialEq)]
struct Told {
    resumed: Vec<Resumed>,
    blocked: Vec<u32>,
    /// Of a run that came to its end.
    whole: Option<Whole>,
}

#[derive(Debug, PartialEq)]
struct Whole {
    ended: SimTime,
    digest: String,
    signalled: Option<Signalled>,
    losses: Losses,
    rest: String,
}

/// What a run of the network does in a step, up to a limit: what is lost each time is sent for ever.
fn step(lan: &mut Lan) -> bool {
    lan.resumed.clear();
    while lan.now() < LIMIT {
        while let Some(host) = lan.stirred.pop() {
            lan.run_cpu(host);
        }
        if !lan.resumed.is_empty() {
            return true;
        }
        if !lan.has_work() && !lan.await_quiet() {
            return false;
        }
        let Some(index) = lan.core.next() else { return false };
        lan.dispatch(index);
    }
    false
}

/// Everyone sends what it has to, one after the other, and waits for as many messages as are sent to it.
fn play(scenario: &Scenario, cell_by_cell: bool) -> (Told, u64) {
    let config =
        Config::from_json(&scenario.json).unwrap_or_else(|error| panic!("{error}: {}", scenario.json));
    let mut lan = Lan::new(config, 5, false);
    if cell_by_cell {
        lan.cell_by_cell();
    }
    let due = |rank: u32| scenario.plans.iter().flatten().filter(|plan| plan.1.contains(&rank)).count();
    let mut waits: Vec<Vec<RequestId>> = Vec::new();
    for rank in 0..scenario.hosts {
        let receive = Op::recv(None, None, Bytes::new(30_000));
        let posted = (0..due(rank)).filter_map(|_| lan.post(rank, receive).expect("it runs"));
        waits.push(posted.collect());
    }
    let mut next = vec![0; scenario.hosts as usize];
    let mut goes_on = |lan: &mut Lan, rank: u32| {
        let at = &mut next[rank as usize];
        let plan = scenario.plans[rank as usize].get(*at);
        *at += 1;
        if let Some((compute, to, bytes)) = plan {
            lan.post(rank, Op::Compute(Span::from_ps(*compute))).expect("it runs");
            let bytes = Bytes::new(*bytes);
            let send = match to[..] {
                [to] => Op::send(to, 1, bytes),
                _ => Op::Multicast { to, tag: 1, bytes },
            };
            let request = lan.post(rank, send).expect("it runs").expect("a send has a request");
            lan.post(rank, Op::wait(&[request])).expect("it runs");
        } else if *at == scenario.plans[rank as usize].len() + 1 {
            lan.post(rank, Op::wait(&waits[rank as usize])).expect("it runs");
        } else {
            lan.post(rank, Op::Finish).expect("it runs");
        }
    };
    for rank in 0..scenario.hosts {
        goes_on(&mut lan, rank);
    }
    let mut resumed = Vec::new();
    while step(&mut lan) {
        for rank in lan.resumed().to_vec() {
            let came = lan.completions(rank).iter().map(|one| (one.source, one.bytes.get(), one.failed));
            resumed.push((lan.now().as_ps(), rank, came.collect()));
            goes_on(&mut lan, rank);
        }
    }
    let whole = (lan.now() < LIMIT).then(|| Whole {
        ended: lan.now(),
        digest: lan.digest().to_string(),
        signalled: lan.signalled(),
        losses: lan.losses(),
        rest: format!("{:?} {} {:?} {:?}", lan.passed(), lan.deepest_queue(), lan.busy(), lan.calls()),
    });
    (Told { resumed, blocked: lan.blocked(), whole }, lan.events())
}

#[test]
fn runs_with_trains_are_the_same_as_cell_by_cell() {
    let (mut fewer, mut lossy, mut switched) = (0, 0, 0);
    for seed in 0..NETWORKS {
        let scenario = scenario(seed);
        let ((trains, events), (cells, all)) = (play(&scenario, false), play(&scenario, true));
        assert_eq!(trains, cells, "seed {seed}: {}", scenario.json);
        let Some(whole) = trains.whole else { continue };
        let is_fewer = events * 4 < all * 3;
        fewer += usize::from(is_fewer);
        lossy += usize::from(whole.losses.in_switches + whole.losses.in_adapters > 0);
        switched += usize::from(is_fewer && whole.signalled.is_some_and(|one| one.joined > 0));
    }
    // There were trains, losses, and trains on circuits that calls had set up.
    let found = [fewer, lossy, switched];
    assert!(found.iter().zip([60, 2, 3]).all(|(found, least)| *found > least), "{found:?}");
}
