//! Two ends and a network that loses, repeats, reorders and damages frames; ends that die and return.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use wiretwin_units::{Bytes, SimTime, Span};
use wiretwin_wire::direct::{Body, Head, Repr, is_sound, seal};

use super::*;
use crate::sscop::testbed::Random;
use crate::{MessageId, Output, Payload};

/// What happens to frames, in percent; and how long they take.
#[derive(Clone, Copy, Debug)]
struct Path {
    loss: u64,
    repeat: u64,
    damage: u64,
    ordinary: Span,
    protected: Span,
    jitter: Span,
    /// The ends handle their timers at multiples of this alone.
    tick: Span,
}

const GOOD: Path = Path {
    loss: 0,
    repeat: 0,
    damage: 0,
    ordinary: Span::from_us(5),
    protected: Span::from_us(5),
    jitter: Span::from_ps(1),
    tick: Span::from_ps(1),
};
const BAD: Path = Path { loss: 10, repeat: 10, damage: 5, jitter: Span::from_us(40), ..GOOD };

/// A message as its receiver has it.
#[derive(Clone, Debug)]
struct Came {
    tag: u64,
    bytes: Vec<Option<u8>>,
}

/// One end with what its user knows.
struct End {
    machine: Machine,
    timeout: Option<SimTime>,
    /// In the order in which they were begun or offered.
    came: Vec<Came>,
    /// Offers that were taken up: the place in `came`.
    references: Vec<usize>,
    sent: Vec<u64>,
    failed: Vec<u64>,
    /// Messages whose bytes were left to the driver, the numbers of the peer for them, and how many bytes.
    cleared: Vec<(u64, u32, u64)>,
    returned: usize,
    /// Payloads that the machine kept or has just been given.
    frames: BTreeMap<u64, Vec<u8>>,
    damaged: u64,
}

struct World {
    ends: [End; 2],
    under_way: BTreeMap<(SimTime, u64), (usize, Vec<u8>)>,
    next: u64,
    now: SimTime,
    path: Path,
    random: Random,
    /// Frames that went, by whether they were protected.
    went: [u64; 2],
    /// Drops the frame that it says to.
    lose: fn(&Repr, u64) -> bool,
    dead: [bool; 2],
    /// Messages that were sent and that were taken at once.
    at_once: [u64; 2],
}

fn byte(message: u64, at: u64) -> u8 {
    (message.wrapping_mul(131).wrapping_add(at.wrapping_mul(7)) ^ (at >> 8)) as u8
}

fn small() -> Config {
    Config {
        frame: Bytes::new(300),
        eager: Bytes::new(1000),
        receive_window: 16,
        ack_every: 4,
        ..Config::default()
    }
}

/// Whether the bytes of a message go another way, which here takes no time.
fn is_pushed(id: u64, length: u64) -> bool {
    length == 1001 && id.is_multiple_of(4)
}

fn key(end: usize, epoch: u32) -> u64 {
    100 * (end as u64 + 1) + u64::from(epoch)
}

fn end(config: Config, at: usize, epoch: u32, peer: Option<u64>) -> End {
    let local = Local { key: key(at, epoch), epoch, lane: at as u16 };
    End {
        machine: Machine::new(config, local, peer).expect("a good configuration"),
        timeout: None,
        came: Vec::new(),
        references: Vec::new(),
        sent: Vec::new(),
        failed: Vec::new(),
        cleared: Vec::new(),
        returned: 0,
        frames: BTreeMap::new(),
        damaged: 0,
    }
}

impl World {
    fn new(config: Config, path: Path, seed: u64) -> Self {
        Self {
            ends: [end(config, 0, 1, Some(key(1, 1))), end(config, 1, 1, Some(key(0, 1)))],
            under_way: BTreeMap::new(),
            next: 0,
            now: SimTime::ZERO,
            path,
            random: Random::new(seed),
            went: [0; 2],
            lose: |_, _| false,
            dead: [false; 2],
            at_once: [0; 2],
        }
    }

