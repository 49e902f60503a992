//! Two ends over three circuits, of which the ordinary one is congested now and then.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use wiretwin_units::{Bytes, SimTime, Span};

use super::{
    Cell, Circuit, ClockSync, Config, Endpoint, Event, Kind, LocalClock, Pdu, Run, SendError, Values, Watch,
};
use crate::sscop::testbed::Random;
use crate::{MessageId, Output, Payload};

/// What the circuits do, in parts of a hundred and in us.
#[derive(Clone, Copy, Debug)]
struct Paths {
    loss: u64,
    repeat: u64,
    jitter_us: u64,
    /// The ordinary circuit takes this much longer, and loses as much again, while it is congested: from
    /// the first to before the second of each second, in ms.
    congested: (u64, u64),
    congestion_us: u64,
}

impl Paths {
    const CLEAR: Self = Self { loss: 0, repeat: 0, jitter_us: 0, congested: (0, 0), congestion_us: 0 };

    fn is_congested(&self, now: SimTime) -> bool {
        let ms = now.as_ps() / 1_000_000_000 % 1_000;
        (self.congested.0..self.congested.1).contains(&ms)
    }
}

struct Bed {
    ends: [Endpoint; 2],
    timeouts: [Option<SimTime>; 2],
    lines: [Vec<(SimTime, Cell)>; 2],
    paths: Paths,
    random: Random,
    now: SimTime,
    got: [Vec<Values>; 2],
    modes: [Vec<(SimTime, bool)>; 2],
    lost: [bool; 2],
}

impl Bed {
    fn new(configs: [Config; 2], paths: Paths, seed: u64) -> Self {
        let mut bed = Self {
            ends: configs.map(|config| Endpoint::new(config).expect("a good configuration")),
            timeouts: [None; 2],
            lines: [Vec::new(), Vec::new()],
            paths,
            random: Random::new(seed),
            now: SimTime::ZERO,
            got: [Vec::new(), Vec::new()],
            modes: [Vec::new(), Vec::new()],
            lost: [false; 2],
        };
        for end in 0..2 {
            bed.ends[end].start(bed.now);
            bed.drain(end);
        }
        bed
    }

    fn send(&mut self, end: usize, message: u64, kind: Kind, values: u64) {
        let payload = Payload::whole(MessageId(message), Bytes::new(values * kind.octets() as u64));
        self.ends[end].send(self.now, message as u32, &[Run { kind, payload }]).expect("a message");
        self.drain(end);
    }

    fn drain(&mut self, end: usize) {
        loop {
            match self.ends[end].poll_output() {
                Output::Transmit(cell) => self.carry(1 - end, cell),
                Output::Deliver(values) => self.got[end].push(values),
                Output::Event(Event::Mode { high, .. }) => self.modes[end].push((self.now, high)),
                Output::Event(Event::PeerLost) => self.lost[end] = true,
                Output::Work(work) => assert!(work.count > 0),
                Output::Timeout(timeout) => {
                    assert!(timeout.is_none_or(|at| at > self.now), "a time that has passed");
                    self.timeouts[end] = timeout;
                    return;
                }
            }
        }
    }

    fn carry(&mut self, to: usize, mut cell: Cell) {
        let congested = cell.circuit == Circuit::Ordinary && self.paths.is_congested(self.now);
        let loss = self.paths.loss * if congested { 2 } else { 1 };
        cell.congestion = congested;
        let base = match cell.circuit {
            Circuit::Ordinary if congested => 30 + self.paths.congestion_us,
            Circuit::Ordinary => 30,
            Circuit::Backup => 400,
            Circuit::Control => 50,
        };
        for _ in 0..1 + u64::from(self.random.chance(self.paths.repeat)) {
            let jitter = if cell.circuit == Circuit::Control { 0 } else { self.paths.jitter_us };
            let at = self.now + Span::from_us(base + self.random.below(jitter + 1));
            if !self.random.chance(loss) {
                let corrupted = self.random.chance(self.paths.loss / 4);
                self.lines[to].push((at, Cell { corrupted, ..cell.clone() }));
            }
        }
    }

