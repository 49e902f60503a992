//! Two ends, a virtual clock, and a network that does to segments what a test says.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use wiretwin_units::{Bytes, SimTime, Span};

use crate::tcp::{Config, Ecn, Endpoint, Event, Flags, Read, Reason, Segment, SeqNumber, Setup, State};
use crate::{MessageId, Output, Work};

pub const ACTIVE: usize = 0;
pub const PASSIVE: usize = 1;

pub fn ms(ms: u64) -> SimTime {
    SimTime::ZERO + Span::from_ms(ms)
}

pub fn bytes(octets: u64) -> Bytes {
    Bytes::new(octets)
}

/// What the network does to a segment: when its copies arrive, after the delay. Empty is a loss.
#[derive(Clone, Debug, Default)]
pub struct Fate {
    pub copies: Vec<Span>,
    pub corrupted: bool,
    pub marked: bool,
}

impl Fate {
    pub fn passed() -> Self {
        Self { copies: vec![Span::ZERO], corrupted: false, marked: false }
    }

    pub fn lost() -> Self {
        Self::default()
    }
}

type Fates = Box<dyn FnMut(usize, &Segment) -> Fate>;

pub struct Pair {
    pub ends: [Endpoint; 2],
    pub now: SimTime,
    pub delay: Span,
    /// Octets that each end has still to write.
    pub to_write: [u64; 2],
    /// Whether each end reads what comes.
    pub reads: [bool; 2],
    /// Whether each end shuts its direction down once it has written all.
    pub shuts: [bool; 2],
    shut: [bool; 2],
    pub read: [u64; 2],
    pub delivered: [u64; 2],
    pub events: [Vec<Event>; 2],
    /// Segments sent, as text: `ms end> flags from..to ack window`, numbers counted from the SYNs.
    pub sent: Vec<String>,
    pub segments: Vec<(SimTime, usize, Segment)>,
    pub work: [Vec<Work>; 2],
    pub fates: Fates,
    flying: BTreeMap<(SimTime, u64), (usize, Segment)>,
    count: u64,
    timeouts: [Option<SimTime>; 2],
}

pub const ISS: [u32; 2] = [1_000, u32::MAX - 500];

pub fn setup(end: usize) -> Setup {
    Setup {
        iss: SeqNumber::wrapping(ISS[end]),
        stream: MessageId(end as u64),
        peer_stream: MessageId(1 - end as u64),
        mtu: 1_500,
    }
}

impl Pair {
    pub fn new(configs: [Config; 2]) -> Self {
        Self::with_setups(configs, [setup(0), setup(1)])
    }

    pub fn with_setups(configs: [Config; 2], setups: [Setup; 2]) -> Self {
        let [active, passive] = configs;
        let ends = [Endpoint::new(Arc::new(active), setups[0]), Endpoint::new(Arc::new(passive), setups[1])];
        Self {
            ends,
            now: SimTime::ZERO,
            delay: Span::from_ms(1),
            to_write: [0; 2],
            reads: [true; 2],
            shuts: [false; 2],
            shut: [false; 2],
            read: [0; 2],
            delivered: [0; 2],
            events: [vec![], vec![]],
            sent: vec![],
            segments: vec![],
            work: [vec![], vec![]],
            fates: Box::new(|_, _| Fate::passed()),
            flying: BTreeMap::new(),
            count: 0,
            timeouts: [None; 2],
        }
    }

    /// Both ends of the same rules, connected.
    pub fn connected(config: Config) -> Self {
        let mut pair = Self::new([config.clone(), config]);
        pair.connect();
        pair
    }

    pub fn connect(&mut self) {
        self.ends[PASSIVE].listen(self.now).unwrap();
        self.drain(PASSIVE);
        self.ends[ACTIVE].connect(self.now).unwrap();
        self.drain(ACTIVE);
        let limit = self.now + Span::from_s(300);
        self.run_while(limit, |pair| {
            !(pair.state(ACTIVE) == State::Established && pair.state(PASSIVE) == State::Established)
        });
    }

    pub fn state(&self, end: usize) -> State {
        self.ends[end].state()
    }

    /// Takes the outputs of an end, and lets its user go on.
    pub fn drain(&mut self, end: usize) {
        loop {
            match self.ends[end].poll_output() {
                Output::Work(work) => self.work[end].push(work),
                Output::Transmit(segment) => self.transmit(end, segment),
                Output::Deliver(payload) => {
                    assert_eq!(payload.start.get(), self.delivered[end], "in order, and once");
                    assert_eq!(payload.message, MessageId(1 - end as u64));
                    self.delivered[end] += payload.length.get();
                }
                Output::Event(event) => self.events[end].push(event),
                Output::Timeout(timeout) => {
                    self.timeouts[end] = timeout;
                    if !self.user_goes_on(end) {
                        return;
                    }
                }
            }
        }
    }

