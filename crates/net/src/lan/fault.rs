//! What wrong bits of a line do to cells.
//!
//! What a wrong bit ([`BitErrors`]) does depends on where it is: the payload of a cell is not as it was sent, which the adaptation layer's
//! check finds; in the header, the receiver of the line puts a single wrong bit right or drops the cell, in
//! its two modes (I.432.1, [`HecReceiver`]), and what it takes for right may be another header than was sent.
//! A frame with any wrong bit is dropped by its receiver, whose check sequence finds it.
//!
//! Headers are made of octets only for cells with a wrong bit in theirs. Choice: a cell that another header
//! makes part of another PDU, or another part of its own, counts as one whose payload is not as it was
//! sent, and one that is no user's cell any more is dropped.

use wiretwin_wire::cell::{
    self as wire, CELL_OCTETS, Gfc, HEADER_OCTETS, HecMode, HecReceiver, HecVerdict, Interface, PayloadType,
};

use super::cell::{Cell, Marks, Vc};
use crate::fault::BitErrors;

/// What became of cells with wrong bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineErrors {
    /// Cells whose payload was not as it was sent.
    pub payloads: u64,
    /// Cells whose header was put right.
    pub corrected: u64,
    /// Cells that were dropped for their header.
    pub dropped: u64,
    /// Cells that went on under another header than they were sent with.
    pub altered: u64,
}

impl LineErrors {
    /// Of two lines together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            payloads: self.payloads + other.payloads,
            corrected: self.corrected + other.corrected,
            dropped: self.dropped + other.dropped,
            altered: self.altered + other.altered,
        }
    }
}

/// The end of a line on which bits are wrong.
#[derive(Clone, Debug)]
pub(super) struct LineEnd {
    errors: BitErrors,
    headers: HecReceiver,
    /// Whether the last cell of a PDU says so in its header (AAL 5).
    marks_last: bool,
    pub(super) found: LineErrors,
}

const HEADER_BITS: u64 = 8 * HEADER_OCTETS as u64;
const CELL_BITS: u64 = 8 * CELL_OCTETS as u64;

impl LineEnd {
    pub(super) const fn new(errors: BitErrors, marks_last: bool) -> Self {
        let found = LineErrors { payloads: 0, corrected: 0, dropped: 0, altered: 0 };
        Self { errors, headers: HecReceiver::new(), marks_last, found }
    }

    /// Takes a cell that has come; `None` where it is dropped.
    pub(super) fn take(&mut self, cell: Cell) -> Option<Cell> {
        let mut mask = [0_u8; HEADER_OCTETS];
        let mut payload = false;
        self.errors.pass(CELL_BITS, |bit| {
            if bit < HEADER_BITS {
                mask[bit as usize / 8] ^= 0x80 >> (bit % 8);
            } else {
                payload = true;
            }
        });
        self.judge(cell, mask, payload)
    }

    /// What becomes of a cell in whose header the bits of a mask are wrong, and perhaps some of its payload.
    fn judge(&mut self, mut cell: Cell, mask: [u8; HEADER_OCTETS], payload: bool) -> Option<Cell> {
        if payload {
            cell.marks = cell.marks.with(Marks::CORRUPTED, true);
            self.found.payloads += 1;
        }
        if mask == [0; HEADER_OCTETS] && self.headers.mode() == HecMode::Correction {
            return Some(cell);
        }
        let sent = self.header_of(&cell);
        let came = core::array::from_fn(|at| sent[at] ^ mask[at]);
        let taken = match self.headers.handle_header(came) {
            HecVerdict::Valid => came,
            HecVerdict::Corrected(header) => {
                self.found.corrected += 1;
                header
            }
            HecVerdict::Discarded => {
                self.found.dropped += 1;
                return None;
            }
        };
        if taken == sent {
            return Some(cell);
        }
        self.found.altered += 1;
        self.renamed(cell, taken)
    }

    fn header_of(&self, cell: &Cell) -> [u8; HEADER_OCTETS] {
        let payload_type = PayloadType::User {
            congestion: cell.marks.has(Marks::CONGESTION),
            auu: self.marks_last && cell.is_last(),
        };
        let clp = cell.marks.has(Marks::LOSS_PRIORITY);
        let repr = wire::Repr { gfc: Gfc::default(), vc: cell.vc.id(), payload_type, clp };
        let mut view =
            wire::Cell::new_checked(Interface::Uni, [0; CELL_OCTETS]).expect("as long as a cell is");
        repr.emit(&mut view).expect("circuits have the paths of a user-network interface");
        view.header()
    }

