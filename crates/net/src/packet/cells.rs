//! Cells below packets: each direction of a connection is a circuit through a network of cell switches.

use std::collections::VecDeque;

use wiretwin_engine::EventSink;
use wiretwin_plan::{ByCells, Graph, LineId, TRAILER, cells_of};
use wiretwin_units::{Bytes, SimTime};

use super::network::{Event, Kind};
use crate::fabric::{Circuit, CircuitId, Fabric, Pdus, Plan};

/// A network of cell switches and the PDUs that it carries.
#[derive(Clone)]
pub(super) struct CellNetwork {
    plan: Plan,
    pdus: Pdus,
    /// Packets that have come, each with when its last cell is in host memory; `None` for one that does not come whole.
    pub arrived: VecDeque<(u32, Option<SimTime>)>,
    /// When something happens next among the cells, as far as it is on the sink.
    scheduled: SimTime,
}

impl CellNetwork {
    /// The network over a graph; `seed` is that of the matchings of crossbars.
    pub(super) fn new(graph: &Graph, spec: &ByCells, seed: u64) -> Self {
        let plan = Plan::over(graph, spec);
        let pdus = Pdus::new(plan.build(seed).expect("a checked network can be built"));
        Self { plan, pdus, arrived: VecDeque::new(), scheduled: SimTime::MAX }
    }

    pub(super) const fn fabric(&self) -> &Fabric {
        &self.pdus.fabric
    }

    /// Sets up a circuit from a host along these lines, at once.
    pub(super) fn connect(&mut self, path: &[LineId], graph: &Graph) -> CircuitId {
        let opened = self.plan.open(&mut self.pdus.fabric, Circuit::over(graph, path));
        let circuit = opened.expect("the path is one from host to host");
        self.pdus.open(circuit);
        circuit
    }

    /// Queues a PDU, which is in host memory now, for transmission on a circuit; its length excludes the trailer.
    pub(super) fn offer(
        &mut self,
        sink: &mut impl EventSink<Event>,
        now: SimTime,
        circuit: CircuitId,
        (number, bytes): (u32, Bytes),
    ) {
        self.pdus.offer(now, circuit, cells_of(bytes + TRAILER), number);
        self.look_again(sink);
    }

    fn look_again(&mut self, sink: &mut impl EventSink<Event>) {
        if let Some(next) = self.pdus.fabric.next_time().filter(|&next| next < self.scheduled) {
            self.scheduled = next;
            sink.put(next, Kind::Cells.of(0));
        }
    }

    /// Lets happen what happens among the cells now.
    pub(super) fn step(&mut self, sink: &mut impl EventSink<Event>, now: SimTime) {
        if self.scheduled != now {
            // Something came to happen earlier, and this was seen to then.
            return;
        }
        self.scheduled = SimTime::MAX;
        while self.pdus.fabric.next_time().is_some_and(|next| next <= now) {
            self.pdus.fabric.step();
        }
        let arrived = &mut self.arrived;
        self.pdus.arrived(|delivery, number, whole| {
            arrived.push_back((number, whole.then_some(delivery.time)));
        });
        self.look_again(sink);
    }
}
