use alloc::vec::Vec;

use wiretwin_proto::MessageId;
use wiretwin_units::Span;

use super::*;
use crate::framed::Framed;
use crate::library::{Done, Failure};
use crate::pvm::Encoding;
use crate::pvm::library::{Rank, Usage};

const CIRCUIT: CircuitId = CircuitId(0);

/// Two ranks over a pair of circuits, driven as the local network does, without a price for anything.
struct Bench<L = Framed> {
    now: SimTime,
    ranks: [Reliable<L>; 2],
    /// PDUs that stand before each.
    arrived: [VecDeque<Content>; 2],
    /// The select that each sleeps in.
    asleep: [Option<Option<SimTime>>; 2],
    done: [Vec<Done>; 2],
    /// PDUs of the first that are still to be lost.
    lose: u32,
    alive: [bool; 2],
}

impl Bench {
    fn new(limit: Span) -> Self {
        Self::of(limit, |rank| Framed::new(rank, 2))
    }
}

impl<L: Library> Bench<L> {
    fn of(limit: Span, library: impl Fn(u32) -> L) -> Self {
        let config = Config { limit, ..Config::default() };
        let mut ranks = [0, 1].map(|rank| Reliable::new(library(rank), config));
        for (rank, one) in ranks.iter_mut().enumerate() {
            let rank = 1 - rank as u32;
            one.handle(SimTime::ZERO, Outcome::GivenCircuit { circuit: CIRCUIT, rank });
        }
        Self {
            now: SimTime::ZERO,
            ranks,
            arrived: [VecDeque::new(), VecDeque::new()],
            asleep: [None, None],
            done: [Vec::new(), Vec::new()],
            lose: 0,
            alive: [true; 2],
        }
    }

    fn drain(&mut self, at: usize) {
        let now = self.now;
        loop {
            match self.ranks[at].poll_output() {
                Output::Transmit(Call::SendPdu { circuit, content }) => {
                    assert_eq!(circuit, CIRCUIT);
                    assert!(content.length() <= Bytes::new(4096), "what the interface takes");
                    if at == 0 && self.lose > 0 {
                        self.lose -= 1;
                    } else if self.alive[1 - at] {
                        self.arrived[1 - at].push_back(content);
                    }
                    self.ranks[at].handle(now, Outcome::SentPdu { circuit });
                }
                Output::Transmit(Call::ReceivePdu { circuit, wait: false }) => {
                    match self.arrived[at].pop_front() {
                        Some(mut content) => {
                            self.ranks[at].handle(now, Outcome::Pdu { circuit, content: &mut content });
                        }
                        None => self.ranks[at].handle(now, Outcome::NoPdu { circuit }),
                    }
                }
                Output::Transmit(Call::Select { until, .. }) => self.asleep[at] = Some(until),
                Output::Transmit(other) => panic!("no call of the interface: {other:?}"),
                Output::Deliver(done) => self.done[at].push(done),
                Output::Work(_) | Output::Event(_) => {}
                Output::Timeout(_) => return,
            }
        }
    }

    /// The process waits in its library until that sleeps.
    fn wait(&mut self, at: usize) {
        for _ in 0..100 {
            if self.asleep[at].is_some() {
                return;
            }
            self.ranks[at].progress(self.now);
            self.drain(at);
        }
    }

    /// Lets both wait until nothing more happens, or `limit` has come.
    fn run(&mut self, limit: SimTime) {
        for at in [0, 1].into_iter().filter(|&at| self.alive[at]).collect::<Vec<_>>() {
            self.wait(at);
        }
        loop {
            let ready = (0..2)
                .find(|&at| self.alive[at] && self.asleep[at].is_some() && !self.arrived[at].is_empty());
            let due =
                (0..2).filter(|&at| self.alive[at]).filter_map(|at| Some((self.asleep[at]??, at))).min();
            let (at, ready): (usize, &[Ready]) = match (ready, due) {
                (Some(at), _) => (at, &[Ready::Pdu(CIRCUIT)]),
                (None, Some((due, at))) if due <= limit => {
                    self.now = self.now.max(due);
                    (at, &[])
                }
                _ => return,
            };
            self.asleep[at] = None;
            let now = self.now;
            self.ranks[at].handle(now, Outcome::Ready(ready));
            self.drain(at);
            self.wait(at);
        }
    }

    fn send(&mut self, at: usize, request: u64, bytes: u64) {
        self.ranks[at].send(self.now, Request(request), 1 - at as u32, 5, Bytes::new(bytes));
        self.drain(at);
    }

