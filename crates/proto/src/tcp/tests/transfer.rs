//! Opening, moving octets, closing.

use alloc::vec;

use wiretwin_units::Span;

use super::pair::{ACTIVE, PASSIVE, Pair, bytes, ms};
use crate::tcp::{CommandError, Config, Event, Pieces, Read, Reason, State};
use crate::{Work, WorkKind};

const LIMIT: Span = Span::from_s(60);

/// A preset without delays of its own, for tests of what is exchanged.
fn plain() -> Config {
    Config { pieces: Pieces::Whole, ..Config::bsd43_reno() }
}

#[test]
fn three_segments_open_a_connection() {
    let pair = Pair::connected(plain());
    let sent = ["0 0> SYN 0..0 win 8192", "1 1> SYN,ACK 0..0 ack 1 win 8192", "2 0> ACK 1..1 ack 1 win 8192"];
    assert_eq!(pair.sent, sent);
    assert_eq!(pair.events, [vec![Event::Established], vec![Event::Established]]);
}

#[test]
fn every_preset_moves_a_megabyte_each_way_and_closes() {
    for config in Config::presets() {
        let mut pair = Pair::connected(config.clone());
        pair.to_write = [1 << 20, 1 << 20];
        pair.shuts = [true, true];
        pair.drain(ACTIVE);
        pair.drain(PASSIVE);
        pair.run(ms(600_000));
        assert_eq!(pair.read, [1 << 20, 1 << 20], "{}", config.name);
        assert_eq!(pair.ends[ACTIVE].counters().retransmitted, 0, "{}", config.name);
        for end in [ACTIVE, PASSIVE] {
            assert_eq!(pair.closed(end), Some(Reason::Finished), "{}", config.name);
            assert_eq!(pair.state(end), State::Closed);
            assert!(pair.events[end].contains(&Event::EndOfStream));
            assert_eq!(pair.ends[end].receive(pair.now, bytes(1)), Read::End);
        }
    }
}

#[test]
fn presets_of_all_ages_talk_to_each_other() {
    for one in Config::presets() {
        for other in Config::presets() {
            let mut pair = Pair::new([one.clone(), other.clone()]);
            pair.connect();
            pair.send_all(ACTIVE, 100_000, LIMIT);
            pair.send_all(PASSIVE, 100_000, LIMIT);
        }
    }
}

#[test]
fn work_comes_before_the_segment_that_it_is_for() {
    let mut pair = Pair::connected(Config::sunos41());
    pair.work[ACTIVE].clear();
    pair.ends[ACTIVE].send(pair.now, bytes(100)).unwrap();
    let work = |kind, octets, count| Work { kind, bytes: bytes(octets), count };
    let mut before = vec![];
    loop {
        match pair.ends[ACTIVE].poll_output() {
            crate::Output::Work(work) => before.push(work),
            crate::Output::Transmit(segment) => {
                assert_eq!(segment.len(), 100);
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(
        before,
        [
            work(WorkKind::CopyIn, 100, 1),
            work(WorkKind::Checksum, 120, 1),
            work(WorkKind::SegmentOut, 120, 1)
        ]
    );
}

#[test]
fn a_half_closed_connection_still_carries_the_other_way() {
    let mut pair = Pair::connected(plain());
    pair.ends[ACTIVE].shutdown(pair.now).unwrap();
    pair.drain(ACTIVE);
    pair.run_to(pair.now + Span::from_s(1));
    assert_eq!((pair.state(ACTIVE), pair.state(PASSIVE)), (State::FinWait2, State::CloseWait));
    assert_eq!(pair.ends[ACTIVE].send(pair.now, bytes(1)), Err(CommandError::SendingClosed));
    pair.send_all(PASSIVE, 50_000, LIMIT);
    pair.ends[PASSIVE].shutdown(pair.now).unwrap();
    pair.drain(PASSIVE);
    pair.run_to(pair.now + Span::from_s(1));
    assert_eq!((pair.state(ACTIVE), pair.state(PASSIVE)), (State::TimeWait, State::Closed));
    pair.run(pair.now + Span::from_s(61));
    assert_eq!(pair.closed(ACTIVE), Some(Reason::Finished));
}

#[test]
fn both_may_ask_at_once_and_both_may_close_at_once() {
    for config in Config::presets() {
        let mut pair = Pair::new([config.clone(), config]);
        for end in [ACTIVE, PASSIVE] {
            pair.ends[end].connect(pair.now).unwrap();
            pair.drain(end);
        }
        pair.run_to(ms(400));
        assert_eq!((pair.state(ACTIVE), pair.state(PASSIVE)), (State::Established, State::Established));
        pair.send_all(ACTIVE, 10_000, LIMIT);
        pair.send_all(PASSIVE, 10_000, LIMIT);
        pair.run_to(pair.now + Span::from_s(1));
        for end in [ACTIVE, PASSIVE] {
            pair.ends[end].close(pair.now).unwrap();
            pair.drain(end);
        }
        pair.run_to(pair.now + Span::from_ms(1));
        assert_eq!((pair.state(ACTIVE), pair.state(PASSIVE)), (State::Closing, State::Closing));
        pair.run(pair.now + Span::from_s(61));
        assert_eq!([pair.closed(ACTIVE), pair.closed(PASSIVE)], [Some(Reason::Finished); 2]);
    }
}
