//! The two ends of a circuit's adaptation layer: AAL 5 or AAL 3/4, by the machines of `proto`.
//!
//! A cell of a [`Pdu`] is a handle; here the machine's own PDU is made of it again.

use wiretwin_proto::{Output, Payload, WorkKind, aal5, aal34};
use wiretwin_units::{Bytes, Seq, SimTime, Span};
use wiretwin_wire::aal34::cpcs;
use wiretwin_wire::aal34::sar::{Mid, SAR_PAYLOAD_OCTETS, SegmentType};
use wiretwin_wire::cell::PAYLOAD_OCTETS;

use super::activity::Activity;
use super::cell::{Cell, Marks, Pdu};
use super::stack::Lower;

/// A cell as it is cut.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub(super) number: u64,
    pub(super) index: u32,
    pub(super) marks: Marks,
    /// Of AAL 3/4: the sequence number and the tag.
    pub(super) sequence: u8,
    pub(super) tag: u8,
}

/// What a machine asks for.
pub(super) enum Asked<T> {
    Work(Activity, Bytes),
    Give(T),
    Discarded,
    Nothing,
}

/// What an output asks for, `give` having made of it what is wanted; nothing of work that nobody pays for, as the CRC
/// of AAL 3/4, which every adapter makes.
#[inline]
fn asked<X, D, E, T>(
    output: Output<X, D, E>,
    aal34: bool,
    transmit: impl FnOnce(X) -> T,
    deliver: impl FnOnce(D) -> T,
) -> Option<Asked<T>> {
    let work = match output {
        Output::Work(work) => work,
        Output::Transmit(sent) => return Some(Asked::Give(transmit(sent))),
        Output::Deliver(delivered) => return Some(Asked::Give(deliver(delivered))),
        Output::Event(_) => return Some(Asked::Discarded),
        Output::Timeout(_) => return Some(Asked::Nothing),
    };
    let activity = match work.kind {
        WorkKind::SegmentCell => Activity::SegmentCell,
        WorkKind::ReassembleCell => Activity::ReassembleCell,
        WorkKind::Crc if !aal34 => Activity::Crc,
        _ => return None,
    };
    Some(Asked::Work(activity, work.bytes))
}

const fn marks(last: bool, congestion: bool, loss_priority: bool) -> Marks {
    let marks = Marks::NONE.with(Marks::LAST, last);
    marks.with(Marks::CONGESTION, congestion).with(Marks::LOSS_PRIORITY, loss_priority)
}

pub(super) enum Sender {
    Aal5(aal5::Segmenter),
    Aal34(Box<aal34::Segmenter>),
}

impl Sender {
    pub(super) fn new(lower: Lower) -> Self {
        match lower {
            Lower::Aal34 => Self::Aal34(Box::default()),
            _ => Self::Aal5(aal5::Segmenter::new()),
        }
    }

    /// Takes a payload; `false` where the layer cannot carry it.
    pub(super) fn send(&mut self, payload: Payload) -> bool {
        let (loss_priority, congestion) = (false, false);
        match self {
            Self::Aal5(sender) => {
                sender.send(aal5::Unitdata { payload, uu: 0, loss_priority, congestion }).is_ok()
            }
            Self::Aal34(sender) => {
                let mid = Mid::default();
                let unitdata = aal34::Unitdata { payload, mid, loss_priority, congestion, mixed: false };
                sender.send(unitdata).is_ok()
            }
        }
    }

    /// Cells that a payload takes.
    pub(super) fn cells(&self, payload: &Payload) -> u32 {
        let length = u16::try_from(payload.length.get()).expect("the sender takes no longer ones");
        let cells = match self {
            Self::Aal5(_) => wiretwin_wire::aal5::pdu_octets(length) / PAYLOAD_OCTETS,
            Self::Aal34(_) => cpcs::pdu_octets(length).div_ceil(SAR_PAYLOAD_OCTETS),
        };
        cells as u32
    }

