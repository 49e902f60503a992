//! Exact times by hand, fragments, losses that end, what has no room, what is refused.

use wiretwin_units::{Bytes, Span};

use crate::lan::activity::Activity;
use crate::lan::echo::{Tally, round_trips, round_trips_despite_losses};
use crate::lan::tests::{PLAIN, SERIES_100, Want, json};
use crate::lan::{Config, Lan, Losses, Op, OpError};

const SOCKET: &str = r#""cut_messages": true, "socket": {"tcp": "sunos41", "buffer_bytes": 32768,
    "nodelay": true, "mtu_bytes": 1500, "encapsulation_bytes": 18}"#;
const CABLE: Want =
    Want { stack: "socket/udp/ethernet", adapter: r#"{"kind": "frames"}"#, more: SOCKET, ..PLAIN };
const RING: Want = Want { stack: "socket/udp/fddi", ..CABLE };
const ATM: Want = Want { stack: "socket/udp/aal5", switch: true, more: SOCKET, ..PLAIN };

fn built(want: &Want, more: &str, trail: bool) -> Lan {
    let text = json(&Want { stack: want.stack, ..want.clone() }).replacen('{', &format!("{{{more} "), 1);
    // The helper knows networks by stacks over TCP.
    let lower = match want.stack {
        "socket/udp/ethernet" => Some(r#""cable": {"rate_bit_s": 10000000, "hop_ps": 100000}"#),
        "socket/udp/fddi" => Some(
            r#""ring": {"rate_bit_s": 100000000, "hop_ps": 100000, "latency_ps": 1000000, "target_ps": 8000000000}"#,
        ),
        _ => None,
    };
    let link = r#""link": {"rate_bit_s": 100000000, "cell_bits": 432, "propagation_ps": 100000}"#;
    let text = lower.map_or(text.clone(), |lower| text.replace(link, lower));
    Lan::new(Config::from_json(&text).expect("a network that can be"), 7, trail)
}

fn price(activity: Activity, bytes: u64) -> u64 {
    (activity as u64 + 1) * (1_000_000 + 1_000 * bytes)
}

#[test]
fn a_datagram_on_a_silent_cable_takes_what_the_sum_of_its_parts_says() {
    use Activity::*;
    // 100 octets, 8 of UDP, 20 of IP, 18 of frame; no checksum but that of IP's header.
    let octets = 146;
    let write = price(Trap, 0) + price(SocketSend, 0) + price(CopyIn, 100) + price(Mbuf, 0);
    let send = price(SegmentOut, 108) + price(Checksum, 20) + price(PacketOut, octets);
    let wire = (octets + 8) * 8 * 100_000 + 100_000;
    let receive = price(Interrupt, 0) + price(PacketIn, octets) + price(Checksum, 20) + price(SegmentIn, 108);
    let read = price(ContextSwitch, 0) + price(SocketReceive, 0) + price(CopyOut, 100) + price(Mbuf, 0);
    let latency = write + send + wire + receive + read;
    let times = round_trips(&mut built(&CABLE, "", false), Bytes::new(100), 5).expect("an echo that ends");
    assert_eq!(times, [Span::from_ps(2 * latency); 5]);
}

#[test]
fn a_longer_datagram_travels_in_as_many_fragments_as_the_network_needs() {
    for (bytes, fragments) in [(1472, 1), (1473, 2), (8192, 6), (32_768 - 16, 23)] {
        for want in [&CABLE, &RING] {
            let mut lan = built(want, "", false);
            round_trips(&mut lan, Bytes::new(bytes), 1).expect("an echo that ends");
            let medium = lan.passed().into_iter().find(|(name, _)| name == "medium").expect("a medium").1;
            assert_eq!(medium.taken, 2 * fragments, "{}: {bytes} octets", want.stack);
        }
    }
    // On ATM each fragment is a PDU: 1500 octets and 18 take 32 cells.
    for adapter in [PLAIN.adapter, SERIES_100] {
        let mut lan = built(&Want { adapter, ..ATM }, "", false);
        round_trips(&mut lan, Bytes::new(1480 * 4 - 8), 1).expect("an echo that ends");
        assert_eq!(lan.passed()[0].1.taken, 4 * 32);
    }
}

#[test]
fn the_parts_of_a_datagram_sum_to_its_latency_on_every_network() {
    for want in [&CABLE, &RING, &ATM] {
        for bytes in [1, 1472, 5000, 30_000] {
            let mut lan = built(want, "", true);
            round_trips(&mut lan, Bytes::new(bytes), 3).expect("an echo that ends");
            assert_eq!(lan.anatomies().len(), 6);
            for anatomy in lan.anatomies() {
                let mut end = anatomy.begun;
                for part in &anatomy.parts {
                    assert_eq!(part.segment.start, end + part.waited, "a gap or an overlap");
                    end = part.segment.end;
                }
                assert_eq!(end, anatomy.ended, "{}, {bytes} octets", want.stack);
            }
            assert_eq!(lan.losses(), Losses::default());
        }
    }
}

#[test]
fn what_is_lost_is_lost_and_the_echo_ends() {
    for (want, more) in [
        (&CABLE, "\"bit_error\": 0.000005,"),
        (&RING, "\"bit_error\": 0.000005,"),
        (&ATM, "\"cell_loss\": 0.001,"),
        (&ATM, "\"bit_error\": 0.000005,"),
    ] {
        let mut lan = built(want, more, false);
        let found = round_trips_despite_losses(&mut lan, Bytes::new(5000), 100).expect("an echo that ends");
        assert_eq!(found.times.len() as u64 + found.lost, 100);
        assert!(found.lost > 10 && found.lost < 90, "{}: {}", want.stack, found.lost);
        // The fragments that came wait for those that did not: 30 s each.
        assert!(lan.losses().datagrams > 0 && lan.losses().datagrams <= found.lost, "{:?}", lan.losses());
        assert!(lan.now().as_ps() > 30_000_000_000_000);
        for (name, passed) in lan.passed() {
            assert_eq!(passed.taken, passed.given + passed.lost + passed.held, "{name}");
        }
    }
    // One fragment each: nothing is waited for. All of it lost, beside load that never ends.
    let load = r#""load": [{"law": "constant", "share": 0.5, "octets": 40, "to": 1, "reserved": false}],"#;
    let mut lan = built(&ATM, &format!("{load} \"cell_loss\": 1,"), false);
    let found = round_trips_despite_losses(&mut lan, Bytes::new(1000), 5).expect("an echo that ends");
    assert_eq!(found, Tally { times: Vec::new(), lost: 5 });
}

#[test]
fn datagrams_before_a_reader_that_is_busy_are_lost_beyond_its_buffer() {
    for want in [&CABLE, &ATM] {
        let mut lan = built(want, "", false);
        lan.post(1, Op::Compute(Span::from_s(5))).expect("a rank that runs");
        lan.post(1, Op::wait(&[])).expect("a rank that runs");
        let sent: Vec<_> = (0..12)
            .map(|tag| {
                let posted = lan.post(0, Op::send(1, tag, Bytes::new(4096)));
                posted.expect("a send").expect("a request")
            })
            .collect();
        lan.post(0, Op::wait(&sent)).expect("a rank that runs");
        while lan.step() && !lan.resumed().contains(&1) {}
        // Seven of 4096 octets with the addresses of their senders fit 32 KiB.
        assert_eq!(lan.losses().unread, 5, "{}", want.stack);
        for tag in 0..7 {
            let bytes = Bytes::new(4096);
            let due = lan.post(1, Op::recv(Some(0), Some(tag), bytes));
            lan.post(1, Op::wait(&[due.expect("a receive").expect("a request")])).expect("a rank that runs");
            while lan.step() && !lan.resumed().contains(&1) {}
            assert_eq!(lan.completions(1)[0].tag, tag);
        }
    }
}

#[test]
fn a_datagram_that_is_too_long_is_refused() {
    let mut lan = built(&CABLE, "", false);
    let mut send = |bytes| lan.post(0, Op::send(1, 0, Bytes::new(bytes)));
    assert_eq!(send(32_769), Err(OpError::TooLong { bytes: Bytes::new(32_769), most: Bytes::new(32_768) }));
    assert_eq!(send(0), Err(OpError::Empty));
    assert!(send(32_768).is_ok());
}

#[test]
fn the_same_seed_is_the_same_run() {
    let run = || {
        let mut lan = built(&ATM, "\"cell_loss\": 0.001,", false);
        let found = round_trips_despite_losses(&mut lan, Bytes::new(5000), 20).expect("an echo that ends");
        (found, lan.digest())
    };
    assert_eq!(run(), run());
}