    /// Lets everything happen up to a time.
    fn run(&mut self, until: SimTime) {
        loop {
            let arrival = |end: usize| {
                let line = self.lines[end].iter().enumerate();
                line.min_by_key(|(index, (at, _))| (*at, *index)).map(|(index, (at, _))| (*at, end, index))
            };
            let next = [arrival(0), arrival(1)].into_iter().flatten().min();
            let timer = (0..2).filter_map(|end| Some((self.timeouts[end]?, end))).min();
            let at = next.map(|next| next.0).into_iter().chain(timer.map(|timer| timer.0)).min();
            let Some(at) = at.filter(|&at| at <= until) else { break };
            self.now = at;
            match next {
                Some((arrives, end, index)) if arrives == at => {
                    let (_, cell) = self.lines[end].remove(index);
                    self.ends[end].handle_cell(at, cell);
                    self.drain(end);
                }
                _ => {
                    let (_, end) = timer.expect("a timer is next where no cell is");
                    self.ends[end].handle_timeout(at);
                    self.drain(end);
                }
            }
        }
        self.now = until;
    }

    fn run_ms(&mut self, ms: u64) {
        self.run(self.now + Span::from_ms(ms));
    }

    /// Each value of each message, in order and once.
    fn check(&self, end: usize, sent: &[(u64, Kind, u64)]) {
        let mut got = self.got[end].iter();
        for &(message, kind, values) in sent {
            let mut next = 0;
            while next < values {
                let cell = got.next().unwrap_or_else(|| panic!("message {message} ends at value {next}"));
                assert_eq!((u64::from(cell.tag), cell.kind), (message, kind));
                assert_eq!(
                    (u64::from(cell.first), cell.payload.start.get()),
                    (next, next * kind.octets() as u64)
                );
                assert_eq!(cell.payload.length.get(), u64::from(cell.count) * kind.octets() as u64);
                next += u64::from(cell.count);
                assert_eq!(cell.end, next == values, "the end of message {message}");
            }
        }
        assert!(got.next().is_none(), "more than was sent");
    }
}

const CONGESTED: Paths =
    Paths { loss: 0, repeat: 0, jitter_us: 0, congested: (300, 700), congestion_us: 600 };

#[test]
fn values_survive_losses_repeats_reordering_and_changes_of_mode() {
    let (mut switches, mut again, mut backup) = (0, 0, 0);
    for seed in 0..200 {
        let config =
            Config { timer_poll: Span::from_ms(5), max_pd: 10, window: 40, work: false, ..Config::default() };
        let paths = Paths { loss: seed % 21, repeat: seed % 7, jitter_us: 20 * (seed % 30), ..CONGESTED };
        let mut bed = Bed::new([config; 2], paths, seed);
        let mut sent = [Vec::new(), Vec::new()];
        for message in 0..30 {
            let end = usize::from(message % 3 == 0);
            let kind = Kind::ALL[bed.random.below(5) as usize];
            let values = 1 + bed.random.below(60);
            bed.send(end, message, kind, values);
            sent[1 - end].push((message, kind, values));
            bed.run_ms(40);
        }
        // The last losses are made good.
        for _ in 0..200 {
            if bed.ends.iter().all(|end| end.unacknowledged() + end.waiting() == 0) {
                break;
            }
            bed.run_ms(20);
        }
        (0..2).for_each(|end| bed.check(end, &sent[end]));
        for end in &bed.ends {
            let counters = end.counters();
            switches += counters.switches;
            again += counters.retransmitted;
            backup += counters.data_backup;
        }
    }
    assert!(switches > 400 && again > 1000 && backup > 1000, "{switches} {again} {backup}");
}

