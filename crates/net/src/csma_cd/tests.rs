//! The access procedure, station by station, at stated times.

use wiretwin_engine::Stream;
use wiretwin_units::{Bytes, SimTime, Span};

use super::*;

fn cable(config: Config, places_ns: &[u64]) -> CsmaCd<u32> {
    let places: Vec<_> = places_ns.iter().map(|&ns| Span::from_ns(ns)).collect();
    CsmaCd::new(config, &places, |station| Stream::derive(7, &format!("cable/{station}/backoff"))).unwrap()
}

fn frame(to: u16, octets: u64, payload: u32) -> Frame<u32> {
    Frame { to: Some(StationId(to)), octets: Bytes::new(octets), payload }
}

/// At this bit time of 10 Mbit/s.
fn bit(bits: u64) -> SimTime {
    SimTime::from_ps(bits * 100_000)
}

/// Everything that comes out up to the last event, with nothing offered any more.
fn drain(cable: &mut CsmaCd<u32>) -> Vec<Output<u32>> {
    let mut outputs = Vec::new();
    loop {
        match cable.poll_output() {
            Output::Timeout(None) => return outputs,
            Output::Timeout(Some(time)) => cable.handle_timeout(time),
            output => outputs.push(output),
        }
    }
}

fn sent(outputs: &[Output<u32>]) -> Vec<(u16, u32, SimTime)> {
    outputs
        .iter()
        .filter_map(|output| match *output {
            Output::Sent { station, collisions, due, .. } => Some((station.0, collisions, due)),
            _ => None,
        })
        .collect()
}

#[test]
fn a_frame_on_a_silent_cable_goes_at_once_and_arrives_after_its_way() {
    let mut cable = cable(Config::TEN, &[0, 1000]);
    cable.offer(bit(10), StationId(0), frame(1, 1518, 5)).unwrap();
    let due = bit(10 + 64 + 1518 * 8);
    let deliver = Output::Deliver {
        station: StationId(1),
        from: StationId(0),
        frame: frame(1, 1518, 5),
        began: bit(10) + Span::from_us(1),
        due: due + Span::from_us(1),
    };
    let gone = Output::Sent { station: StationId(0), collisions: 0, began: bit(10), due };
    assert_eq!(drain(&mut cable), [gone, deliver]);
}

#[test]
fn a_short_frame_is_padded() {
    let mut cable = cable(Config::TEN, &[0, 0]);
    cable.offer(bit(0), StationId(0), frame(1, 1, 0)).unwrap();
    assert_eq!(sent(&drain(&mut cable)), [(0, 0, bit(64 + 512))]);
    assert_eq!(cable.counters(StationId(0)).unwrap().sent_octets, 1);
}

#[test]
fn at_a_gigabit_a_short_frame_is_extended_to_a_slot() {
    let mut cable = cable(Config::THOUSAND, &[0, 0]);
    cable.offer(SimTime::ZERO, StationId(0), frame(1, 64, 0)).unwrap();
    assert_eq!(sent(&drain(&mut cable)), [(0, 0, SimTime::from_ps((64 + 4096) * 1000))]);
}

/// At this bit time of 1000 Mbit/s.
fn ns(bits: u64) -> SimTime {
    SimTime::from_ps(bits * 1000)
}

/// Frames of 64 octets from station 0, each offered so long after the last was sent, until there are `count`
/// or one is given up; station 1 is offered one at `other`.
fn burst(cable: &mut CsmaCd<u32>, count: usize, pause: u64, mut other: Option<SimTime>) -> Vec<Output<u32>> {
    let mut outputs = Vec::new();
    let mut next = Some(SimTime::ZERO);
    let mut offered = 0;
    loop {
        let before = |time: Option<SimTime>| other.filter(|other| time.is_none_or(|time| *other <= time));
        match cable.poll_output() {
            Output::Timeout(timeout) => match (next, timeout) {
                (_, timeout) if before(timeout).is_some() && before(next).is_some() => {
                    let time = other.take().expect("it is before others");
                    cable.offer(time, StationId(1), frame(0, 64, 9)).unwrap();
                }
                (Some(time), timeout) if timeout.is_none_or(|timeout| time <= timeout) => {
                    next = None;
                    cable.offer(time, StationId(0), frame(1, 64, offered)).unwrap();
                    offered += 1;
                }
                (_, Some(time)) => cable.handle_timeout(time),
                (_, None) => return outputs,
            },
            output => {
                if let Output::Sent { station: StationId(0), due, .. } = output {
                    next = (offered < count as u32).then_some(due + Span::from_ns(pause));
                }
                outputs.push(output);
            }
        }
    }
}

