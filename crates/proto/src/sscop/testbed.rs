//! Two ends and a channel that loses, repeats and reorders; and every way it can, for small windows.

use alloc::collections::{BTreeSet, VecDeque};
use alloc::format;
use alloc::vec::Vec;

use wiretwin_units::{Bytes, Seq, SimTime, Span};

use super::{Config, Credit, Delivered, Event, Faults, Machine, ManagementError, Pdu, SscopOutput, State};
use crate::{MessageId, Output, Payload};

/// Random numbers that are the same on every run (xorshift).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

pub fn payload(message: u64) -> Payload {
    Payload::whole(MessageId(message), Bytes::new(1 + message % 40))
}

/// Small and quick, without work.
pub fn small(window: u32) -> Config {
    Config {
        timer_cc: Span::from_ms(10),
        timer_poll: Span::from_ms(8),
        timer_keep_alive: Span::from_ms(20),
        timer_no_response: Span::from_ms(70),
        timer_idle: Span::from_ms(150),
        max_pd: 3,
        max_stat: 3,
        window,
        work: false,
        ..Config::default()
    }
}

/// The same with so long a `Timer_NO-RESPONSE` that a path which loses one in five does not outlast it.
fn patient(window: u32) -> Config {
    Config { timer_no_response: Span::from_s(2), ..small(window) }
}

/// Everything up to the next timeout.
pub fn drain<const BITS: u32>(machine: &mut Machine<BITS>) -> (Vec<SscopOutput<BITS>>, Option<SimTime>) {
    let mut outputs = Vec::new();
    for _ in 0..10_000 {
        match machine.poll_output() {
            Output::Timeout(timeout) => return (outputs, timeout),
            output => outputs.push(output),
        }
    }
    panic!("outputs without an end in {}", machine.state());
}

/// Two ends with PDUs under way between them.
#[derive(Clone, Debug)]
struct Pair<const BITS: u32> {
    ends: [Machine<BITS>; 2],
    timeouts: [Option<SimTime>; 2],
    /// To each end, with the time of arrival.
    lines: [VecDeque<(SimTime, Pdu<BITS>)>; 2],
    now: SimTime,
    /// Messages that each end got.
    got: [Vec<u64>; 2],
    errors: Vec<char>,
}

impl<const BITS: u32> Pair<BITS> {
    /// Two ends with a connection between them.
    fn connected(config: Config) -> Self {
        let ends = [(); 2].map(|()| Machine::new(config).expect("a good configuration"));
        let mut pair = Self {
            ends,
            timeouts: [None; 2],
            lines: [VecDeque::new(), VecDeque::new()],
            now: SimTime::ZERO,
            got: [Vec::new(), Vec::new()],
            errors: Vec::new(),
        };
        pair.ends[0].establish(pair.now, None).expect("idle");
        pair.drain(0, |_| 0);
        pair.deliver(1, 0);
        pair.ends[1].respond_establish(pair.now, None).expect("asked");
        pair.drain(1, |_| 0);
        pair.deliver(0, 0);
        assert!(pair.ends.iter().all(|end| end.state() == State::DataTransferReady));
        pair
    }

    /// The same where the numbers of SDs and POLLs are about to wrap.
    fn about_to_wrap(config: Config) -> Self {
        let mut pair = Self::connected(config);
        let near = Seq::wrapping(0).back(2);
        for end in &mut pair.ends {
            end.sender.begin_at(near, near);
            end.sender.vt_ms = near + config.window;
            end.receiver.begin_at(near);
            end.receiver.vr_mr = near + config.window;
        }
        pair
    }

    fn drain(&mut self, end: usize, mut delay: impl FnMut(&Pdu<BITS>) -> u64) {
        let (outputs, timeout) = drain(&mut self.ends[end]);
        self.timeouts[end] = timeout;
        for output in outputs {
            match output {
                Output::Transmit(pdu) => {
                    let at = self.now + Span::from_us(delay(&pdu));
                    self.lines[1 - end].push_back((at, pdu));
                }
                Output::Deliver(Delivered::Data { payload, .. }) => self.got[end].push(payload.message.0),
                Output::Event(Event::Error(error)) => self.errors.push(error.letter()),
                Output::Event(_) | Output::Work(_) => {}
                output => panic!("{output:?}"),
            }
        }
    }

    fn deliver(&mut self, end: usize, index: usize) {
        let (_, pdu) = self.lines[end].remove(index).expect("under way");
        self.ends[end].handle_pdu(self.now, pdu);
        self.drain(end, |_| 0);
    }

    fn send(&mut self, end: usize, count: u64) {
        for message in 0..count {
            self.ends[end].send(self.now, payload(message)).expect("data flow");
        }
        self.drain(end, |_| 0);
    }

    /// Lets the earliest timer run out.
    fn tick(&mut self) {
        let next = self.timeouts.iter().flatten().min().expect("a timer runs while data flow");
        self.now = self.now.max(*next);
        for end in 0..2 {
            self.ends[end].handle_timeout(self.now);
            self.drain(end, |_| 0);
        }
    }

