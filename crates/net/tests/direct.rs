//! Two services beside background load, and many senders to one port.

use wiretwin_net::direct::{Echo, Hosts, Incast, PROTECTED_DSCP, live_config};
use wiretwin_net::frame::{Background, Medium, PortId, Queues, WireConfig};
use wiretwin_proto::direct::{Services, Thresholds};
use wiretwin_units::{BitRate, Bytes, Span};

fn wire(rate: BitRate, queue: Bytes) -> WireConfig {
    WireConfig {
        medium: Medium::Switch { latency: Span::ZERO, queue },
        rate,
        delay: Span::from_us(5),
        queue_frames: 1000,
        longest: Bytes::new(1518),
        rules: Vec::new(),
        queues: None,
        background: Vec::new(),
        seed: 2,
    }
}

/// Mean and 99th percentile of messages to and fro, in microseconds, and the share of frames that went protected.
#[derive(Clone, Copy, Debug)]
struct Found {
    mean: f64,
    p99: f64,
    share: f64,
}

/// Beside background load of 0.7 on the ordinary class, on the way of the messages.
fn beside_load(services: Services) -> Found {
    let queues = Queues::strict_priority(&[PROTECTED_DSCP]).ok();
    let background = vec![Background { to: Some(PortId(1)), ..Background::of(0, 0.7) }];
    let wire = WireConfig { queues, background, ..wire(BitRate::mbit_s(10), Bytes::kib(512)) };
    let mut hosts = Hosts::new(wire, live_config(services, false), 2).expect("a wire");
    let mut took = Echo { length: Bytes::new(64), pause: Span::from_ms(2), count: 8000 }.run(&mut hosts);
    took.sort_unstable();
    let us = |span: &Span| span.as_s_f64() * 1e6;
    let counted = hosts.totals();
    assert_eq!(counted.bytes.iter().sum::<u64>(), 64 * (counted.sent + counted.resent));
    let found = Found {
        mean: took.iter().map(us).sum::<f64>() / took.len() as f64,
        p99: us(&took[took.len() * 99 / 100]),
        share: counted.protected as f64 / (counted.sent + counted.resent) as f64,
    };
    println!("{services:?}: {found:?}");
    found
}

#[test]
fn beside_load_messages_that_choose_are_hardly_later_than_protected_ones_and_not_all_protected() {
    let adaptive = Services::Adaptive(Thresholds {
        high: Span::from_ms(1),
        low: Span::from_us(600),
        interval: Span::from_ms(1),
        lost: Span::from_ms(50),
    });
    let [ordinary, protected, adaptive] =
        [Services::Ordinary, Services::Protected, adaptive].map(beside_load);
    assert!(ordinary.mean > 1.5 * protected.mean && ordinary.p99 > 2.0 * protected.p99);
    assert!(adaptive.mean <= 1.2 * protected.mean && adaptive.p99 <= 1.2 * protected.p99);
    assert!(adaptive.share <= 0.8 && adaptive.share >= 0.3, "{}", adaptive.share);
    assert!((ordinary.share, protected.share) == (0.0, 1.0));
}

#[test]
fn a_window_that_follows_the_delay_loses_a_tenth_of_what_a_fixed_one_loses_where_many_send_to_one() {
    let lost = [true, false].map(|is_fixed| {
        let wire = wire(BitRate::mbit_s(100), Bytes::kib(256));
        let config = live_config(Services::Ordinary, is_fixed);
        let mut hosts = Hosts::new(wire, config, 9).expect("a wire");
        Incast { length: Bytes::new(1400), count: 3000 }.run(&mut hosts);
        let counted = hosts.totals();
        // Each message has come once, whatever was lost.
        assert_eq!(counted.received, 8 * 3000);
        hosts.port(0).0.switch_drops
    });
    println!("lost: {lost:?}");
    assert!(lost[0] > 1000 && lost[1] * 10 <= lost[0], "{lost:?}");
}