    /// Sends and takes at once what may, half of the time, and looks whether an end is then as by the long way.
    fn send(&mut self, from: usize, id: u64, length: u64) {
        let message = Message {
            id: MessageId(id),
            length: Bytes::new(length),
            tag: Some(id),
            data: id.is_multiple_of(3).then_some(id + 1),
            pushed: is_pushed(id, length),
        };
        let mut long = self.ends[from].machine.clone();
        long.send(self.now, message).expect("the queue is long enough");
        if self.random.chance(50)
            && let Some(frame) = self.ends[from].machine.send_at_once(self.now, message)
        {
            self.at_once[0] += 1;
            assert_eq!(Output::Transmit(frame), long.poll_output(true));
            assert_eq!(format!("{:?}", self.ends[from].machine), format!("{long:?}"));
            self.transmit(from, frame);
        } else {
            self.ends[from].machine = long;
        }
        self.drain(from);
    }

    fn drain(&mut self, at: usize) {
        for _ in 0..100_000 {
            match self.ends[at].machine.poll_output(true) {
                Output::Transmit(frame) => self.transmit(at, frame),
                Output::Deliver(delivered) => self.deliver(at, delivered),
                Output::Event(Event::Sent(id)) => self.ends[at].sent.push(id.0),
                Output::Event(Event::Failed(id)) => self.ends[at].failed.push(id.0),
                Output::Event(Event::Returned) => self.ends[at].returned += 1,
                Output::Event(Event::Cleared { id, reference, length }) => {
                    self.ends[at].cleared.push((id.0, reference, length.get()));
                }
                Output::Event(Event::Met) => {}
                Output::Work(work) => panic!("{work:?}"),
                Output::Timeout(timeout) => {
                    self.ends[at].timeout = timeout;
                    return;
                }
            }
        }
        panic!("outputs without an end");
    }

    fn transmit(&mut self, from: usize, frame: Frame) {
        let head = frame.repr.head_octets();
        let mut octets = vec![0; head];
        frame.repr.emit(&mut octets).expect("the size is right");
        let Payload { message, start, length } = frame.payload;
        octets.extend((start.get()..start.get() + length.get()).map(|at| byte(message.0, at)));
        assert!(octets.len() <= 300 || octets.len() as u64 <= 1472, "{} octets", octets.len());
        seal(&mut octets);
        self.went[usize::from(frame.repr.protected)] += 1;
        self.next += 1;
        if (self.lose)(&frame.repr, self.next) || self.random.chance(self.path.loss) {
            return;
        }
        let copies = 1 + u64::from(self.random.chance(self.path.repeat));
        for _ in 0..copies {
            let mut octets = octets.clone();
            if self.random.chance(self.path.damage) {
                let bit = self.random.below(8 * octets.len() as u64) as usize;
                octets[bit / 8] ^= 1 << (bit % 8);
            }
            let base = if frame.repr.protected { self.path.protected } else { self.path.ordinary };
            let late = Span::from_ps(self.random.below(self.path.jitter.as_ps()));
            self.next += 1;
            self.under_way.insert((self.now + base + late, self.next), (1 - from, octets));
        }
    }

    fn arrive(&mut self, at: usize, octets: Vec<u8>, number: u64) {
        if self.dead[at] {
            return;
        }
        if !is_sound(&octets) {
            self.ends[at].damaged += 1;
            return;
        }
        let repr = Repr::parse(&octets).expect("what was not damaged can be read");
        let bytes = octets[repr.head_octets()..].to_vec();
        let payload = Payload::whole(MessageId(number), Bytes::new(bytes.len() as u64));
        self.ends[at].frames.insert(number, bytes);
        let kept = if self.random.chance(50) && self.take_at_once(at, &repr, payload) {
            Kept::No
        } else {
            self.ends[at].machine.handle_frame(self.now, &repr, payload)
        };
        self.drain(at);
        if kept == Kept::No {
            self.ends[at].frames.remove(&number);
        }
    }