    /// Whether all that was sent came, in order and once.
    fn is_complete(&self, counts: [u64; 2]) -> bool {
        self.got[1].len() as u64 == counts[0] && self.got[0].len() as u64 == counts[1]
    }

    fn check_order(&self) {
        for got in &self.got {
            assert!(got.iter().copied().eq(0..got.len() as u64), "not in order, or not once: {got:?}");
        }
    }

    /// What tells two situations apart: not what time it is, nor what was counted.
    fn key(&self) -> alloc::string::String {
        let ends = self.ends.each_ref().map(|end| end.key());
        let lines = self.lines.each_ref().map(|line| line.iter().map(|(_, pdu)| pdu).collect::<Vec<_>>());
        format!("{ends:?}{lines:?}{:?}", self.got.each_ref().map(Vec::len))
    }
}

impl<const BITS: u32> Machine<BITS> {
    /// Everything that decides what it does, with timers counted from now.
    fn key(&self) -> alloc::string::String {
        let left = self.timers.next_each().map(|at| at.map(|at| at.saturating_since(self.now)));
        format!("{:?}{:?}{:?}{left:?}{}", self.state, self.sender, self.receiver, self.credit)
    }
}

/// One run with random losses, repeats and delays: what is lost now comes later.
fn random_run(seed: u64, config: Config, faults: [u64; 3], counts: [u64; 2]) -> Pair<6> {
    let [loss, repeat, jitter] = faults;
    let mut random = Random::new(seed);
    let mut pair = Pair::<6>::about_to_wrap(config);
    let mut left = counts;
    for step in 0..200_000 {
        if pair.is_complete(counts) && pair.ends.iter().all(|end| end.unacknowledged() == 0) {
            return pair;
        }
        assert!(
            step < 199_999,
            "seed {seed}: no progress, {:?} of {counts:?}",
            pair.got.each_ref().map(Vec::len)
        );
        for end in 0..2 {
            if left[end] > 0 && random.chance(30) {
                let message = counts[end] - left[end];
                pair.ends[end].send(pair.now, payload(message)).expect("data flow");
                left[end] -= 1;
                pair.drain(end, |_| 100 + random.below(1 + jitter));
            }
        }
        // What comes next: the earliest PDU, or the earliest timer.
        let arrival = |pair: &Pair<6>, end: usize| {
            let line = pair.lines[end].iter().enumerate();
            line.min_by_key(|(index, (at, _))| (*at, *index)).map(|(index, (at, _))| (*at, end, index))
        };
        let next = [arrival(&pair, 0), arrival(&pair, 1)].into_iter().flatten().min();
        let timer = pair.timeouts.iter().flatten().min().copied();
        match next {
            Some((at, end, index)) if timer.is_none_or(|timer| at <= timer) => {
                pair.now = pair.now.max(at);
                let (_, pdu) = pair.lines[end].remove(index).expect("under way");
                if random.chance(repeat) {
                    let again = at + Span::from_us(random.below(1 + jitter));
                    pair.lines[end].push_back((again, pdu.clone()));
                }
                if !random.chance(loss) {
                    pair.ends[end].handle_pdu(pair.now, pdu);
                    pair.drain(end, |_| 100 + random.below(1 + jitter));
                }
            }
            _ => {
                pair.now = pair.now.max(timer.unwrap_or_else(|| panic!("seed {seed}: {pair:?}")));
                for end in 0..2 {
                    pair.ends[end].handle_timeout(pair.now);
                    pair.drain(end, |_| 100 + random.below(1 + jitter));
                }
            }
        }
        pair.check_order();
    }
    unreachable!("the loop ends by itself");
}

#[test]
fn everything_is_delivered_in_order_whatever_is_lost_repeated_or_reordered() {
    let config = Config { faults: Faults::Ignored, ..patient(7) };
    let (mut again, mut ignored) = (0, 0);
    for seed in 0..1000 {
        let pair = random_run(seed, config, [seed % 21, seed % 7, 40 * (seed % 50)], [70, 10]);
        again += pair.ends[0].counters().sd_retransmitted;
        ignored += pair.ends[0].counters().ignored + pair.ends[1].counters().ignored;
    }
    assert!(again > 1000 && ignored > 1000, "{again} sent again, {ignored} ignored");
}

#[test]
fn on_a_path_that_keeps_order_losses_bring_no_error() {
    for seed in 0..200 {
        let pair = random_run(seed, patient(6), [seed % 21, 0, 0], [70, 7]);
        let wrong: Vec<_> = pair.errors.iter().filter(|letter| !"VWX".contains(**letter)).collect();
        assert!(wrong.is_empty(), "seed {seed}: {wrong:?}");
        let counters = pair.ends[0].counters();
        assert_eq!(counters.recoveries + counters.ignored + counters.sd_discarded, 0);
        assert!(counters.sd_sent >= 40 && (seed % 21 > 0 || counters.sd_retransmitted == 0));
    }
}

/// What the channel may do.
#[derive(Clone, Copy)]
struct Channel {
    reorders: bool,
    losses: u32,
    repeats: u32,
}

