//! Loss, duplication, reordering, corruption: delivery in the end, or a defined error.

use alloc::boxed::Box;
use alloc::vec;

use proptest::prelude::*;
use wiretwin_units::Span;

use super::pair::{ACTIVE, Fate, PASSIVE, Pair, bytes, ms};
use crate::tcp::{Config, Congestion, Event, Flags, Pieces, Reason, Segment, State, Timer};

const LIMIT: Span = Span::from_s(600);

/// Loses the segments with text of the active end with these ordinal numbers, from 0.
fn losing(pair: &mut Pair, lost: &'static [usize]) {
    let mut count = 0;
    pair.fates = Box::new(move |end, segment: &Segment| {
        if end == ACTIVE && !segment.is_empty() {
            count += 1;
            if lost.contains(&(count - 1)) {
                return Fate::lost();
            }
        }
        Fate::passed()
    });
}

/// A preset with a window wide enough for fast retransmit.
fn wide(config: Config) -> Config {
    let octets = bytes(32_768);
    Config { pieces: Pieces::Whole, ..config.with_buffers(octets, octets).unwrap() }
}

#[test]
fn one_loss_in_a_wide_window_is_repaired_without_a_time_out_by_all() {
    for config in Config::presets() {
        let name = config.name;
        let mut pair = Pair::connected(wide(config));
        pair.send_all(ACTIVE, 100_000, LIMIT);
        losing(&mut pair, &[8]);
        pair.send_all(ACTIVE, 200_000, LIMIT);
        let counters = pair.ends[ACTIVE].counters();
        assert_eq!((counters.timeouts, counters.fast_retransmits), (0, 1), "{name}");
        assert_eq!(counters.retransmitted, 1, "{name}");
    }
}

#[test]
fn three_losses_in_a_window_cost_reno_a_time_out_and_newreno_and_sack_none() {
    let run = |config: Config| {
        let mut pair = Pair::connected(wide(config));
        pair.send_all(ACTIVE, 100_000, LIMIT);
        losing(&mut pair, &[8, 10, 12]);
        pair.send_all(ACTIVE, 200_000, LIMIT);
        pair.ends[ACTIVE].counters()
    };
    assert!(run(Config::bsd43_reno()).timeouts > 0);
    let newreno = Config { sack: false, ..Config::linux22() };
    assert_eq!(newreno.congestion, Congestion::NewReno);
    for config in [newreno, Config::linux22(), Config::linux_modern()] {
        let name = config.name;
        let counters = run(config);
        assert_eq!((counters.timeouts, counters.retransmitted), (0, 3), "{name}");
    }
}

#[test]
fn after_a_fast_retransmit_tahoe_starts_slowly_and_reno_halves() {
    let run = |config| {
        let mut pair = Pair::connected(Config { eighth: false, ..wide(config) });
        pair.send_all(ACTIVE, 100_000, LIMIT);
        losing(&mut pair, &[8]);
        pair.to_write[ACTIVE] = 200_000;
        pair.drain(ACTIVE);
        pair.run_while(ms(600_000), |pair| pair.ends[ACTIVE].counters().fast_retransmits == 0);
        let at_loss = (pair.ends[ACTIVE].cwnd(), pair.ends[ACTIVE].ssthresh());
        assert_eq!(at_loss.1 % 1_460, 0, "a threshold of whole segments");
        at_loss
    };
    assert_eq!(run(Config::bsd43_tahoe()).0, 1_460);
    let (cwnd, ssthresh) = run(Config::bsd43_reno());
    assert_eq!(cwnd, ssthresh + 3 * 1_460);
}

#[test]
fn a_lost_acknowledgment_costs_nothing_where_the_next_one_covers_it() {
    let mut pair = Pair::connected(wide(Config::bsd43_reno()));
    pair.send_all(ACTIVE, 100_000, LIMIT);
    let mut acks = 0;
    pair.fates = Box::new(move |end, _| {
        acks += usize::from(end == PASSIVE);
        if end == PASSIVE && acks == 3 { Fate::lost() } else { Fate::passed() }
    });
    pair.send_all(ACTIVE, 100_000, LIMIT);
    assert_eq!(pair.ends[ACTIVE].counters().retransmitted, 0);
}

#[test]
fn a_corrupted_segment_is_dropped_and_sent_again() {
    let mut pair = Pair::connected(wide(Config::linux_modern()));
    let mut count = 0;
    pair.fates = Box::new(move |end, segment| {
        count += usize::from(end == ACTIVE && !segment.is_empty());
        Fate { corrupted: end == ACTIVE && count == 5, ..Fate::passed() }
    });
    pair.send_all(ACTIVE, 100_000, LIMIT);
    assert_eq!(pair.ends[PASSIVE].counters().corrupted, 1);
    assert_eq!(pair.ends[ACTIVE].counters().retransmitted, 1);
}