    /// Takes a frame at once, if it may be: an end is then as by the long way.
    fn take_at_once(&mut self, at: usize, repr: &Repr, payload: Payload) -> bool {
        let (mut long, mut sent) = (self.ends[at].machine.clone(), Vec::new());
        let Some(head) = self.ends[at].machine.take_at_once(self.now, repr, |id| sent.push(id)) else {
            assert_eq!(format!("{:?}", self.ends[at].machine), format!("{long:?}"), "nothing was done");
            return false;
        };
        self.at_once[1] += 1;
        assert_eq!(long.handle_frame(self.now, repr, payload), Kept::No);
        for id in sent {
            assert_eq!(long.poll_output(false), Output::Event(Event::Sent(id)));
            self.ends[at].sent.push(id.0);
        }
        let Head { tag, data, .. } = head;
        let begun = Delivered::Begin { tag, data, length: payload.length, payload };
        assert_eq!(long.poll_output(false), Output::Deliver(begun));
        assert_eq!(format!("{:?}", self.ends[at].machine), format!("{long:?}"));
        if !long.has_output() {
            assert_eq!(Output::Timeout(long.due()), long.poll_output(true));
        }
        self.deliver(at, begun);
        true
    }

    fn deliver(&mut self, at: usize, delivered: Delivered) {
        let end = &mut self.ends[at];
        let bytes = |end: &End, payload: Payload| {
            end.frames.get(&payload.message.0).expect("a frame that is kept as it was said").clone()
        };
        match delivered {
            Delivered::Begin { tag, data, length, payload } => {
                let tag = tag.expect("all have one");
                assert_eq!(data, tag.is_multiple_of(3).then_some(tag + 1));
                let mut came = Came { tag, bytes: Vec::new() };
                came.bytes.extend(bytes(end, payload).into_iter().map(Some));
                assert!(came.bytes.len() as u64 <= length.get());
                end.came.push(came);
            }
            Delivered::Continue { payload } => {
                let more = bytes(end, payload);
                // Offers stand between messages and have their bytes elsewhere; the last begun goes on.
                let last = end.came.last_mut().expect("a message was begun");
                last.bytes.extend(more.into_iter().map(Some));
            }
            Delivered::Pushed { tag, length, .. } => {
                let tag = tag.expect("all have one");
                let bytes = (0..length.get()).map(|at| Some(byte(tag, at))).collect();
                end.came.push(Came { tag, bytes });
            }
            Delivered::Offer { tag, length, offer, .. } => {
                let tag = tag.expect("all have one");
                let reference = end.references.len() as u32;
                end.references.push(end.came.len());
                end.came.push(Came { tag, bytes: vec![None; length.get() as usize] });
                end.machine.clear(self.now, offer, reference, length);
            }
            Delivered::Bulk { reference, offset, payload } => {
                let more = bytes(end, payload);
                let place = end.references[reference as usize];
                let start = offset.get() as usize;
                for (byte, new) in end.came[place].bytes[start..].iter_mut().zip(more) {
                    assert_eq!(byte.replace(new), None, "a byte came twice");
                }
            }
        }
    }

    /// Lets time pass until nothing is under way and no timer runs, or until then.
    fn run(&mut self, until: SimTime) {
        loop {
            let arrival = self.under_way.first_key_value().map(|(&(at, _), _)| at);
            let timer = (0..2).filter(|&at| !self.dead[at]).filter_map(|at| self.ends[at].timeout).min();
            let tick = self.path.tick.as_ps();
            let next_tick = |at: SimTime| SimTime::from_ps(at.max(self.now).as_ps().next_multiple_of(tick));
            let timer = timer.map(next_tick);
            let Some(at) = arrival.into_iter().chain(timer).min().filter(|&at| at <= until) else { return };
            self.now = at;
            while let Some(entry) = self.under_way.first_entry()
                && entry.key().0 <= at
            {
                let ((_, number), (to, octets)) = entry.remove_entry();
                self.arrive(to, octets, number);
            }
            for end in 0..2 {
                let is_due = self.ends[end].timeout.is_some_and(|timeout| timeout <= at);
                if is_due && !self.dead[end] && at.as_ps().is_multiple_of(tick) {
                    self.ends[end].machine.handle_timeout(at);
                    self.drain(end);
                    let next = self.ends[end].timeout;
                    assert!(next.is_none_or(|next| next > at), "a timer that was handled runs again");
                }
            }
        }
    }

