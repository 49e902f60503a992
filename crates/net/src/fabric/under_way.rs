//! What users of a network have given to its circuits.

use std::collections::VecDeque;

use super::plan::CircuitId;
use super::report::Delivery;

/// PDUs that were given to circuits and have not come, in order: a circuit keeps the order of its PDUs.
#[derive(Clone, Debug)]
pub(crate) struct UnderWay {
    /// By circuit: tag and cells of each.
    circuits: Vec<VecDeque<(u32, u32)>>,
    count: usize,
}

impl UnderWay {
    pub(crate) fn new(circuits: usize) -> Self {
        Self { circuits: vec![VecDeque::new(); circuits], count: 0 }
    }

    /// Another circuit.
    pub(crate) fn add(&mut self) {
        self.circuits.push(VecDeque::new());
    }

    /// How many there are.
    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    pub(crate) fn given(&mut self, circuit: CircuitId, tag: u32, cells: u32) {
        self.circuits[circuit.0 as usize].push_back((tag, cells));
        self.count += 1;
    }

    /// What a delivery says of the first PDU of its circuit: its tag and whether it has come whole, as its CRC
    /// would say. What was given before the one that came and has not come does not come any more. `None`
    /// when there is no more to be said.
    pub(crate) fn next(&mut self, delivery: &Delivery, said: &mut bool) -> Option<(u32, bool)> {
        if *said {
            return None;
        }
        let (tag, cells) = self.circuits[delivery.circuit.0 as usize].pop_front()?;
        self.count -= 1;
        *said = tag == delivery.tag;
        Some((tag, *said && !delivery.mixed && delivery.cells == cells))
    }
}
