//! Wrong bits and reassembly timers in whole networks.

use wiretwin_units::{Bytes, Span};

use crate::lan::echo::{Tally, round_trips, round_trips_despite_losses};
use crate::lan::tests::{PLAIN, SERIES_100, Want, json};
use crate::lan::{Config, Lan, Losses};

const SOCKET: &str = r#""cut_messages": true, "socket": {"tcp": "sunos41", "buffer_bytes": 32768,
    "nodelay": true, "mtu_bytes": 1500, "encapsulation_bytes": 18}"#;

fn built(want: &Want, more: &str) -> Lan {
    let text = json(want).replacen('{', &format!("{{{more} "), 1);
    Lan::new(Config::from_json(&text).expect("a network that can be"), 7, false)
}

fn tally(lan: &mut Lan, bytes: u64, rounds: u64) -> Tally {
    let found = round_trips_despite_losses(lan, Bytes::new(bytes), rounds).expect("an echo that ends");
    for (name, passed) in lan.passed() {
        assert_eq!(passed.taken, passed.given + passed.lost + passed.held, "{name}");
    }
    assert_eq!(lan.pdus_under_way(), 0);
    found
}

#[test]
fn wrong_bits_lose_the_messages_that_the_arithmetic_says() {
    for stack in ["fore/aal5", "fore/aal34"] {
        for adapter in [PLAIN.adapter, SERIES_100] {
            let want = Want { stack, adapter, switch: true, ..PLAIN };
            let mut lan = built(&want, "\"bit_error\": 0.00002,");
            let found = tally(&mut lan, 1000, 2000);
            assert_eq!(found.times.len() as u64 + found.lost, 2000);
            let errors = lan.line_errors();
            // Cells of a round trip: four links, 21 or 23 cells each, 384 bits of payload in each.
            let cells = if stack == "fore/aal5" { 84.0 } else { 92.0 };
            let expected = 2000.0 * (1.0 - (1.0 - 0.00002_f64).powf(384.0 * cells));
            let close = 4.0 * expected.sqrt() + 40.0;
            assert!((found.lost as f64 - expected).abs() < close, "{} of {expected}", found.lost);
            // Of 40 header bits one is wrong about a tenth as often, and it is put right.
            let ratio = errors.corrected as f64 / errors.payloads as f64;
            assert!((0.07..0.14).contains(&ratio), "{errors:?}");
            assert!(lan.losses().pdus > 0 && lan.losses().on_links == errors.dropped);
        }
    }
}

#[test]
fn lines_on_which_much_is_wrong_drop_headers_and_end() {
    let mut lan = built(&Want { switch: true, hosts: 4, ..PLAIN }, "\"bit_error\": 0.01,");
    let found = tally(&mut lan, 4096, 200);
    assert_eq!(found, Tally { times: Vec::new(), lost: 200 });
    let errors = lan.line_errors();
    assert!(errors.dropped > 1000 && errors.corrected > 1000 && errors.altered > 10, "{errors:?}");
    // Some of the altered ones were of no circuit, or of that of another host.
    let losses = lan.losses();
    assert!(losses.in_switches + losses.in_adapters > 0, "{losses:?}");
}

#[test]
fn tcp_makes_good_what_wrong_bits_destroy_on_every_network() {
    for (stack, adapter) in [
        ("socket/tcp/aal5", PLAIN.adapter),
        ("socket/tcp/ethernet", r#"{"kind": "frames"}"#),
        ("socket/tcp/fddi", r#"{"kind": "frames"}"#),
    ] {
        let want = Want { stack, adapter, more: SOCKET, ..PLAIN };
        let time = |more| {
            let mut lan = built(&want, more);
            let times = round_trips(&mut lan, Bytes::new(20_000), 30).expect("an echo that ends");
            let lost: u64 =
                lan.passed().iter().filter(|(name, _)| name == "medium").map(|(_, one)| one.lost).sum();
            (times.into_iter().sum::<Span>(), lost + lan.losses().pdus, lan.segments().1)
        };
        let (quiet, none, _) = time("");
        let (loud, some, again) = time("\"bit_error\": 0.000001,");
        assert!(none == 0 && some > 0 && again > 0, "{stack}: {some} lost, {again} again");
        assert!(loud > quiet + Span::from_ms(100), "{stack}: it waits for its timer");
    }
}

#[test]
fn a_reassembly_timer_saves_the_pdu_behind_one_that_lacks_its_end() {
    let run = |stack, more: &str| {
        let want = Want { stack, switch: true, ..PLAIN };
        let mut lan = built(&want, &format!("\"cell_loss\": 0.01,{more}"));
        // Three cells: a third of the lost ones are last ones.
        let found = tally(&mut lan, 130, 4000);
        (found.lost, lan.losses())
    };
    let (without, of_none) = run("fore/aal5", "");
    // A cell takes some microseconds, a round trip some milliseconds.
    let (with, of_timer) = run("fore/aal5", "\"reassembly_timer_ps\": 300000000,");
    assert_eq!(of_none.timed_out, 0);
    assert!(of_timer.timed_out > 0 && of_timer.timed_out <= of_timer.pdus, "{of_timer:?}");
    // 12 cells a round trip: 4 of them a last one, whose loss costs the next round trip as well.
    let expected = 4000.0 * (1.0 - 0.99_f64.powi(12));
    assert!((with as f64 - expected).abs() < 4.0 * expected.sqrt(), "{with} of {expected}");
    assert!(without as f64 > 1.15 * with as f64, "{without} and {with}");
    let (_, of_cells) = run("fore/aal34", "\"reassembly_timer_ps\": 300000000,");
    assert!(of_cells.timed_out > 0, "{of_cells:?}");
}

#[test]
fn a_timer_that_is_too_short_loses_all_and_one_that_never_runs_out_changes_nothing() {
    let run = |more| {
        let mut lan = built(&Want { switch: true, ..PLAIN }, more);
        let found = tally(&mut lan, 4096, 10);
        (found, lan.losses(), lan.digest())
    };
    let (found, losses, digest) = run("\"reassembly_timer_ps\": 10000000,");
    assert_eq!((found.lost, losses.pdus >= 10, losses.timed_out >= 10), (10, true, true));
    let (plain, none, same) = run("");
    assert_eq!(none, Losses::default());
    assert_eq!(run("\"reassembly_timer_ps\": 60000000000000,"), (plain, none, same));
    assert_ne!(digest, same);
}

#[test]
fn a_fault_that_cannot_be_is_refused_by_key_and_what_is_allowed() {
    let refused = |want: &Want, more: &str| {
        let text = json(want).replacen('{', &format!("{{{more} "), 1);
        Config::from_json(&text).expect_err(more).to_string()
    };
    let frames =
        Want { stack: "socket/tcp/ethernet", adapter: r#"{"kind": "frames"}"#, more: SOCKET, ..PLAIN };
    for (want, more, said) in [
        (&PLAIN, "\"bit_error\": 0.5,", "bit_error is 0.5; allowed: 0, or 1e-12 to 0.01"),
        (&PLAIN, "\"bit_error\": -1,", "bit_error is -1"),
        (&PLAIN, "\"bit_error\": \"much\",", "bit_error is \"much\""),
        (&PLAIN, "\"reassembly_timer_ps\": 0,", "reassembly_timer_ps is 0; allowed: an integer from 1000000"),
        (&frames, "\"reassembly_timer_ps\": 1000000,", "only ATM has cells"),
    ] {
        let error = refused(want, more);
        assert!(error.contains(said), "{error} lacks {said}");
    }
}