#[test]
fn the_mode_follows_the_ordinary_circuit() {
    let config = Config { work: false, ..Config::default() };
    let mut bed = Bed::new([config; 2], CONGESTED, 1);
    let mut sent = Vec::new();
    for message in 0..200 {
        bed.send(0, message, Kind::Four, 12);
        sent.push((message, Kind::Four, 12));
        bed.run_ms(10);
    }
    bed.run_ms(300);
    bed.check(1, &sent);
    let modes: Vec<bool> = bed.modes[0].iter().map(|(_, high)| *high).collect();
    assert_eq!(modes, [true, false, true, false]);
    // A data cell sent at 300 ms shows it, and the LSTAT takes 50 us back.
    let turned = bed.modes[0][0].0.as_ps() / 1_000_000;
    assert!((300_000..311_000).contains(&turned), "{turned} us");
    // Back when a monitoring cell, one each 100 ms, is quick again.
    let back = bed.modes[0][1].0.as_ps() / 1_000_000;
    assert!((700_000..801_000).contains(&back), "{back} us");
    let counters = bed.ends[0].counters();
    assert!(counters.data_backup > 200 && counters.data_ordinary > 300, "{counters:?}");
}

#[test]
fn every_rejected_watch_turns_too_but_an_average_is_late() {
    let first_turn = |watch: Watch| {
        let config = Config { watch: Some(watch), stamp_data: false, work: false, ..Config::default() };
        let paths = Paths { congested: (250, 950), congestion_us: 200, ..CONGESTED };
        let mut bed = Bed::new([config; 2], paths, 1);
        for message in 0..90 {
            bed.send(0, message, Kind::Four, 6);
            bed.run_ms(10);
        }
        bed.modes[0].first().map(|(at, _)| at.as_ps() / 1_000_000_000)
    };
    assert_eq!(first_turn(Watch::EachCell), Some(300));
    assert_eq!(first_turn(Watch::OnDemand), Some(300));
    assert_eq!(first_turn(Watch::RoundTrip), Some(300), "both ways count: 140 us are half of 280");
    assert_eq!(first_turn(Watch::Average(4)), Some(400));
    assert_eq!(first_turn(Watch::Network), Some(250), "each data cell bears the mark");
}

#[test]
fn a_circuit_that_loses_everything_is_left_after_t_l() {
    let config = Config { work: false, ..Config::default() };
    let paths = Paths { loss: 50, congested: (150, 1_000), ..Paths::CLEAR };
    let mut bed = Bed::new([config; 2], Paths { loss: 0, ..paths }, 1);
    bed.run_ms(150);
    bed.paths.loss = 50;
    // Of two, both are lost on the congested circuit; the others lose half.
    bed.run_ms(700);
    assert!(bed.ends[1].sees_high());
    assert!(bed.ends[0].is_high(), "told again until it is heard");
}

#[test]
fn clocks_that_differ_are_learned_over_the_control_circuit() {
    let clock = LocalClock { ahead_ns: 7_000_000, gains_ns_each_s: 50_000 };
    let sync = ClockSync { interval: Span::from_ms(200), delay: Span::from_us(50) };
    let run = |clock_sync| {
        let config = Config { clock_sync, work: false, ..Config::default() };
        let mut bed = Bed::new([config, Config { clock, ..config }], Paths::CLEAR, 1);
        bed.run_ms(2_000);
        [bed.ends[0].sees_high(), bed.ends[1].sees_high()]
    };
    assert_eq!(run(None), [false, true], "7 ms look like latency one way");
    assert_eq!(run(Some(sync)), [false, false]);
    // In 20 s between clocks a drift of 50 us a second is ten times the threshold.
    let rare = ClockSync { interval: Span::from_s(20), ..sync };
    let config = Config { clock_sync: Some(rare), work: false, ..Config::default() };
    let mut bed = Bed::new([config, Config { clock, ..config }], Paths::CLEAR, 1);
    bed.run_ms(5_000);
    assert!(bed.ends[1].sees_high(), "the drift shows");
}

