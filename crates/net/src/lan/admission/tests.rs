//! What is granted, what is refused, and that a rate is kept beside whatever others send.

use wiretwin_units::{BitRate, Bytes, SimTime, Span};

use super::*;
use crate::lan::tests::{PLAIN, SERIES_100, SERIES_200, Want, json};
use crate::lan::{Config, Op, RequestId};

const SWITCHED: Want = Want { hosts: 3, switch: true, ..PLAIN };

fn built(want: &Want, more: &str) -> Lan {
    let text = json(want);
    let whole = text.trim_end().strip_suffix('}').expect("an object");
    let config = Config::from_json(&format!("{whole}{more}}}")).expect("a network that can be");
    Lan::new(config, 7, false)
}

const fn kbit(rate: u64) -> BitRate {
    BitRate::kbit_s(rate)
}

fn demand(target: u64, minimum: u64) -> Demand {
    Demand { target: kbit(target), minimum: (minimum > 0).then(|| kbit(minimum)) }
}

/// Cells of TAXI: 100 Mbit/s x 424 / 432.
const CAPACITY: u64 = 98_148_148;

#[test]
fn a_target_is_granted_whole_then_in_part_then_not_at_all() {
    let mut lan = built(&SWITCHED, "");
    assert_eq!(lan.reserved(0, 1), None);
    assert_eq!(lan.reserve(0, 1, demand(60_000, 60_000)), Ok(Some(kbit(60_000))));
    // The same way out, from another host: 38 148 148 bit/s are left, and counted in kbit/s.
    assert_eq!(lan.reserve(2, 1, demand(50_000, 30_000)), Ok(Some(kbit(38_148))));
    let error = lan.reserve(2, 1, demand(50_000, 40_000)).expect_err("too much");
    let reserved = 60_000_000;
    let capacity = BitRate::bit_s(CAPACITY);
    assert_eq!(error, Refusal::NoResources { link: 3, capacity, reserved, asked: kbit(40_000) });
    assert_eq!(
        error.to_string(),
        "no resources: link 3 carries 98.148148 Mbit/s, 60 Mbit/s of it are reserved, and 40 Mbit/s or more \
         are asked for"
    );
    assert_eq!(lan.reserved(2, 1), Some(kbit(38_148)), "it keeps what it had");
    // The other way and other hosts have all of it.
    assert_eq!(lan.reserve(1, 0, demand(98_000, 98_000)), Ok(Some(kbit(98_000))));
    // What is left is nothing: where nothing will do, it is granted.
    assert_eq!(lan.reserve(1, 2, demand(10_000, 0)), Ok(Some(kbit(148))));
    assert_eq!(lan.reserve(1, 2, demand(10_000, 0)), Ok(Some(kbit(148))), "asked again it is the same");
    lan.release(0, 1);
    assert_eq!(lan.reserve(2, 1, demand(50_000, 50_000)), Ok(Some(kbit(50_000))));
    lan.release(0, 1);
    assert_eq!(lan.reserved(0, 1), None);
}

#[test]
fn a_refusal_reserves_nothing_on_any_link() {
    let mut lan = built(&SWITCHED, "");
    assert_eq!(lan.reserve(2, 1, demand(98_000, 98_000)), Ok(Some(kbit(98_000))));
    for _ in 0..3 {
        // Its own link has room, the way out has not.
        assert!(matches!(
            lan.reserve(0, 1, demand(50_000, 50_000)),
            Err(Refusal::NoResources { link: 3, .. })
        ));
    }
    assert_eq!(lan.reserve(0, 2, demand(98_000, 98_000)), Ok(Some(kbit(98_000))));
}

