use alloc::vec::Vec;

use super::*;
use crate::library::{Done, Failure};

const NOW: SimTime = SimTime::ZERO;
const LINE: ConnectionId = ConnectionId(0);

fn pair(make: impl Fn(u32) -> StreamMpi) -> [StreamMpi; 2] {
    let mut both = [make(0), make(1)];
    for (rank, one) in both.iter_mut().enumerate() {
        one.handle(NOW, Outcome::Given { connection: LINE, rank: 1 - rank as u32 });
    }
    both
}

/// A line that takes so many octets at once, and how much it holds.
struct Cable {
    ends: [StreamMpi; 2],
    lines: [Content; 2],
    room: u64,
    done: [Vec<Done>; 2],
    writes: [usize; 2],
    reads: usize,
    /// Reads of nothing, of each end.
    peeks: [usize; 2],
}

impl Cable {
    fn new(ends: [StreamMpi; 2], room: u64) -> Self {
        Self {
            ends,
            lines: [Content::new(), Content::new()],
            room,
            done: [Vec::new(), Vec::new()],
            writes: [0; 2],
            reads: 0,
            peeks: [0; 2],
        }
    }

    /// Does what an end asks for.
    fn drain(&mut self, end: usize) {
        loop {
            match self.ends[end].poll_output() {
                Output::Work(_) => {}
                Output::Transmit(Call::Write { connection, mut content, wait: false }) => {
                    let free = self.room.saturating_sub(self.lines[end].length().get());
                    content.move_to(Bytes::new(free), &mut self.lines[end]);
                    self.writes[end] += 1;
                    self.ends[end].handle(NOW, Outcome::Wrote { connection, rest: content });
                }
                Output::Transmit(Call::Read { connection, most, wait: false }) => {
                    let mut content = Content::new();
                    self.lines[1 - end].move_to(most, &mut content);
                    self.reads += 1;
                    self.peeks[end] += usize::from(most.is_zero());
                    self.ends[end].handle(NOW, Outcome::Read { connection, content: &mut content });
                    assert!(content.is_empty(), "what was read is taken");
                }
                Output::Transmit(Call::Select { write, .. }) => {
                    let mut ready = Vec::new();
                    if !self.lines[1 - end].is_empty() {
                        ready.push(Ready::Readable(LINE));
                    }
                    if write.is_some() && self.lines[end].length().get() < self.room {
                        ready.push(Ready::Writable(LINE));
                    }
                    if ready.is_empty() {
                        return;
                    }
                    self.ends[end].handle(NOW, Outcome::Ready(&ready));
                }
                Output::Deliver(done) => self.done[end].push(done),
                Output::Event(Event::Garbage { what }) => panic!("{what}"),
                Output::Timeout(_) => return,
                other => panic!("{other:?}"),
            }
        }
    }

    /// Until nothing moves.
    fn run(&mut self) {
        for _ in 0..100_000 {
            let before = (self.writes, self.reads, self.done[0].len() + self.done[1].len());
            for end in 0..2 {
                self.drain(end);
                self.ends[end].progress(NOW);
                self.drain(end);
            }
            if before == (self.writes, self.reads, self.done[0].len() + self.done[1].len()) {
                return;
            }
        }
        panic!("it goes on for ever");
    }
}

fn words(content: &mut Content, count: usize) -> Vec<u32> {
    (0..count)
        .map(|_| {
            let mut word = [0; 4];
            assert!(content.take_octets(&mut word), "another word");
            u32::from_be_bytes(word)
        })
        .collect()
}

