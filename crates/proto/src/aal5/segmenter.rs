//! The sender: CPCS-PDUs out of payloads, cells out of CPCS-PDUs.
//!
//! It has no timers and no states in the specification: it sends what it is given.

use alloc::collections::VecDeque;
use core::fmt;

use wiretwin_units::Bytes;
use wiretwin_wire::aal5::pdu_octets;
use wiretwin_wire::cell::PAYLOAD_OCTETS;

use super::{CpcsId, SarPdu, SegmenterOutput, Trailer, Unitdata};
use crate::{Output, Work, WorkKind};

/// The sender of one virtual channel.
#[derive(Clone, Debug, Default)]
pub struct Segmenter {
    /// What waits behind the PDU that is being cut.
    waiting: VecDeque<Unitdata>,
    /// The PDU that is being cut.
    current: Option<Cutting>,
    /// The number the next PDU gets.
    next: u64,
}

/// A CPCS-PDU on its way out.
#[derive(Clone, Copy, Debug)]
struct Cutting {
    unitdata: Unitdata,
    cpcs: CpcsId,
    cells: u32,
    /// The cell that goes next.
    index: u32,
    /// Its work was put out, the cell itself was not.
    paid: bool,
}

/// A payload that AAL5 cannot carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// No octets at all: Length 0 would be read as an abort.
    Empty,
    /// More octets than Length can say.
    TooLong {
        /// Octets of the payload.
        length: Bytes,
        /// The most there may be.
        most: Bytes,
    },
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("an empty payload: AAL5 carries 1 to 65535 octets"),
            Self::TooLong { length, most } => {
                write!(f, "a payload of {} octets: AAL5 carries at most {}", length.get(), most.get())
            }
        }
    }
}

impl core::error::Error for SendError {}

impl Segmenter {
    /// A sender that has sent nothing yet.
    pub const fn new() -> Self {
        Self { waiting: VecDeque::new(), current: None, next: 0 }
    }

    /// Takes a payload to send behind those already taken (`CPCS-UNITDATA invoke`).
    ///
    /// # Errors
    /// [`SendError`] if the payload is empty or longer than 65535 octets; nothing is taken then.
    pub fn send(&mut self, unitdata: Unitdata) -> Result<(), SendError> {
        match unitdata.payload.length.get() {
            // Choice: I.363.5 §9.2.1.2 gives Length 0 to the abort, which only streaming mode sends.
            0 => Err(SendError::Empty),
            1..=MAX_PAYLOAD => {
                self.waiting.push_back(unitdata);
                Ok(())
            }
            _ => Err(SendError::TooLong { length: unitdata.payload.length, most: Bytes::new(MAX_PAYLOAD) }),
        }
    }

    /// The next thing to do. Per PDU: the CRC, then for each cell its cutting and the cell.
    pub fn poll_output(&mut self) -> SegmenterOutput {
        let Some(cutting) = &mut self.current else {
            let Some(unitdata) = self.waiting.pop_front() else { return Output::Timeout(None) };
            let octets = pdu_octets(unitdata.payload.length.get() as u16);
            let cells = (octets / PAYLOAD_OCTETS) as u32;
            self.current = Some(Cutting { unitdata, cpcs: CpcsId(self.next), cells, index: 0, paid: false });
            self.next += 1;
            return Output::Work(Work { kind: WorkKind::Crc, bytes: Bytes::new(octets as u64), count: 1 });
        };
        if !cutting.paid {
            cutting.paid = true;
            let bytes = Bytes::new(PAYLOAD_OCTETS as u64);
            return Output::Work(Work { kind: WorkKind::SegmentCell, bytes, count: 1 });
        }
        let Unitdata { payload, uu, loss_priority, congestion } = cutting.unitdata;
        let index = cutting.index;
        // I.363.5 §9.1.2: AUU is 1 in the last cell of a CPCS-PDU and 0 in the others.
        let last = (index + 1 == cutting.cells).then_some(Trailer { payload, uu, cpi: CPI });
        let sar = SarPdu { cpcs: cutting.cpcs, index, last, congestion, loss_priority, corrupted: false };
        cutting.index += 1;
        cutting.paid = false;
        if last.is_some() {
            self.current = None;
        }
        Output::Transmit(sar)
    }

    /// Payloads taken and not yet begun.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

/// The most octets that Length can say.
const MAX_PAYLOAD: u64 = u16::MAX as u64;
/// I.363.5 §9.2.1.2: the common part indicator is 0; other values are for further study.
const CPI: u8 = 0;

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;
    use crate::aal5::testbed::{drain_segmenter, unitdata};

    fn cells_of(length: u64) -> Vec<SarPdu> {
        let mut segmenter = Segmenter::new();
        segmenter.send(unitdata(1, length)).expect("a length that AAL5 carries");
        drain_segmenter(&mut segmenter)
    }

