//! The echo that stalls: which sizes wait for a delayed acknowledgment, and which do not.
//!
//! Lin et al. (1995), section 3.2, found an echo of BSD sockets with Nagle's rule on slow for messages
//! of 4064 to 6976, 8416 to 9872 and 11 328 to 12 768 octets over Ethernet, of 4072 to 12 800 over FDDI,
//! and around 8 and 64 KB over ATM, in steps of 96 octets. What explains it: the socket layer hands TCP
//! the message in pieces of 4096 octets, of which the first goes out whole and the short end of each
//! later one waits for the acknowledgment of everything before it; the receiver owes that
//! acknowledgment only to a window update or to its 200 ms timer.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::RangeInclusive;

use wiretwin_units::Span;

use super::pair::{ACTIVE, PASSIVE, Pair, bytes, setup};
use crate::tcp::{Config, Setup, WindowUpdate};

const PIECE: u64 = 4_096;
const BUFFER: u64 = 32_768;
const ETHERNET: u16 = 1_500;
const FDDI: u16 = 4_352;
const ATM: u16 = 9_188;

/// A pair that has echoed until its windows are open.
fn warm(mtu: u16, rule: WindowUpdate, nodelay: bool) -> Pair {
    let config = Config { window_update: rule, ..Config::sunos41() };
    let config = config.with_buffers(bytes(BUFFER), bytes(BUFFER)).unwrap();
    let setups = [setup(0), setup(1)].map(|setup| Setup { mtu, ..setup });
    let mut pair = Pair::with_setups([config.clone(), config], setups);
    for end in [ACTIVE, PASSIVE] {
        pair.ends[end].set_nodelay(nodelay);
    }
    pair.delay = Span::from_us(50);
    pair.connect();
    for _ in 0..8 {
        echo(&mut pair, BUFFER);
    }
    pair
}

/// The one-way latency (RTT/2) of an echo.
fn echo(pair: &mut Pair, octets: u64) -> Span {
    let limit = Span::from_s(10);
    let there = pair.send_all(ACTIVE, octets, limit);
    let back = pair.send_all(PASSIVE, octets, limit);
    Span::from_ps((there + back).as_ps() / 2)
}

fn stalls(pair: &mut Pair, octets: u64) -> bool {
    // Without a stall, an echo of 16 KB here takes a few round trips of 0.1 ms.
    echo(pair, octets) > Span::from_ms(2)
}

/// The explanation, without a TCP: whether a message of so many octets stalls.
fn stalls_by_the_model(octets: u64, mss: u64, rule: WindowUpdate) -> bool {
    let (mut written, mut sent, mut acked, mut arrived) = (0, 0, 0, 0);
    let mut flying = VecDeque::new();
    loop {
        let piece = PIECE.min(octets - written).min(BUFFER - (written - acked));
        written += piece;
        // Full segments go, and a short one if all was acknowledged when the piece came.
        let idle = sent == acked;
        while sent < written && (written - sent >= mss || idle) {
            let segment = mss.min(written - sent);
            flying.push_back(segment);
            sent += segment;
        }
        if sent == octets {
            return false;
        }
        if piece > 0 {
            continue;
        }
        // The receiver reads each segment as it comes, and owes what was not acknowledged.
        let before = acked;
        while acked == before {
            let Some(segment) = flying.pop_front() else { return true };
            arrived += segment;
            let owed = arrived - acked;
            let worth = match rule {
                WindowUpdate::Share35OrEmpty => owed >= 2 * mss || 100 * owed / BUFFER >= 35,
                _ => owed >= 2 * mss || 2 * owed >= BUFFER,
            };
            if worth {
                acked = arrived;
            }
        }
    }
}

