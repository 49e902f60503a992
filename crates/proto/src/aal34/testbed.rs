//! A sender, a link that loses and damages cells, a receiver, and the same again in octets.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;
use wiretwin_units::{Bytes, Seq, SimTime, Span};
use wiretwin_wire::aal34::cpcs::{self, CpcsPdu, pdu_octets};
use wiretwin_wire::aal34::sar::{self, Mid, SegmentType};

use super::{
    Config, CpcsId, Discarded, Header, Reassembler, ReassemblerOutput, SarPdu, Segmenter, Trailer, Unitdata,
};
use crate::{MessageId, Output, Payload};

pub fn at(ps: u64) -> SimTime {
    SimTime::from_ps(ps)
}

pub fn unitdata(message: u64, mid: u16, length: u64) -> Unitdata {
    Unitdata {
        payload: Payload::whole(MessageId(message), Bytes::new(length)),
        mid: Mid::new(mid).expect("10 bits"),
        loss_priority: false,
        congestion: false,
        mixed: false,
    }
}

/// The cells of the `number`th PDU of a sender, with one message as its payload.
pub fn cells(number: u64, message: u64, mid: u16, length: u64) -> Vec<SarPdu> {
    let mut segmenter = Segmenter::new();
    segmenter.send(unitdata(message, mid, length)).expect("a length that AAL3/4 carries");
    let mut cells = drain_segmenter(&mut segmenter);
    for cell in &mut cells {
        cell.cpcs = CpcsId(number);
        cell.header = cell.header.map(|header| Header { tag: number as u8, ..header });
        cell.trailer = cell.trailer.map(|trailer| Trailer { tag: number as u8, ..trailer });
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

fn octets_of(message: u64, length: u64) -> Vec<u8> {
    (0..length)
        .map(|place| (message.wrapping_mul(157) ^ place.wrapping_mul(31) ^ (place >> 8)) as u8)
        .collect()
}

/// The receiver a driver of octets would be without the machine.
#[derive(Default)]
struct OctetReceiver {
    gathered: BTreeMap<u16, (Seq<4>, Vec<u8>)>,
    delivered: Vec<Vec<u8>>,
}

impl OctetReceiver {
    fn receive(&mut self, cell: &[u8]) {
        let view = sar::SarPdu::new_checked(cell).expect("48 octets");
        let Ok(repr) = sar::Repr::parse(&view) else { return };
        let (mid, octets) = (repr.mid.get(), view.payload(&repr).to_vec());
        match repr.segment_type {
            SegmentType::Bom | SegmentType::Ssm => {
                self.gathered.insert(mid, (repr.sequence.next(), octets));
            }
            SegmentType::Com | SegmentType::Eom => {
                let Some((next, gathered)) = self.gathered.get_mut(&mid) else { return };
                if *next != repr.sequence {
                    self.gathered.remove(&mid);
                    return;
                }
                *next = next.next();
                gathered.extend(octets);
            }
        }
        if matches!(repr.segment_type, SegmentType::Eom | SegmentType::Ssm)
            && let Some((_, gathered)) = self.gathered.remove(&mid)
            && let Ok(pdu) = CpcsPdu::new_checked(&gathered[..])
            && let Ok(repr) = cpcs::Repr::parse(&pdu)
        {
            self.delivered.push(pdu.payload(&repr).to_vec());
        }
    }
}

/// A pause in ps, then a cell of any kind.
type Step = (u64, (u64, u32, u8, u32, u16), (u8, u16, u64), bool);

fn any_step() -> impl Strategy<Value = Step> {
    (
        0_u64..50,
        (0_u64..3, 0_u32..4, 0_u8..4, 0_u32..4, 0_u16..3),
        (prop_oneof![Just(44_u8), Just(12), Just(63), 0_u8..64], 0_u16..120, 0_u64..120),
        any::<bool>(),
    )
}

proptest! {
    /// Conservation, order, and the handles' verdict against that of real octets with real CRCs.
    #[test]
    fn under_any_losses_the_machine_delivers_what_octets_would(
        messages in prop::collection::vec((0_u16..3, 1_u64..200), 1..8),
        fates in prop::collection::vec(any_fate(), 40),
    ) {
        let mut segmenter = Segmenter::new();
        for (message, &(mid, length)) in (0..).zip(&messages) {
            segmenter.send(unitdata(message, mid, length)).expect("a length that AAL3/4 carries");
        }
        let sent = drain_segmenter(&mut segmenter);
        let pdus: BTreeMap<u64, Vec<u8>> = sent
            .iter()
            .filter_map(|cell| Some((cell.cpcs.0, cell.trailer?)))
            .map(|(number, trailer)| {
                let length = trailer.payload.length.get();
                let mut pdu = vec![0; pdu_octets(length as u16)];
                trailer.emit(&octets_of(trailer.payload.message.0, length), &mut pdu).expect("both lengths fit");
                (number, pdu)
            })
            .collect();
        let mut machine = Reassembler::new(Config::default());
        let mut octets = OctetReceiver::default();
        let mut received = 0;
        for (cell, fate) in sent.iter().zip(fates.iter().chain(core::iter::repeat(&Fate::Passed))) {
            let (mut cell, mut bytes) = (*cell, [0; 48]);
            cell.emit(&pdus[&cell.cpcs.0], &mut bytes).expect("a length of its type");
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
            octets.receive(&bytes);
        }
        let (mut delivered, mut cells_out) = (Vec::new(), 0);
        for output in drain_reassembler(&mut machine) {
            match output {
                Output::Deliver(Unitdata { payload, mixed, .. }) => {
                    prop_assert!(!mixed, "with so few messages no two have a tag in common");
                    let length = payload.length.get();
                    cells_out += (pdu_octets(length as u16) as u32).div_ceil(44);
                    delivered.push(octets_of(payload.message.0, length));
                }
                Output::Event(Discarded { cells, .. }) => cells_out += cells,
                _ => {}
            }
        }
        prop_assert_eq!(delivered, octets.delivered);
        prop_assert_eq!(received, cells_out + machine.held(), "in = out + dropped + held");
    }

    /// Whatever cells come, in whatever order and at whatever times, nothing panics, no cell is counted
    /// twice, and a timer runs exactly while cells are held.
    #[test]
    fn any_cells_at_any_times_are_conserved(
        steps in prop::collection::vec(any_step(), 1..60),
        most in 1_u16..150,
        most_messages in 1_u16..4,
    ) {
        let reassembly_timer = Some(Span::from_ps(100));
        let config = Config { max_sdu_deliver_length: most, reassembly_timer, most_messages };
        let mut machine = Reassembler::new(config);
        let (mut now, mut received, mut cells_out) = (0, 0, 0);
        for (pause, (cpcs, index, kind, sequence, mid), (length, ba_size, payload), corrupted) in steps {
            now += pause;
            let segment_type =
                [SegmentType::Bom, SegmentType::Com, SegmentType::Eom, SegmentType::Ssm][usize::from(kind)];
            let first = matches!(segment_type, SegmentType::Bom | SegmentType::Ssm);
            let last = matches!(segment_type, SegmentType::Eom | SegmentType::Ssm);
            let payload = Payload::whole(MessageId(cpcs), Bytes::new(payload));
            machine.handle_sar_pdu(at(now), SarPdu {
                cpcs: CpcsId(cpcs), index, segment_type, sequence: Seq::wrapping(sequence),
                mid: Mid::new(mid).expect("10 bits"), length,
                header: first.then_some(Header { tag: cpcs as u8, ba_size }),
                trailer: (last && length != 63).then_some(Trailer { tag: cpcs as u8, payload }),
                congestion: false, loss_priority: false, corrupted,
            });
            received += 1;
            loop {
                match machine.poll_output() {
                    Output::Work(_) => {}
                    Output::Event(Discarded { cells, .. }) => cells_out += cells,
                    Output::Deliver(unitdata) => {
                        let length = unitdata.payload.length.get();
                        prop_assert!(length <= u64::from(most));
                        cells_out += (pdu_octets(length as u16) as u32).div_ceil(44);
                    }
                    Output::Timeout(timeout) => {
                        prop_assert_eq!(timeout.is_some(), machine.held() > 0);
                        prop_assert!(timeout.is_none_or(|expiry| expiry > at(now)));
                        break;
                    }
                }
            }
            prop_assert!(machine.under_way() <= usize::from(most_messages));
            prop_assert!(received >= cells_out + machine.held());
        }
    }
}
