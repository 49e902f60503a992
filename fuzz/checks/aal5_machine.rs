//! Arbitrary octets as cells and times against both machines of AAL 5.

use std::collections::VecDeque;

use super::input::Input;
use wiretwin_proto::aal5::{
    Config, CpcsId, Discarded, Reassembler, SarPdu, Segmenter, State, Trailer, Unitdata,
};
use wiretwin_proto::{MessageId, Output, Payload};
use wiretwin_units::{Bytes, SimTime, Span};

struct Bench {
    machine: Reassembler,
    most: u64,
    now: SimTime,
    cells_in: u64,
    cells_out: u64,
    timeout: Option<SimTime>,
}

impl Bench {
    fn drain(&mut self) {
        for _ in 0..1_000 {
            match self.machine.poll_output() {
                Output::Work(work) => assert!(work.count > 0, "work that was not done: {work:?}"),
                Output::Event(Discarded { cells, .. }) => self.cells_out += u64::from(cells),
                Output::Deliver(Unitdata { payload, .. }) => {
                    assert!((1..=self.most).contains(&payload.length.get()), "a length that is not allowed");
                    self.cells_out += (payload.length.get() + 8).div_ceil(48);
                }
                Output::Timeout(timeout) => {
                    assert!(timeout.is_none_or(|at| at > self.now), "a time that has passed");
                    assert_eq!(timeout.is_some(), self.machine.state() != State::Idle);
                    let held = u64::from(self.machine.held());
                    assert_eq!(self.cells_in, self.cells_out + held, "in = out + dropped + held");
                    self.timeout = timeout;
                    return;
                }
            }
        }
        panic!("outputs without an end in {}", self.machine.state());
    }

    fn take(&mut self, cell: SarPdu) {
        self.cells_in += 1;
        self.machine.handle_sar_pdu(self.now, cell);
        self.drain();
    }
}

/// A cell that no sender need have sent.
fn any_cell(input: &mut Input) -> SarPdu {
    let shape = input.octet();
    let payload = Payload::whole(MessageId(shape.into()), Bytes::new(input.word().into()));
    let last = (shape & 1 != 0).then(|| Trailer { payload, uu: input.octet(), cpi: shape >> 6 });
    SarPdu {
        cpcs: CpcsId(u64::from(shape >> 4)),
        index: u32::from(input.octet()),
        last,
        congestion: shape & 2 != 0,
        loss_priority: shape & 4 != 0,
        corrupted: shape & 8 != 0,
    }
}

/// Panics if a machine does, or loses count of its cells, delivers what may not be, names a time that
/// has passed, or holds cells for ever although it has a timer.
pub fn check(octets: &[u8]) {
    let mut input = Input(octets);
    let most = input.word().max(1);
    let config = Config {
        max_sdu_deliver_length: most,
        reassembly_timer: Some(Span::from_us(1 + u64::from(input.octet()))),
    };
    let (mut sender, mut line) = (Segmenter::new(), VecDeque::new());
    let mut bench = Bench {
        machine: Reassembler::new(config),
        most: most.into(),
        now: SimTime::ZERO,
        cells_in: 0,
        cells_out: 0,
        timeout: None,
    };
    for message in 0..400 {
        if input.is_empty() {
            break;
        }
        match input.octet() % 8 {
            0 => {
                let length = u64::from(input.word() % 2_048) + u64::from(input.octet() / 255) * 65_536;
                let payload = Payload::whole(MessageId(message), Bytes::new(length));
                let unitdata = Unitdata { payload, uu: 0, loss_priority: false, congestion: false };
                let allowed = (1..=65_535).contains(&length);
                assert_eq!(sender.send(unitdata).is_ok(), allowed, "{length} octets");
                loop {
                    match sender.poll_output() {
                        Output::Transmit(cell) => line.push_back(cell),
                        Output::Work(_) => {}
                        Output::Timeout(_) => break,
                    }
                }
            }
            1 => {
                bench.now += Span::from_us(input.octet().into());
                bench.machine.handle_timeout(bench.now);
                bench.drain();
            }
            // Lost, twice, damaged, out of order.
            2 => drop(line.pop_front()),
            3 => {
                if let Some(&cell) = line.front() {
                    bench.take(cell);
                }
            }
            4 => {
                if let Some(cell) = line.pop_front() {
                    bench.take(SarPdu { corrupted: true, ..cell });
                }
            }
            5 => {
                if let Some(cell) = line.pop_back() {
                    bench.take(cell);
                }
            }
            6 => bench.take(any_cell(&mut input)),
            _ => {
                for _ in 0..input.octet() {
                    let Some(cell) = line.pop_front() else { break };
                    bench.take(cell);
                }
            }
        }
    }
    // Nothing comes any more.
    if let Some(timeout) = bench.timeout {
        bench.now = timeout;
        bench.machine.handle_timeout(timeout);
        bench.drain();
    }
    assert_eq!((bench.machine.state(), bench.machine.held(), bench.timeout), (State::Idle, 0, None));
}
