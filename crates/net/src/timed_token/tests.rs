//! The token, station by station, at stated times; then the ring against what is known of one.

use proptest::prelude::*;
use wiretwin_units::{Bytes, SimTime, Span};

use super::*;

/// Hops of 100 ns, latencies of 900 ns: a microsecond a station.
const PLAIN: StationConfig =
    StationConfig { hop: Span::from_ns(100), latency: Span::from_ns(900), queue_frames: 64 };

fn ring(stations: usize) -> TimedToken<u32> {
    TimedToken::new(Config::FDDI, &vec![PLAIN; stations]).unwrap()
}

fn frame(to: u16, octets: u64, payload: u32) -> Frame<u32> {
    let to = Some(StationId(to));
    Frame { to, octets: Bytes::new(octets), payload }
}

fn ns(ns: u64) -> SimTime {
    SimTime::ZERO + Span::from_ns(ns)
}

/// Everything that comes out up to the last event, with nothing offered any more.
fn drain(ring: &mut TimedToken<u32>) -> Vec<Output<u32>> {
    let mut outputs = Vec::new();
    loop {
        match ring.poll_output() {
            Output::Timeout(None) => return outputs,
            Output::Timeout(Some(time)) => ring.handle_timeout(time),
            output => outputs.push(output),
        }
    }
}

fn times(outputs: &[Output<u32>]) -> Vec<(char, u16, SimTime)> {
    outputs
        .iter()
        .map(|output| match output {
            Output::Deliver { station, due, .. } => ('d', station.0, *due),
            Output::Sent { station, due } => ('s', station.0, *due),
            Output::Timeout(_) => unreachable!("drained"),
        })
        .collect()
}

#[test]
fn a_frame_waits_for_the_token_and_travels_round_to_its_receiver() {
    // The token left station 0 at 0: it is at station 1's output at 1 us, 2's at 2 us, 0's at 4 us.
    let mut ring = ring(4);
    ring.offer(ns(1500), StationId(2), frame(1, 1000, 7)).unwrap();
    let end = 2000 + (88 + 8000) * 10;
    // From station 2 through 3 and 0 to 1: three hops and stations.
    assert_eq!(times(&drain(&mut ring)), [('s', 2, ns(end)), ('d', 1, ns(end + 3000))]);
}

#[test]
fn a_token_that_has_gone_by_comes_again_after_a_rotation() {
    let mut ring = ring(4);
    ring.offer(ns(2001), StationId(2), frame(3, 1, 0)).unwrap();
    assert_eq!(ring.poll_output(), Output::Timeout(Some(ns(6000))));
    let mut later = self::ring(4);
    later.offer(ns(4_002_001), StationId(2), frame(3, 1, 0)).unwrap();
    assert_eq!(later.poll_output(), Output::Timeout(Some(ns(4_006_000))));
}

#[test]
fn whoever_the_token_meets_first_sends_first() {
    let mut ring = ring(4);
    ring.offer(ns(500), StationId(3), frame(0, 100, 0)).unwrap();
    ring.offer(ns(600), StationId(1), frame(0, 100, 1)).unwrap();
    let takes = (88 + 800) * 10;
    let first = 1000 + takes;
    // The token takes its own 880 ns to leave, then 2 us to station 3.
    let second = first + 880 + 2000 + takes;
    let sent: Vec<_> = times(&drain(&mut ring)).into_iter().filter(|&(kind, ..)| kind == 's').collect();
    assert_eq!(sent, [('s', 1, ns(first)), ('s', 3, ns(second))]);
}

#[test]
fn an_early_token_may_be_held_until_the_target_and_a_frame_begun_is_finished() {
    let config = Config { target: Span::from_us(500), ..Config::FDDI };
    let mut ring = TimedToken::new(config, &[PLAIN; 2]).unwrap();
    for payload in 0..10 {
        ring.offer(SimTime::ZERO, StationId(1), frame(0, 1239, payload)).unwrap();
    }
    // 100 us each. The token comes at 1 us; the timer set at 0 runs out at 500 us: the fifth frame begins
    // at 401 us. It comes back at 501 + 0.88 + 2 us; 500 us after 1 us has just passed: it is late.
    let sent: Vec<_> = times(&drain(&mut ring)).into_iter().filter(|&(kind, ..)| kind == 's').collect();
    assert_eq!(sent.len(), 10);
    assert_eq!(sent[4].2, ns(501_000));
    // Late at 503.88: nothing is sent; at 506.76 the timer has 1001 - 506.76 us left: five frames.
    assert_eq!(sent[5].2, ns(506_760 + 100_000));
    assert_eq!(sent[9].2, ns(506_760 + 500_000));
    let counters = ring.counters(StationId(1)).unwrap();
    assert_eq!((counters.held, counters.late, counters.expired_twice), (3, 1, 0));
}