/// Either end's clock, back or ahead, while data go on: what latency that makes is gone with the next clock.
#[test]
fn a_clock_that_steps_is_learned_anew_and_counted() {
    let sync = ClockSync { interval: Span::from_ms(200), delay: Span::from_us(50) };
    let at = |s: i64| LocalClock { ahead_ns: s * 1_000_000_000, gains_ns_each_s: 0 };
    let config = Config { clock: at(10), clock_sync: Some(sync), work: false, ..Config::default() };
    for (end, second, seen) in [(0, 9, [false, true]), (1, 11, [false, true]), (0, 11, [true, false])] {
        let mut bed = Bed::new([config; 2], Paths::CLEAR, 1);
        let mut sent = Vec::new();
        let mut talk = |bed: &mut Bed| {
            for _ in 0..10 {
                let message = sent.len() as u64;
                bed.send(0, message, Kind::Four, 12);
                sent.push((message, Kind::Four, 12));
                bed.run_ms(10);
            }
        };
        talk(&mut bed);
        talk(&mut bed);
        bed.run_ms(5);
        assert_eq!(bed.ends.each_ref().map(Endpoint::sees_high), [false; 2]);
        bed.ends[end].set_clock(bed.now, at(second));
        talk(&mut bed);
        assert_eq!(bed.ends.each_ref().map(Endpoint::sees_high), seen, "a second looks like latency one way");
        talk(&mut bed);
        talk(&mut bed);
        bed.run_ms(100);
        assert_eq!(bed.ends.each_ref().map(Endpoint::sees_high), [false; 2], "clocks are told each 200 ms");
        bed.check(1, &sent);
        let counted = bed.ends.each_ref().map(|end| end.counters().clock_steps);
        assert_eq!(counted, [1, 1], "each learns it once");
    }
}

#[test]
fn what_waited_for_its_reader_says_nothing_of_the_circuit() {
    let config = Config { work: false, ..Config::default() };
    let late = |watching: bool| {
        let mut end = Endpoint::new(config).expect("a good configuration");
        let monitor = |number: u32, ms: u64| Cell {
            circuit: Circuit::Ordinary,
            connection: 0,
            pdu: Pdu::Monitor { number, stamp: ms * 1_000_000, high: false },
            congestion: false,
            corrupted: false,
        };
        let at = |ms: u64| SimTime::ZERO + Span::from_ms(ms);
        end.handle_cell(at(0), monitor(0, 0));
        // Looked at again after half a second, with four cells that came meanwhile.
        if !watching {
            end.set_watching(at(500), false);
        }
        (1..5).for_each(|number| end.handle_cell(at(500), monitor(number, 100 * u64::from(number))));
        let high = end.sees_high();
        end.set_watching(at(500), true);
        // One that is really late counts.
        end.handle_cell(at(501), monitor(5, 500));
        (high, end.sees_high())
    };
    assert_eq!(late(true), (true, true));
    assert_eq!(late(false), (false, true));
}

#[test]
fn a_busy_circuit_keeps_data_until_the_mode_changes() {
    let config = Config { work: false, ..Config::default() };
    let mut bed = Bed::new([config; 2], Paths::CLEAR, 1);
    bed.ends[0].set_busy(bed.now, Circuit::Ordinary, true);
    bed.send(0, 1, Kind::Eight, 8);
    bed.run_ms(1);
    assert!(bed.got[1].is_empty());
    let lstat = Pdu::Lstat {
        ps: wiretwin_units::Seq::ZERO,
        mr: wiretwin_units::Seq::wrapping(1024),
        r: wiretwin_units::Seq::ZERO,
        list: Vec::new(),
        stamp: 0,
        high: true,
    };
    let cell =
        Cell { circuit: Circuit::Control, connection: 0, pdu: lstat, congestion: false, corrupted: false };
    bed.ends[0].handle_cell(bed.now, cell);
    bed.drain(0);
    bed.run_ms(1);
    bed.check(1, &[(1, Kind::Eight, 8)]);
    assert_eq!(bed.ends[0].counters().data_backup, 4, "two doubles in a cell with a stamp");
}