#[test]
fn in_a_burst_only_the_first_frame_is_extended_and_the_carrier_goes_on_through_the_gap() {
    let mut cable = cable(Config::THOUSAND_IN_BURSTS, &[0, 100]);
    // What is offered before the gap is over follows, though a station at the other end has waited longer.
    let outputs = burst(&mut cable, 3, 95, Some(ns(101)));
    let (first, next) = (64 + 4096, 96 + 64 + 512);
    let other = first + 2 * next + 96 + 100 + 96 + first;
    let expected =
        [(0, 0, ns(first)), (0, 0, ns(first + next)), (0, 0, ns(first + 2 * next)), (1, 0, ns(other))];
    assert_eq!(sent(&outputs), expected, "behind the last frame the carrier fills one more gap");
    assert_eq!(cable.counters(StationId(0)).unwrap().followed, 2);
    let came: Vec<_> = outputs
        .iter()
        .filter_map(|output| match *output {
            Output::Deliver { station: StationId(1), began, due, .. } => Some((began, due)),
            _ => None,
        })
        .collect();
    let second = (ns(first + 96 + 100), ns(first + next + 100));
    assert_eq!(came[..2], [(ns(100), ns(first + 100)), second], "each frame comes by itself");
}

#[test]
fn what_comes_when_the_carrier_has_gone_begins_anew() {
    let mut cable = cable(Config::THOUSAND_IN_BURSTS, &[0, 100]);
    let outputs = burst(&mut cable, 2, 96, None);
    let first = 64 + 4096;
    assert_eq!(sent(&outputs), [(0, 0, ns(first)), (0, 0, ns(first + 96 + 96 + first))]);
    assert_eq!(cable.counters(StationId(0)).unwrap().followed, 0);
}

#[test]
fn a_burst_ends_with_the_frame_that_began_within_its_limit() {
    let mut cable = cable(Config::THOUSAND_IN_BURSTS, &[0, 0]);
    let outputs = burst(&mut cable, 100, 0, None);
    let (first, next) = (64 + 4096, 96 + 64 + 512);
    // The frame that is sent at the end of 65 536 bit times goes out, and no carrier fills the gap behind it.
    let follow = (65_536 - first) / next + 1;
    let sent = sent(&outputs);
    assert_eq!(sent[follow as usize].2, ns(first + follow * next));
    assert_eq!(sent[follow as usize + 1].2, ns(first + follow * next + 96 + first), "the next burst");
}

#[test]
fn every_collision_behind_the_first_frame_of_a_burst_is_late() {
    // 5000 bit times apart, more than a slot allows: the other end starts before it hears anything, and is heard
    // while the third frame goes out, from 4928 to 5504, or in the gap behind it.
    for (heard, lost) in [(5_100, 2), (5_550, 3)] {
        let mut cable = cable(Config::THOUSAND_IN_BURSTS, &[0, 5_000]);
        let outputs = burst(&mut cable, 6, 0, Some(ns(heard - 5_000)));
        let failed: Vec<_> = outputs
            .iter()
            .filter_map(|output| match output {
                Output::Failed { station: StationId(0), frame, why, .. } => Some((frame.payload, *why)),
                _ => None,
            })
            .collect();
        assert_eq!(failed, [(lost, Failure::Late)], "heard at {heard}");
    }
}

#[test]
fn a_station_that_hears_a_carrier_waits_for_its_end_and_the_gap() {
    // 20 bit times apart.
    let mut cable = cable(Config::TEN, &[0, 2000]);
    cable.offer(bit(0), StationId(0), frame(1, 64, 0)).unwrap();
    cable.offer(bit(21), StationId(1), frame(0, 64, 1)).unwrap();
    let second = 576 + 20 + 96;
    assert_eq!(sent(&drain(&mut cable)), [(0, 0, bit(576)), (1, 0, bit(second + 576))]);
    assert_eq!(cable.counters(StationId(1)).unwrap().deferred, 1);
    assert_eq!(cable.counters(StationId(0)).unwrap().deferred, 0);
}