    /// Checks that `to` has these messages, whole, once and in this order.
    fn has(&self, to: usize, messages: &[(u64, u64)]) {
        let came: Vec<_> = self.ends[to].came.iter().map(|came| came.tag).collect();
        assert_eq!(came, messages.iter().map(|&(id, _)| id).collect::<Vec<_>>());
        for (came, &(id, length)) in self.ends[to].came.iter().zip(messages) {
            let wanted: Vec<_> = (0..length).map(|at| Some(byte(id, at))).collect();
            assert!(came.bytes == wanted, "message {id} of {length} bytes");
        }
    }
}

fn seconds(s: u64) -> SimTime {
    SimTime::ZERO + Span::from_s(s)
}

const LENGTHS: [u64; 10] = [0, 1, 8, 239, 240, 241, 1000, 1001, 5000, 20_000];

/// Messages both ways over a bad path; everything comes once, whole and in order.
fn exchange(seed: u64, path: Path) -> World {
    let mut world = World::new(small(), path, seed);
    let mut messages = [Vec::new(), Vec::new()];
    for turn in 0..40 {
        let from = world.random.below(2) as usize;
        let length = LENGTHS[world.random.below(LENGTHS.len() as u64) as usize];
        let id = 2 * turn + from as u64;
        messages[from].push((id, length));
        world.send(from, id, length);
        if world.random.chance(30) {
            let until = world.now + Span::from_us(world.random.below(300));
            world.run(until);
        }
    }
    world.run(seconds(100));
    for (from, messages) in messages.iter().enumerate() {
        world.has(1 - from, messages);
        let sent: BTreeSet<_> = world.ends[from].sent.iter().copied().collect();
        assert_eq!(sent.len(), world.ends[from].sent.len(), "a message was sent twice");
        let own = messages.iter().filter(|&&(id, length)| !is_pushed(id, length));
        assert_eq!(sent, own.map(|&(id, _)| id).collect());
        assert!(world.ends[from].machine.is_at_rest(), "seed {seed}");
        assert!(world.ends[from].failed.is_empty());
        assert_eq!(world.ends[from].machine.counters().impossible, 0, "seed {seed}");
    }
    world
}

#[test]
fn over_a_path_that_loses_repeats_reorders_and_damages_all_comes_once_whole_and_in_order() {
    let (mut damaged, mut resent, mut repeated) = (0, 0, 0);
    for seed in 0..1000 {
        let world = exchange(seed, BAD);
        damaged += world.ends[0].damaged;
        resent += world.ends[0].machine.counters().resent;
        repeated += world.ends[0].machine.counters().duplicates;
    }
    assert!(damaged > 1000 && resent > 1000 && repeated > 1000, "{damaged} {resent} {repeated}");
}

#[test]
fn a_driver_that_handles_timers_late_loses_nothing() {
    for seed in 0..200 {
        exchange(seed, Path { tick: Span::from_us(700), ..BAD });
    }
}

#[test]
fn over_a_good_path_nothing_is_sent_twice() {
    let mut at_once = [0; 2];
    for seed in 0..50 {
        let world = exchange(seed, GOOD);
        for end in &world.ends {
            assert_eq!((end.machine.counters().resent, end.machine.counters().duplicates), (0, 0));
        }
        at_once = [0, 1].map(|way| at_once[way] + world.at_once[way]);
    }
    assert!(at_once.iter().all(|&count| count > 50), "{at_once:?}");
}

#[test]
fn a_lost_frame_in_the_middle_is_sent_again_alone() {
    let mut world = World::new(small(), GOOD, 1);
    // The eleventh frame of all, long after both have met and the message was asked for.
    world.lose = |_, serial| serial == 21;
    world.send(0, 7, 20_000);
    world.run(seconds(1));
    world.has(1, &[(7, 20_000)]);
    let counters = world.ends[0].machine.counters();
    assert_eq!((counters.resent, counters.timeouts), (1, 0));
}

#[test]
fn a_lost_tail_is_asked_for_after_the_least_timeout() {
    let mut world = World::new(small(), GOOD, 1);
    world.send(0, 1, 8);
    world.run(seconds(1));
    world.lose = |repr, _| matches!(repr.body, Body::Message { .. });
    let start = world.now;
    world.send(0, 2, 8);
    world.lose = |_, _| false;
    world.run(start + Span::from_ms(2));
    world.has(1, &[(1, 8), (2, 8)]);
    let counters = world.ends[0].machine.counters();
    assert_eq!((counters.timeouts, counters.resent), (1, 1));
}

