//! A switch with a shared fabric and queues at its outputs, as the ASX-100.
//!
//! A cell that has come in whole crosses the fabric, one at a time for all ports, first come first
//! served; after a fixed delay it stands in a queue of its output port, under the VPI and VCI that the
//! translation table gives. A circuit with several branches is copied behind the fabric. Each port
//! serves its queues in strict order of class: circuits with reserved bandwidth are class 0, those
//! without class 1. A full queue loses the cell.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use wiretwin_plan::PlanError;
use wiretwin_units::{BitRate, Bits, SimTime, Span, Transmitter};

use super::activity::Activity;
use super::cell::{Cell, Vc};
use super::core::{Core, LanEvent, LinkId, Passed};
use super::signalling::SIGNALLING;
use crate::port::{Backlog, Room, Scheduler, Taken};

/// Queues of a port, by class.
const CLASSES: [u8; 2] = [0, 1];

/// What a switch is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SwitchConfig {
    /// The fabric's rate, for cells of 424 bits.
    pub fabric: BitRate,
    /// From the fabric to the output queue.
    pub delay: Span,
    /// Cells that each queue of a port holds.
    pub queue_cells: u32,
    /// What the ports of one network module may bring together.
    pub module_rate: BitRate,
    /// Network modules.
    pub modules: u32,
}

/// One way out of the switch for a circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Branch {
    pub(crate) port: u32,
    pub(crate) vc: Vc,
    pub(crate) class: u8,
}

/// The channels that are given out: below are those with a meaning of their own (I.361 §2.2.3), and
/// SPANS gives out none above.
const USER_VCIS: RangeInclusive<u16> = 32..=1023;
/// The paths of a user-network interface: 8 bits.
const MOST_VPI: u16 = 255;

struct Output {
    link: LinkId,
    queue: Backlog<Cell>,
    /// Whether an event will come when the link is free.
    waiting: bool,
}

pub(crate) struct Switch {
    number: u16,
    config: SwitchConfig,
    fabric: Transmitter,
    crossing: VecDeque<(u32, Cell)>,
    /// By input port, sorted by circuit.
    routes: Vec<Vec<(Vc, Vec<Branch>)>>,
    outputs: Vec<Output>,
    /// Cells of the signalling channel, for the control processor: with their port.
    heard: VecDeque<(u32, Cell)>,
    passed: Passed,
}

impl Switch {
    /// A switch, number `number` of the elements, without ports.
    pub(crate) fn new(number: u16, config: SwitchConfig) -> Self {
        Self {
            number,
            config,
            fabric: Transmitter::new(config.fabric),
            crossing: VecDeque::new(),
            routes: Vec::new(),
            outputs: Vec::new(),
            heard: VecDeque::new(),
            passed: Passed::default(),
        }
    }

    /// Adds a port whose output is `link`.
    pub(crate) fn add_port(&mut self, link: LinkId) -> u32 {
        self.routes.push(Vec::new());
        let queue = Backlog::new(Scheduler::Priority(&CLASSES), Room::Each(self.config.queue_cells));
        self.outputs.push(Output { link, queue, waiting: false });
        self.outputs.len() as u32 - 1
    }

    /// Adds a branch to the circuit that comes in at `port` as `vc`.
    pub(crate) fn connect(&mut self, port: u32, vc: Vc, branch: Branch) -> Result<(), PlanError> {
        let ports = self.outputs.len() as u32;
        for (port, vc) in [(port, vc), (branch.port, branch.vc)] {
            let (vpi, vci) = (vc.id().vpi.get(), vc.vci());
            if port >= ports {
                return Err(PlanError::new("port", port, format!("0 to {}", i64::from(ports) - 1)));
            }
            if vpi > MOST_VPI {
                return Err(PlanError::new("vpi", vpi, format!("0 to {MOST_VPI}")));
            }
            if !USER_VCIS.contains(&vci) {
                let allowed = format!("{} to {}", USER_VCIS.start(), USER_VCIS.end());
                return Err(PlanError::new("vci", vci, allowed));
            }
        }
        if self.leaves(branch.port, branch.vc) {
            let (vpi, vci) = (branch.vc.id().vpi.get(), branch.vc.vci());
            let value = format!("VPI {vpi} VCI {vci}");
            return Err(PlanError::new(format!("port {}", branch.port), value, "a name of no other circuit"));
        }
        let routes = &mut self.routes[port as usize];
        match routes.binary_search_by_key(&vc, |route| route.0) {
            Ok(at) => routes[at].1.push(branch),
            Err(at) => routes.insert(at, (vc, vec![branch])),
        }
        Ok(())
    }

