//! Oracles, conservation, fairness.

use std::sync::Arc;

use proptest::prelude::*;
use wiretwin_proto::tcp::{Config, DelayedAck, Reason};
use wiretwin_units::{BitRate, Bytes, SimTime, Span};

use super::{Application, Costs, Dumbbell, DumbbellError, LinkSpec, Side};

fn at_s(s: u64) -> SimTime {
    SimTime::ZERO + Span::from_s(s)
}

fn modern(octets: u64) -> Config {
    Config { work: false, ..Config::linux_modern() }
        .with_buffers(Bytes::new(octets), Bytes::new(octets))
        .unwrap()
}

/// Octets of each flow between two instants.
fn read_between(side: &mut Side, from_s: u64, to_s: u64) -> Vec<u64> {
    side.network.run_until(at_s(from_s));
    let before: Vec<u64> = side.flows.iter().map(|&flow| side.network.flow(flow).read.get()).collect();
    side.network.run_until(at_s(to_s));
    let after = side.flows.iter().map(|&flow| side.network.flow(flow).read.get());
    after.zip(before).map(|(after, before)| after - before).collect()
}

fn assert_conserved(side: &Side) {
    let mut held = 0;
    for &link in &side.links {
        let counters = side.network.link(link);
        assert_eq!(counters.offered, counters.dropped + counters.delivered + side.network.held(link));
        held += side.network.held(link);
    }
    assert_eq!(side.network.lost_without_route(), 0);
    assert!(side.network.under_way() as u64 >= held);
    assert_eq!(
        side.network.hops(),
        side.links.iter().map(|&link| side.network.link(link).delivered).sum::<u64>()
    );
}

/// Throughput is the window over the round trip where the window is small, and that of the line, less
/// headers, where it is not.
#[test]
fn goodput_is_window_over_round_trip_or_the_line() {
    for window in [5_u64, 10, 20, 40].map(|segments| segments * 1_448) {
        // An acknowledgment that waits would be a round trip of its own.
        let mut config = Config { delayed_ack: DelayedAck::None, ..modern(window) };
        config.buffers.send = 1 << 20;
        let mut side = Dumbbell::over_155_mbit_s(1, 1_500, config).build().unwrap();
        let read = read_between(&mut side, 2, 12)[0] as f64 / 10.0;
        // Out: three delays and serialisations of a full packet; back: of an acknowledgment.
        let on = |octets: f64| octets * 8.0 / 155e6 + 2.0 * octets * 8.0 / 1e9 + 5.02e-3;
        let round_trip = on(1_508.0) + on(60.0);
        let expected = window as f64 / round_trip;
        let ratio = read / expected;
        // The window goes out in bursts: its last segment waits for those before it.
        assert!((0.93..=1.001).contains(&ratio), "window {window}: {read:.0} for {expected:.0} octets/s");
        assert_eq!(side.network.link(side.forward).dropped, 0);
        assert_conserved(&side);
    }
    let mut side = Dumbbell::over_155_mbit_s(1, 1_500, modern(300_000)).build().unwrap();
    let read = read_between(&mut side, 2, 12)[0] as f64 / 10.0;
    let line = 155e6 / 8.0 * 1_448.0 / 1_508.0;
    assert!((0.995..=1.001).contains(&(read / line)), "{read:.0} for {line:.0} octets/s");
}

#[test]
fn six_connections_share_the_line_fairly_and_fill_it() {
    for (mtu, mss) in [(1_500_u16, 1_448.0), (8_244, 8_192.0)] {
        for config in [modern(4 << 20), Config { work: false, ..Config::linux22() }] {
            let name = config.name;
            let mut side = Dumbbell::over_155_mbit_s(6, mtu, config).build().unwrap();
            let read = read_between(&mut side, 5, 45);
            let sum: f64 = read.iter().map(|&octets| octets as f64).sum();
            let squares: f64 = read.iter().map(|&octets| (octets as f64).powi(2)).sum();
            let jain = sum * sum / (6.0 * squares);
            assert!(jain > 0.9, "{name}, MTU {mtu}: Jain's index {jain:.3} of {read:?}");
            let line = 155e6 / 8.0 * mss / (f64::from(mtu) + 8.0) * 40.0;
            assert!(
                (0.9..=1.001).contains(&(sum / line)),
                "{name}, MTU {mtu}: {:.3} of the line",
                sum / line
            );
            assert!(side.network.link(side.forward).dropped > 0 || name == "linux22");
            assert_conserved(&side);
        }
    }
}

