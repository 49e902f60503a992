//! Arbitrary octets as messages, cells and times against one end of the parallel-computing adaptation
//! layer.

use super::input::Input;
use wiretwin_proto::pcaal::{
    Cell, Circuit, ClockSync, Config, Endpoint, Event, Kind, LocalClock, Pdu, Run, Values, Watch,
};
use wiretwin_proto::{MessageId, Output, Payload};
use wiretwin_units::{Bytes, Seq, SimTime, Span};

const CIRCUITS: [Circuit; 3] = [Circuit::Ordinary, Circuit::Backup, Circuit::Control];

struct Bench {
    end: Endpoint,
    now: SimTime,
    timeout: Option<SimTime>,
    /// An answer that a peer might give to the last POLL.
    answer: Option<Pdu>,
    lost: bool,
}

impl Bench {
    fn drain(&mut self) {
        for _ in 0..200_000 {
            match self.end.poll_output() {
                Output::Work(work) => assert!(work.count > 0, "work that was not done: {work:?}"),
                Output::Transmit(cell) => {
                    let octets = match &cell.pdu {
                        Pdu::Data { values, .. } => values.payload.length.get(),
                        _ => 0,
                    };
                    let mut payload = [0; 48];
                    cell.emit(&vec![7; octets as usize], &mut payload).expect("what is sent fits a cell");
                    if let Pdu::Poll { ps, s } = cell.pdu {
                        self.answer = Some(Pdu::Stat { ps, mr: s + 50, r: s, list: Vec::new() });
                    }
                }
                Output::Deliver(values) => assert!(values.count > 0),
                Output::Event(event) => self.lost |= event == Event::PeerLost,
                Output::Timeout(timeout) => {
                    assert!(timeout.is_none_or(|at| at > self.now), "a time that has passed");
                    self.timeout = timeout;
                    return;
                }
            }
        }
        panic!("outputs without an end");
    }

    fn cell(&self, pdu: Pdu, input: &mut Input) -> Cell {
        let bits = input.octet();
        let circuit = CIRCUITS[usize::from(bits & 15) % 3];
        Cell {
            circuit,
            connection: u16::from(bits > 250),
            pdu,
            congestion: bits & 16 != 0,
            corrupted: bits > 240,
        }
    }

    fn pdu(input: &mut Input) -> Pdu {
        let mut n = || Seq::wrapping(u32::from(input.octet()).wrapping_sub(20));
        let (a, b, c, d) = (n(), n(), n(), n());
        let kind = Kind::ALL[usize::from(input.octet()) % 5];
        let values = Values {
            tag: 1,
            kind,
            first: a.get(),
            count: 1,
            end: true,
            payload: Payload::whole(MessageId(2), Bytes::new(kind.octets() as u64)),
        };
        let stamp = u64::from(input.word()) << (input.octet() % 48);
        match input.octet() % 10 {
            0 => Pdu::Data { number: a, values, stamp: (b.get() & 1 == 0).then_some(stamp as u32) },
            1 => Pdu::Poll { ps: a, s: b },
            2 => Pdu::Stat { ps: a, mr: b, r: c, list: vec![c, d] },
            3 => Pdu::Stat { ps: a, mr: b, r: c, list: vec![c, d, d + 1, d + 3] },
            4 => Pdu::Ustat { first: a, end: b, mr: c, r: d },
            5 => Pdu::Lstat { ps: a, mr: b, r: c, list: vec![c, d], stamp, high: d.get() & 1 == 0 },
            6 => Pdu::Monitor { number: a.get(), stamp, high: b.get() & 1 == 0 },
            7 => Pdu::Echo { number: a.get(), stamp },
            8 => Pdu::Clock { stamp },
            _ => Pdu::Data { number: a, values, stamp: None },
        }
    }

    fn step(&mut self, input: &mut Input) {
        match input.octet() % 12 {
            0 => self.end.start(self.now),
            1 => self.end.stop(self.now),
            2 | 3 => {
                let kind = Kind::ALL[usize::from(input.octet()) % 5];
                let payload = Payload::whole(MessageId(1), Bytes::new(input.word().into()));
                let sent = self.end.send(self.now, 1, &[Run { kind, payload }]);
                assert!(!self.lost || sent.is_err(), "to a peer that is lost");
            }
            4 => {
                self.end.set_busy(self.now, CIRCUITS[usize::from(input.octet()) % 3], input.octet() & 1 != 0)
            }
            5 => self.end.handle_bad_cell(self.now),
            6 => {
                self.now += Span::from_us(u64::from(input.word()) * 16);
                self.end.handle_timeout(self.now);
            }
            7 => {
                if let Some(timeout) = self.timeout {
                    self.now = timeout;
                    self.end.handle_timeout(timeout);
                }
            }
            8 => {
                if let Some(answer) = self.answer.take() {
                    let cell = self.cell(answer, input);
                    self.end.handle_cell(self.now, cell);
                }
            }
            _ => {
                let cell = self.cell(Self::pdu(input), input);
                self.end.handle_cell(self.now, cell);
            }
        }
        self.drain();
    }
}

/// Panics if the machine does, sends what fits no cell, names a time that has passed, or never comes to
/// rest once it was stopped and nobody answers any more.
pub fn check(octets: &[u8]) {
    let mut input = Input(octets);
    let shape = input.octet();
    let watches = [Watch::EachCell, Watch::Average(3), Watch::OnDemand, Watch::RoundTrip, Watch::Network];
    let sync = ClockSync { interval: Span::from_ms(30), delay: Span::from_us(50) };
    let config = Config {
        watch: (shape & 128 == 0).then(|| watches[usize::from(shape & 7) % 5]),
        stamp_data: shape & 8 != 0,
        clock_sync: (shape & 16 != 0).then_some(sync),
        clock: LocalClock { ahead_ns: i64::from(shape) << 56, gains_ns_each_s: i64::from(shape) },
        window: 1 + u32::from(input.octet()),
        max_pd: 1 + u32::from(shape & 3),
        ..Config::default()
    };
    let end = Endpoint::new(config).expect("a good configuration");
    let mut bench = Bench { end, now: SimTime::ZERO, timeout: None, answer: None, lost: false };
    for _ in 0..300 {
        if input.is_empty() {
            break;
        }
        bench.step(&mut input);
    }
    bench.end.stop(bench.now);
    bench.drain();
    for _ in 0..1_000 {
        let Some(timeout) = bench.timeout else { return };
        bench.now = timeout;
        bench.end.handle_timeout(timeout);
        bench.drain();
    }
    panic!("a thousand timers after the last cell, and no rest");
}
