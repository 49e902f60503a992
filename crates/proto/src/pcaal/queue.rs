//! What waits to be sent for the first time, cut into cells when it goes.

use alloc::collections::VecDeque;

use wiretwin_units::Bytes;
use wiretwin_wire::pcaal::Kind;

use super::cell::Values;
use crate::Payload;

/// Values of one kind that follow each other in a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub tag: u32,
    pub kind: Kind,
    /// The place of the first in its message, counted in values.
    pub first: u32,
    /// How many values.
    pub count: u32,
    /// How many of them fill a cell.
    pub most: u32,
    /// The last is the last of its message.
    pub end: bool,
    pub payload: Payload,
}

impl Waiting {
    const fn cells(&self) -> usize {
        self.count.div_ceil(self.most) as usize
    }

    /// So many values from a place on.
    const fn part(&self, from: u32, count: u32) -> Self {
        let octets = self.kind.octets() as u64;
        let start = Bytes::new(self.payload.start.get() + from as u64 * octets);
        let payload =
            Payload { message: self.payload.message, start, length: Bytes::new(count as u64 * octets) };
        let end = self.end && from + count == self.count;
        Self { first: self.first + from, count, end, payload, ..*self }
    }

    /// The values of its first cells.
    pub(super) fn cut(self, cells: usize) -> impl ExactSizeIterator<Item = Values> {
        (0..cells as u32).map(move |cell| {
            let from = cell * self.most;
            let Self { tag, kind, first, count, end, payload, .. } =
                self.part(from, self.most.min(self.count - from));
            Values { tag, kind, first, count: count as u8, end, payload }
        })
    }
}

/// All that waits, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    runs: VecDeque<Waiting>,
    cells: usize,
}

impl Queue {
    /// Puts values behind the others; none are left out.
    pub(super) fn push(&mut self, waiting: Waiting) {
        if waiting.count > 0 {
            self.cells += waiting.cells();
            self.runs.push_back(waiting);
        }
    }

    /// How many cells wait.
    pub(super) const fn cells(&self) -> usize {
        self.cells
    }

    /// The values of the next cell, which stay.
    pub(super) fn first(&self) -> Option<Values> {
        self.runs.front()?.cut(1).next()
    }

    /// Takes the values of the next cell.
    pub(super) fn next(&mut self) -> Option<Values> {
        self.next_cells(1)?.0.cut(1).next()
    }

    /// Takes the values of the next cells, at most so many, that belong together: and how many cells they are.
    pub(super) fn next_cells(&mut self, most: usize) -> Option<(Waiting, usize)> {
        let run = self.runs.front_mut()?;
        let cells = run.cells().min(most);
        let count = run.count.min(cells as u32 * run.most);
        let taken = run.part(0, count);
        if count == run.count {
            self.runs.pop_front();
        } else {
            *run = run.part(count, run.count - count);
        }
        self.cells -= cells;
        Some((taken, cells))
    }
}
