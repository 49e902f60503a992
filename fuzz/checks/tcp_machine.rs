//! Arbitrary octets as commands, segments and times against one end of a TCP connection.

use std::sync::Arc;

use super::input::Input;
use wiretwin_proto::tcp::{
    Config, Endpoint, Event, Flags, Options, Read, SackBlocks, Segment, SeqNumber, Setup, State, Timestamps,
};
use wiretwin_proto::{MessageId, Output, Payload};
use wiretwin_units::{Bytes, SimTime, Span};

const ISS: u32 = u32::MAX - 1_000;
const PEER_ISS: u32 = 5_000;

/// A number near those that count, mostly, and now and then far away.
fn near(input: &mut Input, base: u32) -> SeqNumber {
    let word = u32::from(input.word());
    let offset = if word >= 0xf000 { word.wrapping_mul(0x0001_0001) } else { word.wrapping_sub(0x100) };
    SeqNumber::wrapping(base.wrapping_add(offset))
}

struct Bench {
    end: Endpoint,
    now: SimTime,
    told: u64,
    read: u64,
    closed: bool,
    timeout: Option<SimTime>,
}

impl Bench {
    /// Takes all outputs and checks each.
    fn drain(&mut self) {
        let full = self.end.segment_octets();
        for _ in 0..20_000 {
            match self.end.poll_output() {
                Output::Work(work) => assert!(work.count > 0, "work that was not done: {work:?}"),
                Output::Transmit(segment) => {
                    assert!(segment.len() <= full.max(self.end.segment_octets()), "longer than a segment");
                    let end = segment.payload.start.get() + u64::from(segment.len());
                    assert!(segment.is_empty() || end <= self.end.written().get(), "what was not written");
                    assert!(segment.options.octets() <= 40, "more options than a header has room for");
                    assert!(!segment.corrupted);
                }
                Output::Deliver(payload) => {
                    assert_eq!(payload.start.get(), self.told, "in order, and once");
                    assert!(payload.length.get() > 0);
                    self.told += payload.length.get();
                }
                Output::Event(event) => {
                    assert!(!self.closed, "{event:?} after the end");
                    self.closed = matches!(event, Event::Closed(_));
                }
                Output::Timeout(timeout) => {
                    assert!(timeout.is_none_or(|at| at > self.now), "a time that has passed");
                    assert!(!self.closed || self.end.state() == State::Closed, "it ended, and lives");
                    assert!(self.end.acknowledged() <= self.end.written());
                    assert_eq!(self.end.readable().get(), self.told - self.read);
                    assert!(self.end.cwnd() > 0);
                    self.timeout = timeout;
                    return;
                }
            }
        }
        panic!("outputs without an end in {}", self.end.state());
    }

    fn segment(&mut self, input: &mut Input) -> Segment {
        let flags = Flags::from_bits(input.octet());
        // Numbers around what this end has reached.
        let acked = self.end.acknowledged().get() as u32;
        let ack = near(input, ISS.wrapping_add(acked).wrapping_add(1));
        let seq = near(input, PEER_ISS.wrapping_add(self.told as u32).wrapping_add(1));
        let shape = input.octet();
        let mut options = Options::NONE;
        if shape & 1 != 0 {
            options.timestamps = Some(Timestamps { value: input.word().into(), echo: input.word().into() });
        }
        if shape & 2 != 0 {
            options.mss = Some(input.word());
            options.window_scale = Some(input.octet());
            options.sack_permitted = true;
        }
        if shape & 4 != 0 {
            options.sack = SackBlocks::NONE;
            for _ in 0..=shape >> 6 {
                let from = near(input, ack.get());
                options.sack.push(from, from + u32::from(input.word()));
            }
        }
        let length = if shape & 8 != 0 { input.word() } else { 0 };
        Segment {
            window: input.word(),
            urgent: u16::from(shape),
            corrupted: shape & 16 != 0,
            options,
            payload: Payload::whole(MessageId(1), Bytes::new(length.into())),
            ..Segment::control(seq, ack, flags)
        }
    }

