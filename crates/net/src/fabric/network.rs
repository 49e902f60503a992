//! A network of cell switches that runs.

use wiretwin_engine::{EventQueue, Stream};
use wiretwin_plan::PlanError;
use wiretwin_units::{Cells, SimTime, Span};

use super::node::{Kind, Node, Slotted};
use super::plan::{CircuitId, LineId, NodeId};
use super::report::{CircuitReport, Delivery};
use super::state::{Hop, LineCounters, NONE, Store};

/// Nodes, lines and circuits, and all cells under way.
///
/// Made by [`Plan::build`](super::Plan::build).
#[derive(Clone)]
pub struct Fabric {
    now: SimTime,
    pub(super) nodes: Vec<Node>,
    pub(super) store: Store,
    /// By circuit, its hops; the first is its beginning.
    pub(super) circuits: Vec<Vec<u32>>,
    /// By domain, the nodes that share its slots.
    members: Vec<Vec<u32>>,
    /// The counts of lines that are to be taken, by number of `resyncs`.
    events: EventQueue<u32>,
    resyncs: Vec<(u32, Span)>,
    seed: u64,
}

impl Fabric {
    pub(super) fn new(
        nodes: Vec<Node>,
        store: Store,
        circuits: Vec<Vec<u32>>,
        resyncs: Vec<(u32, Span)>,
        seed: u64,
    ) -> Self {
        let mut members = vec![Vec::new(); store.domains.len()];
        for node in nodes.iter().filter(|node| !node.outward.is_empty()) {
            members[node.domain as usize].push(node.number);
        }
        let mut events = EventQueue::new();
        for (number, &(_, interval)) in (0..).zip(&resyncs) {
            events.push(SimTime::ZERO + interval, number);
        }
        Self { now: SimTime::ZERO, nodes, store, circuits, members, events, resyncs, seed }
    }

    /// The clock.
    pub const fn now(&self) -> SimTime {
        self.now
    }

    /// Gives a circuit always another cell from now on, each a PDU of its own.
    pub fn greedy(&mut self, circuit: CircuitId) -> Result<(), PlanError> {
        let hop = self.ends_of(circuit)?[0];
        let Self { store, nodes, .. } = self;
        let Hop { node, branch, .. } = store.hops[hop as usize];
        let branch = &mut store.branches[branch as usize];
        branch.endless = true;
        if branch.waiting == 0 {
            nodes[node as usize].offer(hop, 1, None, store);
        }
        self.wake(node, self.now);
        Ok(())
    }

    /// In each slot of a station's line, with a likelihood of `load`, a cell comes for one of the circuits
    /// that begin there, any of them.
    ///
    /// # Errors
    /// [`PlanError`] where none begins.
    pub fn load_slots(&mut self, station: NodeId, load: f64) -> Result<(), PlanError> {
        let begins = self.circuits.iter().map(|hops| hops[0]);
        let hops: Vec<u32> = begins.filter(|&hop| self.store.hops[hop as usize].node == station.0).collect();
        let refused = PlanError::new("node", station.0, "a station where a circuit begins");
        let node = self.nodes.get_mut(station.0 as usize).ok_or(refused.clone())?;
        let Kind::Station { slotted } = &mut node.kind else { return Err(refused) };
        if hops.is_empty() {
            return Err(refused);
        }
        let stream = Stream::derive(self.seed, &format!("fabric/station {}", station.0));
        let below = (load.clamp(0.0, 1.0) * 4_294_967_296.0) as u64;
        let branches = hops.iter().map(|&hop| self.store.hops[hop as usize].branch).collect();
        *slotted = Some(Box::new(Slotted { stream, below, branches }));
        self.wake(station.0, self.now);
        Ok(())
    }

    /// Whether PDUs that come over a circuit are told of one by one: see [`Self::take_delivered`].
    ///
    /// # Errors
    /// [`PlanError`] for no such circuit.
    pub fn tell(&mut self, circuit: CircuitId, told: bool) -> Result<(), PlanError> {
        let [_, hop] = self.ends_of(circuit)?;
        let end = self.store.hops[hop as usize].end;
        self.store.ends[end as usize].told = told;
        Ok(())
    }

