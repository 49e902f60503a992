//! A sender, a link that loses and damages cells, a receiver, and the same again in octets.

use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;
use wiretwin_units::{Bytes, SimTime, Span};
use wiretwin_wire::aal5::{CpcsPdu, Repr};

use super::{
    Config, CpcsId, Discarded, Reassembler, ReassemblerOutput, SarPdu, Segmenter, State, Trailer, Unitdata,
};
use crate::{MessageId, Output, Payload};

pub fn at(ps: u64) -> SimTime {
    SimTime::from_ps(ps)
}

pub fn payload(message: u64, length: u64) -> Payload {
    Payload::whole(MessageId(message), Bytes::new(length))
}

pub fn unitdata(message: u64, length: u64) -> Unitdata {
    Unitdata { payload: payload(message, length), uu: 0, loss_priority: false, congestion: false }
}

/// The cells of the `number`th PDU of a sender, with one message as its payload.
pub fn cells(number: u64, message: u64, length: u64) -> Vec<SarPdu> {
    let mut segmenter = Segmenter::new();
    segmenter.send(unitdata(message, length)).expect("a length that AAL5 carries");
    let mut cells = drain_segmenter(&mut segmenter);
    for cell in &mut cells {
        cell.cpcs = CpcsId(number);
    }
    cells
}

pub fn drain_segmenter(segmenter: &mut Segmenter) -> Vec<SarPdu> {
    let mut cells = Vec::new();
    loop {
        match segmenter.poll_output() {
            Output::Transmit(cell) => cells.push(cell),
            Output::Work(_) => {}
            Output::Timeout(_) => return cells,
        }
    }
}

/// Everything but work, up to the next timeout.
pub fn drain_reassembler(reassembler: &mut Reassembler) -> Vec<ReassemblerOutput> {
    let mut outputs = Vec::new();
    loop {
        match reassembler.poll_output() {
            Output::Work(_) => {}
            Output::Timeout(_) => return outputs,
            output => outputs.push(output),
        }
    }
}

/// What the link does to a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Passed,
    Lost,
    Damaged { bit: usize },
}

fn any_fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        6 => Just(Fate::Passed),
        2 => Just(Fate::Lost),
        1 => (0usize..384).prop_map(|bit| Fate::Damaged { bit }),
    ]
}

/// A pause in ps, then a cell: PDU, index, payload length if it is the last, damage.
fn any_step() -> impl Strategy<Value = (u64, u64, u32, Option<u64>, bool)> {
    (0u64..50, 0u64..3, 0u32..4, prop::option::of(0u64..200), any::<bool>())
}

/// Octets of a message, different for each message and each place.
fn octets_of(message: u64, length: u64) -> Vec<u8> {
    (0..length)
        .map(|place| (message.wrapping_mul(157) ^ place.wrapping_mul(31) ^ (place >> 8)) as u8)
        .collect()
}

/// The receiver a driver of octets would be without the machine: gather up to AUU, then parse.
#[derive(Default)]
struct OctetReceiver {
    gathered: Vec<u8>,
    delivered: Vec<Vec<u8>>,
}

impl OctetReceiver {
    fn receive(&mut self, payload: &[u8], auu: bool) {
        self.gathered.extend_from_slice(payload);
        if auu {
            let gathered = core::mem::take(&mut self.gathered);
            if let Ok(pdu) = CpcsPdu::new_checked(&gathered[..])
                && let Ok(repr) = Repr::parse(&pdu)
            {
                self.delivered.push(pdu.payload(&repr).to_vec());
            }
        }
    }
}