#[test]
fn lams_messages_are_these_octets() {
    let mut cable = Cable::new(pair(|rank| StreamMpi::lam(rank, 2, Bytes::new(1000))), u64::MAX);
    cable.ends[0].send(NOW, Request(1), 1, 7, Bytes::new(999));
    cable.drain(0);
    let line = &mut cable.lines[0];
    assert_eq!(words(line, 6), [999, 7, 0x02, 0, 0, 1]);
    assert_eq!(line.take_body(Bytes::MAX).map(|body| body.length.get()), Some(999));
    assert_eq!(cable.done[0], [Done::Sent(Request(1))]);
    // Long: the envelope alone, and then its leave and the data under the same number.
    cable.ends[0].send(NOW, Request(2), 1, 8, Bytes::new(1000));
    cable.ends[1].receive(NOW, Request(9), None, None, Bytes::new(600));
    cable.drain(0);
    assert_eq!(cable.lines[0].length().get(), LAM_HEAD as u64);
    cable.ends[1].progress(NOW);
    cable.drain(1);
    assert_eq!(cable.lines[1].peek_words::<6>(), Some([600, 8, 0x04 | 0x08, 0, 0, 2]));
    cable.ends[0].progress(NOW);
    cable.drain(0);
    assert_eq!(cable.lines[0].peek_words::<6>(), Some([600, 8, 0x04 | 0x10, 0, 0, 2]));
    cable.run();
    let received = Done::Received { request: Request(9), message: MessageId(2) };
    assert_eq!((&cable.done[0][1..], &cable.done[1][..]), (&[Done::Sent(Request(2))][..], &[received][..]));
}

#[test]
fn mpichs_messages_take_these_octets_and_writes() {
    // Octets there and back, writes of the sender, and messages of p4 that the receiver looks at twice, by length.
    let cases = [
        (0, 72, 0, 2, 1),
        (1023, 72 + 1023, 0, 2, 1),
        (1024, 72 + 32 + 1024, 0, 4, 2),
        (128_000, 76 + 32 + 128_000, 68, 4, 2),
    ];
    for (bytes, there, back, writes, messages) in cases {
        let mut cable = Cable::new(pair(|rank| StreamMpi::mpich(rank, 2)), u64::MAX);
        cable.ends[1].receive(NOW, Request(9), Some(0), Some(3), Bytes::new(bytes));
        cable.ends[0].send(NOW, Request(1), 1, 3, Bytes::new(bytes));
        let (mut went, mut came) = (0, 0);
        for _ in 0..20 {
            cable.drain(0);
            went += cable.lines[0].length().get();
            cable.ends[1].progress(NOW);
            cable.drain(1);
            came += cable.lines[1].length().get();
            cable.ends[0].progress(NOW);
            went -= cable.lines[0].length().get();
        }
        assert_eq!((went, came), (there, back), "octets of a message of {bytes}");
        assert_eq!(cable.writes[0], writes, "writes of a message of {bytes}");
        assert_eq!(cable.peeks[1], messages, "second looks at a message of {bytes}");
        let received = Done::Received { request: Request(9), message: MessageId(1) };
        assert_eq!(cable.done[1], [received], "{bytes}");
    }
}

#[test]
fn long_messages_both_ways_pass_a_narrow_line() {
    let lam = |rank| StreamMpi::lam(rank, 2, Bytes::new(5_000));
    for ends in [pair(lam), pair(|rank| StreamMpi::mpich(rank, 2))] {
        let mut cable = Cable::new(ends, 700);
        for number in 0..20 {
            let bytes = Bytes::new([3, 0, 4_999, 5_000, 140_000][number as usize % 5]);
            for end in 0..2 {
                let request = 1_000 * (end as u64 + 1) + number;
                cable.ends[end].send(NOW, Request(request), 1 - end as u32, number as u32, bytes);
                let capacity = Bytes::new(140_000);
                let receive = Request(request + 500);
                cable.ends[end].receive(NOW, receive, None, Some(19 - number as u32), capacity);
            }
        }
        cable.run();
        for end in 0..2 {
            assert_eq!(cable.done[end].len(), 40, "all are done");
            for done in &cable.done[end] {
                if let Done::Received { request: Request(request), message: MessageId(message) } = *done {
                    // The receive posted last is for the message sent first.
                    let number = 19 - (request - 500) % 1_000;
                    assert_eq!(message, 1_000 * (2 - end as u64) + number);
                }
            }
            assert_eq!(cable.ends[end].machine().open(), 0);
        }
        assert!(cable.ends[0].sends.is_empty() && cable.ends[1].receives.is_empty(), "no number is left");
    }
}

