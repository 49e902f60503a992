//! Exact times by hand, conservation, loss, refusals, determinism.

use std::fmt::Write as _;

use wiretwin_units::{Bytes, Span};

use super::activity::Activity;
use super::config::priced;
use super::echo::{EchoError, round_trips};
use super::{Config, Lan, Op, OpError};

/// What a test wants of its network.
#[derive(Clone, Debug)]
pub(crate) struct Want {
    pub(crate) stack: &'static str,
    pub(crate) hosts: usize,
    pub(crate) adapter: &'static str,
    pub(crate) switch: bool,
    pub(crate) more: &'static str,
    pub(crate) background: bool,
}

pub(crate) const PLAIN: Want = Want {
    stack: "fore/aal5",
    hosts: 2,
    adapter: SERIES_200,
    switch: false,
    more: "\"cut_messages\": true",
    background: false,
};

pub(crate) const SERIES_200: &str = r#"{"kind": "series-200", "send_fifo_cells": 8, "receive_fifo_cells": 8,
    "aal5": {"send_pdu_ps": 11000, "send_cell_ps": 1300000, "receive_cell_ps": 1700000, "receive_pdu_ps": 19000},
    "aal34": {"send_pdu_ps": 31000, "send_cell_ps": 1500000, "receive_cell_ps": 1900000, "receive_pdu_ps": 37000},
    "pace_ps": 0}"#;
pub(crate) const SERIES_100: &str = r#"{"kind": "series-100", "send_fifo_cells": 4, "receive_fifo_cells": 200,
    "interrupt_delay_ps": 23000000}"#;

/// A price of its own for every activity: (number + 1) us a call, (number + 1) ns a byte.
pub(crate) fn json(want: &Want) -> String {
    let mut prices = String::new();
    for activity in priced() {
        let number = activity as u64;
        let comma = if prices.is_empty() { "" } else { "," };
        let _ = write!(
            prices,
            "{comma}\"{activity}\": {{\"call_ps\": {}, \"byte_ps\": {}}}",
            (number + 1) * 1_000_000,
            (number + 1) * 1_000
        );
    }
    let background = if want.background {
        r#", "background": {"tick_ps": 10000000000, "tick_work_ps": 50000000, "wake_ps": 5000000000, "wake_work_ps": 200000000}"#
    } else {
        ""
    };
    let host = format!(
        r#"{{"name": "h", "cache_bytes": 1000000, "prices": {{{prices}}},
        "bus": {{"setup_ps": 100000, "byte_ps": 25000}}, "adapter": {}{background}}}"#,
        want.adapter
    );
    let hosts = vec![host; want.hosts].join(",");
    let switch = if want.switch {
        r#", "switch": {"fabric_bit_s": 2400000000, "delay_ps": 5000000, "queue_cells": 256,
            "module_bit_s": 622080000, "modules": 4}"#
    } else {
        ""
    };
    let lower = match want.stack {
        stack if stack.ends_with("ethernet") => r#""cable": {"rate_bit_s": 10000000, "hop_ps": 100000}"#,
        stack if stack.ends_with("fddi") => {
            r#""ring": {"rate_bit_s": 100000000, "hop_ps": 100000, "latency_ps": 1000000, "target_ps": 8000000000}"#
        }
        stack if stack.ends_with("gige") => {
            r#""gige": {"rate_bit_s": 1000000000, "propagation_ps": 100000,
                "switch": {"forwarding": "stored", "latency_ps": 1000000, "port_bytes": 200000},
                "adapter": {"bus_setup_ps": 300000, "bus_byte_ps": 7000, "frame_ps": 400000, "send_frames": 16,
                "receive_bytes": 100000, "coalesce_frames": 1, "coalesce_ps": 0, "pause": true}}"#
        }
        _ if want.more.contains("\"switches\"") => r#""first_use_ps": 0"#,
        _ => r#""link": {"rate_bit_s": 100000000, "cell_bits": 432, "propagation_ps": 100000}"#,
    };
    format!(
        r#"{{"stack": "{}", "hosts": [{hosts}], "pdu_bytes": 4096, "stream_bytes": 10000000,
        {lower}{switch}, {}}}"#,
        want.stack, want.more
    )
}

pub(crate) fn lan(want: &Want, trail: bool) -> Lan {
    let config = Config::from_json(&json(want)).expect("a network that can be");
    Lan::new(config, 7, trail)
}

