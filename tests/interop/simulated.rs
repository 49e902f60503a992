//! Captures of simulated runs, as `tshark` reads them.

use std::fmt::Write as _;
use std::fs::File;

use wiretwin_net::lan::echo::round_trips_despite_losses;
use wiretwin_net::lan::{Config, Lan};
use wiretwin_record::capture::LinkType;
use wiretwin_record::capture::pcap::{Header, Writer};
use wiretwin_units::Bytes;

use crate::tshark::{self, Folder, have};

const SERIES_200: &str = r#"{"kind": "series-200", "send_fifo_cells": 8, "receive_fifo_cells": 256,
    "aal5": {"send_pdu_ps": 1, "send_cell_ps": 1, "receive_cell_ps": 1, "receive_pdu_ps": 1},
    "aal34": {"send_pdu_ps": 1, "send_cell_ps": 1, "receive_cell_ps": 1, "receive_pdu_ps": 1}, "pace_ps": 0}"#;
const SERIES_100: &str = r#"{"kind": "series-100", "send_fifo_cells": 36, "receive_fifo_cells": 292,
    "interrupt_delay_ps": 1000000}"#;
const FRAMES: &str = r#"{"kind": "frames"}"#;
const LINK: &str = r#""link": {"rate_bit_s": 100000000, "cell_bits": 432, "propagation_ps": 100000},
    "switch": {"fabric_bit_s": 2400000000, "delay_ps": 3000000, "queue_cells": 256,
    "module_bit_s": 622080000, "modules": 4}"#;
const CABLE: &str = r#""cable": {"rate_bit_s": 10000000, "hop_ps": 100000}"#;
const RING: &str = r#""ring": {"rate_bit_s": 100000000, "hop_ps": 100000, "latency_ps": 1000000,
    "target_ps": 8000000000}"#;

fn config(stack: &str, adapter: &str, lower: &str, mtu: u32, more: &str) -> String {
    let mut prices = String::new();
    for activity in wiretwin_net::lan::config::priced() {
        let comma = if prices.is_empty() { "" } else { "," };
        let _ = write!(prices, "{comma}\"{activity}\": {{\"call_ps\": 5000000, \"byte_ps\": 10000}}");
    }
    let host = format!(
        r#"{{"name": "h", "cache_bytes": 0, "prices": {{{prices}}}, "bus": {{"setup_ps": 0, "byte_ps": 20000}},
        "adapter": {adapter}}}"#
    );
    let socket = if stack.starts_with("socket") {
        let octets =
            [(CABLE, 18), (RING, 25), (LINK, 8)].iter().find(|(kind, _)| *kind == lower).expect("one").1;
        format!(
            r#", "socket": {{"tcp": "sunos41", "buffer_bytes": 32768, "nodelay": true, "mtu_bytes": {mtu},
            "encapsulation_bytes": {octets}}}"#
        )
    } else {
        String::new()
    };
    format!(
        r#"{{"stack": "{stack}", "hosts": [{host}, {host}], "pdu_bytes": 4096, "cut_messages": true,
        "stream_bytes": 1000000, {lower}{socket}{more}}}"#
    )
}

/// What a run left: the capture on disk, its link type, and what the run itself counted.
struct Run {
    folder: Folder,
    link: LinkType,
    packets: usize,
    lan: Lan,
}

fn run(text: &str, bytes: u64, rounds: u64) -> Run {
    let config = Config::from_json(text).expect("a network");
    let mut lan = Lan::new(config, 3, false);
    round_trips_despite_losses(&mut lan, Bytes::new(bytes), rounds).expect("an echo that ends");
    let capture = lan.captured().expect("it was asked for");
    assert_eq!(capture.missed, 0);
    let folder = Folder::new();
    let fcs_octets = (capture.link == LinkType::ETHERNET).then_some(4);
    let header = Header { fcs_octets, ..Header::new(capture.link) };
    let mut writer =
        Writer::new(File::create(folder.path("run.pcap")).expect("a file"), header).expect("a header");
    for (time, octets) in &capture.packets {
        writer.packet((*time).into(), octets).expect("a packet");
    }
    writer.finish().expect("the end");
    let (link, packets) = (capture.link, capture.packets.len());
    Run { folder, link, packets, lan }
}