#[test]
fn a_peer_that_died_is_given_up_after_the_back_offs_of_its_age() {
    // Each with the seconds that it takes, within one period of the slow grid.
    for (config, least_s, most_s) in [
        // 1.5 s to 64 s in doublings, then 64 s up to the thirteenth.
        (Config::bsd43_reno(), 500, 620),
        (Config::linux_modern(), 900, 1_000),
    ] {
        let name = config.name;
        let mut pair = Pair::connected(config);
        pair.send_all(ACTIVE, 10_000, LIMIT);
        pair.run_to(pair.now + Span::from_s(5));
        let start = pair.now;
        pair.fates = Box::new(|_, _| Fate::lost());
        pair.to_write[ACTIVE] = 1;
        pair.drain(ACTIVE);
        pair.run_while(start + Span::from_s(3_600), |pair| pair.closed(ACTIVE).is_none());
        assert_eq!(pair.closed(ACTIVE), Some(Reason::TimedOut(Timer::Retransmit)), "{name}");
        let took = (pair.now - start).as_ps() / 1_000_000_000_000;
        assert!((least_s..=most_s).contains(&took), "{name}: {took} s");
    }
}

#[test]
fn a_peer_that_is_not_there_is_given_up_in_the_time_of_its_age() {
    for (config, limit_s) in [(Config::bsd43_reno(), 75), (Config::linux_modern(), 127)] {
        let mut pair = Pair::new([config.clone(), config]);
        pair.fates = Box::new(|_, _| Fate::lost());
        pair.ends[ACTIVE].connect(pair.now).unwrap();
        pair.drain(ACTIVE);
        pair.run(ms(300_000));
        assert_eq!(pair.closed(ACTIVE), Some(Reason::TimedOut(Timer::Keep)));
        assert_eq!(pair.now, ms(limit_s * 1_000));
        assert!(pair.sent.len() >= 3, "{:?}", pair.sent);
    }
}

#[test]
fn a_peer_that_died_behind_a_closed_window_is_given_up() {
    for config in [Config::bsd43_reno(), Config::linux_modern()] {
        let config = config.with_buffers(bytes(8_192), bytes(8_192)).unwrap();
        let mut pair = Pair::connected(config);
        pair.reads[PASSIVE] = false;
        pair.to_write[ACTIVE] = 30_000;
        pair.drain(ACTIVE);
        pair.run_to(pair.now + Span::from_s(60));
        assert_eq!(pair.delivered[PASSIVE], 8_192, "the window is closed");
        pair.fates = Box::new(|_, _| Fate::lost());
        pair.run_while(ms(20_000_000), |pair| pair.closed(ACTIVE).is_none());
        assert_eq!(pair.closed(ACTIVE), Some(Reason::TimedOut(Timer::Persist)));
    }
}

#[test]
fn a_silent_peer_is_probed_by_keep_alive_and_given_up() {
    let mut pair = Pair::new([Config::bsd43_reno(), Config::bsd43_reno()]);
    pair.ends[ACTIVE].set_keep_alive(true);
    pair.connect();
    pair.run_to(ms(8_000_000));
    assert_eq!(pair.closed(ACTIVE), None, "a peer that answers is kept");
    assert!(pair.sent.len() >= 5, "one probe and its answer at least: {:?}", pair.sent);
    pair.fates = Box::new(|_, _| Fate::lost());
    pair.run(ms(30_000_000));
    assert_eq!(pair.closed(ACTIVE), Some(Reason::TimedOut(Timer::Keep)));
}

#[test]
fn a_closed_window_is_probed_and_opens_again() {
    for config in Config::presets() {
        let name = config.name;
        let config = config.with_buffers(bytes(8_192), bytes(8_192)).unwrap();
        let mut pair = Pair::connected(config);
        pair.reads[PASSIVE] = false;
        pair.to_write[ACTIVE] = 50_000;
        pair.drain(ACTIVE);
        pair.run_to(pair.now + Span::from_s(200));
        assert!(pair.read[PASSIVE] == 0 && pair.closed(ACTIVE).is_none(), "{name}");
        // The update that tells of the room is lost: the next probe finds it.
        let mut first = true;
        pair.fates = Box::new(move |end, _| {
            let lost = end == PASSIVE && core::mem::take(&mut first);
            if lost { Fate::lost() } else { Fate::passed() }
        });
        pair.reads[PASSIVE] = true;
        pair.drain(PASSIVE);
        pair.run_while(pair.now + LIMIT, |pair| pair.read[PASSIVE] < 50_000);
        assert_eq!(pair.read[PASSIVE], 50_000, "{name}");
    }
}