#[test]
fn what_a_stream_cannot_carry_is_refused() {
    let made = |policy| StreamMpi::new(0, 2, policy, Heads::Lam).map(|_| ());
    assert_eq!(made(Policy::mvich()), Err(StreamError::Memory(Data::Put)));
    assert_eq!(made(Policy { data: Data::Sent, ..Policy::general() }), Err(StreamError::Flow));
    let lam = StreamMpi::lam(0, 2, Bytes::kib(64));
    assert_eq!(lam.admit(2, 0, Bytes::new(1)), Err(Refusal::Unsupported("a rank that is not there")));
    assert_eq!(lam.admit(1, 0, Bytes::new(2 << 30)), Err(Refusal::TooLong { most: LONGEST }));
    assert_eq!(lam.admit(1, 0, LONGEST), Ok(()));
    let bytes = Bytes::new(2 << 30);
    let outgoing = Outgoing { to: 1, context: 0, tag: 0, bytes, mode: Mode::Synchronous, buffer: 0 };
    let refused = Err(Misuse::TooLong { bytes, most: LONGEST });
    for mut one in [lam, StreamMpi::mpich(0, 2)] {
        assert_eq!(one.send_in_mode(NOW, Request(1), outgoing), refused, "in any mode");
        assert_eq!(one.machine().open(), 0);
    }
}

#[test]
fn the_longest_message_takes_no_memory_of_its_length() {
    let general = |rank| StreamMpi::new(rank, 2, Policy::over_streams(), Heads::Lam).expect("for streams");
    let lam = |rank| StreamMpi::lam(rank, 2, Bytes::kib(64));
    for ends in [pair(lam), pair(|rank| StreamMpi::mpich(rank, 2)), pair(general)] {
        let mut cable = Cable::new(ends, u64::MAX);
        cable.ends[0].send(NOW, Request(1), 1, 3, LONGEST);
        cable.ends[1].receive(NOW, Request(9), Some(0), Some(3), LONGEST);
        cable.run();
        assert_eq!(cable.done[0], [Done::Sent(Request(1))]);
        assert_eq!(cable.done[1], [Done::Received { request: Request(9), message: MessageId(1) }]);
    }
}

#[test]
fn a_peer_that_is_set_differently_fails_what_is_asked_of_it() {
    let mut cable = Cable::new(pair(|rank| StreamMpi::lam(rank, 2, Bytes::new(1000))), u64::MAX);
    cable.ends[0].handle_terms(NOW, 1, &Policy::lam(Bytes::new(2000)).terms());
    cable.ends[0].send(NOW, Request(1), 1, 0, Bytes::new(1500));
    cable.ends[0].receive(NOW, Request(2), Some(1), None, Bytes::new(1500));
    cable.run();
    let failure = Failure::Refused("the peer has another rendezvous threshold");
    assert_eq!(cable.done[0], [1, 2].map(|request| Done::Failed { request: Request(request), failure }));
    assert_eq!(cable.writes, [0, 0], "nothing goes out");
}

#[test]
fn a_peer_that_goes_fails_what_hangs_on_it() {
    let mut cable = Cable::new(pair(|rank| StreamMpi::mpich(rank, 2)), 100);
    cable.ends[0].receive(NOW, Request(1), Some(1), None, Bytes::new(4));
    cable.ends[0].send(NOW, Request(2), 1, 0, Bytes::new(5_000));
    cable.drain(0);
    cable.ends[0].handle(NOW, Outcome::Ended { connection: LINE });
    cable.drain(0);
    let failure = Failure::PeerLost { rank: 1 };
    let failed = |request| Done::Failed { request: Request(request), failure };
    assert_eq!(cable.done[0], [failed(2), failed(1)]);
}

#[test]
fn a_look_between_two_reads_of_a_message_does_not_read_into_the_next_ones() {
    let mut cable = Cable::new(pair(|rank| StreamMpi::mpich(rank, 2)), u64::MAX);
    // Those after it are no longer together than what a second read of the first would be asked for.
    let lengths = [256, 0, 0];
    for (number, bytes) in (0_u64..).zip(lengths) {
        cable.ends[0].send(NOW, Request(1 + number), 1, 3, Bytes::new(bytes));
        cable.ends[1].receive(NOW, Request(11 + number), Some(0), Some(3), Bytes::new(bytes));
    }
    cable.drain(0);
    // Asked for twice before anything of it is done: it looks once more after it has begun to read.
    cable.ends[1].progress(NOW);
    cable.ends[1].progress(NOW);
    cable.run();
    let received = (0..3).map(|n| Done::Received { request: Request(11 + n), message: MessageId(1 + n) });
    assert_eq!(cable.done[1], received.collect::<Vec<_>>());
}