fn price(activity: Activity, bytes: u64) -> u64 {
    (activity as u64 + 1) * (1_000_000 + 1_000 * bytes)
}

fn echo(want: &Want, bytes: u64, rounds: u64) -> Vec<u64> {
    let times = round_trips(&mut lan(want, false), Bytes::new(bytes), rounds).expect("an echo that ends");
    times.into_iter().map(Span::as_ps).collect()
}

#[test]
fn one_cell_takes_what_the_sum_of_its_parts_says() {
    use Activity::*;
    let send = price(Trap, 40) + price(ForeSend, 40) + price(CopyIn, 40) + 11_000 + 1_300_000;
    let dma = 100_000 + 48 * 25_000;
    let wire = 4_320_000 + 100_000;
    let receive = 1_700_000 + 19_000 + price(Interrupt, 0) + price(PduInterrupt, 0);
    let read = price(ContextSwitch, 0) + price(ForeReceive, 40) + price(CopyOut, 40);
    let latency = send + dma + wire + dma + receive + read;
    assert_eq!(echo(&PLAIN, 40, 3), [2 * latency; 3]);
    // Through a switch: another link, 424 bits at 2.4 Gbit/s, its delay.
    let through = latency + wire + 176_666 + 5_000_000;
    let switched = Want { switch: true, ..PLAIN };
    assert_eq!(echo(&switched, 40, 2), [2 * through; 2]);
}

#[test]
fn one_cell_through_fifos_takes_what_the_sum_of_its_parts_says() {
    use Activity::*;
    let send = price(Trap, 40) + price(ForeSend, 40) + price(CopyIn, 40);
    let cut = price(Crc, 48) + price(SegmentCell, 48) + price(CellOut, 48);
    let wire = 4_320_000 + 100_000;
    let receive =
        23_000_000 + price(Interrupt, 0) + price(CellIn, 48) + price(ReassembleCell, 48) + price(Crc, 48);
    let read = price(PduInterrupt, 0) + price(ContextSwitch, 0) + price(ForeReceive, 40) + price(CopyOut, 40);
    let want = Want { adapter: SERIES_100, ..PLAIN };
    assert_eq!(echo(&want, 40, 2), [2 * (send + cut + wire + receive + read); 2]);
}

#[test]
fn the_parts_of_every_message_sum_to_its_latency() {
    for adapter in [SERIES_100, SERIES_200] {
        for switch in [false, true] {
            for bytes in [1, 41, 4096, 4097, 20_000] {
                let mut lan = lan(&Want { adapter, switch, ..PLAIN }, true);
                round_trips(&mut lan, Bytes::new(bytes), 3).expect("an echo that ends");
                assert_eq!(lan.anatomies().len(), 6);
                for anatomy in lan.anatomies() {
                    let busy = |part: &super::Part| part.segment.end - part.segment.start;
                    let sum: Span = anatomy.parts.iter().map(|part| part.waited + busy(part)).sum();
                    assert_eq!(sum, anatomy.ended - anatomy.begun, "{bytes} bytes, {adapter}");
                    assert_eq!(anatomy.parts[0].segment.start, anatomy.begun);
                }
            }
        }
    }
}

#[test]
fn a_trail_changes_nothing() {
    let run = |trail| {
        let mut lan = lan(&Want { switch: true, background: true, ..PLAIN }, trail);
        let times = round_trips(&mut lan, Bytes::new(9000), 4).expect("an echo that ends");
        (times, lan.digest())
    };
    assert_eq!(run(false), run(true));
}

#[test]
fn cells_are_conserved_in_every_element() {
    for adapter in [SERIES_100, SERIES_200] {
        for (more, switch) in [
            ("\"cut_messages\": true", false),
            ("\"cut_messages\": true, \"cell_loss\": 0.001", true),
            ("\"cut_messages\": true, \"cell_loss\": 0.2", true),
        ] {
            let mut lan = lan(&Want { adapter, switch, more, ..PLAIN }, false);
            let outcome = round_trips(&mut lan, Bytes::new(10_000), 20);
            for (name, passed) in lan.passed() {
                assert_eq!(passed.taken, passed.given + passed.lost + passed.held, "{name}");
            }
            assert_eq!(lan.pdus_under_way(), 0, "no cell is anywhere when nothing more happens");
            let losses = lan.losses();
            assert_eq!(outcome.is_err(), losses.on_links + losses.in_adapters > 0);
        }
    }
}