    /// Takes a branch away.
    pub(crate) fn disconnect(&mut self, port: u32, vc: Vc, to: u32, into: Vc) {
        let routes = &mut self.routes[port as usize];
        let Ok(at) = routes.binary_search_by_key(&vc, |route| route.0) else { return };
        routes[at].1.retain(|branch| (branch.port, branch.vc) != (to, into));
        if routes[at].1.is_empty() {
            routes.remove(at);
        }
    }

    /// The next cell for the control processor, with its port.
    pub(crate) fn hear(&mut self) -> Option<(u32, Cell)> {
        self.heard.pop_front()
    }

    /// The control processor sends a cell on the signalling channel of a port: it goes before all others.
    pub(crate) fn tell(&mut self, core: &mut Core, port: u32, cell: Cell) {
        self.passed.taken += 1;
        self.queue(core, Branch { port, vc: SIGNALLING, class: 0 }, cell);
    }

    /// Whether some circuit leaves a port under this name.
    fn leaves(&self, port: u32, vc: Vc) -> bool {
        let branches = self.routes.iter().flatten().flat_map(|(_, branches)| branches);
        branches.into_iter().any(|branch| branch.port == port && branch.vc == vc)
    }

    /// Moves all branches of the circuit that comes in at `port` as `vc` to a class.
    pub(crate) fn set_class(&mut self, port: u32, vc: Vc, class: u8) {
        let routes = &mut self.routes[port as usize];
        if let Ok(at) = routes.binary_search_by_key(&vc, |route| route.0) {
            routes[at].1.iter_mut().for_each(|branch| branch.class = class);
        }
    }

    /// Cells that passed, lost ones by any cause.
    pub(crate) fn passed(&self) -> Passed {
        let queued: usize = self.outputs.iter().map(|output| output.queue.len()).sum();
        Passed { held: (queued + self.crossing.len()) as u64, ..self.passed }
    }

    /// The longest that an output queue has been, cells.
    pub(crate) fn deepest(&self) -> usize {
        self.outputs.iter().map(|output| output.queue.longest()).max().unwrap_or(0)
    }

    /// A cell has come in at a port.
    pub(crate) fn take(&mut self, core: &mut Core, port: u32, mut cell: Cell) {
        self.passed.taken += 1;
        let now = core.now();
        let crossed = self.fabric.send(now, CELL).expect("a run ends before virtual time does");
        let place = self.number;
        let through = core.trail.push(cell.trail, Activity::Fabric, place, crossed.start, crossed.end);
        let out = crossed.end + self.config.delay;
        cell.trail = core.trail.push(through, Activity::SwitchDelay, place, crossed.end, out);
        self.crossing.push_back((port, cell));
        core.at(out, LanEvent::Crossed { switch: self.number });
    }

    /// A cell that would come in at `port` at `time`, before which no other comes: where nobody contends with it, and the
    /// control processor says nothing until it has left, it passes at once. Its link, the name it has there, and when
    /// that link begins to send it.
    #[inline]
    pub(crate) fn pass(
        &mut self,
        core: &Core,
        port: u32,
        vc: Vc,
        time: SimTime,
        silent_until: SimTime,
    ) -> Option<(LinkId, Vc, SimTime)> {
        if self.fabric.free_at() > time || !self.crossing.is_empty() {
            return None;
        }
        let routes = &self.routes[port as usize];
        let at = routes.binary_search_by_key(&vc, |route| route.0).ok()?;
        let &[branch] = routes[at].1.as_slice() else { return None };
        let output = &self.outputs[branch.port as usize];
        let out = self.fabric.would_send(time, CELL).ok()?.end + self.config.delay;
        let idle = !output.waiting && output.queue.is_empty();
        if !idle || core.link(output.link).free_at() > out || silent_until <= out {
            return None;
        }
        self.fabric.send(time, CELL).ok()?;
        self.passed.taken += 1;
        self.passed.given += 1;
        Some((output.link, branch.vc, out))
    }

    /// The next cell has crossed the fabric.
    pub(crate) fn crossed(&mut self, core: &mut Core) {
        let (port, cell) = self.crossing.pop_front().expect("one event for each cell that crosses");
        core.stepwise = core.stepwise.saturating_sub(1);
        let routes = &self.routes[port as usize];
        let Ok(at) = routes.binary_search_by_key(&cell.vc, |route| route.0) else {
            if cell.vc == SIGNALLING {
                self.passed.given += 1;
                return self.heard.push_back((port, cell));
            }
            // No such circuit: a switch drops what it has no entry for.
            self.passed.lost += 1;
            core.pdus.gone(cell.pdu);
            return;
        };
        let branches = routes[at].1.len();
        // All copies are there before any of them may be lost.
        for _ in 1..branches {
            self.passed.taken += 1;
            core.pdus.copied(cell.pdu);
        }
        for number in 0..branches {
            let branch = self.routes[port as usize][at].1[number];
            self.queue(core, branch, Cell { vc: branch.vc, ..cell });
        }
    }