/// Above this (`PI_NOTE`) an expert item is a warning or an error.
const NOTE: u32 = 0x0040_0000;

/// The values of some fields by packet, where nothing is malformed nor any check fails.
fn checked(run: &Run, names: &[&str], allowed: &[&str]) -> Vec<Vec<String>> {
    let mut all = vec!["_ws.malformed", "_ws.expert.severity", "_ws.expert.message"];
    all.extend(names);
    let read = tshark::fields(&run.folder.path("run.pcap"), &all);
    assert_eq!(read.len(), run.packets, "a line for each packet");
    for (number, values) in read.iter().enumerate() {
        assert_eq!(values[0], "", "packet {number}: {values:?}");
        let severe = values[1].split(',').filter(|text| !text.is_empty());
        let severe =
            severe.map(|text| text.parse::<u32>().expect("a number")).any(|severity| severity > NOTE);
        let is_allowed = allowed.iter().any(|text| values[2].contains(text));
        assert!(!severe || is_allowed, "packet {number}: {values:?}");
    }
    read.into_iter().map(|values| values[3..].to_vec()).collect()
}

#[test]
fn packets_of_simulated_tcp_are_whole_and_sum_right_on_every_network() {
    if !have(&["tshark"]) {
        return;
    }
    for (stack, adapter, lower, mtu, link) in [
        ("socket/tcp/aal5", SERIES_200, LINK, 9188, LinkType::SUNATM),
        ("socket/tcp/aal5", SERIES_100, LINK, 1500, LinkType::SUNATM),
        ("socket/tcp/ethernet", FRAMES, CABLE, 1500, LinkType::ETHERNET),
        ("socket/tcp/fddi", FRAMES, RING, 4352, LinkType::FDDI),
    ] {
        for host in [0, 1] {
            let text = config(stack, adapter, lower, mtu, &format!(", \"capture_host\": {host}"));
            let run = run(&text, 10_001, 3);
            assert_eq!(run.link, link);
            let names = [
                "ip.checksum.status",
                "tcp.checksum.status",
                "ip.src",
                "tcp.len",
                "tcp.flags",
                "eth.fcs.status",
            ];
            let read = checked(&run, &names, &[]);
            let mut octets = [0_u64; 2];
            for values in &read {
                assert_eq!(values[..2], ["1", "1"], "{stack}: {values:?}");
                assert!(lower != CABLE || values[5] == "1", "the check sequence: {values:?}");
                octets[usize::from(values[2] == "10.0.0.2")] += values[3].parse::<u64>().expect("a length");
            }
            assert_eq!(octets, [3 * 10_001; 2], "{stack}, host {host}: what either side sent");
            // The connection was opened in no time, and that is in the capture.
            let flags: Vec<_> = read[..3].iter().map(|values| values[4].as_str()).collect();
            assert_eq!(flags, ["0x0002", "0x0012", "0x0010"], "{stack}");
        }
    }
}

#[test]
fn what_simulated_tcp_sends_again_is_seen_to_be_sent_again() {
    if !have(&["tshark"]) {
        return;
    }
    let more = ", \"capture_host\": 0, \"cell_loss\": 0.0005";
    let run = run(&config("socket/tcp/aal5", SERIES_200, LINK, 9188, more), 20_000, 30);
    // What did not come is said to be missing, of which it makes a warning; nothing else may be.
    let missing = ["previous segment(s) not captured", "Previous segment", "out-of-order", "ACKed segment"];
    let read = checked(&run, &["ip.src", "tcp.analysis.retransmission", "tcp.checksum.status"], &missing);
    assert!(read.iter().all(|values| values[2] == "1"));
    let again = read.iter().filter(|values| !values[1].is_empty()).count() as u64;
    let (_, counted) = run.lan.segments();
    // Host 0 sees all that it sends again, and what the other sends again where the first one had come.
    assert!(again > 0 && again <= counted, "{again} of {counted}");
}

