use alloc::vec;
use alloc::vec::Vec;

use super::*;
use crate::library::{Done, Failure};

const NOW: SimTime = SimTime::ZERO;
const LINE: ConnectionId = ConnectionId(0);

/// Two libraries; what each has posted to the other, and what it has done.
struct Pair {
    ends: [ViaMpi; 2],
    lines: [VecDeque<Content>; 2],
    written: [Vec<u64>; 2],
    done: [Vec<Done>; 2],
    garbage: Vec<&'static str>,
}

impl Pair {
    fn new() -> Self {
        let mut ends = [0, 1]
            .map(|rank| ViaMpi::new(rank, 2, Policy::mvich(), Bytes::kib(32)).expect("a policy for VIs"));
        for (rank, one) in ends.iter_mut().enumerate() {
            one.handle(NOW, Outcome::Given { connection: LINE, rank: 1 - rank as u32 });
        }
        Self {
            ends,
            lines: [VecDeque::new(), VecDeque::new()],
            written: [Vec::new(), Vec::new()],
            done: [Vec::new(), Vec::new()],
            garbage: Vec::new(),
        }
    }

    fn drain(&mut self, end: usize) {
        loop {
            match self.ends[end].poll_output() {
                Output::Work(_) => {}
                Output::Transmit(Call::Post { connection, content, way }) => {
                    match way {
                        Way::Write => self.written[end].push(content.length().get()),
                        _ => self.lines[end].push_back(content),
                    }
                    self.ends[end].handle(NOW, Outcome::Wrote { connection, rest: Content::new() });
                }
                Output::Transmit(other) => panic!("{other:?}"),
                Output::Deliver(done) => self.done[end].push(done),
                Output::Event(Event::Garbage { what }) => self.garbage.push(what),
                Output::Event(_) => {}
                Output::Timeout(_) => return,
            }
        }
    }

    /// Until nothing moves any more.
    fn settle(&mut self) {
        loop {
            self.drain(0);
            self.drain(1);
            let Some(end) = (0..2).find(|&end| !self.lines[end].is_empty()) else { return };
            let mut content = self.lines[end].pop_front().expect("it is not empty");
            self.ends[1 - end].handle(NOW, Outcome::Read { connection: LINE, content: &mut content });
        }
    }

    fn send(&mut self, request: u64, bytes: u64) {
        self.ends[0].send(NOW, Request(request), 1, 7, Bytes::new(bytes));
    }

    fn receive(&mut self, request: u64) {
        self.ends[1].receive(NOW, Request(request), Some(0), None, Bytes::mib(1));
    }
}

#[test]
fn a_short_message_is_a_head_and_its_octets() {
    let mut pair = Pair::new();
    pair.send(5, 3);
    pair.drain(0);
    let mut content = pair.lines[0].pop_front().expect("a buffer");
    let mut head = [0; HEAD as usize];
    assert!(content.take_octets(&mut head));
    let mut expected = vec![0, 0, 0, 0];
    for word in [0_u32, 0, 7] {
        expected.extend(word.to_be_bytes());
    }
    for double in [3_u64, 5, 0] {
        expected.extend(double.to_be_bytes());
    }
    for word in [0_u32, 3] {
        expected.extend(word.to_be_bytes());
    }
    assert_eq!(head[..], expected[..]);
    let body = Payload::whole(MessageId(5), Bytes::new(3));
    assert_eq!(content.take_body(Bytes::MAX), Some(body));
    assert_eq!(pair.done[0], [Done::Sent(Request(5))], "it was copied");
}

#[test]
fn a_message_takes_as_many_buffers_as_it_needs_and_comes_whole() {
    // 2048 octets less a head of 48.
    for (bytes, buffers) in [(0, 1), (2000, 1), (2001, 2), (16_383, 9)] {
        let mut pair = Pair::new();
        pair.send(1, bytes);
        pair.drain(0);
        assert_eq!(pair.lines[0].len(), buffers, "{bytes} octets");
        pair.receive(2);
        pair.settle();
        let received = Done::Received { request: Request(2), message: MessageId(1) };
        assert_eq!((&pair.done[1][..], pair.garbage.len()), (&[received][..], 0));
    }
}

