//! A host that is flooded: the arithmetic of interrupts that come first.

use super::*;
use crate::lan::Config;
use crate::lan::config::priced;

const US: u64 = 1_000_000;

/// One receiver whose prices are round, and two senders that cost nothing, at a switch.
fn network(coalesce_frames: u32) -> Lan {
    let host = |prices: &[(&str, u64)]| {
        let prices: Vec<String> = priced()
            .map(|activity| {
                let name = activity.name();
                let price = prices.iter().find(|(of, _)| *of == name).map_or(0, |(_, us)| us * US);
                format!(r#""{name}": {{"call_ps": {price}, "byte_ps": 0}}"#)
            })
            .collect();
        format!(
            r#"{{"name": "h", "cache_bytes": 0, "prices": {{{}}}, "bus": {{"setup_ps": 0, "byte_ps": 0}},
            "adapter": {{"kind": "frames"}}}}"#,
            prices.join(",")
        )
    };
    let receiver = host(&[
        ("interrupt", 10),
        ("packet_in", 12),
        ("segment_in", 8),
        ("context_switch", 10),
        ("trap", 5),
        ("socket_receive", 5),
        ("copy_out", 20),
    ]);
    let sender = host(&[]);
    let text = format!(
        r#"{{"stack": "socket/udp/gige", "hosts": [{receiver}, {sender}, {sender}],
        "pdu_bytes": 4096, "stream_bytes": 100000, "cut_messages": false,
        "gige": {{"rate_bit_s": 1000000000, "propagation_ps": 50000, "adapter": {{
            "bus_setup_ps": 0, "bus_byte_ps": 1000, "frame_ps": 0, "send_frames": 64, "receive_bytes": 65536,
            "receive_frames": 64, "coalesce_frames": {coalesce_frames}, "coalesce_ps": 200000000, "pause": false}},
            "switch": {{"forwarding": "stored", "latency_ps": 1000000, "port_bytes": 100000}}}},
        "socket": {{"tcp": "linux22", "buffer_bytes": 32768, "nodelay": true, "mtu_bytes": 1500,
            "encapsulation_bytes": 18}}}}"#
    );
    Lan::new(Config::from_json(&text).expect("a network"), 1, false)
}

/// Two senders, each with a datagram every `gap`: what was offered and got in 0.1 s, a second.
fn rates(coalesce_frames: u32, gap_us: u64) -> (f64, f64, Flood) {
    let mut lan = network(coalesce_frames);
    let found = flood(&mut lan, Bytes::new(100), Span::from_us(gap_us), Span::from_ms(200)).expect("a flood");
    for (name, passed) in lan.passed() {
        assert_eq!(passed.taken, passed.given + passed.lost + passed.held, "{name}");
    }
    let seconds = found.length.as_s_f64();
    (found.sent as f64 / seconds, found.got as f64 / seconds, found)
}

#[test]
fn a_host_whose_interrupts_come_first_gets_less_the_more_comes_and_then_nothing() {
    // Both senders' packets come together: 10 us of interrupt for the two and 20 of driver, IP and UDP for each
    // before any process, whose reader takes 30, or 40 where it slept.
    let (offered, got, found) = rates(1, 200);
    assert!((offered / 10_000.0 - 1.0).abs() < 0.01, "{offered} a second");
    assert_eq!((found.unread, found.lost), (0, 0), "there is time for all: {found:?}");
    assert!((got / offered - 1.0).abs() < 0.01, "{got} of {offered}");
    // Beyond what it can take in and read, each more that comes takes time from the reader: (1 - 25 us rate) / 30 us.
    let (mut last, mut peak) = (f64::MAX, 0.0_f64);
    for gap in [100, 80, 70, 65] {
        let (offered, got, found) = rates(1, gap);
        let left = (1.0 - 25e-6 * offered) / 30e-6;
        assert!((got - left).abs() < 0.03 * 16_700.0, "{got} of {offered} a second, {left} by hand");
        assert!(got < last && found.unread > 0, "{found:?}");
        last = got;
        peak = peak.max(got);
    }
    // Livelock: it is busy all the time, and its program gets next to nothing.
    let (offered, got, found) = rates(1, 42);
    assert!(offered > 40_000.0 && got < 0.03 * peak && found.unread > 1_000, "{got} of {offered}: {found:?}");
    assert!(found.busy.as_s_f64() > 0.999 * found.length.as_s_f64(), "{found:?}");
}

#[test]
fn coalescing_moves_livelock_to_a_higher_rate_and_does_not_end_it() {
    // Sixteen packets an interrupt: 20.6 us each before any process.
    let (_, alone, _) = rates(1, 42);
    let (offered, together, _) = rates(16, 50);
    assert!(together > 10.0 * alone.max(1.0), "{together} of {offered} a second, {alone} without");
    let (offered, got, found) = rates(16, 35);
    assert!(offered > 55_000.0 && got < 0.05 * together, "{got} of {offered}: {found:?}");
    // What does not even fit the ring is lost on the adapter and costs the host nothing.
    assert!(found.lost > 0, "{found:?}");
}
