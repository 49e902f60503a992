//! The queues of an output-queued switch.

use std::collections::VecDeque;

use super::{Config, Totals};

/// A cell in a queue: its slot of arrival and its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell(u64);

impl Cell {
    const fn new(slot: u64, input: u8) -> Self {
        Self(slot << 8 | input as u64)
    }

    const fn slot(self) -> u64 {
        self.0 >> 8
    }

    const fn input(self) -> u8 {
        self.0 as u8
    }
}

/// A cell that left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// The input it came from.
    pub input: u8,
    /// The slot in which it came.
    pub arrived: u64,
}

/// A switch whose cells are at their output in the slot in which they come, in the order of the inputs,
/// and wait there in the order in which they came.
#[derive(Clone, Debug)]
pub struct OutputQueued {
    queues: Vec<VecDeque<Cell>>,
    totals: Totals,
}

impl OutputQueued {
    /// An empty switch under a checked configuration.
    pub fn new(config: &Config) -> Self {
        Self {
            queues: vec![VecDeque::with_capacity(64); usize::from(config.ports)],
            totals: Totals::default(),
        }
    }

    /// A cell comes for an output.
    #[inline]
    pub fn arrive(&mut self, slot: u64, input: u8, output: u8) {
        self.queues[usize::from(output)].push_back(Cell::new(slot, input));
        self.totals.arrived += 1;
    }

    /// The slot ends at an output: its first cell leaves, if there is one.
    #[inline]
    pub fn depart(&mut self, slot: u64, output: u8) -> Option<Departure> {
        let cell = self.queues[usize::from(output)].pop_front()?;
        self.totals.departed += 1;
        self.totals.waited += slot - cell.slot();
        Some(Departure { input: cell.input(), arrived: cell.slot() })
    }

    /// Whether cells wait at an output.
    #[inline]
    pub fn is_waiting(&self, output: u8) -> bool {
        !self.queues[usize::from(output)].is_empty()
    }

    /// What was seen so far.
    pub fn totals(&self) -> Totals {
        let held = self.queues.iter().map(|queue| queue.len() as u64).sum();
        Totals { held, ..self.totals }
    }
}