#[test]
fn a_pdu_takes_as_many_cells_as_aal_5_says() {
    for (bytes, cells) in [(1, 1), (40, 1), (41, 2), (88, 2), (4096, 86), (4097, 87), (8192, 172)] {
        let mut lan = lan(&PLAIN, false);
        round_trips(&mut lan, Bytes::new(bytes), 1).expect("an echo that ends");
        assert_eq!(lan.passed()[0].1.taken, cells, "{bytes} bytes");
    }
}

#[test]
fn aal_34_takes_its_own_cells_and_its_own_time() {
    let want = Want { stack: "fore/aal34", ..PLAIN };
    for (bytes, cells) in [(1, 1), (36, 1), (37, 2), (80, 2), (4096, 94), (8192, 188)] {
        let mut lan = lan(&want, false);
        round_trips(&mut lan, Bytes::new(bytes), 2).expect("an echo that ends");
        assert_eq!(lan.passed()[0].1.taken, 2 * cells, "{bytes} bytes");
    }
    // What firmware takes more for one PDU of one cell, at both ends, both ways.
    let more = 31_000 + 37_000 - 11_000 - 19_000 + 200_000 + 200_000;
    assert_eq!(echo(&want, 36, 2)[1] - echo(&PLAIN, 36, 2)[1], 2 * more);
    let lossy = Want { more: "\"cut_messages\": true, \"cell_loss\": 0.2", adapter: SERIES_100, ..want };
    let mut lan = lan(&lossy, false);
    round_trips(&mut lan, Bytes::new(10_000), 20).expect_err("a message that lacks a cell does not come");
    assert!(lan.losses().pdus > 0 && lan.pdus_under_way() == 0);
}

#[test]
fn a_long_stream_of_cells_is_as_fast_as_its_slowest_part() {
    // 64 and 128 PDUs one after the other, there and back: the line is the slowest part of this network.
    let (short, long) = (echo(&PLAIN, 64 * 4096, 1)[0], echo(&PLAIN, 128 * 4096, 1)[0]);
    assert_eq!((long - short) / 128, 86 * 4_320_000);
    // With a bus that takes 10 us a cell, the bus is.
    let slow = json(&PLAIN)
        .replace("\"setup_ps\": 100000, \"byte_ps\": 25000", "\"setup_ps\": 0, \"byte_ps\": 208334");
    let mut times = [64, 128].map(|pdus| {
        let config = Config::from_json(&slow).expect("a network that can be");
        let mut lan = Lan::new(config, 7, false);
        round_trips(&mut lan, Bytes::new(pdus * 4096), 1).expect("an echo that ends")[0]
    });
    times.reverse();
    assert_eq!((times[0] - times[1]).as_ps() / 128, 86 * 48 * 208_334);
}

const FRAMES: &str = r#"{"kind": "frames"}"#;
const SOCKET: &str = r#""cut_messages": true, "socket": {"tcp": "sunos41", "buffer_bytes": 32768, "nodelay": true, "mtu_bytes": 1500, "encapsulation_bytes": 18}"#;

fn socket(stack: &'static str, adapter: &'static str) -> Want {
    Want { stack, adapter, more: SOCKET, ..PLAIN }
}

#[test]
fn a_segment_on_a_silent_cable_takes_what_the_sum_of_its_parts_says() {
    use Activity::*;
    // 4 octets, 20 of TCP, 20 of IP, 18 of frame: padded to 64, with 8 of preamble.
    let octets = 62;
    let write = price(Trap, 0) + price(SocketSend, 0) + price(CopyIn, 4) + price(Mbuf, 0);
    let send = price(SegmentOut, 24) + price(Checksum, 24) + price(PacketOut, octets);
    let wire = (64 + 8) * 8 * 100_000 + 100_000;
    let receive = price(Interrupt, 0) + price(PacketIn, octets) + price(SegmentIn, 24) + price(Checksum, 24);
    let read = price(ContextSwitch, 0) + price(SocketReceive, 0) + price(CopyOut, 4) + price(Mbuf, 0);
    let latency = write + send + wire + receive + read;
    let mut lan = lan(&socket("socket/tcp/ethernet", FRAMES), true);
    let times = round_trips(&mut lan, Bytes::new(4), 20).expect("an echo that ends");
    let most = times.iter().filter(|time| time.as_ps() >= 2 * latency).count();
    assert_eq!(most, 20, "2 x {latency}: {times:?}");
    // What comes besides: the answer acknowledges, and that costs.
    let besides = price(AckIn, 4) + price(AckIn, 4);
    assert!(
        times[5..].iter().filter(|time| time.as_ps() <= 2 * latency + besides).count() >= 10,
        "2 x {latency}: {times:?}"
    );
}