#[test]
fn a_broadcast_reaches_every_other_station_in_the_order_of_the_ring() {
    let mut ring = ring(3);
    let frame = Frame { to: None, ..frame(0, 100, 9) };
    ring.offer(ns(900), StationId(1), frame).unwrap();
    let end = 1000 + 8880;
    assert_eq!(
        times(&drain(&mut ring)),
        [('s', 1, ns(end)), ('d', 2, ns(end + 1000)), ('d', 0, ns(end + 2000))]
    );
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let mut ring = ring(2);
    let offer = |ring: &mut TimedToken<u32>, at, from, frame| {
        ring.offer(ns(at), StationId(from), frame).unwrap_err().to_string()
    };
    assert_eq!(offer(&mut ring, 0, 2, frame(1, 64, 0)), "station is 2; allowed: 0 to 1");
    assert_eq!(offer(&mut ring, 0, 0, frame(0, 64, 0)), "frame.to is 0; allowed: another station");
    assert_eq!(offer(&mut ring, 0, 0, frame(1, 4492, 0)), "frame.octets is 4492 B; allowed: at most 4491 B");
    for payload in 0..64 {
        ring.offer(ns(5), StationId(0), frame(1, 64, payload)).unwrap();
    }
    assert_eq!(ring.offer(ns(5), StationId(0), frame(1, 64, 0)), Ok(false));
    assert_eq!(offer(&mut ring, 4, 1, frame(0, 64, 0)), "now is 4 ns; allowed: 5 ns or later");
    let build = |config, stations: &[StationConfig]| {
        TimedToken::<u32>::new(config, stations).err().unwrap().to_string()
    };
    assert_eq!(build(Config::FDDI, &[PLAIN]), "stations is 1; allowed: 2 to 500");
    let slow = Config { rate: BitRate::kbit_s(1), ..Config::FDDI };
    assert_eq!(build(slow, &[PLAIN; 2]), "rate is 1 kbit/s; allowed: 1 Mbit/s or more");
    let short = Config { target: Span::from_us(100), ..Config::FDDI };
    assert!(build(short, &[PLAIN; 2]).contains("or more: a rotation,"));
}

struct Run {
    sent: Vec<u64>,
    delivered: u64,
    counters: Vec<Counters>,
    queued: usize,
}

/// `senders` of `stations` always have frames of `octets`, for `length`.
fn saturate(stations: usize, senders: u16, octets: u64, target: Span, length: Span) -> Run {
    let config = Config { target, ..Config::FDDI };
    // A ring of some 2 ms: 20 us a hop.
    let station = StationConfig { hop: Span::from_us(20), latency: Span::from_us(1), ..PLAIN };
    let mut ring = TimedToken::new(config, &vec![station; stations]).unwrap();
    let next = |from: u16| frame((from + 1) % stations as u16, octets, 0);
    for sender in 0..senders {
        for _ in 0..PLAIN.queue_frames {
            ring.offer(SimTime::ZERO, StationId(sender), next(sender)).unwrap();
        }
    }
    let mut delivered = 0;
    loop {
        match ring.poll_output() {
            Output::Timeout(Some(time)) if time <= SimTime::ZERO + length => ring.handle_timeout(time),
            Output::Timeout(_) => break,
            Output::Deliver { .. } => delivered += 1,
            Output::Sent { station, due } => {
                if ring.queued(station).unwrap() < PLAIN.queue_frames as usize {
                    ring.offer(due.max(ring.now()), station, next(station.0)).unwrap();
                }
            }
        }
    }
    let all = (0..stations as u16).map(StationId);
    let counters: Vec<_> = all.clone().map(|station| ring.counters(station).unwrap()).collect();
    let queued = all.map(|station| ring.queued(station).unwrap()).sum();
    Run { sent: counters.iter().map(|counters| counters.sent).collect(), delivered, counters, queued }
}

#[test]
fn a_saturated_ring_carries_what_jain_computes() {
    // n (T - D) / (n T + D), D with the tokens; frames short beside the target, so that finishing a frame
    // that was begun does not count.
    let (stations, octets, length) = (20, 112, Span::from_s(4));
    for target_ms in [4, 8, 16] {
        for senders in [1, 2, 5, 20] {
            let target = Span::from_ms(target_ms);
            let run = saturate(stations, senders, octets, target, length);
            let carried = run.sent.iter().sum::<u64>() as f64 * 9.84e-6 / length.as_s_f64();
            let (n, t) = (f64::from(senders), target.as_s_f64());
            let d = 20.0 * 21e-6 + n * 0.88e-6;
            let jain = n * (t - d) / (n * t + d);
            assert!(
                (carried / jain - 1.0).abs() < 0.01,
                "target {target_ms} ms, {senders} senders: {carried:.4}, formula {jain:.4}"
            );
        }
    }
}

#[test]
fn saturated_stations_get_equal_shares() {
    let run = saturate(6, 6, 1000, Span::from_ms(4), Span::from_s(4));
    let (least, most) = (run.sent.iter().min().unwrap(), run.sent.iter().max().unwrap());
    assert!((most - least) as f64 / (*most as f64) < 0.01, "{:?}", run.sent);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn every_frame_is_sent_and_arrives_or_is_still_there(
        stations in 2_usize..12, octets in 1_u64..4492, target_ms in 2_u64..10, few in 1_u16..12,
    ) {
        let senders = few.min(stations as u16);
        let run = saturate(stations, senders, octets, Span::from_ms(target_ms), Span::from_ms(60));
        let offered: u64 = run.counters.iter().map(|counters| counters.offered).sum();
        let sent: u64 = run.sent.iter().sum();
        prop_assert_eq!(offered, sent + run.queued as u64);
        prop_assert_eq!(run.delivered, run.counters.iter().map(|counters| counters.received).sum::<u64>());
        prop_assert!(run.delivered <= sent && run.delivered + 64 >= sent);
        // 8.4.2: no timer runs out twice.
        prop_assert_eq!(run.counters.iter().map(|counters| counters.expired_twice).sum::<u64>(), 0);
    }
}