    /// A PDU of so many cells is in host memory now, to be sent over a circuit; its cells carry the tag.
    pub fn offer(
        &mut self,
        now: SimTime,
        circuit: CircuitId,
        cells: Cells,
        tag: u32,
    ) -> Result<(), PlanError> {
        let [hop, _] = self.ends_of(circuit)?;
        if cells.get() == 0 {
            return Err(PlanError::new("cells", 0, "above 0"));
        }
        self.now = self.now.max(now);
        let node = self.store.hops[hop as usize].node;
        self.nodes[node as usize].offer(hop, cells.get() as u32, Some(tag), &mut self.store);
        self.wake(node, self.now);
        Ok(())
    }

    /// From now on a circuit has so many buffers for PDUs where it ends. A PDU whose first cell finds none waits in
    /// the adapter, and its credits with it, until [`Self::give`] gives one.
    ///
    /// # Errors
    /// [`PlanError`], also where the last line of the circuit has no credits to hold cells back with.
    ///
    /// # Panics
    /// If some of its PDUs have come already.
    pub fn buffers(&mut self, circuit: CircuitId, count: u32) -> Result<(), PlanError> {
        let [_, hop] = self.ends_of(circuit)?;
        let Hop { feeder, end, .. } = self.store.hops[hop as usize];
        if feeder == NONE {
            return Err(PlanError::new("circuit", circuit.0, "one with credits on its last line"));
        }
        if count == 0 || count == NONE {
            return Err(PlanError::new("buffers", count, "above 0"));
        }
        let end = &mut self.store.ends[end as usize];
        assert!(end.received == 0, "buffers are counted from the first cell on");
        end.buffers = count;
        Ok(())
    }

    /// A circuit has another buffer for PDUs where it ends.
    ///
    /// # Errors
    /// [`PlanError`], also for a circuit whose buffers are not counted.
    pub fn give(&mut self, now: SimTime, circuit: CircuitId) -> Result<(), PlanError> {
        self.now = self.now.max(now);
        let [_, hop] = self.ends_of(circuit)?;
        let Hop { node, end, .. } = self.store.hops[hop as usize];
        if self.store.ends[end as usize].buffers == NONE {
            return Err(PlanError::new("circuit", circuit.0, "one whose buffers are counted"));
        }
        self.nodes[node as usize].give(hop, self.now, &mut self.store);
        self.wake(node, self.now);
        Ok(())
    }

    /// PDUs of a circuit of which a cell waits in host memory, those of a load of cells left out.
    pub fn pdus_waiting(&self, circuit: CircuitId) -> usize {
        let hop = &self.store.hops[self.circuits[circuit.0 as usize][0] as usize];
        self.store.offered[hop.end as usize].len()
    }

    /// The hops where a circuit begins and where it ends.
    fn ends_of(&self, circuit: CircuitId) -> Result<[u32; 2], PlanError> {
        let hops = self.circuits.get(circuit.0 as usize);
        let hops = hops.ok_or_else(|| {
            PlanError::new("circuit", circuit.0, format!("one of {}, counted from 0", self.circuits.len()))
        })?;
        Ok([hops[0], hops[hops.len() - 1]])
    }

    pub(super) fn wake(&mut self, node: u32, now: SimTime) {
        let Node { domain, local, .. } = self.nodes[node as usize];
        let domain = &mut self.store.domains[domain as usize];
        let slot = domain.slot_from(now);
        domain.wake(local, slot);
    }

    /// When something happens next, if anything does.
    pub fn next_time(&mut self) -> Option<SimTime> {
        let slot = self.store.domains.iter().map(super::clock::Domain::next_time).min();
        let slot = slot.filter(|&time| time < SimTime::MAX);
        let event = self.events.next_time();
        slot.into_iter().chain(event).min()
    }

    /// Lets the next thing happen: a count is taken, or a slot of all nodes of one clock.
    pub fn step(&mut self) {
        let slot = (0..self.store.domains.len()).min_by_key(|&at| self.store.domains[at].next_time());
        let begins = slot.map_or(SimTime::MAX, |at| self.store.domains[at].next_time());
        if self.events.next_time().is_some_and(|time| time <= begins) {
            self.resync();
        } else if let Some(slot) = slot.filter(|_| begins < SimTime::MAX) {
            self.slot(slot);
        }
    }