#[test]
fn every_network_carries_a_socket_and_the_parts_of_a_message_sum_to_its_latency() {
    for (stack, adapter, switch) in [
        ("socket/tcp/aal5", SERIES_200, false),
        ("socket/tcp/aal5", SERIES_200, true),
        ("socket/tcp/aal5", SERIES_100, true),
        ("socket/tcp/ethernet", FRAMES, false),
        ("socket/tcp/fddi", FRAMES, false),
    ] {
        for bytes in [1, 4000, 5000, 100_000] {
            let mut lan = lan(&Want { switch, ..socket(stack, adapter) }, true);
            round_trips(&mut lan, Bytes::new(bytes), 3).expect("an echo that ends");
            assert_eq!(lan.anatomies().len(), 6);
            for anatomy in lan.anatomies() {
                let busy = |part: &super::Part| part.segment.end - part.segment.start;
                let sum: Span = anatomy.parts.iter().map(|part| part.waited + busy(part)).sum();
                assert_eq!(sum, anatomy.ended - anatomy.begun, "{stack}, {bytes} bytes");
            }
            for (name, passed) in lan.passed() {
                assert_eq!(passed.taken, passed.given + passed.lost + passed.held, "{name}");
            }
        }
    }
}

#[test]
fn small_writes_behind_a_short_rest_stall_without_nodelay_and_not_with_it() {
    let time = |nodelay: &str| {
        let more = SOCKET.replace("true, \"mtu", &format!("{nodelay}, \"mtu"));
        let text = json(&socket("socket/tcp/ethernet", FRAMES)).replace(SOCKET, &more);
        let mut lan = Lan::new(Config::from_json(&text).expect("a network"), 7, false);
        let times = round_trips(&mut lan, Bytes::new(5000), 6).expect("an echo that ends");
        times[1..].iter().map(|time| time.as_ps()).sum::<u64>() / 5
    };
    let (with, without) = (time("true"), time("false"));
    // Each way waits for a delayed acknowledgment: 100 ms on average, 200 ms at most.
    assert!(without > with + 50_000_000_000 && without < with + 400_000_000_000, "{without} {with}");
    let outside = |bytes| {
        let want = socket("socket/tcp/ethernet", FRAMES);
        let text = json(&want).replace("\"nodelay\": true", "\"nodelay\": false");
        let mut lan = Lan::new(Config::from_json(&text).expect("a network"), 7, false);
        round_trips(&mut lan, Bytes::new(bytes), 6).expect("an echo that ends")[5]
    };
    assert!(outside(4000).as_ps() < 100_000_000_000, "4000 bytes are one piece");
}

#[test]
fn tcp_makes_good_what_cells_are_lost() {
    let more = r#""cut_messages": true, "cell_loss": 0.0002, "socket": {"tcp": "sunos41", "buffer_bytes": 32768, "nodelay": true, "mtu_bytes": 9188, "encapsulation_bytes": 8}"#;
    let mut lan = lan(&Want { switch: true, more, ..socket("socket/tcp/aal5", SERIES_200) }, false);
    let times = round_trips(&mut lan, Bytes::new(20_000), 30).expect("an echo that ends");
    assert!(lan.losses().pdus > 0 && times.iter().max() > times.iter().min());
}

#[test]
fn a_stack_without_its_network_or_its_socket_is_refused() {
    let error = |from: &str, to: &str| {
        let good = json(&socket("socket/tcp/ethernet", FRAMES));
        assert!(good.contains(from));
        Config::from_json(&good.replace(from, to)).expect_err(to).to_string()
    };
    assert!(error("sunos41", "sunos99").contains("socket.tcp is \"sunos99\"; allowed: bsd43_tahoe"));
    assert!(error("\"mtu_bytes\": 1500", "\"mtu_bytes\": 9000").contains("an integer from 100 to 1500"));
    assert!(error("\"cable\"", "\"ring\"").contains("cable is nothing"));
    assert!(error("32768", "99999").contains("allowed are 1 to 52428"));
    assert!(error(FRAMES, SERIES_200).contains("hosts[0].adapter.kind"));
}