#[test]
fn a_station_waits_the_gap_after_its_own_frame() {
    let mut cable = cable(Config::TEN, &[0, 0]);
    cable.offer(bit(0), StationId(0), frame(1, 64, 0)).unwrap();
    cable.handle_timeout(bit(576));
    cable.offer(bit(576), StationId(0), frame(1, 64, 1)).unwrap();
    assert_eq!(sent(&drain(&mut cable)), [(0, 0, bit(576)), (0, 0, bit(576 + 96 + 576))]);
}

#[test]
fn stations_that_do_not_hear_each_other_yet_collide_and_both_jam() {
    let mut cable = cable(Config::TEN, &[0, 2000]);
    cable.offer(bit(0), StationId(0), frame(1, 1000, 0)).unwrap();
    cable.offer(bit(10), StationId(1), frame(0, 1000, 1)).unwrap();
    // Station 1 hears the other at 20, in its preamble: it stops at 10 + 64 + 32. Station 0 hears it
    // at 30 and stops at 0 + 64 + 32.
    cable.handle_timeout(bit(95));
    assert_eq!(cable.counters(StationId(0)).unwrap().collisions, 0);
    cable.handle_timeout(bit(96));
    assert_eq!(cable.counters(StationId(0)).unwrap().collisions, 1);
    cable.handle_timeout(bit(105));
    assert_eq!(cable.counters(StationId(1)).unwrap().collisions, 0);
    cable.handle_timeout(bit(106));
    assert_eq!(cable.counters(StationId(1)).unwrap().collisions, 1);
    let done = sent(&drain(&mut cable));
    assert_eq!(done.len(), 2);
    assert!(done.iter().all(|&(_, collisions, _)| collisions >= 1), "{done:?}");
}

#[test]
fn two_that_wait_for_the_same_silence_collide() {
    let mut cable = cable(Config::TEN, &[0, 0, 0]);
    cable.offer(bit(0), StationId(0), frame(2, 64, 0)).unwrap();
    cable.offer(bit(1), StationId(1), frame(2, 64, 1)).unwrap();
    cable.offer(bit(2), StationId(2), frame(1, 64, 2)).unwrap();
    drain(&mut cable);
    assert_eq!(cable.counters(StationId(0)).unwrap().collisions, 0);
    for station in [1, 2] {
        assert!(cable.counters(StationId(station)).unwrap().collisions >= 1);
    }
}

#[test]
fn a_carrier_in_the_second_part_of_the_gap_does_not_stop_a_station_that_waits() {
    // Station 2 hears 0's frame until 576 + 40 and would start at 616 + 96. Station 1 starts at the end
    // of its own gap, at 576 + 96, and is heard at 2 at that very moment.
    let mut cable = cable(Config::TEN, &[0, 0, 4000]);
    cable.offer(bit(0), StationId(0), frame(1, 64, 0)).unwrap();
    cable.offer(bit(600), StationId(1), frame(0, 64, 1)).unwrap();
    cable.offer(bit(626), StationId(2), frame(0, 64, 2)).unwrap();
    drain(&mut cable);
    assert_eq!([1, 2].map(|station| cable.counters(StationId(station)).unwrap().collisions > 0), [true; 2]);
}

#[test]
fn a_frame_that_always_collides_is_given_up_after_sixteen_attempts() {
    // Backoff of nothing: all stations come back at once.
    let config = Config { backoff_limit: 0, ..Config::TEN };
    let mut cable = cable(config, &[0, 0]);
    cable.offer(bit(0), StationId(0), frame(1, 64, 0)).unwrap();
    cable.offer(bit(0), StationId(1), frame(0, 64, 1)).unwrap();
    let outputs = drain(&mut cable);
    let failed: Vec<_> = outputs
        .iter()
        .filter_map(|output| match output {
            Output::Failed { station, why, frame, .. } => Some((station.0, *why, frame.payload)),
            _ => None,
        })
        .collect();
    assert_eq!(failed, [(0, Failure::Excessive, 0), (1, Failure::Excessive, 1)]);
    let counters = cable.counters(StationId(0)).unwrap();
    assert_eq!((counters.collisions, counters.excessive, counters.sent), (16, 1, 0));
    assert!(cable.is_idle(StationId(0)), "it takes its next frame");
}