fn any_config() -> impl Strategy<Value = Config> {
    let buffers = prop_oneof![Just(None), (1_u32..4_000).prop_map(Some), Just(Some(32_768))];
    (0..6_usize, buffers, any::<bool>(), 0_u64..500, 0_u64..200).prop_map(
        |(preset, buffers, sack, slow, fast)| {
            let mut config = Config::presets()[preset].clone();
            if let Some(octets) = buffers {
                config = config.with_buffers(bytes(octets.into()), bytes(octets.into())).unwrap();
            }
            config.sack &= sack;
            config.phases.slow = Span::from_ms(slow);
            config.phases.fast = Span::from_ms(fast);
            config
        },
    )
}

/// What happens to one segment: per mille of loss and so on, drawn from this number.
fn fate_of(draw: u32, loss: u32) -> Fate {
    let (kind, extra) = (draw % 1_000, u64::from(draw / 1_000 % 64));
    if kind < loss {
        return Fate::lost();
    }
    match kind - loss {
        0..60 => Fate { copies: vec![Span::ZERO, Span::from_ms(extra)], ..Fate::lost() },
        60..120 => Fate { copies: vec![Span::from_ms(extra)], ..Fate::lost() },
        120..140 => Fate { corrupted: true, ..Fate::passed() },
        _ => Fate::passed(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Any faults that let something through, any rules: what is delivered is a prefix of what was
    /// sent, and in the end all of it or a connection that was given up with a reason.
    #[test]
    fn all_is_delivered_or_given_up_with_a_reason(
        configs in (any_config(), any_config()),
        octets in (0_u64..60_000, 0_u64..20_000),
        loss in 0_u32..300,
        draws in prop::collection::vec(any::<u32>(), 64..200),
        nodelay in any::<(bool, bool)>(),
    ) {
        // A window of few octets moves few octets in a time-out.
        let least = |config: &Config| u64::from(config.buffers.send.min(config.buffers.receive));
        let most = 40 * least(&configs.0).min(least(&configs.1));
        let octets = (octets.0.min(most), octets.1.min(most));
        let mut pair = Pair::new([configs.0, configs.1]);
        pair.ends[ACTIVE].set_nodelay(nodelay.0);
        pair.ends[PASSIVE].set_nodelay(nodelay.1);
        let mut next = 0;
        pair.fates = Box::new(move |_, _| {
            next += 1;
            fate_of(draws[next % draws.len()].wrapping_mul(next as u32 | 1), loss)
        });
        pair.to_write = [octets.0, octets.1];
        pair.shuts = [true, true];
        pair.ends[PASSIVE].listen(pair.now).unwrap();
        pair.drain(PASSIVE);
        pair.ends[ACTIVE].connect(pair.now).unwrap();
        pair.drain(ACTIVE);
        pair.run(ms(40_000_000));
        for (end, octets) in [(ACTIVE, octets.0), (PASSIVE, octets.1)] {
            let peer = 1 - end;
            prop_assert!(pair.delivered[peer] <= octets);
            prop_assert_eq!(pair.delivered[peer], pair.read[peer]);
            let reasons = [pair.closed(end), pair.closed(peer)];
            let finished = reasons[0] == Some(Reason::Finished);
            if finished {
                prop_assert_eq!(pair.delivered[peer], octets, "closed in order, and not all arrived");
                prop_assert!(pair.events[peer].contains(&Event::EndOfStream));
            } else {
                // Given up with a reason, or never opened because the other end gave up.
                let defined = reasons[0].is_some()
                    || (end == PASSIVE && pair.state(end) == State::Listen && reasons[1].is_some())
                    // The peer is gone and this end, which has nothing to send, is not told.
                    || (reasons[1].is_some() && pair.next_time().is_none());
                prop_assert!(defined, "{:?} {:#?} in {} {}", reasons, &pair.sent[pair.sent.len().saturating_sub(12)..], pair.state(end), pair.state(peer));
            }
        }
    }
}

#[test]
fn a_reset_is_not_answered_with_one() {
    let mut pair = Pair::new([Config::bsd43_reno(), Config::bsd43_reno()]);
    let syn = Segment::control(crate::tcp::SeqNumber::ZERO, crate::tcp::SeqNumber::ZERO, Flags::SYN);
    pair.ends[ACTIVE].handle_segment(pair.now, &syn);
    pair.drain(ACTIVE);
    assert_eq!(pair.segments.len(), 1);
    pair.run(ms(1_000));
    assert_eq!(pair.segments.len(), 1, "{:?}", pair.sent);
}