#[test]
fn a_silent_peer_is_asked_ever_more_seldom_and_never_given_up() {
    let mut world = World::new(small(), GOOD, 1);
    world.send(0, 1, 8);
    world.run(seconds(1));
    world.lose = |_, _| true;
    world.send(0, 2, 5000);
    world.run(seconds(61));
    let timeouts = world.ends[0].machine.counters().timeouts;
    assert!((250..=330).contains(&timeouts), "{timeouts} in a minute");
    world.lose = |_, _| false;
    world.run(seconds(62));
    world.has(1, &[(1, 8), (2, 5000)]);
}

#[test]
fn a_receiver_that_reads_nothing_is_sent_no_more_than_it_has_buffers_for() {
    let mut world = World::new(small(), GOOD, 1);
    world.send(0, 0, 8);
    world.run(seconds(1));
    world.dead[1] = true;
    let before = world.ends[0].machine.counters().sent;
    (1..100).for_each(|id| world.send(0, id, 240));
    world.run(seconds(2));
    assert_eq!(world.ends[0].machine.counters().sent - before, 16);
    let long = Config { queue: 3, ..small() };
    let mut world = World::new(long, GOOD, 1);
    (0..3).for_each(|id| world.send(0, id, 8));
    let message =
        Message { id: MessageId(9), length: Bytes::new(1), tag: Some(9), data: None, pushed: false };
    let full = world.ends[0].machine.send(world.now, message);
    assert_eq!(full, Err(SendError::Full { waiting: 3 }));
}

#[test]
fn a_receiver_short_of_memory_is_offered_even_short_messages() {
    let mut world = World::new(small(), GOOD, 1);
    world.send(0, 1, 8);
    world.run(seconds(1));
    assert!(world.ends[1].references.is_empty());
    world.ends[1].machine.set_short(world.now, true);
    world.drain(1);
    world.run(seconds(2));
    world.send(0, 2, 8);
    world.run(seconds(3));
    assert_eq!(world.ends[1].references.len(), 1);
    world.ends[1].machine.set_short(world.now, false);
    world.drain(1);
    world.run(seconds(4));
    world.send(0, 3, 8);
    world.run(seconds(5));
    assert_eq!(world.ends[1].references.len(), 1);
    world.has(1, &[(1, 8), (2, 8), (3, 8)]);
}

#[test]
fn bytes_that_go_another_way_are_left_to_the_driver_once_and_what_follows_goes_on() {
    let mut world = World::new(small(), BAD, 5);
    world.ends[0].machine.hand_over(true);
    for (id, length) in [(1, 5000), (2, 700), (3, 9000)] {
        world.send(0, id, length);
    }
    world.run(seconds(5));
    let lengths: Vec<_> = world.ends[1].came.iter().map(|came| came.bytes.len()).collect();
    assert_eq!(lengths, [5000, 700, 9000]);
    assert_eq!(world.ends[0].cleared, [(1, 0, 5000), (3, 1, 9000)]);
    assert_eq!(world.ends[0].sent, [2], "the driver says so of the others");
    assert!(world.ends[1].came[0].bytes.iter().all(Option::is_none), "by no frame");
    assert!(world.ends.iter().all(|end| end.machine.is_at_rest()));
}