#[test]
fn the_queue_never_holds_more_than_it_may() {
    let mut dumbbell = Dumbbell::over_155_mbit_s(6, 1_500, modern(4 << 20));
    dumbbell.bottleneck.queue_packets = Some(17);
    let mut side = dumbbell.build().unwrap();
    side.network.run_until(at_s(5));
    assert_eq!(side.network.link(side.forward).longest, 17);
    assert!(side.network.link(side.forward).dropped > 0);
    assert_conserved(&side);
}

#[test]
fn a_run_is_the_same_every_time() {
    let run = || {
        let mut side = Dumbbell::over_155_mbit_s(6, 1_500, modern(4 << 20)).build().unwrap();
        side.network.run_until(at_s(3));
        let flows: Vec<_> = side.flows.iter().map(|&flow| side.network.flow(flow)).collect();
        (flows, side.network.hops(), side.network.events())
    };
    assert_eq!(run(), run());
}

#[test]
fn hosts_that_cost_hold_back_what_the_line_would_carry() {
    // 300 us a segment, as Chen et al. (1996) give their TCP: 3333 segments a second and side at most,
    // acknowledgments counted in.
    let costs = Costs { per_segment: Span::from_us(300), ..Costs::default() };
    let config = Config { work: true, ..modern(300_000) };
    let mut dumbbell = Dumbbell::over_155_mbit_s(1, 1_500, config);
    dumbbell.costs = Some(costs);
    let mut side = dumbbell.build().unwrap();
    let read = read_between(&mut side, 2, 12)[0] as f64 / 10.0;
    // With an acknowledgment for every second segment, a host handles 3 for 2 of text.
    let expected = 2.0 / (3.0 * 300e-6) * 1_448.0;
    assert!((0.95..=1.01).contains(&(read / expected)), "{read:.0} for {expected:.0} octets/s");
    assert_conserved(&side);
}

#[test]
fn a_dumbbell_that_cannot_be_is_refused() {
    let fine = Dumbbell::over_155_mbit_s(1, 1_500, modern(65_535));
    let none = Dumbbell { pairs: 0, ..fine.clone() };
    assert_eq!(none.build().err(), Some(DumbbellError::NoPairs));
    let narrow = Dumbbell { mtu: 60, ..fine.clone() };
    let error = narrow.build().err().unwrap();
    assert_eq!(error.to_string(), "an MTU of 60 octets: it must be at least 68");
    let bottleneck = LinkSpec { queue_packets: Some(0), ..fine.bottleneck };
    assert_eq!(Dumbbell { bottleneck, ..fine }.build().err(), Some(DumbbellError::NoQueue));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever the rules, the queue and the line: every transfer ends, with all of it read, and no
    /// packet appears or vanishes.
    #[test]
    fn every_transfer_ends_and_packets_are_conserved(
        preset in 0_usize..6,
        pairs in 1_u32..5,
        queue in 2_u32..40,
        rate_mbit_s in 1_u64..1_000,
        delay_us in 1_u64..30_000,
        octets in 1_u64..400_000,
        mtu in prop_oneof![Just(576_u16), Just(1_500), Just(9_180)],
    ) {
        let config = Config { work: false, ..Config::presets()[preset].clone() };
        let mut dumbbell = Dumbbell::over_155_mbit_s(pairs, mtu, config);
        dumbbell.bottleneck.rate = BitRate::mbit_s(rate_mbit_s);
        dumbbell.bottleneck.delay = Span::from_us(delay_us);
        dumbbell.bottleneck.queue_packets = Some(queue);
        dumbbell.application = Application::Transfer(Bytes::new(octets));
        let mut side = dumbbell.build().unwrap();
        side.network.run_until(at_s(20_000));
        assert_conserved(&side);
        prop_assert_eq!(side.network.under_way(), 0);
        for &flow in &side.flows {
            let report = side.network.flow(flow);
            prop_assert_eq!(report.read.get(), octets);
            prop_assert_eq!(report.ended, Some(Reason::Finished));
        }
        let _ = Arc::strong_count(&dumbbell.sender);
    }
}
