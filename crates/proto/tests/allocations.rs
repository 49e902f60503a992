//! What connections cost in memory: an idle end of TCP at most 512 octets, a steady one of TCP or of
//! SSCOP no allocation.

use std::collections::VecDeque;
use std::sync::Arc;

use peak_alloc::PeakAlloc;
use wiretwin_proto::sscop;
use wiretwin_proto::tcp::{Config, Endpoint, Read, Segment, SeqNumber, Setup, State};
use wiretwin_proto::{MessageId, Output, Payload};
use wiretwin_units::{Bytes, SimTime, Span};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Two ends and a line of one millisecond that loses each so manieth segment with text.
struct Pair {
    ends: [Endpoint; 2],
    line: VecDeque<(SimTime, usize, Segment)>,
    timeouts: [Option<SimTime>; 2],
    now: SimTime,
    lose_each: Option<u32>,
    with_text: u32,
    read: u64,
}

impl Pair {
    fn new(config: Config) -> Self {
        let config = Arc::new(config);
        let setup = |end: u64| Setup {
            iss: SeqNumber::wrapping(end as u32),
            stream: MessageId(end),
            peer_stream: MessageId(1 - end),
            mtu: 1_500,
        };
        let mut pair = Self {
            ends: [Endpoint::new(config.clone(), setup(0)), Endpoint::new(config, setup(1))],
            line: VecDeque::with_capacity(4_096),
            timeouts: [None; 2],
            now: SimTime::ZERO,
            lose_each: None,
            with_text: 0,
            read: 0,
        };
        pair.ends[1].listen(pair.now).unwrap();
        pair.ends[0].connect(pair.now).unwrap();
        pair.drain(0);
        pair
    }

    fn drain(&mut self, end: usize) {
        loop {
            match self.ends[end].poll_output() {
                Output::Transmit(segment) => {
                    self.with_text += u32::from(!segment.is_empty());
                    let lost = self.lose_each.is_some_and(|each| self.with_text.is_multiple_of(each));
                    if segment.is_empty() || !lost {
                        self.line.push_back((self.now + Span::from_ms(1), 1 - end, segment));
                    }
                }
                Output::Deliver(_) => {
                    if let Read::Octets(octets) = self.ends[end].receive(self.now, Bytes::new(u64::MAX)) {
                        self.read += octets.get();
                    }
                }
                Output::Work(_) | Output::Event(_) => {}
                Output::Timeout(timeout) => {
                    self.timeouts[end] = timeout;
                    return;
                }
            }
        }
    }

    /// Sends so many octets from the first end to the second.
    fn send(&mut self, octets: u64) {
        let goal = self.read + octets;
        let mut left = octets;
        while self.read < goal {
            if left > 0 && self.ends[0].state() == State::Established {
                left -= self.ends[0].send(self.now, Bytes::new(left)).unwrap().get();
                self.drain(0);
            }
            assert!(self.step(), "nothing to come, and {} octets missing", goal - self.read);
        }
    }

    fn step(&mut self) -> bool {
        let arrival = self.line.front().map(|&(at, ..)| at);
        let Some(next) = [arrival, self.timeouts[0], self.timeouts[1]].into_iter().flatten().min() else {
            return false;
        };
        self.now = next;
        if arrival == Some(next) {
            let (_, end, segment) = self.line.pop_front().unwrap();
            self.ends[end].handle_segment(next, &segment);
            self.drain(end);
        } else {
            let end = usize::from(self.timeouts[0] != Some(next));
            self.ends[end].handle_timeout(next);
            self.drain(end);
        }
        true
    }
}

/// Two ends of SSCOP and PDUs on their way between them.
struct Assured {
    ends: [sscop::Endpoint; 2],
    line: VecDeque<(usize, sscop::Pdu)>,
    got: u64,
}

impl Assured {
    fn new() -> Self {
        let end = || sscop::Endpoint::new(sscop::Config::default()).unwrap();
        let mut pair = Self { ends: [end(), end()], line: VecDeque::new(), got: 0 };
        pair.ends[0].establish(SimTime::ZERO, None).unwrap();
        pair.drain(0, SimTime::ZERO);
        pair.ends[1].respond_establish(SimTime::ZERO, None).unwrap();
        pair.drain(1, SimTime::ZERO);
        pair
    }

    fn drain(&mut self, end: usize, now: SimTime) {
        loop {
            match self.ends[end].poll_output() {
                Output::Transmit(pdu) => self.line.push_back((1 - end, pdu)),
                Output::Deliver(_) => self.got += 1,
                Output::Work(_) | Output::Event(_) => {}
                Output::Timeout(_) => break,
            }
        }
        while let Some((to, pdu)) = self.line.pop_front() {
            self.ends[to].handle_pdu(now, pdu);
            self.drain(to, now);
        }
    }

    fn send(&mut self, count: u64, from: SimTime) {
        let goal = self.got + count;
        for nth in 0..count {
            let now = from + Span::from_us(nth);
            self.ends[0].send(now, Payload::whole(MessageId(nth), Bytes::new(40))).unwrap();
            self.drain(0, now);
        }
        assert_eq!(self.got, goal);
    }
}

fn a_steady_assured_transfer_does_not_allocate() {
    let mut pair = Assured::new();
    pair.send(10_000, SimTime::ZERO);
    let used = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    pair.send(100_000, SimTime::ZERO + Span::from_ms(10));
    assert_eq!(ALLOCATOR.peak_usage(), used, "SSCOP: a steady transfer allocated");
}

/// One test, for the allocator is one for all.
#[test]
fn an_idle_end_is_small_and_a_steady_one_does_not_allocate() {
    a_steady_assured_transfer_does_not_allocate();
    for config in Config::presets() {
        let name = config.name;
        let mut pair = Pair::new(config);
        pair.send(1 << 20);
        let used = ALLOCATOR.current_usage();
        ALLOCATOR.reset_peak_usage();
        pair.send(4 << 20);
        assert_eq!(ALLOCATOR.peak_usage(), used, "{name}: a steady transfer allocated");

        // Losses need room for what is out of order; it is given back when nothing is.
        pair.lose_each = Some(37);
        pair.send(1 << 20);
        pair.lose_each = None;
        pair.send(100_000);
        while pair.now < SimTime::ZERO + Span::from_s(3_000) && pair.step() {}
        for end in &pair.ends {
            assert_eq!(end.heap_octets(), 0, "{name}: an idle end owns no heap");
            let octets = size_of::<Endpoint>() + end.heap_octets();
            assert!(octets <= 512, "{name}: an idle end takes {octets} octets");
        }
        assert_eq!(ALLOCATOR.current_usage(), used, "{name}: something is held that was not before");
    }
}