#[test]
fn a_peer_that_vanishes_is_told_and_messages_are_refused() {
    let config = Config { watch: None, work: false, ..Config::default() };
    let mut bed = Bed::new([config; 2], Paths { loss: 100, ..Paths::CLEAR }, 1);
    bed.send(0, 1, Kind::Four, 6);
    bed.run_ms(7_001);
    assert!(bed.lost[0] && bed.timeouts[0].is_none());
    let payload = Payload::whole(MessageId(1), Bytes::new(4));
    let refused = bed.ends[0].send(bed.now, 1, &[Run { kind: Kind::Four, payload }]);
    assert_eq!(refused, Err(SendError::PeerLost));
}

/// Numbers that cannot be, and elements out of order: counted, and nothing follows from them.
#[test]
fn what_a_peer_says_wrongly_is_counted_and_has_no_effect() {
    let number = |number: u32| wiretwin_units::Seq::wrapping(number);
    let list = |list: &[u32]| list.iter().map(|&one| number(one)).collect::<Vec<_>>();
    let (mr, low) = (number(1024), false);
    // 20 cells are under way, numbered from 0, and one POLL was sent with them.
    let wrong = [
        Pdu::Stat { ps: number(9), mr, r: number(0), list: list(&[]) },
        Pdu::Stat { ps: number(0), mr, r: number(21), list: list(&[]) },
        Pdu::Stat { ps: number(0), mr, r: number(0), list: list(&[5, 3]) },
        Pdu::Stat { ps: number(0), mr, r: number(0), list: list(&[3, 3]) },
        Pdu::Stat { ps: number(0), mr, r: number(0), list: list(&[3, 40]) },
        Pdu::Ustat { first: number(4), end: number(2), mr, r: number(0) },
        Pdu::Ustat { first: number(4), end: number(30), mr, r: number(0) },
        Pdu::Lstat { ps: number(0), mr, r: number(0), list: list(&[7, 6]), stamp: 0, high: low },
        Pdu::Lstat { ps: number(0), mr, r: number(500), list: list(&[]), stamp: 0, high: low },
    ];
    let config = Config { watch: None, work: false, max_pd: 100, ..Config::default() };
    let mut end = Endpoint::new(config).expect("a good configuration");
    let payload = Payload::whole(MessageId(1), Bytes::new(400));
    end.send(SimTime::ZERO, 1, &[Run { kind: Kind::Four, payload }]).expect("a message");
    while let Output::Transmit(_) = end.poll_output() {}
    let cell =
        |pdu| Cell { circuit: Circuit::Control, connection: 0, pdu, congestion: false, corrupted: false };
    for (so_far, pdu) in (1..).zip(wrong) {
        end.handle_cell(SimTime::ZERO, cell(pdu.clone()));
        assert!(matches!(end.poll_output(), Output::Timeout(_)), "{pdu:?} is answered");
        assert_eq!((end.counters().ignored, end.unacknowledged()), (so_far, 20), "{pdu:?}");
    }
    // A POLL that says less than has come, and one whose number was passed by.
    let poll = |ps, s| Pdu::Poll { ps: number(ps), s: number(s) };
    let ignored = end.counters().ignored;
    end.handle_cell(SimTime::ZERO, cell(poll(5, 3)));
    while let Output::Transmit(_) = end.poll_output() {}
    for pdu in [poll(6, 2), poll(4, 3)] {
        end.handle_cell(SimTime::ZERO, cell(pdu));
        assert!(matches!(end.poll_output(), Output::Timeout(_)));
    }
    assert_eq!(end.counters().ignored, ignored + 2);
    // Of another connection, or damaged: dropped, and counted as that.
    end.handle_cell(SimTime::ZERO, Cell { connection: 9, ..cell(poll(7, 3)) });
    end.handle_cell(SimTime::ZERO, Cell { corrupted: true, ..cell(poll(7, 3)) });
    assert_eq!((end.counters().corrupted, end.counters().ignored), (2, ignored + 2));
}