    #[test]
    fn an_idle_sender_has_nothing_to_do_and_no_timer() {
        assert_eq!(Segmenter::new().poll_output(), Output::Timeout(None));
    }

    #[test]
    fn one_octet_makes_one_cell_that_is_the_last() {
        let trailer = Trailer { payload: unitdata(1, 1).payload, uu: 0, cpi: 0 };
        assert_eq!(
            cells_of(1),
            vec![SarPdu {
                cpcs: CpcsId(0),
                index: 0,
                last: Some(trailer),
                congestion: false,
                loss_priority: false,
                corrupted: false
            }]
        );
    }

    #[test]
    fn work_comes_before_the_cell_that_it_is_for() {
        let mut segmenter = Segmenter::new();
        segmenter.send(unitdata(1, 41)).expect("41 octets");
        let crc = Output::Work(Work { kind: WorkKind::Crc, bytes: Bytes::new(96), count: 1 });
        let cut = Output::Work(Work { kind: WorkKind::SegmentCell, bytes: Bytes::new(48), count: 1 });
        assert_eq!(segmenter.poll_output(), crc);
        assert_eq!(segmenter.poll_output(), cut);
        assert!(matches!(segmenter.poll_output(), Output::Transmit(SarPdu { index: 0, last: None, .. })));
        assert_eq!(segmenter.poll_output(), cut);
        assert!(matches!(segmenter.poll_output(), Output::Transmit(SarPdu { index: 1, last: Some(_), .. })));
        assert_eq!(segmenter.poll_output(), Output::Timeout(None));
    }

    #[test]
    fn the_trailer_takes_a_cell_of_its_own_when_it_has_to() {
        for (octets, cells) in [(40, 1), (41, 2), (48, 2), (88, 2), (89, 3), (9188, 192), (65535, 1366)] {
            let sent = cells_of(octets);
            assert_eq!(sent.len(), cells, "{octets} octets");
            assert!(sent[..cells - 1].iter().all(|cell| cell.last.is_none()), "AUU is 0 before the last");
            assert!(sent[cells - 1].last.is_some(), "AUU is 1 in the last");
        }
    }

    #[test]
    fn payloads_leave_in_order_and_are_numbered() {
        let mut segmenter = Segmenter::new();
        for message in 0..3 {
            segmenter.send(unitdata(message, 50)).expect("50 octets");
        }
        assert_eq!(segmenter.waiting(), 3);
        let places: Vec<_> =
            drain_segmenter(&mut segmenter).iter().map(|cell| (cell.cpcs.0, cell.index)).collect();
        assert_eq!(places, [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]);
        assert_eq!(segmenter.waiting(), 0);
    }

    #[test]
    fn every_cell_has_the_priority_of_its_payload() {
        let mut segmenter = Segmenter::new();
        segmenter.send(Unitdata { loss_priority: true, ..unitdata(1, 100) }).expect("100 octets");
        let cells = drain_segmenter(&mut segmenter);
        assert_eq!(cells.len(), 3);
        assert!(cells.iter().all(|cell| cell.loss_priority));
    }

    #[test]
    fn what_length_cannot_say_is_refused() {
        let mut segmenter = Segmenter::new();
        let empty = segmenter.send(unitdata(1, 0)).expect_err("no octets");
        assert_eq!(empty.to_string(), "an empty payload: AAL5 carries 1 to 65535 octets");
        let long = segmenter.send(unitdata(1, 65536)).expect_err("one too many");
        assert_eq!(long.to_string(), "a payload of 65536 octets: AAL5 carries at most 65535");
        assert_eq!(segmenter.poll_output(), Output::Timeout(None));
    }

    #[test]
    fn the_octets_are_those_of_the_standards_example() {
        let cells = cells_of(40);
        let trailer = cells[0].last.expect("one cell");
        let payload: Vec<u8> = (1..=40).collect();
        let mut pdu = vec![0xEE; trailer.pdu_octets()];
        trailer.emit(&payload, &mut pdu).expect("both lengths fit");
        let mut octets = payload.clone();
        octets.extend([0x00, 0x00, 0x00, 0x28, 0xBF, 0x67, 0x1E, 0xD0]);
        assert_eq!(cells[0].octets(&pdu), octets);
        assert_eq!(cells[0].payload_type().code(), 0b001);
        let short = trailer.emit(&payload[1..], &mut pdu).expect_err("39 octets");
        assert_eq!(short.to_string(), "39 octets given for a payload of 40");
        let wide = trailer.emit(&payload, &mut [0; 96]).expect_err("two cells");
        assert_eq!(wide.to_string(), "a CPCS-PDU of 96 octets, but its payload, padding and trailer take 48");
        let odd = trailer.emit(&payload, &mut [0; 50]).expect_err("not cells");
        assert_eq!(odd.to_string(), "a CPCS-PDU of 50 octets: it must be a multiple of 48 up to 65568");
    }
}