    pub(super) fn poll(&mut self) -> Asked<Cut> {
        loop {
            let found = match self {
                Self::Aal5(sender) => {
                    let cut = |sar: aal5::SarPdu| Cut {
                        number: sar.cpcs.0,
                        index: sar.index,
                        marks: marks(sar.last.is_some(), sar.congestion, sar.loss_priority),
                        sequence: 0,
                        tag: 0,
                    };
                    asked(sender.poll_output(), false, cut, |never| match never {})
                }
                Self::Aal34(sender) => {
                    let cut = |sar: aal34::SarPdu| Cut {
                        number: sar.cpcs.0,
                        index: sar.index,
                        marks: marks(sar.trailer.is_some(), sar.congestion, sar.loss_priority),
                        sequence: sar.sequence.get() as u8,
                        tag: sar.header.map_or(0, |header| header.tag),
                    };
                    asked(sender.poll_output(), true, cut, |never| match never {})
                }
            };
            if let Some(found) = found {
                return found;
            }
        }
    }
}

pub(super) enum Receiver {
    Aal5(aal5::Reassembler),
    Aal34(Box<aal34::Reassembler>),
}

impl Receiver {
    pub(super) fn new(lower: Lower, reassembly_timer: Option<Span>) -> Self {
        match lower {
            Lower::Aal34 => {
                let config = aal34::Config { reassembly_timer, ..aal34::Config::default() };
                Self::Aal34(Box::new(aal34::Reassembler::new(config)))
            }
            _ => {
                let config = aal5::Config { reassembly_timer, ..aal5::Config::default() };
                Self::Aal5(aal5::Reassembler::new(config))
            }
        }
    }

    /// Lets time pass: gives up what has taken too long.
    pub(super) fn expire(&mut self, now: SimTime) {
        match self {
            Self::Aal5(receiver) => receiver.handle_timeout(now),
            Self::Aal34(receiver) => receiver.handle_timeout(now),
        }
    }

    /// When its timer runs out, where there is nothing else to ask it for.
    pub(super) fn deadline(&mut self) -> Option<SimTime> {
        match self {
            Self::Aal5(receiver) => match receiver.poll_output() {
                Output::Timeout(due) => due,
                _ => None,
            },
            Self::Aal34(receiver) => match receiver.poll_output() {
                Output::Timeout(due) => due,
                _ => None,
            },
        }
    }

    pub(super) fn take(&mut self, now: SimTime, cell: &Cell, pdu: &Pdu) {
        let Cell { index, marks, .. } = *cell;
        let (last, corrupted) = (marks.has(Marks::LAST), marks.has(Marks::CORRUPTED));
        let (congestion, loss_priority) = (marks.has(Marks::CONGESTION), marks.has(Marks::LOSS_PRIORITY));
        match self {
            Self::Aal5(receiver) => {
                let trailer = aal5::Trailer { payload: pdu.payload, uu: 0, cpi: 0 };
                receiver.handle_sar_pdu(
                    now,
                    aal5::SarPdu {
                        cpcs: aal5::CpcsId(pdu.number),
                        index,
                        last: last.then_some(trailer),
                        congestion,
                        loss_priority,
                        corrupted,
                    },
                );
            }
            Self::Aal34(receiver) => {
                let payload = pdu.payload.length.get() as u16;
                let octets = cpcs::pdu_octets(payload);
                let length = (octets - index as usize * SAR_PAYLOAD_OCTETS).min(SAR_PAYLOAD_OCTETS) as u8;
                let segment_type = match (index, last) {
                    (0, true) => SegmentType::Ssm,
                    (0, false) => SegmentType::Bom,
                    (_, true) => SegmentType::Eom,
                    (_, false) => SegmentType::Com,
                };
                let sequence = (u32::from(pdu.sequence) + index) % 16;
                let header = aal34::Header { tag: pdu.tag, ba_size: payload };
                let trailer = aal34::Trailer { tag: pdu.tag, payload: pdu.payload };
                receiver.handle_sar_pdu(
                    now,
                    aal34::SarPdu {
                        cpcs: aal34::CpcsId(pdu.number),
                        index,
                        segment_type,
                        sequence: Seq::new(sequence).expect("16 numbers"),
                        mid: Mid::default(),
                        length,
                        header: (index == 0).then_some(header),
                        trailer: last.then_some(trailer),
                        congestion,
                        loss_priority,
                        corrupted,
                    },
                );
            }
        }
    }

    pub(super) fn poll(&mut self) -> Asked<Payload> {
        loop {
            let found = match self {
                Self::Aal5(receiver) => {
                    asked(receiver.poll_output(), false, |never| match never {}, |whole| whole.payload)
                }
                Self::Aal34(receiver) => {
                    asked(receiver.poll_output(), true, |never| match never {}, |whole| whole.payload)
                }
            };
            if let Some(found) = found {
                return found;
            }
        }
    }
}
