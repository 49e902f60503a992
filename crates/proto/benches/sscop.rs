//! An SD sent and received: two ends of a connection and a path that loses nothing.
//!
//! JSON lines as those of the other benches; the reference moves the same handles through the two queues
//! that any such path needs, and nothing else.
#![allow(clippy::disallowed_types)] // a bench reads the clock; the crate beside it may not

use std::collections::VecDeque;
use std::time::Instant;

use wiretwin_benches::{Arguments, Turns};
use wiretwin_proto::sscop::{Config, Delivered, Endpoint, Pdu};
use wiretwin_proto::{MessageId, Output, Payload};
use wiretwin_units::{Bytes, SimTime, Span};

struct Pair {
    ends: [Endpoint; 2],
    lines: [VecDeque<Pdu>; 2],
    now: SimTime,
    got: u64,
}

impl Pair {
    fn new(config: Config) -> Self {
        let end = || Endpoint::new(config).expect("a good configuration");
        let mut pair = Self {
            ends: [end(), end()],
            lines: [VecDeque::new(), VecDeque::new()],
            now: SimTime::ZERO,
            got: 0,
        };
        pair.ends[0].establish(pair.now, None).expect("idle");
        pair.drain(0);
        pair.settle();
        pair.ends[1].respond_establish(pair.now, None).expect("asked");
        pair.drain(1);
        pair.settle();
        pair
    }

    fn drain(&mut self, end: usize) {
        loop {
            match self.ends[end].poll_output() {
                Output::Transmit(pdu) => self.lines[1 - end].push_back(pdu),
                Output::Deliver(Delivered::Data { payload, .. }) => self.got += payload.length.get() & 1,
                Output::Timeout(_) => return,
                _ => {}
            }
        }
    }

    fn settle(&mut self) {
        while let Some(end) = (0..2).find(|&end| !self.lines[end].is_empty()) {
            let pdu = self.lines[end].pop_front().expect("it is there");
            self.ends[end].handle_pdu(self.now, pdu);
            self.drain(end);
        }
    }

    /// So many SDs, one after the other, a microsecond apart.
    fn run(&mut self, count: u64) {
        for nth in 0..count {
            self.now += Span::from_us(1);
            let payload = Payload::whole(MessageId(nth), Bytes::new(41));
            self.ends[0].send(self.now, payload).expect("data flow");
            self.drain(0);
            self.settle();
        }
    }
}

fn reference(count: u64) -> u64 {
    let (mut queue, mut line, mut got) = (VecDeque::new(), VecDeque::new(), 0);
    for nth in 0..count {
        queue.push_back(Payload::whole(MessageId(nth), Bytes::new(41)));
        line.extend(queue.pop_front());
        if let Some(payload) = std::hint::black_box(&mut line).pop_front() {
            got += payload.length.get() & 1;
        }
    }
    got
}

fn main() {
    const SDS: u64 = 500_000;
    let turns = Arguments::of_process().turns(11, 3) as u64;
    for work in [true, false] {
        let mut pair = Pair::new(Config { work, ..Config::default() });
        let mut measured = Turns::default();
        for turn in 1..=turns {
            let start = Instant::now();
            pair.run(SDS);
            let a = start.elapsed().as_secs_f64() / SDS as f64 * 1e9;
            let start = Instant::now();
            assert_eq!(reference(SDS), SDS);
            let b = start.elapsed().as_secs_f64() / SDS as f64 * 1e9;
            assert_eq!(pair.got, turn * SDS, "all of them came");
            measured.push(a, b);
        }
        let name = if work { "SD sent and received, its work told" } else { "SD sent and received" };
        let (ns, bare, ratio) = measured.medians();
        println!(
            r#"{{"bench":"proto/{name}","unit":"ns per SD","ns":{ns:.1},"target_ratio":6.6,"target_ns":60,"reference":"two queues","reference_ns":{bare:.1},"ratio":{ratio:.3},"turns":{turns}}}"#,
        );
    }
}
