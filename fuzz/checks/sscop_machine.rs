//! Arbitrary octets as requests, PDUs and times against one end of an SSCOP connection.

use super::input::Input;
use wiretwin_proto::sscop::{
    Config, Credit, Delivered, Endpoint, Event, Faults, ManagementError, Pdu, Retrieval, State,
};
use wiretwin_proto::{MessageId, Output, Payload};
use wiretwin_units::{Bytes, Seq, SimTime, Span};

struct Bench {
    end: Endpoint,
    config: Config,
    now: SimTime,
    timeout: Option<SimTime>,
    /// The number that must be delivered next, while data flow.
    next: u32,
    /// A late answer that a peer might give: to the last POLL, BGN, RS or ER.
    answer: Option<Pdu>,
}

impl Bench {
    fn drain(&mut self) {
        for _ in 0..100_000 {
            match self.end.poll_output() {
                Output::Work(work) => assert!(work.count > 0, "work that was not done: {work:?}"),
                Output::Transmit(pdu) => self.sent(pdu),
                Output::Deliver(Delivered::Data { number, .. }) => {
                    // A recovery hands up what lies behind gaps.
                    if self.end.state() == State::DataTransferReady {
                        assert_eq!(number.get(), self.next % (1 << 24), "in order, and once");
                        self.next += 1;
                    }
                }
                Output::Deliver(_) => {}
                Output::Event(Event::Error(ManagementError::Retransmitted(count))) => {
                    assert!(count as usize <= self.end.unacknowledged());
                }
                Output::Event(_) => {}
                Output::Timeout(timeout) => {
                    assert!(timeout.is_none_or(|at| at > self.now), "a time that has passed");
                    assert!(self.end.kept() <= self.config.window as usize * 64);
                    if self.end.state() != State::DataTransferReady {
                        self.next = 0;
                    }
                    self.timeout = timeout;
                    return;
                }
            }
        }
        panic!("outputs without an end in {}", self.end.state());
    }

    fn sent(&mut self, pdu: Pdu) {
        let octets = pdu.octets().get() as usize;
        let text = vec![7; pdu.payload().map_or(0, |payload| payload.length.get() as usize)];
        let mut written = vec![0; octets];
        pdu.emit(&text, &mut written).expect("what is sent can be written");
        let mr = Seq::wrapping(500);
        self.answer = match pdu {
            Pdu::Poll { ps, s } => Some(Pdu::Stat { ps, mr: s + 50, r: s, list: Vec::new() }),
            Pdu::Bgn { .. } => Some(Pdu::Bgak { mr, uu: None }),
            Pdu::Rs { .. } => Some(Pdu::Rsak { mr }),
            Pdu::Er { .. } => Some(Pdu::Erak { mr }),
            Pdu::End { .. } => Some(Pdu::Endak),
            _ => return,
        };
    }

    fn payload(input: &mut Input) -> Payload {
        Payload::whole(MessageId(1), Bytes::new(u64::from(input.word()) % 5_000))
    }

    fn step(&mut self, input: &mut Input) {
        let now = self.now;
        match input.octet() % 20 {
            0 => refusable(self.end.establish(now, None)),
            1 => refusable(self.end.respond_establish(now, Some(Self::payload(input)))),
            2 => refusable(self.end.release(now, None)),
            3 => refusable(self.end.resync(now, None)),
            4 => refusable(self.end.respond_resync(now)),
            5 => refusable(self.end.respond_recover(now)),
            6 => refusable(self.end.send_unitdata(now, Self::payload(input))),
            7 => refusable(self.end.send_management(now, Self::payload(input))),
            8 => {
                let number = Seq::wrapping(input.word().into());
                let what = match number.get() % 3 {
                    0 => Retrieval::Unsent,
                    1 => Retrieval::Unacknowledged,
                    _ => Retrieval::After(number),
                };
                refusable(self.end.retrieve(now, what));
            }
            9 => refusable(self.end.grant(u32::from(input.word()) << 8)),
            10 => self.end.set_busy(now, input.octet() & 1 != 0),
            11 => {
                self.now += Span::from_us(u64::from(input.word()) * 64);
                self.end.handle_timeout(self.now);
            }
            12 => {
                if let Some(timeout) = self.timeout {
                    self.now = timeout;
                    self.end.handle_timeout(timeout);
                }
            }
            13 => self.end.handle_bad_pdu(now),
            14 | 15 => {
                if let Some(answer) = self.answer.take() {
                    self.end.handle_pdu(now, answer);
                }
            }
            16 => (0..input.octet() % 40).for_each(|_| refusable(self.end.send(now, Self::payload(input)))),
            _ => {
                // A PDU out of the octets themselves, its numbers small, so that they matter.
                let words = usize::from(input.octet() % 6) + 1;
                let mut octets: Vec<u8> = Vec::new();
                for _ in 0..words {
                    octets.extend([0, 0, input.octet() & 1, input.octet()]);
                }
                let kind = octets.len() - 4;
                octets[kind] = input.octet() & 0xDF;
                let length = Bytes::new(u64::from(input.octet()));
                match Pdu::parse(&octets, |_| Payload::whole(MessageId(2), length)) {
                    Ok(pdu) => self.end.handle_pdu(now, pdu),
                    Err(_) => self.end.handle_bad_pdu(now),
                }
            }
        }
        self.drain();
    }
}

/// A request may be refused: that is an answer, too.
fn refusable<T>(_: T) {}

/// Panics if the machine does, or does what no machine may: delivers out of order or twice, sends what
/// cannot be written, names a time that has passed, or never comes to rest once nobody answers any more.
pub fn check(octets: &[u8]) {
    let mut input = Input(octets);
    let shape = input.octet();
    let config = Config {
        max_stat: 3 + 2 * u32::from(shape & 3),
        max_pd: u32::from(shape >> 2 & 7) + 1,
        window: u32::from(input.octet()) + 1,
        credit: if shape & 32 != 0 { Credit::Granted } else { Credit::Automatic },
        clear_buffers: shape & 64 != 0,
        faults: if shape & 128 != 0 { Faults::Ignored } else { Faults::Recovered },
        poll_after_retransmission: shape & 4 != 0,
        ..Config::default()
    };
    let end = Endpoint::new(config).expect("a good configuration");
    let mut bench = Bench { end, config, now: SimTime::ZERO, timeout: None, next: 0, answer: None };
    for _ in 0..300 {
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
    panic!("a thousand timers after the last PDU, and no rest in {}", bench.end.state());
}
