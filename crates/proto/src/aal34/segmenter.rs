//! The sender: CPCS-PDUs out of payloads, cells out of CPCS-PDUs, messages of several MIDs in turns.

use alloc::collections::VecDeque;
use core::fmt;

use wiretwin_units::{Bytes, Seq};
use wiretwin_wire::aal34::cpcs::pdu_octets;
use wiretwin_wire::aal34::sar::{SAR_PAYLOAD_OCTETS, SegmentType};
use wiretwin_wire::cell::PAYLOAD_OCTETS;

use super::{CpcsId, Header, SarPdu, SegmenterOutput, Trailer, Unitdata};
use crate::{Output, Work, WorkKind};

/// The sender of one virtual channel.
#[derive(Clone, Debug, Default)]
pub struct Segmenter {
    /// What waits for its MID, or to be begun.
    waiting: VecDeque<Unitdata>,
    /// Messages that are being cut, one a MID; the first is the next to give a cell.
    current: VecDeque<Cutting>,
    /// The number the next PDU gets, whose low octet is its tag.
    next: u64,
    /// What the next cell takes was put out, to this many steps.
    paid: u8,
}

/// A CPCS-PDU on its way out.
#[derive(Clone, Copy, Debug)]
struct Cutting {
    unitdata: Unitdata,
    cpcs: CpcsId,
    octets: u32,
    /// The cell that goes next.
    index: u32,
}

/// A payload that AAL 3/4 cannot carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendError {
    /// No octets at all.
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
            Self::Empty => f.write_str("an empty payload: AAL3/4 carries 1 to 65535 octets"),
            Self::TooLong { length, most } => {
                write!(f, "a payload of {} octets: AAL3/4 carries at most {}", length.get(), most.get())
            }
        }
    }
}

impl core::error::Error for SendError {}

impl Segmenter {
    /// A sender that has sent nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a payload to send. Those of one MID go one after the other, those of several in turns, cell
    /// by cell.
    ///
    /// # Errors
    /// [`SendError`] if the payload is empty or longer than 65535 octets; nothing is taken then.
    pub fn send(&mut self, unitdata: Unitdata) -> Result<(), SendError> {
        match unitdata.payload.length.get() {
            0 => Err(SendError::Empty),
            1..=MAX_PAYLOAD => {
                self.waiting.push_back(unitdata);
                self.begin();
                Ok(())
            }
            _ => Err(SendError::TooLong { length: unitdata.payload.length, most: Bytes::new(MAX_PAYLOAD) }),
        }
    }

    /// The next thing to do. For each cell: its cutting, its CRC, the cell.
    pub fn poll_output(&mut self) -> SegmenterOutput {
        let Some(cutting) = self.current.front().copied() else { return Output::Timeout(None) };
        if self.paid < 2 {
            self.paid += 1;
            let kind = if self.paid == 1 { WorkKind::SegmentCell } else { WorkKind::Crc };
            return Output::Work(Work { kind, bytes: Bytes::new(PAYLOAD_OCTETS as u64), count: 1 });
        }
        self.paid = 0;
        self.current.pop_front();
        let sar = cutting.cell();
        if sar.trailer.is_some() {
            self.begin();
        } else {
            // The next cell is that of the next MID.
            self.current.push_back(Cutting { index: cutting.index + 1, ..cutting });
        }
        Output::Transmit(sar)
    }

    /// Payloads taken and not yet begun.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Begins what waits and has its MID free.
    fn begin(&mut self) {
        let mut index = 0;
        while let Some(&unitdata) = self.waiting.get(index) {
            let mid = unitdata.mid;
            let busy = self.current.iter().any(|cutting| cutting.unitdata.mid == mid);
            if busy {
                index += 1;
                continue;
            }
            self.waiting.remove(index);
            let octets = pdu_octets(unitdata.payload.length.get() as u16) as u32;
            self.current.push_back(Cutting { unitdata, cpcs: CpcsId(self.next), octets, index: 0 });
            self.next += 1;
        }
    }
}