    /// Runs until nothing happens up to `until`, which the clock then shows.
    pub fn run_until(&mut self, until: SimTime) {
        if self.store.domains.len() == 1 && self.events.is_empty() {
            while self.store.domains[0].next_time() <= until {
                self.slot(0);
            }
        }
        while self.next_time().is_some_and(|time| time <= until) {
            self.step();
        }
        self.now = self.now.max(until);
    }

    /// The count of every circuit of a line that lacks credits is to be taken.
    fn resync(&mut self) {
        let Some(event) = self.events.pop() else { return };
        self.now = event.time;
        let (direction, interval) = self.resyncs[event.what as usize];
        self.events.push(self.now + interval, event.what);
        let from = self.store.directions[direction as usize].from;
        let node = &mut self.nodes[from as usize];
        let port = node.outward.iter().position(|&out| out == direction).expect("a line has its port");
        if !node.markers[port].is_empty() {
            return;
        }
        for (number, branch) in (0..).zip(&self.store.branches) {
            if branch.direction == direction && branch.outstanding > 0 {
                node.markers[port].push_back(number);
            }
        }
        if !node.markers[port].is_empty() {
            node.marker_ports |= 1 << port;
            self.wake(from, self.now);
        }
    }

    /// Runs a slot of one clock.
    #[inline]
    fn slot(&mut self, domain: usize) {
        let Self { nodes, store, members, .. } = self;
        let slot = store.domains[domain].begin();
        let now = store.domains[domain].now();
        self.now = now;
        for word in 0..store.domains[domain].words() {
            let mut bits = store.domains[domain].take(word);
            let mut again = 0;
            while bits != 0 {
                let place = bits.trailing_zeros();
                bits &= bits - 1;
                let number = members[domain][word * 64 + place as usize];
                again |= u64::from(nodes[number as usize].run(slot, now, store)) << place;
            }
            if again != 0 {
                store.domains[domain].wake_again(word, again);
            }
        }
        store.domains[domain].end();
    }

    /// Gives out what was delivered since the last time over circuits that are told of; `into` is emptied
    /// first.
    pub fn take_delivered(&mut self, into: &mut Vec<Delivery>) {
        into.clear();
        std::mem::swap(into, &mut self.store.delivered);
    }

    /// Whether anything was delivered over circuits that are told of since it was last given out.
    pub const fn has_delivered(&self) -> bool {
        !self.store.delivered.is_empty()
    }

    /// Cells that have reached the end of a line so far.
    pub const fn hops(&self) -> u64 {
        self.store.hops_made
    }

    /// What a line has counted, there and back.
    ///
    /// # Panics
    /// Where there is no such line.
    pub fn line(&self, line: LineId) -> [LineCounters; 2] {
        [0, 1].map(|side| self.store.directions[line.0 as usize * 2 + side].counters)
    }

    /// Cells that found no room, and those that were lost on lines.
    pub fn lost(&self) -> u64 {
        let on_lines = self.store.directions.iter().map(|line| line.counters.lost).sum::<u64>();
        self.store.refused.iter().sum::<u64>() + on_lines
    }

    /// Every circuit.
    pub fn circuits(&self) -> impl Iterator<Item = CircuitId> + use<> {
        (0..self.circuits.len() as u32).map(CircuitId)
    }

    /// What has become of a circuit so far.
    ///
    /// # Panics
    /// Where there is no such circuit.
    pub fn circuit(&self, circuit: CircuitId) -> CircuitReport {
        let mut report = CircuitReport::default();
        let mut latency_ps = 0_u128;
        for &number in &self.circuits[circuit.0 as usize] {
            let hop = &self.store.hops[number as usize];
            report.refused += self.store.refused[number as usize];
            if hop.branch == NONE {
                let end = &self.store.ends[hop.end as usize];
                report.received += end.received;
                report.pdus += end.pdus_in;
                latency_ps += u128::from(end.latency_ps);
                report.longest = report.longest.max(Span::from_ps(end.longest_ps));
            }
        }
        let first = &self.store.hops[self.circuits[circuit.0 as usize][0] as usize];
        report.sent = self.store.branches[first.branch as usize].sent;
        let mean = latency_ps / u128::from(report.received.max(1));
        report.mean = Span::from_ps(mean.min(u128::from(u64::MAX)) as u64);
        report
    }
}
