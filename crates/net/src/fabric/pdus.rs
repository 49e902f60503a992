//! A network of cells that users give PDUs to, and what has become of those.

use std::collections::VecDeque;

use wiretwin_units::{Cells, SimTime};

use super::network::Fabric;
use super::plan::CircuitId;
use super::report::Delivery;

/// A network of cells, and the PDUs that were given to its circuits and have not come, in order: a circuit keeps the
/// order of its PDUs.
#[derive(Clone)]
pub(crate) struct Pdus {
    pub fabric: Fabric,
    /// By circuit: tag and cells of each.
    under_way: Vec<VecDeque<(u32, u32)>>,
    count: usize,
    delivered: Vec<Delivery>,
}

impl Pdus {
    /// Over a network to none of whose circuits a PDU was given.
    pub(crate) fn new(fabric: Fabric) -> Self {
        let mut made = Self { fabric, under_way: Vec::new(), count: 0, delivered: Vec::new() };
        for circuit in made.fabric.circuits() {
            made.open(circuit);
        }
        made
    }

    /// The network has a circuit of this number, which is the next.
    pub(crate) fn open(&mut self, circuit: CircuitId) {
        self.fabric.tell(circuit, true).expect("it is one of the network");
        self.under_way.push(VecDeque::new());
    }

    /// How many have not come.
    pub(crate) const fn count(&self) -> usize {
        self.count
    }

    /// Queues a PDU, which is in host memory now, for transmission on a circuit. `cells` is its length, at least 1.
    pub(crate) fn offer(&mut self, now: SimTime, circuit: CircuitId, cells: Cells, tag: u32) {
        self.under_way[circuit.0 as usize].push_back((tag, cells.get() as u32));
        self.count += 1;
        self.fabric.offer(now, circuit, cells, tag).expect("a PDU has a circuit and cells");
    }

    /// Tells of every PDU that has come, and of those before it on its circuit that do not come any more: its tag, and
    /// whether it has come whole, as its CRC would say.
    pub(crate) fn arrived(&mut self, mut tell: impl FnMut(&Delivery, u32, bool)) {
        if !self.fabric.has_delivered() {
            return;
        }
        self.fabric.take_delivered(&mut self.delivered);
        for delivery in &self.delivered {
            while let Some((tag, cells)) = self.under_way[delivery.circuit.0 as usize].pop_front() {
                self.count -= 1;
                let is_it = tag == delivery.tag;
                tell(delivery, tag, is_it && !delivery.mixed && delivery.cells == cells);
                if is_it {
                    break;
                }
            }
        }
    }
}