    fn step(&mut self, input: &mut Input) {
        let now = self.now;
        match input.octet() % 16 {
            0 => refusable(self.end.connect(now)),
            1 => refusable(self.end.listen(now)),
            2 => refusable(self.end.send(now, Bytes::new(input.word().into()))),
            3 => {
                if let Read::Octets(octets) = self.end.receive(now, Bytes::new(input.word().into())) {
                    self.read += octets.get();
                }
            }
            4 => refusable(self.end.shutdown(now)),
            5 => refusable(self.end.close(now)),
            6 => {
                if input.octet() > 200 {
                    refusable(self.end.abort(now));
                }
            }
            7 => refusable(self.end.mark_urgent(now)),
            8 => self.end.handle_unreachable(now),
            9 => self.end.set_nodelay(input.octet() & 1 != 0),
            10 => {
                self.now += Span::from_us(u64::from(input.word()) * 16);
                self.end.handle_timeout(self.now);
            }
            11 => {
                if let Some(timeout) = self.timeout {
                    self.now = timeout;
                    self.end.handle_timeout(timeout);
                }
            }
            // An answer that a peer might have given.
            12 => {
                let syn = self.end.state() == State::SynSent;
                let flags = if syn { Flags::SYN | Flags::ACK } else { Flags::ACK };
                let seq =
                    if syn { PEER_ISS } else { PEER_ISS.wrapping_add(self.told as u32).wrapping_add(1) };
                let written = self.end.written().get() as u32;
                let ack = ISS.wrapping_add(if syn { 1 } else { 1 + written });
                let answer = Segment::control(SeqNumber::wrapping(seq), SeqNumber::wrapping(ack), flags);
                let window = input.word();
                let payload = Payload::whole(MessageId(1), Bytes::new(u64::from(input.octet())));
                self.end.handle_segment(now, &Segment { window, payload, ..answer });
            }
            _ => {
                let segment = self.segment(input);
                self.now += Span::from_us(u64::from(input.octet()));
                self.end.handle_segment(self.now, &segment);
            }
        }
        self.drain();
    }
}

/// A command may be refused: that is an answer, too.
fn refusable<T>(_: T) {}

/// Panics if the machine does, or does what no machine may: delivers out of order or twice, sends what
/// was not written or more than a segment, names a time that has passed, or never comes to rest once
/// nobody answers any more.
pub fn check(octets: &[u8]) {
    let mut input = Input(octets);
    let presets = Config::presets();
    let shape = input.octet();
    let mut config = presets[usize::from(shape) % presets.len()].clone();
    let size = Bytes::new(u64::from(input.word()) + 1);
    if shape & 64 != 0
        && let Ok(other) = config.clone().with_buffers(size, size)
    {
        config = other;
    }
    config.phases.slow = Span::from_ms(u64::from(shape) % 500);
    config.most_ranges = u16::from(shape % 9);
    let setup = Setup {
        iss: SeqNumber::wrapping(ISS),
        stream: MessageId(0),
        peer_stream: MessageId(1),
        mtu: if shape & 128 != 0 { 1_500 } else { 68 + input.word() % 9_000 },
    };
    let mut end = Endpoint::new(Arc::new(config), setup);
    end.set_keep_alive(shape & 32 != 0);
    let mut bench = Bench { end, now: SimTime::ZERO, told: 0, read: 0, closed: false, timeout: None };
    for _ in 0..400 {
        if input.is_empty() {
            break;
        }
        bench.step(&mut input);
    }
    // The peer is dead from here on.
    for _ in 0..1_000 {
        let Some(timeout) = bench.timeout else { return };
        bench.now = timeout;
        bench.end.handle_timeout(timeout);
        bench.drain();
    }
    panic!("a thousand timers after the last segment, and no rest in {}", bench.end.state());
}