#[test]
fn every_grant_fits_whatever_is_asked_in_whatever_order() {
    use wiretwin_engine::Stream;
    let mut stream = Stream::derive(3, "asks");
    let mut lan = built(&Want { hosts: 4, ..SWITCHED }, "");
    for _ in 0..2000 {
        let (from, to) = (stream.below(4) as u32, stream.below(4) as u32);
        let target = stream.within(1..=60_000);
        if from != to && stream.below(3) == 0 {
            lan.release(from, to);
        } else {
            let minimum = stream.within(0..=target);
            match lan.reserve(from, to, demand(target, minimum)) {
                Ok(granted) => {
                    let granted = granted.map_or(0, BitRate::get);
                    assert!((minimum * 1000..=target * 1000).contains(&granted));
                    assert_eq!(lan.reserved(from, to).map_or(0, BitRate::get), granted);
                }
                Err(Refusal::NoCircuit { .. }) => assert_eq!(from, to),
                Err(error) => assert!(matches!(error, Refusal::NoResources { .. }), "{error}"),
            }
        }
        for link in 0..8 {
            let ledger = lan.ledger_mut();
            let (capacity, reserved) = (ledger.capacity(link), ledger.reserved(link));
            let (host, down) = (link / 2, link % 2 == 1);
            let others = (0..4).filter(|other| *other != host);
            let rate = |other| if down { lan.reserved(other, host) } else { lan.reserved(host, other) };
            let sum: u64 = others.filter_map(rate).map(BitRate::get).sum();
            assert_eq!(sum, reserved, "link {link}");
            assert!(reserved <= capacity);
        }
    }
}

#[test]
fn what_cannot_be_is_refused_with_the_reason() {
    let refused = |want: &Want, from, to, demand| {
        let mut lan = built(want, "");
        let error = lan.reserve(from, to, demand).expect_err("a refusal");
        assert_eq!(lan.reserved(from, to), None);
        error.to_string()
    };
    let some = demand(1000, 0);
    assert_eq!(refused(&SWITCHED, 1, 1, some), "there is no circuit from rank 1 to rank 1");
    assert_eq!(refused(&SWITCHED, 0, 3, some), "there is no circuit from rank 0 to rank 3");
    let upside_down = Demand { target: kbit(1), minimum: Some(kbit(2)) };
    assert_eq!(
        refused(&SWITCHED, 0, 1, upside_down),
        "the minimum, 2 kbit/s, is more than the target, 1 kbit/s"
    );
    let by_host = Want { adapter: SERIES_100, ..SWITCHED };
    assert!(refused(&by_host, 0, 1, some).contains("the adapter of host 0 cannot space cells"));
    let more = r#""cut_messages": true, "socket": {"tcp": "sunos41", "buffer_bytes": 32768,
        "nodelay": true, "mtu_bytes": 1500, "encapsulation_bytes": 18}"#;
    let frames =
        Want { stack: "socket/tcp/ethernet", adapter: r#"{"kind": "frames"}"#, more, switch: false, ..PLAIN };
    assert!(refused(&frames, 0, 1, some).contains("no circuit"));
}

#[test]
fn a_configuration_that_asks_for_too_much_is_refused_by_key() {
    let one = |from, to, target, minimum| {
        format!(r#"{{"from": {from}, "to": {to}, "target_bit_s": {target}, "minimum_bit_s": {minimum}}}"#)
    };
    let load = r#""load": [{"law": "on-off", "peak": 0.7, "burst": 4, "share": 0.2, "octets": 40, "to": 1,
        "reserved": true}]"#;
    let whole = |rest: &str| {
        let text = json(&SWITCHED);
        format!("{}, {rest}}}", text.trim_end().strip_suffix('}').expect("an object"))
    };
    let list = |rows: &[String]| whole(&format!("\"reservations\": [{}]", rows.join(",")));
    for (text, said) in [
        (list(&[one(0, 1, 60_000_000, 60_000_000), one(2, 1, 60_000_000, 60_000_000)]), "reservations[1]"),
        (list(&[one(0, 1, 1000, 2000)]), "reservations[0].minimum_bit_s is 2000"),
        (list(&[one(0, 1, 10, 10)]), "reservations[0].target_bit_s is 10"),
        (list(&[one(0, 3, 1000, 1000)]), "reservations[0].to is 3; allowed: an integer from 0 to 2"),
        (list(&[one(1, 1, 1000, 1000)]), "there is no circuit from rank 1 to rank 1"),
        (list(&[one(0, 1, 1000, 1000), one(0, 1, 1000, 1000)]), "one reservation for each circuit"),
        // A generator counts at its peak: 0.7 of the line, and 40 Mbit/s do not fit besides.
        (
            whole(&format!("{load}, \"reservations\": [{}]", one(0, 1, 40_000_000, 40_000_000))),
            "reservations[0]",
        ),
        (whole(&format!("{load}, \"reservations\": [{}]", one(0, 1, 20_000_000, 20_000_000))), ""),
        (
            whole(&load.replace(
                "[{",
                "[{\"law\": \"constant\", \"share\": 0.5, \"octets\": 40, \"to\": 1, \"reserved\": true}, {",
            )),
            "load[1]",
        ),
    ] {
        match Config::from_json(&text) {
            Ok(config) => {
                assert!(said.is_empty(), "{said}");
                let lan = Lan::new(config, 1, false);
                assert_eq!(lan.reserved(0, 1), Some(kbit(20_000)));
            }
            Err(error) => {
                assert!(!said.is_empty() && error.to_string().contains(said), "{error} lacks {said}")
            }
        }
    }
}

