//! The queues of an output-queued switch.

use std::collections::VecDeque;

use super::{Arrival, Config, Totals};

/// Waits that are counted apart; longer ones together.
const WAITS: usize = 256;

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
/// and wait there: urgent ones first, those of a kind in the order in which they came.
#[derive(Clone, Debug)]
pub struct OutputQueued {
    urgent: Vec<VecDeque<Cell>>,
    plain: Vec<VecDeque<Cell>>,
    buffer: usize,
    totals: Totals,
}

impl OutputQueued {
    /// An empty switch under a checked configuration.
    pub fn new(config: &Config) -> Self {
        let queues = || vec![VecDeque::with_capacity(64); usize::from(config.ports)];
        Self {
            urgent: queues(),
            plain: queues(),
            buffer: config.buffer.map_or(usize::MAX, |cells| cells as usize),
            totals: Totals {
                arrived: 0,
                departed: 0,
                lost: 0,
                held: 0,
                waited: 0,
                waits: vec![0; WAITS],
                longest: 0,
            },
        }
    }

    /// A cell comes; whether it found room.
    #[inline]
    pub fn arrive(&mut self, slot: u64, input: u8, arrival: Arrival) -> bool {
        let output = usize::from(arrival.output);
        self.totals.arrived += 1;
        let waiting = self.urgent[output].len() + self.plain[output].len();
        if waiting >= self.buffer {
            self.totals.lost += 1;
            return false;
        }
        self.totals.longest = self.totals.longest.max(waiting as u32 + 1);
        let queue = if arrival.urgent { &mut self.urgent[output] } else { &mut self.plain[output] };
        queue.push_back(Cell::new(slot, input));
        true
    }

    /// The slot ends at an output: its first cell leaves, if there is one.
    #[inline]
    pub fn depart(&mut self, slot: u64, output: u8) -> Option<Departure> {
        let output = usize::from(output);
        let cell = self.urgent[output].pop_front().or_else(|| self.plain[output].pop_front())?;
        let wait = slot - cell.slot();
        self.totals.departed += 1;
        self.totals.waited += wait;
        self.totals.waits[(wait as usize).min(WAITS - 1)] += 1;
        Some(Departure { input: cell.input(), arrived: cell.slot() })
    }

    /// Whether cells wait at an output.
    #[inline]
    pub fn is_waiting(&self, output: u8) -> bool {
        let output = usize::from(output);
        !(self.plain[output].is_empty() && self.urgent[output].is_empty())
    }

    /// What was seen so far.
    pub fn totals(&self) -> Totals {
        let held = self.urgent.iter().chain(&self.plain).map(|queue| queue.len() as u64).sum();
        Totals { held, ..self.totals.clone() }
    }
}