    /// The cell that this header makes of it.
    fn renamed(&self, cell: Cell, header: [u8; HEADER_OCTETS]) -> Option<Cell> {
        let mut octets = [0; CELL_OCTETS];
        octets[..HEADER_OCTETS].copy_from_slice(&header);
        let view = wire::Cell::new_checked(Interface::Uni, octets).expect("as long as a cell is");
        let PayloadType::User { congestion, auu } = view.payload_type() else { return None };
        let vc = Vc::new(view.vc().vpi.get(), view.vc().vci.0);
        let last = if self.marks_last { auu } else { cell.is_last() };
        let other = vc != cell.vc || last != cell.is_last();
        let corrupted = cell.marks.has(Marks::CORRUPTED) || other;
        let marks = cell.marks.with(Marks::LAST, last).with(Marks::CONGESTION, congestion);
        let marks = marks.with(Marks::LOSS_PRIORITY, view.clp()).with(Marks::CORRUPTED, corrupted);
        Some(Cell { vc, marks, ..cell })
    }
}

#[cfg(test)]
mod networks_tests;

#[cfg(test)]
mod tests {
    use wiretwin_engine::Stream;

    use super::super::cell::PduId;
    use super::super::trail::SegmentId;
    use super::*;

    const RIGHT: [u8; HEADER_OCTETS] = [0; HEADER_OCTETS];
    const ONE: [u8; HEADER_OCTETS] = [0, 0, 0, 0x20, 0];
    const TWO: [u8; HEADER_OCTETS] = [0, 0, 0, 0x20, 0x01];

    fn cell(last: bool) -> Cell {
        Cell {
            vc: Vc::new(0, 33),
            pdu: PduId::NONE,
            index: 3,
            marks: Marks::NONE.with(Marks::LAST, last),
            trail: SegmentId::NONE,
        }
    }

    fn end() -> LineEnd {
        LineEnd::new(BitErrors::new(1e-12, Stream::derive(1, "test")), true)
    }

    #[test]
    fn one_wrong_bit_is_put_right_and_the_next_header_is_only_checked() {
        let mut end = end();
        let taken = end.judge(cell(true), ONE, false).expect("it is put right");
        assert_eq!((taken.vc, taken.marks), (Vc::new(0, 33), Marks::LAST));
        assert!(end.judge(cell(false), ONE, false).is_none(), "in detection mode it is dropped");
        assert!(end.judge(cell(false), ONE, false).is_none(), "and so is the next");
        assert!(end.judge(cell(false), RIGHT, false).is_some(), "until a header without an error comes");
        assert!(end.judge(cell(false), ONE, false).is_some());
        assert_eq!(end.found, LineErrors { payloads: 0, corrected: 2, dropped: 2, altered: 0 });
    }

    #[test]
    fn two_wrong_bits_are_dropped_in_either_mode() {
        for first in 0..HEADER_BITS {
            for second in 0..first {
                let mut end = end();
                let mut mask = RIGHT;
                for bit in [first, second] {
                    mask[bit as usize / 8] ^= 0x80 >> (bit % 8);
                }
                // The code finds any two: none of them looks like a single one.
                assert!(end.judge(cell(false), mask, false).is_none(), "{first} {second}");
                assert!(end.judge(cell(false), TWO, false).is_none());
            }
        }
    }

    #[test]
    fn some_three_wrong_bits_make_another_header_which_goes_on_as_it_is() {
        let mut altered = 0;
        for mask in 0..1_u32 << 12 {
            if mask.count_ones() != 3 {
                continue;
            }
            let mut end = end();
            let bits = [0, 0, (mask >> 8) as u8, mask as u8, 0];
            match end.judge(cell(false), bits, false) {
                None => assert!(end.found.dropped + end.found.altered == 1),
                Some(taken) => {
                    altered += 1;
                    assert_eq!(end.found.altered, 1);
                    let same = taken.vc == Vc::new(0, 33) && !taken.is_last();
                    assert_eq!(taken.marks.has(Marks::CORRUPTED), !same, "{taken:?}");
                }
            }
        }
        assert!(altered > 0);
    }

    #[test]
    fn wrong_bits_of_a_payload_are_told_to_the_adaptation_layer() {
        let mut end = end();
        let taken = end.judge(cell(false), RIGHT, true).expect("the header is right");
        assert!(taken.marks.has(Marks::CORRUPTED));
        assert_eq!(end.found, LineErrors { payloads: 1, ..LineErrors::default() });
    }
}
