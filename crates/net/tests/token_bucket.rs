//! A network element by example: a token bucket between what sends and an output port.
//!
//! The element is sans-I/O: it takes a packet at a time that it is told, says when the packet may go on, and counts.
//! It has neither clock nor queue of events. A network drives it with the engine's events.

use std::collections::VecDeque;

use wiretwin_engine::{EventQueue, Stream};
use wiretwin_net::port::{Discipline, Port, PortSpec, Taken};
use wiretwin_plan::Queue;
use wiretwin_units::{BitRate, Bytes, SimTime, Span};

/// Passes bursts of up to a number of bytes and delays traffic above a rate (RFC 2697 §3, one bucket). Packets leave
/// in their order. At most `most` wait; one more is lost.
struct TokenBucket {
    rate: BitRate,
    burst: Bytes,
    most: usize,
    /// Nothing is missing from the bucket at this time: what was taken out is back by then.
    full_at: SimTime,
    /// When those that wait go on.
    leaving: VecDeque<SimTime>,
    counters: Counters,
}

/// What came is what was passed on, lost, or is held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counters {
    taken: u64,
    lost: u64,
    passed: u64,
}

impl TokenBucket {
    fn new(rate: BitRate, burst: Bytes, most: usize) -> Self {
        let (full_at, leaving) = (SimTime::ZERO, VecDeque::new());
        Self { rate, burst, most, full_at, leaving, counters: Counters::default() }
    }

    /// Takes a packet: when it goes on, or none where it is lost.
    fn take(&mut self, now: SimTime, bytes: Bytes) -> Option<SimTime> {
        assert!(bytes <= self.burst, "no bucket of {} ever holds {bytes}", self.burst);
        self.counters.taken += 1;
        if self.leaving.len() == self.most {
            self.counters.lost += 1;
            return None;
        }
        // Its tokens are there once no more is missing than the rest of the bucket.
        let rest = self.time_of(self.burst - bytes);
        let goes = if self.full_at > now + rest { self.full_at - rest } else { now };
        self.full_at = self.full_at.max(goes) + self.time_of(bytes);
        self.leaving.push_back(goes);
        Some(goes)
    }

    /// A packet goes on now.
    fn pass(&mut self, now: SimTime) {
        assert_eq!(self.leaving.pop_front(), Some(now), "they go on in their order");
        self.counters.passed += 1;
    }

    fn time_of(&self, bytes: Bytes) -> Span {
        self.rate.time_for(bytes.bits()).expect("a bucket fills in less than 213 days")
    }
}

/// An event of this example network; its number is the packet length in bytes. An event has at most 8 bytes.
#[derive(Clone, Copy)]
enum Happens {
    /// It comes to the bucket.
    Comes(u32),
    /// It goes on to the port.
    GoesOn(u32),
}

/// Poisson arrivals of packets of 40 to 1500 bytes through a bucket to a port of 1 Gbit/s: when each left the bucket,
/// and what the port took and the bucket counted.
fn run(seed: u64, packets: u64, bucket: &mut TokenBucket) -> (Vec<(SimTime, Bytes)>, u64) {
    let mut stream = Stream::derive(seed, "token-bucket/arrivals");
    let discipline = Discipline::Fifo(Some(Queue::Packets(8)));
    let (rate, framing, gap) = (BitRate::bit_s(1_000_000_000), Bytes::new(38), Bytes::ZERO);
    let mut port = Port::new(PortSpec { rate, framing, gap, discipline, marks_after: Span::MAX });
    let (mut events, mut time, mut left, mut sent) = (EventQueue::new(), SimTime::ZERO, Vec::new(), 0);
    for _ in 0..packets {
        time += stream.exponential(Span::from_us(10));
        events.push(time, Happens::Comes(stream.within(40..=1500) as u32));
    }
    while let Some(event) = events.pop() {
        match event.what {
            Happens::Comes(bytes) => {
                if let Some(goes) = bucket.take(event.time, Bytes::new(u64::from(bytes))) {
                    events.push(goes, Happens::GoesOn(bytes));
                }
            }
            Happens::GoesOn(bytes) => {
                bucket.pass(event.time);
                left.push((event.time, Bytes::new(u64::from(bytes))));
                let taken = port.take(event.time, 0, left.len() as u32, bytes);
                sent += u64::from(matches!(taken, Taken::Sent(_)));
            }
        }
    }
    (left, sent)
}

fn bucket() -> TokenBucket {
    TokenBucket::new(BitRate::bit_s(500_000_000), Bytes::new(3000), 16)
}

#[test]
fn a_burst_goes_through_and_the_rest_waits_for_its_tokens() {
    // 500 Mbit/s are 16 ns a byte: 3000 bytes are there at once, the next 1000 after 16 us.
    let mut bucket = bucket();
    let at = |us| SimTime::ZERO + Span::from_us(us);
    let goes: Vec<_> = (0..5).map(|_| bucket.take(at(0), Bytes::new(1000))).collect();
    assert_eq!(goes, [0, 0, 0, 16, 32].map(|us| Some(at(us))));
    assert_eq!(bucket.take(at(1000), Bytes::new(3000)), Some(at(1000)), "it is full again");
}

#[test]
fn nothing_is_lost_but_by_a_full_queue_and_the_books_balance() {
    let mut bucket = bucket();
    let (left, sent) = run(7, 20_000, &mut bucket);
    let Counters { taken, lost, passed } = bucket.counters;
    assert_eq!((taken, passed, passed + lost), (20_000, left.len() as u64, 20_000));
    assert!(lost > 0, "616 Mbit/s are offered");
    assert_eq!(sent, passed, "what the bucket lets through finds room at a port of twice the rate");
}

#[test]
fn over_any_time_no_more_leaves_than_the_burst_and_the_rate() {
    let (left, _) = run(8, 2_000, &mut bucket());
    for (first, &(begin, _)) in left.iter().enumerate().step_by(7) {
        let mut bytes = Bytes::ZERO;
        for &(time, more) in &left[first..] {
            bytes += more;
            let most = 3000.0 + (time - begin).as_ps() as f64 / 16_000.0;
            assert!(bytes.get() as f64 <= most + 1.0, "{bytes} in {}", time - begin);
        }
    }
    assert_eq!(run(8, 2_000, &mut bucket()).0, left, "the same seed gives the same run");
}