impl Cutting {
    fn cell(&self) -> SarPdu {
        let Self { unitdata, cpcs, octets, index } = *self;
        let Unitdata { payload, mid, loss_priority, congestion, .. } = unitdata;
        let start = index * SAR_PAYLOAD_OCTETS as u32;
        let (first, last) = (index == 0, start + SAR_PAYLOAD_OCTETS as u32 >= octets);
        let segment_type = match (first, last) {
            (true, true) => SegmentType::Ssm,
            (true, false) => SegmentType::Bom,
            (false, true) => SegmentType::Eom,
            (false, false) => SegmentType::Com,
        };
        // Choice: BTag and ETag count the messages of the channel.
        let tag = cpcs.0 as u8;
        let length = payload.length.get() as u16;
        SarPdu {
            cpcs,
            index,
            segment_type,
            // Choice: each message begins at 0, as a receiver takes any.
            sequence: Seq::wrapping(index),
            mid,
            length: (octets - start).min(SAR_PAYLOAD_OCTETS as u32) as u8,
            header: first.then_some(Header { tag, ba_size: length }),
            trailer: last.then_some(Trailer { tag, payload }),
            congestion,
            loss_priority,
            corrupted: false,
        }
    }
}

/// The most octets that Length can say.
const MAX_PAYLOAD: u64 = u16::MAX as u64;

#[cfg(test)]
mod tests {
    use alloc::string::ToString;
    use alloc::vec::Vec;

    use super::*;
    use crate::aal34::testbed::{cells, drain_segmenter, unitdata};

    #[test]
    fn a_short_message_is_one_cell_and_a_longer_one_begins_continues_and_ends() {
        let shape = |length| {
            let cells = cells(0, 1, 0, length);
            cells.iter().map(|cell| (cell.segment_type, cell.length)).collect::<Vec<_>>()
        };
        assert_eq!(shape(4), [(SegmentType::Ssm, 12)]);
        assert_eq!(shape(36), [(SegmentType::Ssm, 44)]);
        assert_eq!(shape(37), [(SegmentType::Bom, 44), (SegmentType::Eom, 4)]);
        assert_eq!(shape(100), [(SegmentType::Bom, 44), (SegmentType::Com, 44), (SegmentType::Eom, 20)]);
    }

    #[test]
    fn the_printed_examples_come_out_octet_by_octet() {
        // Tag 7, 40 octets 01..28 (hex), MID 0: a BOM and an EOM of 4 octets.
        let payload: Vec<u8> = (1..=0x28).collect();
        let mut segmenter = Segmenter { next: 7, ..Segmenter::new() };
        segmenter.send(unitdata(1, 0, 40)).unwrap();
        let cells = drain_segmenter(&mut segmenter);
        let mut pdu = [0; 48];
        cells[1].trailer.unwrap().emit(&payload, &mut pdu).unwrap();
        let mut octets = [0; 48];
        cells[0].emit(&pdu, &mut octets).unwrap();
        assert_eq!(octets[..6], [0x80, 0x00, 0x00, 0x07, 0x00, 0x28]);
        assert_eq!(octets[6..46], payload);
        assert_eq!(octets[46..], [0xb0, 0xad]);
        cells[1].emit(&pdu, &mut octets).unwrap();
        assert_eq!(octets[..6], [0x44, 0x00, 0x00, 0x07, 0x00, 0x28]);
        assert_eq!(octets[46..], [0x10, 0x2e]);
    }

    #[test]
    fn messages_of_two_mids_take_turns_and_those_of_one_do_not() {
        let mut segmenter = Segmenter::new();
        for (message, mid) in [(1, 5), (2, 5), (3, 6)] {
            segmenter.send(unitdata(message, mid, 80)).unwrap();
        }
        assert_eq!(segmenter.waiting(), 1);
        let order: Vec<_> = drain_segmenter(&mut segmenter)
            .iter()
            .map(|cell| (cell.cpcs.0, cell.mid.get(), cell.index))
            .collect();
        let expected = [(0, 5, 0), (1, 6, 0), (0, 5, 1), (1, 6, 1), (2, 5, 0), (2, 5, 1)];
        assert_eq!(order, expected);
    }

    #[test]
    fn what_cannot_be_carried_is_refused_with_the_bound() {
        let mut segmenter = Segmenter::new();
        assert_eq!(segmenter.send(unitdata(1, 0, 0)), Err(SendError::Empty));
        let error = segmenter.send(unitdata(1, 0, 65_536)).unwrap_err();
        assert_eq!(error.to_string(), "a payload of 65536 octets: AAL3/4 carries at most 65535");
        assert_eq!(segmenter.poll_output(), Output::Timeout(None));
    }
}