    fn queue(&mut self, core: &mut Core, branch: Branch, cell: Cell) {
        let output = &mut self.outputs[branch.port as usize];
        let idle = !output.waiting && core.link(output.link).free_at() <= core.now();
        if idle && output.queue.is_empty() {
            core.send(output.link, cell);
            self.passed.given += 1;
            return;
        }
        if matches!(output.queue.offer(branch.class.into(), 0, cell), Taken::Lost) {
            self.passed.lost += 1;
            return core.pdus.gone(cell.pdu);
        }
        if !output.waiting {
            output.waiting = true;
            let free = core.link(output.link).free_at();
            core.at(free, LanEvent::PortFree { switch: self.number, port: branch.port as u16 });
        }
    }

    /// The link of a port is free, for which a cell waits.
    pub(crate) fn port_free(&mut self, core: &mut Core, port: u32) {
        let output = &mut self.outputs[port as usize];
        output.waiting = false;
        let Some((cell, _)) = output.queue.pop() else { return };
        let free: SimTime = core.send(output.link, cell);
        self.passed.given += 1;
        if !output.queue.is_empty() {
            output.waiting = true;
            core.at(free, LanEvent::PortFree { switch: self.number, port: port as u16 });
        }
    }
}

/// A cell inside the switch.
const CELL: Bits = Bits::new(424);

#[cfg(test)]
mod tests {
    use wiretwin_proto::{MessageId, Payload};
    use wiretwin_units::Bytes;

    use super::super::cell::{Marks, PduId};
    use super::super::core::{Link, LinkConfig, Port};
    use super::super::trail::SegmentId;
    use super::*;

    /// A switch whose links all end at adapters, and the cells that came there: link, circuit, index.
    struct Bench {
        core: Core,
        switch: Switch,
        came: Vec<(u32, Vc, u32)>,
    }

    fn bench(ports: u32, queue_cells: u32) -> Bench {
        let config = SwitchConfig {
            fabric: BitRate::bit_s(2_400_000_000),
            delay: Span::from_us(3),
            queue_cells,
            module_rate: BitRate::bit_s(622_080_000),
            modules: 4,
        };
        let link = LinkConfig {
            rate: BitRate::bit_s(100_000_000),
            cell_bits: Bits::new(432),
            propagation: Span::ZERO,
        };
        let (mut core, mut switch) = (Core::new(false), Switch::new(0, config));
        for port in 0..ports {
            let out = core.add_link(Link::new(link, Port::Adapter(port), None));
            switch.add_port(out);
        }
        Bench { core, switch, came: Vec::new() }
    }

    impl Bench {
        fn cell(&mut self, vc: Vc, index: u32) -> Cell {
            let payload = Payload::whole(MessageId(0), Bytes::new(40));
            let pdu = self.core.pdus.add(payload, 0, 1, (0, 0));
            assert_ne!(pdu, PduId::NONE);
            Cell { vc, pdu, index, marks: Marks::LAST, trail: SegmentId::NONE }
        }

        fn take(&mut self, port: u32, vc: Vc, index: u32) {
            let cell = self.cell(vc, index);
            self.switch.take(&mut self.core, port, cell);
        }

        /// Lets everything happen, with counts checked at each event.
        fn run(&mut self) {
            while let Some(event) = self.core.next() {
                match event {
                    LanEvent::Link(link) => {
                        if let Some((_, cell)) = self.core.arrive(link) {
                            self.came.push((link.0, cell.vc, cell.index));
                            self.core.pdus.gone(cell.pdu);
                        }
                    }
                    LanEvent::PortFree { port, .. } => self.switch.port_free(&mut self.core, port.into()),
                    _ => self.switch.crossed(&mut self.core),
                }
                let passed = self.switch.passed();
                assert_eq!(passed.taken, passed.given + passed.lost + passed.held, "{passed:?}");
            }
            assert_eq!(self.core.pdus.live(), 0, "no cell is anywhere");
        }
    }

    const IN: Vc = Vc::new(1, 40);

    fn branch(port: u32, vci: u16, class: u8) -> Branch {
        Branch { port, vc: Vc::new(0, vci), class }
    }