#[test]
fn an_lstat_sends_again_what_it_names_and_not_what_is_under_way() {
    let number = |number: u32| wiretwin_units::Seq::wrapping(number);
    let config = Config { watch: None, work: false, max_pd: 20, ..Config::default() };
    let mut end = Endpoint::new(config).expect("a good configuration");
    let payload = Payload::whole(MessageId(1), Bytes::new(400));
    end.send(SimTime::ZERO, 1, &[Run { kind: Kind::Four, payload }]).expect("a message");
    // 20 cells, and behind them a POLL with the number 1.
    while let Output::Transmit(_) = end.poll_output() {}
    let list = [3, 5].map(number).to_vec();
    let pdu = Pdu::Lstat { ps: number(1), mr: number(1024), r: number(2), list, stamp: 0, high: true };
    let cell = Cell { circuit: Circuit::Control, connection: 0, pdu, congestion: false, corrupted: false };
    end.handle_cell(SimTime::ZERO, cell);
    let (mut again, mut modes) = (Vec::new(), Vec::new());
    loop {
        match end.poll_output() {
            Output::Transmit(Cell { circuit, pdu: Pdu::Data { number, .. }, .. }) => {
                again.push((circuit, number.get()));
            }
            Output::Event(mode) => modes.push(mode),
            Output::Timeout(_) => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(again, [(Circuit::Backup, 3), (Circuit::Backup, 4)]);
    assert_eq!(modes, [Event::Mode { high: true, again: 2 }]);
}

#[test]
fn what_is_no_message_is_refused() {
    let mut end = Endpoint::new(Config::default()).expect("a good configuration");
    let octets = |length| Payload::whole(MessageId(1), Bytes::new(length));
    let refused = end.send(SimTime::ZERO, 1, &[Run { kind: Kind::Eight, payload: octets(12) }]);
    assert_eq!(alloc::format!("{}", refused.expect_err("a half")), "12 octets are not whole values of 8");
    assert_eq!(end.send(SimTime::ZERO, 1, &[]), Err(SendError::Empty));
    let many = Run { kind: Kind::One, payload: octets(1 << 33) };
    assert_eq!(end.send(SimTime::ZERO, 1, &[many]), Err(SendError::TooMany));
}

/// Octets that a driver makes are the same cells again.
#[test]
fn handles_become_octets_and_octets_handles() {
    let config = Config { connection: 7, ..Config::default() };
    let mut end = Endpoint::new(config).expect("a good configuration");
    let (doubles, characters) = (Bytes::new(40), Bytes::new(5));
    let runs = [
        Run { kind: Kind::Eight, payload: Payload::whole(MessageId(1), doubles) },
        Run {
            kind: Kind::One,
            payload: Payload { message: MessageId(1), start: doubles, length: characters },
        },
    ];
    end.send(SimTime::ZERO, 9, &runs).expect("a message");
    end.start(SimTime::ZERO);
    let text: Vec<u8> = (0..45).collect();
    let mut cells = VecDeque::new();
    loop {
        match end.poll_output() {
            Output::Transmit(cell) => cells.push_back(cell),
            Output::Timeout(_) => break,
            _ => {}
        }
    }
    let mut came = Vec::new();
    for cell in &cells {
        let values = match &cell.pdu {
            Pdu::Data { values, .. } => {
                let start = values.payload.start.get() as usize;
                &text[start..start + values.payload.length.get() as usize]
            }
            _ => &[],
        };
        let mut octets = [0; 48];
        cell.emit(values, &mut octets).expect("a cell");
        let read = Cell::parse(cell.circuit, &octets, |octets| {
            came.extend_from_slice(octets);
            MessageId(2)
        });
        assert_eq!(read.expect("a cell").connection, 7);
        octets[30] ^= 4;
        Cell::parse(cell.circuit, &octets, |_| MessageId(2)).expect_err("a wrong bit");
    }
    assert_eq!(came, text);
    assert_eq!(cells.len(), 5, "one to monitor, three of doubles, one of characters");
}
