//! Arbitrary octets as frames, messages and times against one end of the direct transport.

use super::input::Input;
use wiretwin_proto::direct::{Config, Delivered, Event, Local, Machine, Message, Services, Thresholds};
use wiretwin_proto::{MessageId, Output, Payload};
use wiretwin_units::{Bytes, SimTime, Span};
use wiretwin_wire::direct::{Body, Extent, Head, List, Number, Repr};

const LOCAL: Local = Local { key: 1, epoch: 10, lane: 0 };

struct Bench {
    end: Machine,
    now: SimTime,
    timeout: Option<SimTime>,
    frame: u64,
    /// Messages that are neither sent nor failed.
    open: usize,
}

impl Bench {
    fn drain(&mut self, has_room: bool) {
        for _ in 0..200_000 {
            match self.end.poll_output(has_room) {
                Output::Work(work) => panic!("{work:?}"),
                Output::Transmit(frame) => {
                    assert!(has_room, "a frame without room for it");
                    let head = frame.repr.head_octets();
                    let mut octets = [0; 256];
                    frame.repr.emit(&mut octets[..head]).expect("what is sent has a layout");
                    assert_eq!(Repr::parse(&octets[..head]), Ok(frame.repr));
                    assert!(head as u64 + frame.payload.length.get() <= 256);
                }
                Output::Deliver(delivered) => {
                    if let Delivered::Offer { offer, length, .. } = delivered {
                        self.end.clear(self.now, offer, 3, length);
                    }
                }
                Output::Event(Event::Sent(_) | Event::Failed(_) | Event::Cleared { .. }) => {
                    self.open = self.open.checked_sub(1).expect("a message that was not open");
                }
                Output::Event(Event::Met | Event::Returned) => {}
                Output::Timeout(timeout) => {
                    assert!(timeout.is_none_or(|at| at > self.now), "a time that has passed");
                    self.timeout = timeout;
                    return;
                }
            }
        }
        panic!("outputs without an end");
    }

    fn repr(input: &mut Input) -> Repr {
        let bits = input.octet();
        let mut n = || Number::wrapping(u32::from(input.octet()).wrapping_sub(20));
        let (received, a, b, c) = (n(), n(), n(), n());
        let wide = u64::from(input.word()) << (input.octet() % 48);
        let extents = [
            Extent::Whole,
            Extent::Begun { length: wide },
            Extent::Offered { length: wide, offer: a.get() },
            Extent::Pushed { length: wide },
        ];
        let head =
            Head { tag: (bits & 4 == 0).then_some(wide), data: None, extent: extents[usize::from(bits) % 4] };
        let body = match input.octet() % 10 {
            0 => Body::Hello { key: 2, lane: 4, answers: (bits & 1 == 0).then_some(10) },
            1 | 2 => Body::Message { number: a, head: (bits & 64 == 0).then_some(head) },
            3 => Body::Bulk { number: a, reference: b.get(), offset: wide },
            4 => Body::Clear { number: a, offer: b.get(), reference: 1, length: wide },
            5 => Body::Poll { number: a, ps: b },
            6 => Body::Stat { ps: a, list: List::new(&[b, c, c + 1, c + 4]).expect("four") },
            7 => Body::Stat { ps: a, list: List::new(&[]).expect("none") },
            8 => Body::Ustat { first: a, end: b },
            _ => Body::Ack,
        };
        Repr {
            key: if bits > 250 { 7 } else { 1 },
            epoch: 20 + u32::from(bits > 230) - u32::from(bits == 229),
            lane: 0,
            protected: bits & 8 != 0,
            short: bits & 16 != 0,
            received,
            granted: u32::from(input.octet()) << (bits & 24),
            body,
        }
    }

    fn step(&mut self, input: &mut Input) {
        let has_room = match input.octet() % 8 {
            0 | 1 => {
                self.frame += 1;
                let length = Bytes::new(u64::from(input.word()) >> (input.octet() % 16));
                let message =
                    Message { id: MessageId(self.frame), length, tag: Some(1), data: None, pushed: false };
                self.open += usize::from(self.end.send(self.now, message).is_ok());
                self.frame.is_multiple_of(2)
            }
            2 => {
                self.now += Span::from_us(u64::from(input.word()));
                self.end.handle_timeout(self.now);
                true
            }
            3 => {
                if let Some(timeout) = self.timeout {
                    self.now = timeout;
                    self.end.handle_timeout(timeout);
                }
                true
            }
            4 => {
                self.end.set_short(self.now, input.octet() & 1 == 0);
                true
            }
            _ => {
                let repr = Self::repr(input);
                self.frame += 1;
                let payload = Payload::whole(MessageId(self.frame), Bytes::new(8));
                self.end.handle_frame(self.now, &repr, payload);
                true
            }
        };
        self.drain(has_room);
    }
}

/// Panics if the machine does, sends what has no layout or is too long, finishes a message twice, or names a
/// time that has passed.
pub fn check(octets: &[u8]) {
    let mut input = Input(octets);
    let shape = input.octet();
    let two = Thresholds {
        high: Span::from_us(90),
        low: Span::from_us(70),
        interval: Span::from_us(300),
        lost: Span::from_ms(2),
    };
    let config = Config {
        frame: Bytes::new(256),
        eager: Bytes::new(500),
        receive_window: 8,
        ack_every: 2,
        queue: 20,
        services: if shape & 1 == 0 { Services::Adaptive(two) } else { Services::Ordinary },
        ..Config::default()
    };
    let end = Machine::new(config, LOCAL, (shape & 2 == 0).then_some(2)).expect("a good configuration");
    let mut bench = Bench { end, now: SimTime::ZERO, timeout: None, frame: 0, open: 0 };
    for _ in 0..300 {
        if input.is_empty() {
            break;
        }
        bench.step(&mut input);
    }
}