#[test]
fn a_peer_that_died_and_came_back_is_not_its_former_self() {
    for seed in 0..300 {
        let mut world = World::new(small(), BAD, seed);
        let messages: Vec<_> = (1..20).map(|id| (id, LENGTHS[id as usize % LENGTHS.len()])).collect();
        messages.iter().for_each(|&(id, length)| world.send(0, id, length));
        world.send(1, 1000, 5000);
        world.run(SimTime::ZERO + Span::from_us(20 * seed));
        // Its frames are still under way when it comes back at the same address with another key.
        let former = core::mem::replace(&mut world.ends[1], end(small(), 1, 2, Some(key(0, 1))));
        world.send(1, 2000, 5000);
        let from = world.ends[0].came.iter().take_while(|came| came.tag < 2000).count();
        world.run(seconds(100));
        let met = world.ends[0].returned;
        assert!(met <= 1);
        // Everything that was sent has come or has failed, and is known by one of them.
        let ends = &world.ends[0];
        let known: BTreeSet<_> = ends.sent.iter().chain(&ends.failed).copied().collect();
        assert_eq!(known.len(), ends.sent.len() + ends.failed.len());
        assert_eq!(known, messages.iter().map(|&(id, _)| id).collect());
        for id in &ends.sent {
            let of = |end: &End| {
                end.came.iter().any(|came| came.tag == *id && came.bytes.iter().all(Option::is_some))
            };
            assert!(of(&former) || of(&world.ends[1]), "message {id}, seed {seed}");
        }
        let came: Vec<_> = world.ends[0].came.iter().skip(from).map(|came| came.tag).collect();
        assert_eq!(came.last(), Some(&2000));
        let last = world.ends[0].came.last().expect("the new one's message");
        assert!(last.bytes.iter().enumerate().all(|(at, b)| *b == Some(byte(2000, at as u64))));
        // And what is sent from now on goes to the new one.
        world.send(0, 500, 3000);
        world.run(seconds(200));
        assert_eq!(world.ends[1].came.last().map(|came| came.tag), Some(500));
    }
}

#[test]
fn frames_of_strangers_change_nothing() {
    let mut world = World::new(small(), GOOD, 1);
    world.send(0, 1, 8);
    world.run(seconds(1));
    let stranger = |key, epoch, body| Repr {
        key,
        epoch,
        lane: 1,
        protected: false,
        short: true,
        received: wiretwin_wire::direct::Number::wrapping(1),
        granted: 9,
        body,
    };
    let number = wiretwin_wire::direct::Number::wrapping(1);
    let payload = Payload::whole(MessageId(77), Bytes::new(8));
    let body = Body::Message { number, head: None };
    let machine = &mut world.ends[1].machine;
    for repr in [
        stranger(0, 1, body),
        stranger(0, 9, Body::Hello { key: 5, lane: 5, answers: None }),
        stranger(key(1, 1), 2, body),
        stranger(key(1, 1), 0, Body::Hello { key: 5, lane: 5, answers: None }),
        stranger(key(1, 1), 2, Body::Hello { key: 5, lane: 5, answers: Some(7) }),
    ] {
        assert_eq!(machine.handle_frame(world.now, &repr, payload), Kept::No);
        assert!(matches!(machine.poll_output(true), Output::Timeout(_)), "{repr:?}");
    }
    assert_eq!((machine.counters().stray, machine.counters().stale), (2, 3));
    world.send(0, 2, 8);
    world.run(seconds(2));
    world.has(1, &[(1, 8), (2, 8)]);
}

#[test]
fn frames_move_to_the_protected_service_while_the_ordinary_one_is_slow_and_back() {
    let two = Thresholds {
        high: Span::from_us(100),
        low: Span::from_us(50),
        interval: Span::from_us(500),
        lost: Span::from_ms(5),
    };
    let config = Config { services: Services::Adaptive(two), ..small() };
    let mut world = World::new(config, GOOD, 1);
    let mut id = 0;
    let mut phase = |world: &mut World, ordinary: Span| {
        world.path.ordinary = ordinary;
        let end = world.now + Span::from_ms(20);
        while world.now < end {
            id += 1;
            world.send(0, id, 8);
            let until = world.now + Span::from_us(50);
            world.run(until);
            world.now = until;
        }
        world.ends[0].machine.service()
    };
    assert_eq!(phase(&mut world, Span::from_us(5)), Service::Ordinary);
    assert_eq!(world.ends[0].machine.counters().protected, 0);
    assert_eq!(phase(&mut world, Span::from_us(300)), Service::Protected);
    let &Counters { protected, bytes, sent, resent, .. } = world.ends[0].machine.counters();
    assert_eq!(bytes, [(sent + resent - protected) * 8, protected * 8]);
    assert!(protected > 250, "{protected} of 400");
    assert_eq!(phase(&mut world, Span::from_us(5)), Service::Ordinary);
    assert!(world.ends[0].machine.counters().protected < protected + 50);
}