#[test]
fn fragments_of_simulated_datagrams_are_put_together_again() {
    if !have(&["tshark"]) {
        return;
    }
    for (stack, adapter, lower, mtu) in [
        ("socket/udp/aal5", SERIES_200, LINK, 1500),
        ("socket/udp/ethernet", FRAMES, CABLE, 1500),
        ("socket/udp/fddi", FRAMES, RING, 4352),
    ] {
        for rules in ["sunos41", "linux_modern"] {
            let text = config(stack, adapter, lower, mtu, ", \"capture_host\": 1");
            let run = run(&text.replace("sunos41", rules), 8192, 2);
            let names = ["ip.checksum.status", "udp.checksum.status", "udp.length", "ip.flags.mf"];
            let read = checked(&run, &names, &[]);
            assert_eq!(run.packets, 4 * 8200_usize.div_ceil((mtu as usize - 20) / 8 * 8));
            assert!(read.iter().all(|values| values[0] == "1"), "{stack}: {read:?}");
            let whole: Vec<_> = read.iter().filter(|values| !values[2].is_empty()).collect();
            assert_eq!(whole.len(), 4, "{stack}: each datagram once");
            // SunOS sends them without a checksum: that is not looked at (3), and not an error.
            let status = if rules == "sunos41" { "3" } else { "1" };
            assert!(whole.iter().all(|values| values[1] == status && values[2] == "8200"), "{whole:?}");
        }
    }
}

#[test]
fn pdus_of_the_fore_interface_are_captured_on_their_circuits() {
    if !have(&["tshark"]) {
        return;
    }
    let text = config("fore/aal5", SERIES_200, LINK, 0, ", \"capture_host\": 1");
    let run = run(&text, 10_000, 2);
    assert_eq!((run.link, run.packets), (LinkType::SUNATM, 12), "three PDUs a message");
    let read = checked(&run, &["atm.vpi", "atm.vci", "frame.len", "frame.time_epoch"], &[]);
    let capture = run.lan.captured().expect("it was asked for");
    for (values, (time, octets)) in read.iter().zip(&capture.packets) {
        assert_eq!(values[..2], ["0", "32"], "its only circuit, either way: {values:?}");
        // What stands before the SDU is not counted.
        assert_eq!(values[2], (octets.len() - 4).to_string());
        let nanoseconds = time.as_ps() / 1000;
        assert_eq!(values[3], format!("{}.{:09}", nanoseconds / 1_000_000_000, nanoseconds % 1_000_000_000));
    }
    let lengths: Vec<_> = read.iter().map(|values| values[2].as_str()).collect();
    assert_eq!(lengths, ["4096", "4096", "1808"].repeat(4));
}

#[test]
fn a_capture_that_cannot_be_is_refused() {
    for (stack, more, said) in [
        ("fore/aal34", ", \"capture_host\": 0", "capture_host is 0; allowed: nothing: captures cannot say"),
        ("fore/aal5", ", \"capture_host\": 2", "an integer from 0 to 1"),
    ] {
        let error = Config::from_json(&config(stack, SERIES_200, LINK, 0, more)).expect_err(said).to_string();
        assert!(error.contains(said), "{error} lacks {said}");
    }
    let text = config("socket/tcp/aal5", SERIES_200, LINK, 1500, ", \"capture_host\": 0");
    let text = text.replace("\"encapsulation_bytes\": 8", "\"encapsulation_bytes\": 0");
    let error = Config::from_json(&text).expect_err("a capture without LLC").to_string();
    assert!(error.contains("encapsulation_bytes is 8"), "{error}");
}

#[test]
fn a_capture_changes_nothing() {
    let digest = |more| {
        let config =
            Config::from_json(&config("socket/tcp/aal5", SERIES_200, LINK, 9188, more)).expect("a network");
        let mut lan = Lan::new(config, 3, false);
        round_trips_despite_losses(&mut lan, Bytes::new(20_000), 5).expect("an echo that ends");
        lan.digest()
    };
    assert_eq!(digest(""), digest(", \"capture_host\": 0"));
}