/// Tries every order of arrivals, losses, repeats and expiries, up to `depth` of them, and from each
/// situation lets a perfect channel finish. The situations that differ.
fn explore<const BITS: u32>(config: Config, channel: Channel, counts: [u64; 2], depth: u32) -> usize {
    let mut start = Pair::<BITS>::about_to_wrap(config);
    (0..2).for_each(|end| start.send(end, counts[end]));
    let mut seen = BTreeSet::new();
    let mut stack = Vec::from([(start, channel, 0)]);
    while let Some((pair, channel, steps)) = stack.pop() {
        if !seen.insert(format!("{}{} {} {steps}", pair.key(), channel.losses, channel.repeats)) {
            continue;
        }
        pair.check_order();
        let strict = !channel.reorders;
        assert!(!strict || pair.errors.iter().all(|letter| "VWX".contains(*letter)), "{:?}", pair.errors);
        finish(pair.clone(), counts);
        if steps == depth {
            continue;
        }
        for end in 0..2 {
            let count = if channel.reorders { pair.lines[end].len() } else { pair.lines[end].len().min(1) };
            for index in 0..count {
                let mut arrived = pair.clone();
                arrived.deliver(end, index);
                stack.push((arrived, channel, steps + 1));
                if channel.losses > 0 {
                    let mut lost = pair.clone();
                    lost.lines[end].remove(index);
                    let left = Channel { losses: channel.losses - 1, ..channel };
                    stack.push((lost, left, steps + 1));
                }
                if channel.repeats > 0 {
                    let mut repeated = pair.clone();
                    let again = repeated.lines[end][index].clone();
                    repeated.deliver(end, index);
                    repeated.lines[end].push_back(again);
                    let left = Channel { repeats: channel.repeats - 1, ..channel };
                    stack.push((repeated, left, steps + 1));
                }
            }
        }
        let mut late = pair;
        late.tick();
        stack.push((late, channel, steps + 1));
    }
    seen.len()
}

/// Nothing is lost any more.
fn finish<const BITS: u32>(mut pair: Pair<BITS>, counts: [u64; 2]) {
    for _ in 0..400 {
        if pair.is_complete(counts) {
            return pair.check_order();
        }
        if let Some(end) = (0..2).find(|&end| !pair.lines[end].is_empty()) {
            pair.deliver(end, 0);
        } else {
            pair.tick();
        }
    }
    panic!("a perfect channel does not end it: {pair:?}");
}

#[test]
fn every_order_of_losses_on_a_path_that_keeps_order_ends_well() {
    let config = Config { max_pd: 2, ..patient(3) };
    let channel = Channel { reorders: false, losses: 3, repeats: 0 };
    let seen = explore::<4>(config, channel, [5, 1], 7);
    assert!(seen > 400, "{seen} situations");
}

#[test]
fn every_order_of_losses_repeats_and_overtakings_ends_well() {
    let config = Config { max_pd: 2, faults: Faults::Ignored, ..patient(3) };
    let channel = Channel { reorders: true, losses: 1, repeats: 1 };
    let seen = explore::<4>(config, channel, [4, 0], 4);
    assert!(seen > 400, "{seen} situations");
}

#[test]
fn a_window_that_is_granted_holds_the_sender_and_management_is_told() {
    let mut pair = Pair::<4>::connected(Config { credit: Credit::Granted, ..small(2) });
    pair.send(0, 5);
    finish_some(&mut pair, 2);
    assert_eq!((pair.ends[0].waiting(), pair.errors.contains(&'W')), (3, true));
    pair.ends[1].grant(3).expect("within the numbers");
    finish_some(&mut pair, 5);
    assert_eq!((pair.ends[0].waiting(), pair.errors.contains(&'X')), (0, true));
    let refused = pair.ends[1].grant(8).expect_err("more than half the numbers");
    assert_eq!(format!("{refused}"), "a window of 8 numbers, at most 7 can be");
}

fn finish_some(pair: &mut Pair<4>, count: usize) {
    for _ in 0..40 {
        if let Some(end) = (0..2).find(|&end| !pair.lines[end].is_empty()) {
            pair.deliver(end, 0);
        } else {
            pair.tick();
        }
    }
    assert_eq!(pair.got[1].len(), count);
}

#[test]
fn a_peer_that_is_silent_is_given_up() {
    let mut pair = Pair::<4>::connected(small(7));
    pair.send(0, 3);
    for _ in 0..40 {
        pair.lines.iter_mut().for_each(VecDeque::clear);
        if pair.ends[0].state() == State::Idle {
            break;
        }
        pair.tick();
    }
    assert_eq!(pair.ends[0].state(), State::Idle);
    assert!(pair.errors.contains(&ManagementError::NoResponse.letter()));
    assert!(pair.now >= SimTime::ZERO + Span::from_ms(70));
}

#[test]
fn a_layer_below_that_is_busy_gets_no_data_until_it_is_not() {
    let mut pair = Pair::<4>::connected(small(7));
    pair.ends[0].set_busy(pair.now, true);
    pair.send(0, 3);
    assert!(pair.lines[1].is_empty());
    pair.ends[0].set_busy(pair.now, false);
    pair.drain(0, |_| 0);
    assert_eq!(pair.lines[1].len(), 4, "three SDs and the POLL after three");
}
