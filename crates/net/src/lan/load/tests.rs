//! The share that is asked for, conservation, priority, an end, refusals.

use wiretwin_units::{Bytes, SimTime, Span};

use crate::lan::echo::round_trips_despite_losses;
use crate::lan::tests::{PLAIN, Want, json, lan};
use crate::lan::{Config, Lan, Op};

const SWITCHED: Want = Want { switch: true, ..PLAIN };

const SOCKET: &str = r#""cut_messages": true, "socket": {"tcp": "sunos41", "buffer_bytes": 32768,
    "nodelay": true, "mtu_bytes": 1500, "encapsulation_bytes": 18}"#;

const CABLE: Want = Want {
    stack: "socket/tcp/ethernet",
    hosts: 2,
    adapter: r#"{"kind": "frames"}"#,
    switch: false,
    more: SOCKET,
    background: false,
};

const RING: Want = Want { stack: "socket/tcp/fddi", ..CABLE };

fn loaded(want: &Want, load: &str) -> String {
    let text = json(want);
    let whole = text.trim_end().strip_suffix('}').expect("an object");
    format!("{whole}, \"load\": [{load}]}}")
}

fn built(want: &Want, load: &str) -> Lan {
    let config = Config::from_json(&loaded(want, load)).expect("a network that can be");
    Lan::new(config, 7, false)
}

fn mean(lan: &mut Lan, bytes: u64, rounds: u64) -> f64 {
    let times = round_trips_despite_losses(lan, Bytes::new(bytes), rounds).expect("an echo that ends").times;
    times.iter().map(|time| time.as_ps() as f64).sum::<f64>() / times.len() as f64
}

/// Lets time pass in which hosts do nothing with the network.
fn pass(lan: &mut Lan, span: Span) {
    lan.post(0, Op::Compute(span)).expect("a rank that runs");
    lan.post(0, Op::wait(&[])).expect("a rank that runs");
    while lan.step() && !lan.resumed().contains(&0) {}
    assert!(lan.now() >= SimTime::ZERO + span);
}