proptest! {
    /// Conservation, order, and the handles' verdict against that of real octets with real CRCs.
    #[test]
    fn under_any_losses_the_machine_delivers_what_octets_would(
        lengths in prop::collection::vec(prop_oneof![1u64..150, Just(40), Just(48), Just(96)], 1..8),
        fates in prop::collection::vec(any_fate(), 40),
    ) {
        let mut segmenter = Segmenter::new();
        for (message, &length) in lengths.iter().enumerate() {
            segmenter.send(unitdata(message as u64, length)).expect("a length that AAL5 carries");
        }
        let sent = drain_segmenter(&mut segmenter);
        // The octets of each CPCS-PDU, made as a live driver makes them.
        let pdus: Vec<Vec<u8>> = sent
            .iter()
            .filter_map(|cell| cell.last)
            .map(|trailer| {
                let mut pdu = vec![0; trailer.pdu_octets()];
                let octets = octets_of(trailer.payload.message.0, trailer.payload.length.get());
                trailer.emit(&octets, &mut pdu).expect("both lengths fit");
                pdu
            })
            .collect();

        let mut machine = Reassembler::new(Config::default());
        let mut octets = OctetReceiver::default();
        let mut received = 0;
        for (cell, fate) in sent.iter().zip(fates.iter().chain(core::iter::repeat(&Fate::Passed))) {
            let mut bytes = cell.octets(&pdus[cell.cpcs.0 as usize]).to_vec();
            let mut cell = *cell;
            match *fate {
                Fate::Lost => continue,
                Fate::Passed => {}
                Fate::Damaged { bit } => {
                    bytes[bit / 8] ^= 0x80 >> (bit % 8);
                    cell.corrupted = true;
                }
            }
            received += 1;
            machine.handle_sar_pdu(at(0), cell);
            octets.receive(&bytes, cell.last.is_some());
        }

        let (mut delivered, mut cells_out) = (Vec::new(), 0);
        for output in drain_reassembler(&mut machine) {
            match output {
                Output::Deliver(Unitdata { payload, .. }) => {
                    let trailer = Trailer { payload, uu: 0, cpi: 0 };
                    cells_out += trailer.pdu_octets() as u32 / 48;
                    delivered.push(octets_of(payload.message.0, payload.length.get()));
                }
                Output::Event(Discarded { cells, .. }) => cells_out += cells,
                _ => {}
            }
        }
        prop_assert_eq!(delivered, octets.delivered);
        prop_assert_eq!(received, cells_out + machine.held(), "in = out + dropped + held");
    }

    /// Whatever cells come, in whatever order and at whatever times, nothing panics, no cell is
    /// counted twice, and a timer runs exactly while cells are awaited.
    #[test]
    fn any_cells_at_any_times_are_conserved(
        steps in prop::collection::vec(any_step(), 1..60),
        most in 1u16..150,
    ) {
        let timer = Span::from_ps(100);
        let config = Config { max_sdu_deliver_length: most, reassembly_timer: Some(timer) };
        let mut machine = Reassembler::new(config);
        let (mut now, mut received, mut cells_out) = (0, 0, 0);
        for (pause, cpcs, index, last, corrupted) in steps {
            now += pause;
            let last = last.map(|length| Trailer { payload: payload(cpcs, length), uu: 0, cpi: 0 });
            let cell = SarPdu {
                cpcs: CpcsId(cpcs), index, last, congestion: false, loss_priority: false, corrupted,
            };
            machine.handle_sar_pdu(at(now), cell);
            received += 1;
            loop {
                match machine.poll_output() {
                    Output::Work(_) => {}
                    Output::Event(Discarded { cells, .. }) => cells_out += cells,
                    Output::Deliver(unitdata) => {
                        prop_assert!(unitdata.payload.length.get() <= u64::from(most));
                        cells_out += (unitdata.payload.length.get() as u32 + 8).div_ceil(48);
                    }
                    Output::Timeout(timeout) => {
                        prop_assert_eq!(timeout.is_some(), machine.state() != State::Idle);
                        prop_assert!(timeout.is_none_or(|expiry| expiry > at(now)));
                        break;
                    }
                }
            }
            prop_assert_eq!(received, cells_out + machine.held());
        }
    }
}