/// Rank 0 sends so many PDUs to rank 1, one message, while rank 2 sends as much as it can; returns when rank 1
/// had the former whole, or `None` where a part of it was lost.
fn sent_beside(lan: &mut Lan, pdus: u64, greedy: bool) -> Option<SimTime> {
    let bytes = Bytes::new(pdus * 4096);
    let post = |lan: &mut Lan, rank, op: Op<'_>| lan.post(rank, op).expect("a rank that runs");
    let wait = |lan: &mut Lan, rank, request: Option<RequestId>| {
        post(lan, rank, Op::wait(&[request.expect("a request")]));
    };
    let due = post(lan, 1, Op::recv(Some(0), None, bytes));
    wait(lan, 1, due);
    let sent = post(lan, 0, Op::send(1, 0, bytes));
    wait(lan, 0, sent);
    if greedy {
        // As long as the other's, and more.
        let sent = post(lan, 2, Op::send(1, 0, Bytes::new(pdus * 3 * 4096)));
        wait(lan, 2, sent);
    }
    while lan.step() {
        if lan.resumed().contains(&1) {
            return Some(lan.now());
        }
    }
    None
}

/// An adapter that takes in cells faster than a line brings them.
const QUICK: Want = Want { adapter: SERIES_200, ..SWITCHED };

#[test]
fn a_reserved_circuit_keeps_its_rate_beside_one_that_takes_all_it_can() {
    let reservation = r#", "reservations": [{"from": 0, "to": 1, "target_bit_s": 30000000,
        "minimum_bit_s": 30000000}]"#;
    let flood = |reserved| {
        format!(
            r#", "load": [{{"law": "constant", "share": 1.0, "octets": 4000, "to": 1, "reserved": {reserved}}}]"#
        )
    };
    let alone = sent_beside(&mut built(&QUICK, reservation), 64, false).expect("nothing is lost");
    // Its own rate: 86 cells a PDU at 30 Mbit/s.
    let rate = 64.0 * 86.0 * 424.0 / (alone.as_ps() as f64 / 1e12);
    assert!((29e6..30e6).contains(&rate), "{rate} bit/s");
    // A station that floods the way out, and a host that does.
    for (more, greedy) in [(format!("{reservation}{}", flood(false)), false), (reservation.to_string(), true)]
    {
        let mut lan = built(&QUICK, &more);
        let beside = sent_beside(&mut lan, 64, greedy).expect("nothing of it is lost");
        let later = beside - alone;
        assert!(later < Span::from_us(400), "{} us later", later.as_ps() as f64 / 1e6);
        assert!(greedy || lan.losses().in_switches > 1000, "the flood loses: {:?}", lan.losses());
    }
    // Without the reservation it shares the queue with the flood, and comes late or not at all.
    let mut lan = built(&QUICK, &flood(false));
    let beside = sent_beside(&mut lan, 64, false);
    assert!(beside.is_none_or(|time| time - alone > Span::from_ms(1)), "{beside:?}");
}

#[test]
fn a_circuit_of_packets_keeps_to_what_it_has() {
    let more = r#""cut_messages": true, "socket": {"tcp": "sunos41", "buffer_bytes": 32768,
        "nodelay": true, "mtu_bytes": 9188, "encapsulation_bytes": 8}"#;
    let want = Want { stack: "socket/tcp/aal5", more, ..QUICK };
    let slow = r#", "reservations": [{"from": 0, "to": 1, "target_bit_s": 1000000, "minimum_bit_s": 0}]"#;
    let time = |more| sent_beside(&mut built(&want, more), 16, false).expect("TCP loses nothing");
    let rate = 16.0 * 4096.0 * 8.0 * 53.0 / 48.0 / (time(slow).as_ps() as f64 / 1e12);
    // TCP's and IP's headers and the rest of the last cell of each packet come besides.
    assert!((0.85e6..1e6).contains(&rate), "{rate} bit/s");
    assert!(time("").as_ps() * 3 < time(slow).as_ps());
}