#[test]
fn a_collision_after_a_slot_is_late_and_ends_the_frame() {
    // 300 bit times apart: the far station's signal comes back after up to 600.
    let mut cable = cable(Config::TEN, &[0, 30_000]);
    cable.offer(bit(0), StationId(0), frame(1, 1000, 0)).unwrap();
    cable.offer(bit(299), StationId(1), frame(0, 1000, 1)).unwrap();
    let outputs = drain(&mut cable);
    let why = |outputs: &[Output<u32>]| {
        outputs.iter().find_map(|output| match *output {
            Output::Failed { station, why, .. } => Some((station.0, why)),
            _ => None,
        })
    };
    assert_eq!(why(&outputs), Some((0, Failure::Late)));
    assert_eq!(cable.counters(StationId(0)).unwrap().late, 1);
    assert_eq!(sent(&outputs).len(), 1, "the other one backs off and sends");
}

#[test]
fn a_short_frame_on_a_cable_too_long_is_lost_without_its_sender_knowing() {
    // Two ends, one listener in the middle; both frames are over before the other is heard.
    let mut cable = cable(Config::TEN, &[0, 100_000, 50_000]);
    cable.offer(bit(0), StationId(0), frame(2, 64, 0)).unwrap();
    cable.offer(bit(0), StationId(1), frame(2, 64, 1)).unwrap();
    let outputs = drain(&mut cable);
    assert_eq!(sent(&outputs).len(), 2);
    assert!(!outputs.iter().any(|output| matches!(output, Output::Deliver { .. })));
    assert_eq!(cable.counters(StationId(2)).unwrap().damaged, 2);
}

#[test]
fn a_broadcast_reaches_every_other_station() {
    let mut cable = cable(Config::TEN, &[0, 100, 300]);
    let frame = Frame { to: None, octets: Bytes::new(64), payload: 9 };
    cable.offer(bit(0), StationId(1), frame).unwrap();
    let reached: Vec<_> = drain(&mut cable)
        .iter()
        .filter_map(|output| match output {
            Output::Deliver { station, due, .. } => Some((station.0, *due)),
            _ => None,
        })
        .collect();
    let end = bit(576);
    assert_eq!(reached, [(0, end + Span::from_ns(100)), (2, end + Span::from_ns(200))]);
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let mut cable = cable(Config::TEN, &[0, 0]);
    let offer = |cable: &mut CsmaCd<u32>, at, from, frame| {
        cable.offer(bit(at), StationId(from), frame).unwrap_err().to_string()
    };
    assert_eq!(offer(&mut cable, 0, 2, frame(1, 64, 0)), "station is 2; allowed: 0 to 1");
    assert_eq!(offer(&mut cable, 0, 0, frame(9, 64, 0)), "station is 9; allowed: 0 to 1");
    assert_eq!(offer(&mut cable, 0, 0, frame(0, 64, 0)), "frame.to is 0; allowed: another station");
    assert_eq!(
        offer(&mut cable, 0, 0, frame(1, 65_536, 0)),
        "frame.octets is 64 KiB; allowed: at most 65535 B"
    );
    cable.offer(bit(5), StationId(0), frame(1, 64, 0)).unwrap();
    assert_eq!(
        offer(&mut cable, 5, 0, frame(1, 64, 0)),
        "station is 0; allowed: one that has done with its last frame"
    );
    assert_eq!(offer(&mut cable, 4, 1, frame(0, 64, 0)), "now is 400 ns; allowed: 500 ns or later");
    let places = [Span::ZERO];
    let stream = |_| Stream::derive(0, "x");
    let build =
        |config, places: &[Span]| CsmaCd::<u32>::new(config, places, stream).err().unwrap().to_string();
    assert_eq!(build(Config::TEN, &places), "stations is 1; allowed: 2 to 65535");
    let two = [Span::ZERO; 2];
    let slow = Config { rate: BitRate::kbit_s(1), ..Config::TEN };
    assert_eq!(build(slow, &two), "rate is 1 kbit/s; allowed: 1 Mbit/s or more");
    let wide = Config { backoff_limit: 32, ..Config::TEN };
    assert_eq!(build(wide, &two), "backoff_limit is 32; allowed: 0 to 31");
}
