//! Cells and PDUs on their way, without an octet of payload.

use wiretwin_proto::Payload;
use wiretwin_wire::cell::{VcId, Vci, Vpi};

use super::trail::SegmentId;

/// Names a PDU of a [`PduTable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PduId(u32);

impl PduId {
    /// A cell that is part of no PDU of ours: load.
    pub(crate) const NONE: Self = Self(u32::MAX);
}

/// A virtual channel on one link, 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Vc(u32);

impl Vc {
    pub(crate) const fn new(vpi: u16, vci: u16) -> Self {
        Self((vpi as u32) << 16 | vci as u32)
    }

    pub(crate) const fn vci(self) -> u16 {
        self.0 as u16
    }

    /// As it is written: `vpi/vci`.
    pub(crate) fn id(self) -> VcId {
        let vpi = Vpi::new((self.0 >> 16) as u16).expect("a path was given out within 12 bits");
        VcId { vpi, vci: Vci(self.vci()) }
    }
}

/// What is said of a cell, a bit each, in one word: single octets would be copied piece by piece, and read before they
/// are all there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marks(u32);

impl Marks {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const LAST: Self = Self(1);
    pub(crate) const CONGESTION: Self = Self(2);
    pub(crate) const LOSS_PRIORITY: Self = Self(4);
    pub(crate) const CORRUPTED: Self = Self(8);

    pub(crate) const fn has(self, mark: Self) -> bool {
        self.0 & mark.0 != 0
    }

    /// With a mark, or without.
    #[must_use]
    pub(crate) const fn with(self, mark: Self, is: bool) -> Self {
        Self(if is { self.0 | mark.0 } else { self.0 & !mark.0 })
    }
}

/// A cell. What it carries stands in its PDU's entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) vc: Vc,
    pub(crate) pdu: PduId,
    /// Which cell of its PDU.
    pub(crate) index: u32,
    pub(crate) marks: Marks,
    pub(crate) trail: SegmentId,
}

impl Cell {
    /// Whether its PDU ends with it.
    pub(crate) const fn is_last(&self) -> bool {
        self.marks.has(Marks::LAST)
    }
}

/// What the cells of one PDU carry together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pdu {
    pub(crate) payload: Payload,
    /// The sender's number for it.
    pub(crate) number: u64,
    /// Of AAL 3/4: the sequence number of its first cell, and its tag.
    pub(crate) sequence: u8,
    pub(crate) tag: u8,
    /// Cells that are still somewhere.
    cells: u32,
}

/// PDUs of which a cell is still somewhere.
#[derive(Debug, Default)]
pub(crate) struct PduTable {
    entries: Vec<Pdu>,
    free: Vec<u32>,
}

impl PduTable {
    /// A PDU that will have this many cells.
    pub(crate) fn add(
        &mut self,
        payload: Payload,
        number: u64,
        cells: u32,
        (sequence, tag): (u8, u8),
    ) -> PduId {
        let pdu = Pdu { payload, number, sequence, tag, cells };
        if let Some(slot) = self.free.pop() {
            self.entries[slot as usize] = pdu;
            return PduId(slot);
        }
        self.entries.push(pdu);
        PduId(self.entries.len() as u32 - 1)
    }

    pub(crate) fn get(&self, id: PduId) -> Option<&Pdu> {
        self.entries.get(id.0 as usize)
    }

    /// Another copy of one of its cells is on its way.
    pub(crate) fn copied(&mut self, id: PduId) {
        if let Some(pdu) = self.entries.get_mut(id.0 as usize) {
            pdu.cells += 1;
        }
    }

    /// One of its cells is no more.
    pub(crate) fn gone(&mut self, id: PduId) {
        let Some(pdu) = self.entries.get_mut(id.0 as usize) else { return };
        pdu.cells -= 1;
        if pdu.cells == 0 {
            self.free.push(id.0);
        }
    }

    /// PDUs that have a cell somewhere.
    pub(crate) fn live(&self) -> usize {
        self.entries.len() - self.free.len()
    }
}