#[test]
fn a_long_message_is_written_into_memory_when_its_receive_has_matched() {
    let mut pair = Pair::new();
    pair.send(1, 100_000);
    pair.settle();
    assert!(pair.written[0].is_empty() && pair.done[0].is_empty(), "no receive has been posted");
    pair.receive(2);
    pair.settle();
    assert_eq!(pair.written[0], [32_768, 32_768, 32_768, 1696], "descriptors of 32 KiB");
    assert_eq!(pair.done[0], [Done::Sent(Request(1))]);
    assert_eq!(pair.done[1], [Done::Received { request: Request(2), message: MessageId(1) }]);
}

#[test]
fn a_flood_waits_for_buffers_and_all_of_it_comes_in_order() {
    let mut pair = Pair::new();
    (0..200).for_each(|request| pair.send(request, 10));
    pair.drain(0);
    assert_eq!(pair.lines[0].len(), 22, "32 buffers, 10 kept back");
    pair.settle();
    (0..200).for_each(|request| pair.receive(1000 + request));
    pair.settle();
    let received = |number| Done::Received { request: Request(1000 + number), message: MessageId(number) };
    assert_eq!(pair.done[1], (0..200).map(received).collect::<Vec<_>>());
}

#[test]
fn what_is_no_part_of_a_message_is_garbage() {
    let mut pair = Pair::new();
    let mut short = Content::new();
    short.push_octets(&[0; 20]);
    let mut kind = Content::new();
    kind.push_octets(&[9; HEAD as usize]);
    let mut middle =
        Head { packet: Packet::of(Kind::Eager { synchronous: false }), start: 8, length: 0 }.emit();
    for content in [&mut short, &mut kind, &mut middle] {
        pair.ends[1].handle(NOW, Outcome::Read { connection: LINE, content });
        pair.drain(1);
    }
    assert_eq!(pair.garbage, ["head", "flag", "part of a message"]);
}

#[test]
fn requests_with_a_peer_that_is_lost_fail_by_name() {
    let mut pair = Pair::new();
    pair.receive(2);
    pair.ends[1].handle(NOW, Outcome::Ended { connection: LINE });
    pair.drain(1);
    let failure = Failure::PeerLost { rank: 0 };
    assert_eq!(pair.done[1], [Done::Failed { request: Request(2), failure }]);
    pair.ends[1].send(NOW, Request(3), 0, 7, Bytes::new(1));
    pair.drain(1);
    assert_eq!(pair.done[1][1], Done::Failed { request: Request(3), failure });
}

#[test]
fn policies_that_count_no_buffers_or_fetch_are_refused() {
    let refused = ViaMpi::new(0, 2, Policy::mpich(), Bytes::kib(32)).err();
    assert_eq!(refused, Some(ViaError::NotCounted));
    let get = Policy { data: Data::Get, ..Policy::mvich() };
    assert_eq!(ViaMpi::new(0, 2, get, Bytes::kib(32)).err(), Some(ViaError::Fetched));
}

#[test]
fn messages_of_no_octets_and_of_the_most_there_are_come() {
    let mut pair = Pair::new();
    for (number, bytes) in [(1, Bytes::new(0)), (2, LONGEST)] {
        pair.ends[0].send(NOW, Request(number), 1, 7, bytes);
        pair.ends[1].receive(NOW, Request(10 + number), Some(0), None, LONGEST);
        pair.settle();
        let received = Done::Received { request: Request(10 + number), message: MessageId(number) };
        assert_eq!(pair.done[1].pop(), Some(received), "{bytes:?}");
    }
    assert_eq!(pair.written[0].iter().sum::<u64>(), LONGEST.get());
    assert_eq!(pair.ends[0].admit(1, 0, Bytes::new(2 << 30)), Err(Refusal::TooLong { most: LONGEST }));
    assert!(pair.garbage.is_empty());
    let bytes = Bytes::new(2 << 30);
    let outgoing = Outgoing { to: 1, context: 0, tag: 0, bytes, mode: Mode::Synchronous, buffer: 0 };
    let refused = Err(Misuse::TooLong { bytes, most: LONGEST });
    assert_eq!(pair.ends[0].send_in_mode(SimTime::ZERO, Request(9), outgoing), refused, "in any mode");
}