fn atm(law: &str, share: f64, reserved: bool, octets: u32) -> String {
    format!(r#"{{"law": {law}, "share": {share}, "octets": {octets}, "to": 1, "reserved": {reserved}}}"#)
}

fn frames(share: f64, counted: &str) -> String {
    format!(r#"{{"law": "poisson", "share": {share}, "octets": 1460{counted}}}"#)
}

const ON_OFF: &str = r#""on-off", "peak": 0.9, "burst": 10"#;

/// The share of the line that the first generator took.
fn share(lan: &Lan, unit: Span) -> f64 {
    lan.generated()[0] as f64 * unit.as_ps() as f64 / lan.now().as_ps() as f64
}

#[test]
fn every_law_takes_the_share_that_is_asked_for() {
    let cell = Span::from_ps(4_320_000);
    for (law, close) in [("\"constant\"", 0.001), ("\"poisson\"", 0.02), (ON_OFF, 0.05)] {
        for octets in [40, 4000] {
            let mut lan = built(&SWITCHED, &atm(law, 0.5, false, octets));
            pass(&mut lan, Span::from_ms(1000));
            let unit = cell * u64::from((octets + 8).div_ceil(48));
            let found = share(&lan, unit);
            // The rarer the units the wider the interval: about 85 times fewer PDUs than single cells.
            let close = if octets > 40 { close * 10.0_f64.sqrt() } else { close };
            assert!((found / 0.5 - 1.0).abs() < close, "{law}, {octets}: {found}");
        }
    }
}

#[test]
fn the_share_of_a_cable_counts_what_it_says() {
    // 1460 octets make a frame of 1506, on the line 1514 with preamble, 1526 with the gap as well.
    for (counted, octets) in [("line", 1526), ("frame", 1506)] {
        let mut lan = built(&CABLE, &frames(0.3, &format!(r#", "counted": "{counted}""#)));
        pass(&mut lan, Span::from_ms(20_000));
        let found = share(&lan, Span::from_ps(octets * 8 * 100_000));
        assert!((found / 0.3 - 1.0).abs() < 0.03, "{counted}: {found}");
    }
}

#[test]
fn a_share_of_nothing_changes_nothing() {
    let idle = mean(&mut lan(&SWITCHED, false), 4096, 5);
    assert_eq!(mean(&mut built(&SWITCHED, &atm("\"poisson\"", 0.0, true, 40)), 4096, 5), idle);
    let idle = mean(&mut lan(&CABLE, false), 4096, 5);
    let none = frames(0.0, r#", "counted": "line""#);
    assert_eq!(mean(&mut built(&CABLE, &none), 4096, 5), idle);
}

#[test]
fn load_delays_and_priority_spares() {
    let asks = |target| {
        let one = |from, to| {
            format!(r#"{{"from": {from}, "to": {to}, "target_bit_s": {target}, "minimum_bit_s": {target}}}"#)
        };
        format!(r#""cut_messages": true, "reservations": [{}, {}]"#, one(0, 1), one(1, 0))
    };
    let more = asks(35_000_000);
    let with = |more, load: &str| {
        let text = loaded(&SWITCHED, load).replace(SWITCHED.more, more);
        let config = Config::from_json(&text.replace(", \"load\": []", "")).expect("a network that can be");
        mean(&mut Lan::new(config, 7, false), 4096, 200)
    };
    let plain = SWITCHED.more;
    let load = |reserved| atm("\"poisson\"", 0.6, reserved, 500);
    let (idle, spaced) = (with(plain, ""), with(&more, ""));
    let (among, behind) = (with(plain, &load(false)), with(plain, &load(true)));
    assert!(idle < among && among < behind, "{idle} {among} {behind}");
    // In front of load without reserved bandwidth a cell waits for the one on the line at most.
    let spared = with(&more, &load(false));
    assert!(spaced < spared && spared - spaced <= 2.0 * 4_320_000.0, "{spaced} {spared}");
    let (cable, ring) = (mean(&mut lan(&CABLE, false), 1000, 50), mean(&mut lan(&RING, false), 1000, 50));
    assert!(mean(&mut built(&CABLE, &frames(0.3, r#", "counted": "line""#)), 1000, 50) > cable);
    assert!(mean(&mut built(&RING, &frames(0.3, "")), 1000, 50) > ring);
}

#[test]
fn nothing_is_lost_uncounted_and_the_same_seed_is_the_same_run() {
    let two = [atm("\"poisson\"", 0.8, true, 4000), atm(ON_OFF, 0.7, false, 500)].join(",");
    let run = |want: &Want, load: &str| {
        let mut lan = built(want, load);
        mean(&mut lan, 4096, 30);
        for (name, passed) in lan.passed() {
            assert_eq!(passed.taken, passed.given + passed.lost + passed.held, "{name}");
        }
        (lan.digest(), lan.losses().in_switches)
    };
    let (digest, lost) =
        run(&Want { more: "\"cut_messages\": true", ..SWITCHED }, &atm("\"poisson\"", 0.5, false, 40));
    assert_eq!(lost, 0);
    assert_eq!(run(&SWITCHED, &atm("\"poisson\"", 0.5, false, 40)).0, digest);
    // Where both shares come to more than the line, the queue of the lower class loses cells.
    let mut lan = built(&SWITCHED, &two.replace("\"to\": 1", "\"to\": 0"));
    lan.post(0, Op::Compute(Span::from_ps(1_000_000_000_000))).expect("a rank that runs");
    lan.post(0, Op::wait(&[])).expect("a rank that runs");
    assert!(lan.step());
    assert!(lan.losses().in_switches > 0 && lan.deepest_queue() == 256);
    let cable = frames(0.3, r#", "counted": "line""#);
    assert_eq!(run(&CABLE, &cable).0, run(&CABLE, &cable).0);
}

#[test]
fn ranks_that_wait_for_ever_are_seen_beside_load_that_never_ends() {
    let line = frames(0.9, r#", "counted": "line""#);
    for (want, load) in [(SWITCHED, atm("\"constant\"", 0.9, false, 40)), (CABLE, line)] {
        let mut lan = built(&want, &load);
        let due = lan.post(0, Op::recv(None, None, Bytes::new(1)));
        let due = due.expect("a receive").expect("a request");
        lan.post(0, Op::wait(&[due])).expect("a rank that runs");
        lan.post(1, Op::Finish).expect("a rank that runs");
        assert!(!lan.step());
        assert_eq!(lan.blocked(), [0]);
    }
}

#[test]
fn what_cannot_be_is_refused_by_key_value_and_what_is_allowed() {
    let good = atm("\"constant\"", 0.5, false, 40);
    let many = vec![good.as_str(); 23].join(",");
    let line = frames(0.3, r#", "counted": "line""#);
    let stations = vec![line.as_str(); 32].join(",");
    for (want, load, says) in [
        (PLAIN, good.clone(), "back to back"),
        (SWITCHED, good.replace("0.5", "1.5"), "0 to 1"),
        (SWITCHED, good.replace("constant", "bursts"), "constant, poisson or on-off"),
        (SWITCHED, good.replace("\"constant\"", "\"on-off\", \"burst\": 4"), "peak"),
        (SWITCHED, atm(r#""on-off", "peak": 0.4, "burst": 4"#, 0.5, false, 40), "0.5 to 1"),
        (SWITCHED, atm(r#""poisson", "burst": 4"#, 0.5, false, 40), "on-off"),
        (SWITCHED, good.replace("\"to\": 1", "\"to\": 2"), "to"),
        (SWITCHED, good.replace("40", "65536"), "65535"),
        (SWITCHED, many, "25 ports"),
        (CABLE, line.replace("1460", "1473"), "1472"),
        (CABLE, line.replace("\"line\"", "\"all\""), "allowed: line, frame"),
        (CABLE, stations, "64 stations"),
    ] {
        let error = Config::from_json(&loaded(&want, &load)).expect_err(says).to_string();
        assert!(error.contains(says), "{error} lacks {says}");
    }
}