#[test]
fn a_lost_cell_is_a_lost_message_and_the_echo_ends_with_an_error() {
    let mut lan = lan(&Want { more: "\"cut_messages\": true, \"cell_loss\": 1", ..PLAIN }, false);
    let error = round_trips(&mut lan, Bytes::new(100), 5).expect_err("every cell is lost");
    let EchoError::Lost { round: 0, losses, over: None } = &error else { panic!("{error}") };
    assert_eq!(losses.on_links, 3);
    assert!(error.to_string().starts_with("round trip 0 did not end: lost were 3 cells on links"));
    assert_eq!(lan.blocked(), [0, 1]);
}

#[test]
fn a_fifo_that_overflows_loses_cells_and_says_so() {
    let small = r#"{"kind": "series-100", "send_fifo_cells": 4, "receive_fifo_cells": 3, "interrupt_delay_ps": 90000000000}"#;
    let mut lan = lan(&Want { adapter: small, ..PLAIN }, false);
    let error = round_trips(&mut lan, Bytes::new(1000), 1).expect_err("21 cells do not fit 3");
    let EchoError::Lost { losses, .. } = error else { panic!("{error}") };
    assert_eq!(losses.in_adapters, 18);
}

#[test]
fn what_the_interface_cannot_is_refused() {
    let mut lan = lan(&Want { more: "\"cut_messages\": false", ..PLAIN }, false);
    let mut send = |to, bytes| lan.post(0, Op::send(to, 0, Bytes::new(bytes)));
    assert_eq!(send(1, 0), Err(OpError::Empty));
    assert_eq!(send(0, 1), Err(OpError::ToItself { rank: 0 }));
    assert_eq!(send(2, 1).unwrap_err().to_string(), "no rank 2 here: ranks are 0 to 1");
    assert_eq!(
        send(1, 4097).unwrap_err().to_string(),
        "a message of 4097 bytes: this interface takes at most 4096, and messages are not cut"
    );
    assert!(send(1, 4096).is_ok());
}

#[test]
fn the_same_seed_is_the_same_run_and_another_is_not() {
    let run = |seed| {
        let config = Config::from_json(&json(&Want { background: true, ..PLAIN })).expect("a network");
        let mut lan = Lan::new(config, seed, false);
        let times = round_trips(&mut lan, Bytes::new(4096), 50).expect("an echo that ends");
        (times, lan.digest())
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1).1, run(2).1);
    let (times, _) = run(1);
    assert!(times.iter().max() > times.iter().min(), "what else runs on a host shows");
}

#[test]
fn a_configuration_is_refused_with_key_value_and_what_is_allowed() {
    let good = json(&PLAIN);
    let refused = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        Config::from_json(&good.replacen(from, to, 1)).expect_err(to).to_string()
    };
    for (from, to, said) in [
        ("fore/aal5", "fore/aal2", "stack is fore/aal2"),
        (
            "\"pdu_bytes\": 4096",
            "\"pdu_bytes\": 70000",
            "pdu_bytes is 70000; allowed: an integer from 1 to 65535",
        ),
        ("\"cell_bits\": 432", "\"cell_bits\": 400", "link.cell_bits is 400"),
        ("series-200", "series-300", "hosts[0].adapter"),
        ("\"trap\"", "\"trip\"", "hosts[0].prices.trip"),
        ("\"send_fifo_cells\": 8", "\"send_fifo_cells\": 0", "adapter.send_fifo_cells is 0"),
    ] {
        let error = refused(from, to);
        assert!(error.contains(said), "{error}");
    }
    let three = Config::from_json(&json(&Want { hosts: 3, ..PLAIN })).expect_err("three without a switch");
    assert_eq!(three.to_string(), "switch is nothing; allowed: a switch, for more than two hosts");
    let many = Config::from_json(&json(&Want { hosts: 25, switch: true, ..PLAIN })).expect_err("25 ports");
    assert!(
        many.to_string().contains("hosts is 25 ports of 100 Mbit/s; allowed: at most 24 ports"),
        "{many}"
    );
}