    fn receive(&mut self, at: usize, request: u64) {
        self.ranks[at].receive(self.now, Request(request), None, None, Bytes::MAX);
        self.drain(at);
    }
}

fn second(count: u64) -> SimTime {
    SimTime::ZERO + Span::from_s(count)
}

#[test]
fn messages_of_every_size_come_whole_over_pdus_of_four_kilobytes() {
    for bytes in [0, 1, 4064, 4065, 100_000, 16 << 20] {
        let mut bench = Bench::new(Span::from_s(60));
        bench.receive(1, 2);
        bench.send(0, 1, bytes);
        bench.run(second(1));
        let received = Done::Received { request: Request(2), message: MessageId(1) };
        assert_eq!(
            (&bench.done[0][..], &bench.done[1][..]),
            (&[Done::Sent(Request(1))][..], &[received][..])
        );
        assert_eq!(bench.ranks[0].passed().again, 0);
    }
}

#[test]
fn messages_of_pvm_come_whole_too() {
    let usage = Usage { direct: true, encoding: Encoding::Default };
    for bytes in [0, 1, 4000, 4096, 100_000, 1 << 20] {
        let mut bench = Bench::of(Span::from_s(60), |rank| Rank::new(rank, 2, usage));
        bench.lose = 1;
        bench.receive(1, 2);
        bench.send(0, 1, bytes);
        bench.run(second(1));
        let received = Done::Received { request: Request(2), message: MessageId(1) };
        let sent = Done::Sent(Request(1));
        assert_eq!((&bench.done[0][..], &bench.done[1][..]), (&[sent][..], &[received][..]), "{bytes} bytes");
    }
}

#[test]
fn a_message_of_which_pdus_are_lost_is_repaired() {
    let mut bench = Bench::new(Span::from_s(60));
    bench.lose = 40;
    bench.receive(1, 2);
    bench.send(0, 1, 500_000);
    bench.run(second(10));
    assert_eq!(bench.done[1].len(), 1);
    assert!(bench.ranks[0].passed().again >= 32, "{:?}", bench.ranks[0].passed());
}

#[test]
fn who_has_ended_still_repeats_and_still_answers() {
    let mut bench = Bench::new(Span::from_s(60));
    bench.lose = 1;
    bench.send(0, 1, 100);
    bench.ranks[0].leave(bench.now);
    bench.drain(0);
    bench.receive(1, 2);
    bench.run(second(10));
    assert_eq!(bench.done[1].len(), 1, "the only PDU was lost, and its sender had ended");
    assert!(!bench.ranks[0].lines[0].channel.is_waiting(), "and knows that it has come");
}

#[test]
fn a_peer_that_dies_in_mid_message_fails_what_hangs_on_it() {
    let mut bench = Bench::new(Span::from_s(5));
    bench.send(0, 1, 1 << 20);
    bench.alive[1] = false;
    bench.receive(0, 3);
    bench.ranks[0].receive(bench.now, Request(4), Some(1), None, Bytes::MAX);
    bench.drain(0);
    bench.run(second(100));
    assert!(bench.now <= second(8), "{:?}", bench.now);
    let failure = Failure::PeerLost { rank: 1 };
    assert!(bench.done[0].contains(&Done::Failed { request: Request(1), failure }), "{:?}", bench.done);
    assert!(bench.done[0].contains(&Done::Failed { request: Request(4), failure }), "{:?}", bench.done);
    // What is sent from then on fails at once.
    bench.send(0, 9, 1);
    assert!(bench.done[0].contains(&Done::Failed { request: Request(9), failure }), "{:?}", bench.done);
}

fn both_ways<L: Library>(bench: impl Fn() -> Bench<L>) {
    for bytes in [0, 1, 100, 4097, 40_000, 2 << 20] {
        let (mut bench, mut number) = (bench(), 0);
        for at in 0..2 {
            // One long, one short, and as many receives; also to oneself.
            for to in [1 - at, at] {
                for bytes in [bytes, 1] {
                    number += 1;
                    bench.ranks[at].send(bench.now, Request(number), to as u32, 5, Bytes::new(bytes));
                    bench.drain(at);
                    bench.receive(to, 1000 + number);
                }
            }
        }
        bench.run(second(1));
        assert_eq!(bench.done.each_ref().map(Vec::len), [number as usize; 2], "{bytes} bytes");
    }
}

#[test]
fn two_that_send_long_messages_to_each_other_do_not_wait_for_ever() {
    both_ways(|| Bench::new(Span::from_s(60)));
    let usage = Usage { direct: true, encoding: Encoding::Default };
    both_ways(|| Bench::of(Span::from_s(60), |rank| Rank::new(rank, 2, usage)));
}
