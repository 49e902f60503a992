//! Arbitrary octets as cells and times against both machines of AAL 3/4.

use std::collections::VecDeque;

use super::input::Input;
use wiretwin_proto::aal34::{
    Config, CpcsId, Discarded, Header, Reassembler, SarPdu, Segmenter, Trailer, Unitdata,
};
use wiretwin_proto::{MessageId, Output, Payload};
use wiretwin_units::{Bytes, Seq, SimTime, Span};
use wiretwin_wire::aal34::sar::{Mid, SegmentType};

struct Bench {
    machine: Reassembler,
    config: Config,
    now: SimTime,
    cells_in: u64,
    cells_out: u64,
    timeout: Option<SimTime>,
}

impl Bench {
    fn drain(&mut self) {
        for _ in 0..2_000 {
            match self.machine.poll_output() {
                Output::Work(work) => assert!(work.count > 0, "work that was not done: {work:?}"),
                Output::Event(Discarded { cells, .. }) => self.cells_out += u64::from(cells),
                Output::Deliver(Unitdata { payload, .. }) => {
                    let most = u64::from(self.config.max_sdu_deliver_length);
                    assert!((1..=most).contains(&payload.length.get()), "a length that is not allowed");
                    self.cells_out += 1;
                }
                Output::Timeout(timeout) => {
                    assert!(timeout.is_none_or(|at| at > self.now), "a time that has passed");
                    let held = u64::from(self.machine.held());
                    assert_eq!(timeout.is_some(), held > 0);
                    // A message of many cells counts as one here.
                    assert!(self.cells_in >= self.cells_out + held, "more came out than went in");
                    assert!(self.machine.under_way() <= usize::from(self.config.most_messages));
                    self.timeout = timeout;
                    return;
                }
            }
        }
        panic!("outputs without an end");
    }

    fn take(&mut self, cell: SarPdu) {
        self.cells_in += 1;
        self.machine.handle_sar_pdu(self.now, cell);
        self.drain();
    }
}

fn mid(input: &mut Input) -> Mid {
    Mid::new(u16::from(input.octet() % 5)).expect("10 bits")
}

/// A cell that no sender need have sent.
fn any_cell(input: &mut Input) -> SarPdu {
    let (shape, tag) = (input.octet(), input.octet());
    let types = [SegmentType::Bom, SegmentType::Com, SegmentType::Eom, SegmentType::Ssm];
    let payload = Payload::whole(MessageId(tag.into()), Bytes::new(input.word().into()));
    SarPdu {
        cpcs: CpcsId(u64::from(tag)),
        index: u32::from(input.octet()),
        segment_type: types[usize::from(shape & 3)],
        sequence: Seq::wrapping(u32::from(shape >> 4)),
        mid: mid(input),
        length: input.octet() % 64,
        header: (shape & 4 != 0).then_some(Header { tag, ba_size: input.word() }),
        trailer: (shape & 8 != 0).then_some(Trailer { tag, payload }),
        congestion: false,
        loss_priority: false,
        corrupted: tag == 255,
    }
}

/// Panics if a machine does, or more cells come out of it than went in, it delivers what may not be,
/// holds more messages than it may, names a time that has passed, or holds cells for ever.
pub fn check(octets: &[u8]) {
    let mut input = Input(octets);
    let config = Config {
        max_sdu_deliver_length: input.word().max(1),
        reassembly_timer: Some(Span::from_us(1 + u64::from(input.octet()))),
        most_messages: 1 + u16::from(input.octet() % 4),
    };
    let (mut sender, mut line) = (Segmenter::new(), VecDeque::new());
    let mut bench = Bench {
        machine: Reassembler::new(config),
        config,
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
                let mid = mid(&mut input);
                let length = u64::from(input.word() % 2_048) + u64::from(input.octet() / 255) * 65_536;
                let payload = Payload::whole(MessageId(message), Bytes::new(length));
                let unitdata =
                    Unitdata { payload, mid, loss_priority: false, congestion: false, mixed: false };
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
    // Nothing comes any more: each message is given up by its timer.
    for _ in 0..config.most_messages {
        let Some(timeout) = bench.timeout else { break };
        bench.now = timeout;
        bench.machine.handle_timeout(timeout);
        bench.drain();
    }
    assert_eq!((bench.machine.held(), bench.machine.under_way(), bench.timeout), (0, 0, None));
}