    #[test]
    fn a_circuit_with_branches_is_copied_to_each_under_the_name_it_has_there() {
        let mut bench = bench(4, 16);
        for (port, vci) in [(1, 50), (2, 60), (3, 70)] {
            bench.switch.connect(0, IN, branch(port, vci, 0)).expect("a free channel");
        }
        bench.take(0, IN, 7);
        bench.run();
        let copies = [(1, 50), (2, 60), (3, 70)].map(|(port, vci)| (port, Vc::new(0, vci), 7));
        assert_eq!(bench.came, copies);
        let Passed { taken, given, lost, .. } = bench.switch.passed();
        assert_eq!((taken, given, lost), (3, 3, 0));
    }

    #[test]
    fn a_branch_without_room_loses_its_copy_and_no_other() {
        let mut bench = bench(3, 1);
        bench.switch.connect(0, IN, branch(1, 50, 0)).expect("a free channel");
        bench.switch.connect(0, IN, branch(2, 60, 0)).expect("a free channel");
        let other = Vc::new(0, 41);
        bench.switch.connect(1, other, branch(1, 51, 0)).expect("a free channel");
        // Port 1 is busy and its queue full when the copy comes.
        for index in 0..2 {
            bench.take(1, other, index);
        }
        bench.take(0, IN, 9);
        bench.run();
        assert!(bench.came.contains(&(2, Vc::new(0, 60), 9)), "{:?}", bench.came);
        assert!(!bench.came.iter().any(|cell| cell.1 == Vc::new(0, 50)), "{:?}", bench.came);
        assert_eq!(bench.switch.passed().lost, 1);
    }

    #[test]
    fn a_circuit_with_reserved_bandwidth_goes_before_one_without() {
        let mut bench = bench(2, 16);
        let (reserved, other) = (Vc::new(0, 40), Vc::new(0, 41));
        bench.switch.connect(0, reserved, branch(1, 50, 0)).expect("a free channel");
        bench.switch.connect(0, other, branch(1, 51, 1)).expect("a free channel");
        for index in 0..3 {
            bench.take(0, other, index);
        }
        for index in 0..2 {
            bench.take(0, reserved, index);
        }
        bench.run();
        // The first has left before any other came; then those of the first class, in order.
        let order: Vec<_> = bench.came.iter().map(|cell| (cell.1.vci(), cell.2)).collect();
        assert_eq!(order, [(51, 0), (50, 0), (50, 1), (51, 1), (51, 2)]);
    }

    #[test]
    fn a_circuit_that_cannot_be_is_refused_with_what_is_allowed() {
        let mut bench = bench(3, 1);
        bench.switch.connect(0, IN, branch(1, 50, 0)).expect("a free channel");
        let vc = Vc::new;
        for (port, vc, branch, said) in [
            (3, IN, branch(1, 51, 0), "port is 3; allowed: 0 to 2"),
            (0, IN, branch(9, 51, 0), "port is 9"),
            (0, vc(256, 40), branch(1, 51, 0), "vpi is 256; allowed: 0 to 255"),
            (0, vc(0, 31), branch(1, 51, 0), "vci is 31; allowed: 32 to 1023"),
            (0, vc(0, 40), branch(1, 1024, 0), "vci is 1024"),
            (2, IN, branch(1, 50, 0), "port 1 is VPI 0 VCI 50; allowed: a name of no other circuit"),
        ] {
            let error = bench.switch.connect(port, vc, branch).expect_err(said).to_string();
            assert!(error.contains(said), "{error}");
        }
        // Nothing of it was made.
        bench.take(2, IN, 1);
        bench.run();
        assert_eq!((bench.came.len(), bench.switch.passed().lost), (0, 1));
        bench.switch.connect(0, vc(255, 1023), branch(1, 1023, 0)).expect("the last of each");
    }

    #[test]
    fn a_circuit_that_gets_bandwidth_goes_before_others_from_then_on() {
        let mut bench = bench(2, 16);
        for vci in [40, 41] {
            bench.switch.connect(0, Vc::new(0, vci), branch(1, vci + 10, 1)).expect("a free channel");
        }
        bench.switch.set_class(0, Vc::new(0, 41), 0);
        for (vci, index) in [(40, 0), (40, 1), (41, 2)] {
            bench.take(0, Vc::new(0, vci), index);
        }
        bench.run();
        assert_eq!(bench.came.iter().map(|cell| cell.2).collect::<Vec<_>>(), [0, 2, 1]);
    }

    #[test]
    fn a_cell_of_no_circuit_is_dropped() {
        let mut bench = bench(2, 16);
        bench.switch.connect(0, IN, branch(1, 50, 0)).expect("a free channel");
        bench.take(1, IN, 0);
        bench.take(0, Vc::new(1, 41), 0);
        bench.run();
        assert_eq!((bench.came.len(), bench.switch.passed().lost), (0, 2));
    }
}