/// Sizes on both sides of each border, and some between.
fn sizes(borders: &[u64]) -> Vec<u64> {
    let mut sizes: Vec<u64> = (64..16_800).step_by(97).collect();
    sizes.extend(borders.iter().flat_map(|&border| [border - 1, border, border + 1]));
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// The bands in which the machine stalls must be those given, to the octet.
fn check(mtu: u16, rule: WindowUpdate, bands: &[RangeInclusive<u64>], but: &[u64]) {
    let mut pair = warm(mtu, rule, false);
    let borders: Vec<u64> =
        bands.iter().flat_map(|band| [*band.start(), *band.end()]).chain(but.iter().copied()).collect();
    for octets in sizes(&borders) {
        let expected = bands.iter().any(|band| band.contains(&octets)) && !but.contains(&octets);
        assert_eq!(stalls(&mut pair, octets), expected, "MTU {mtu}: {octets} octets");
    }
}

#[test]
fn ethernet_stalls_in_four_bands() {
    let bands = [4_097..=7_015, 8_477..=9_935, 11_397..=12_855, 14_317..=15_775];
    check(ETHERNET, WindowUpdate::Share35OrEmpty, &bands, &[5_556]);
}

#[test]
fn fddi_stalls_in_one_wide_band() {
    check(FDDI, WindowUpdate::Share35OrEmpty, &[4_097..=12_719], &[]);
}

#[test]
fn atm_stalls_around_eight_kilobytes() {
    check(ATM, WindowUpdate::Share35OrEmpty, &[4_097..=13_243], &[]);
}

#[test]
fn no_size_stalls_without_nagle() {
    for mtu in [ETHERNET, FDDI, ATM] {
        let mut pair = warm(mtu, WindowUpdate::Share35OrEmpty, true);
        for octets in (64..16_800).step_by(291) {
            assert!(!stalls(&mut pair, octets), "MTU {mtu}: {octets} octets");
        }
    }
}

#[test]
fn the_machine_and_the_explanation_agree_on_every_size_tried() {
    for mtu in [ETHERNET, FDDI, ATM] {
        for rule in [WindowUpdate::Share35OrEmpty, WindowUpdate::Half] {
            let mut pair = warm(mtu, rule, false);
            let mss = u64::from(mtu) - 40;
            for octets in (64..16_800).step_by(61) {
                let expected = stalls_by_the_model(octets, mss, rule);
                assert_eq!(stalls(&mut pair, octets), expected, "MTU {mtu}, {rule:?}: {octets} octets");
            }
        }
    }
}

#[test]
fn the_published_ranges_lie_in_the_bands() {
    // The borders found were steps of 96 octets apart, so each may be 96 off.
    let step = 96;
    let published: [(u16, &[RangeInclusive<u64>]); 2] =
        [(ETHERNET, &[4_064..=6_976, 8_416..=9_872, 11_328..=12_768]), (FDDI, &[4_072..=12_800])];
    for (mtu, ranges) in published {
        let mss = u64::from(mtu) - 40;
        let slow = |octets| stalls_by_the_model(octets, mss, WindowUpdate::Share35OrEmpty);
        for range in ranges {
            for inside in [range.start() + step, range.end() - step] {
                assert!(slow(inside), "MTU {mtu}: {inside}");
            }
            for outside in [range.start() - step, range.end() + step] {
                assert!(!slow(outside), "MTU {mtu}: {outside}");
            }
        }
    }
    // ATM, by powers of two: slow at 8 and 64 KiB, not at 16, 32 and 128 KiB.
    let mut pair = warm(ATM, WindowUpdate::Share35OrEmpty, false);
    let slow = [4, 8, 16, 32, 64, 128].map(|kib| stalls(&mut pair, kib << 10));
    assert_eq!(slow, [false, true, false, false, true, false]);
}

#[test]
fn a_stall_lasts_until_the_grid_of_the_receiver() {
    let mut pair = warm(ETHERNET, WindowUpdate::Share35OrEmpty, false);
    let mut total = Span::ZERO;
    for number in 0..64 {
        let there = pair.send_all(ACTIVE, 4_200, Span::from_s(1));
        assert!(there <= Span::from_ms(201), "{there}");
        total += there;
        // A stall ends on a tick: the next begins at another phase.
        pair.run_to(pair.now + Span::from_us(200_000 + number % 64 * 3_125));
    }
    let mean = total.as_ps() / 64;
    assert!((80_000_000_000..120_000_000_000).contains(&mean), "a mean of 100 ms: {mean} ps");
}