    fn user_goes_on(&mut self, end: usize) -> bool {
        if self.reads[end]
            && let Read::Octets(octets) = self.ends[end].receive(self.now, bytes(u64::MAX))
        {
            self.read[end] += octets.get();
            return true;
        }
        if self.to_write[end] > 0 && self.state(end).may_send() {
            let taken = self.ends[end].send(self.now, bytes(self.to_write[end])).unwrap().get();
            self.to_write[end] -= taken;
            if taken > 0 {
                return true;
            }
        }
        let may_shut = self.state(end).is_synchronized() && self.state(end).may_send();
        if self.shuts[end] && !self.shut[end] && self.to_write[end] == 0 && may_shut {
            self.shut[end] = true;
            self.ends[end].shutdown(self.now).unwrap();
            return true;
        }
        false
    }

    pub fn transmit(&mut self, end: usize, segment: Segment) {
        let fate = (self.fates)(end, &segment);
        self.sent.push(self.show(end, &segment));
        self.segments.push((self.now, end, segment));
        for extra in fate.copies {
            let at = self.now + self.delay + extra;
            let ecn = if fate.marked { Ecn::Congestion } else { segment.ecn };
            let copy = Segment { corrupted: segment.corrupted || fate.corrupted, ecn, ..segment };
            self.flying.insert((at, self.count), (1 - end, copy));
            self.count += 1;
        }
    }

    fn show(&self, end: usize, segment: &Segment) -> String {
        let place = |seq: SeqNumber, iss: u32| seq.get().wrapping_sub(iss) as i32;
        let from = place(segment.seq, ISS[end]);
        let ack = place(segment.ack, ISS[1 - end]);
        let ms = self.now.as_ps() / 1_000_000_000;
        let to = from + segment.len() as i32;
        let ack = if segment.flags.has(Flags::ACK) { format!(" ack {ack}") } else { String::new() };
        format!("{ms} {end}> {:?} {from}..{to}{ack} win {}", segment.flags, segment.window)
    }

    /// The time of what comes next.
    pub fn next_time(&self) -> Option<SimTime> {
        let arrival = self.flying.keys().next().map(|&(at, _)| at);
        [arrival, self.timeouts[0], self.timeouts[1]].into_iter().flatten().min()
    }

    /// One step; false where nothing is to come.
    pub fn step(&mut self) -> bool {
        let Some(next) = self.next_time() else { return false };
        self.now = next;
        if let Some(entry) = self.flying.first_entry()
            && entry.key().0 == next
        {
            let (end, segment) = entry.remove();
            self.ends[end].handle_segment(next, &segment);
            self.drain(end);
            return true;
        }
        let end = usize::from(self.timeouts[0] != Some(next));
        self.ends[end].handle_timeout(next);
        self.drain(end);
        true
    }

    /// Runs while a condition holds; fails beyond the limit.
    pub fn run_while(&mut self, limit: SimTime, mut condition: impl FnMut(&Self) -> bool) {
        let mut steps = 0;
        while condition(self) {
            assert!(self.now <= limit, "still not at {limit}: {:#?}", self.sent.last());
            steps += 1;
            assert!(steps < 1_000_000, "a million steps, and the clock at {}", self.now);
            if !self.step() {
                return;
            }
        }
    }

    /// Runs until nothing happens up to this time, which the clock then shows.
    pub fn run_to(&mut self, time: SimTime) {
        while self.next_time().is_some_and(|next| next <= time) {
            self.step();
        }
        self.now = time;
    }

    /// Runs until nothing is to come; fails beyond the limit.
    pub fn run(&mut self, limit: SimTime) {
        self.run_while(limit, |_| true);
    }

    /// Writes so many octets, and reads them at the other end: how long it took.
    pub fn send_all(&mut self, end: usize, octets: u64, limit: Span) -> Span {
        let (start, goal) = (self.now, self.read[1 - end] + octets);
        self.to_write[end] += octets;
        self.drain(end);
        self.run_while(start + limit, |pair| pair.read[1 - end] < goal);
        assert_eq!(self.read[1 - end], goal);
        self.now - start
    }

    pub fn closed(&self, end: usize) -> Option<Reason> {
        self.events[end].iter().find_map(|event| match event {
            Event::Closed(reason) => Some(*reason),
            _ => None,
        })
    }
}
