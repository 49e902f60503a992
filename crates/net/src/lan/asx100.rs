//! A switch with a shared fabric and queues at its outputs, as the ASX-100.
//!
//! A cell that has come in whole crosses the fabric, one at a time for all ports, first come first
//! served; after a fixed delay it stands in a queue of its output port, under the VPI and VCI that the
//! translation table gives. A circuit with several branches is copied behind the fabric. Each port
//! serves its queues in strict order of class: circuits with reserved bandwidth are class 0, those
//! without class 1. A full queue loses the cell.

use std::collections::VecDeque;

use wiretwin_units::{BitRate, Bits, SimTime, Span, Transmitter};

use super::activity::Activity;
use super::cell::{Cell, Vc};
use super::core::{Core, LinkId, Passed, To};

/// Queues of a port, by class.
pub const CLASSES: usize = 2;

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

/// Which of a switch's own events.
const CROSSED: u32 = u32::MAX;

struct Output {
    link: LinkId,
    queues: [VecDeque<Cell>; CLASSES],
    /// Whether an event will come when the link is free.
    waiting: bool,
    lost: u64,
}

pub(crate) struct Switch {
    number: u32,
    config: SwitchConfig,
    fabric: Transmitter,
    crossing: VecDeque<(u32, Cell)>,
    /// By input port, sorted by circuit.
    routes: Vec<Vec<(Vc, Vec<Branch>)>>,
    outputs: Vec<Output>,
    passed: Passed,
    deepest: usize,
}

impl Switch {
    /// A switch, number `number` of the elements, without ports.
    pub(crate) fn new(number: u32, config: SwitchConfig) -> Self {
        Self {
            number,
            config,
            fabric: Transmitter::new(config.fabric),
            crossing: VecDeque::new(),
            routes: Vec::new(),
            outputs: Vec::new(),
            passed: Passed::default(),
            deepest: 0,
        }
    }

    /// Adds a port whose output is `link`.
    pub(crate) fn add_port(&mut self, link: LinkId) -> u32 {
        self.routes.push(Vec::new());
        let queues = [VecDeque::new(), VecDeque::new()];
        self.outputs.push(Output { link, queues, waiting: false, lost: 0 });
        self.outputs.len() as u32 - 1
    }

    /// Adds a branch to the circuit that comes in at `port` as `vc`.
    pub(crate) fn connect(&mut self, port: u32, vc: Vc, branch: Branch) {
        let routes = &mut self.routes[port as usize];
        match routes.binary_search_by_key(&vc, |route| route.0) {
            Ok(at) => routes[at].1.push(branch),
            Err(at) => routes.insert(at, (vc, vec![branch])),
        }
    }

    /// Cells that passed, lost ones by any cause.
    pub(crate) fn passed(&self) -> Passed {
        let queued: usize = self.outputs.iter().flat_map(|output| &output.queues).map(VecDeque::len).sum();
        Passed { held: (queued + self.crossing.len()) as u64, ..self.passed }
    }

    /// The longest that an output queue has been, cells.
    pub(crate) const fn deepest(&self) -> usize {
        self.deepest
    }

    /// A cell has come in at a port.
    pub(crate) fn take(&mut self, core: &mut Core, port: u32, mut cell: Cell) {
        self.passed.taken += 1;
        let now = core.now();
        let crossed = self.fabric.send(now, CELL).expect("a run ends before virtual time does");
        let place = self.number as u16;
        let through = core.trail.push(cell.trail, Activity::Fabric, place, crossed.start, crossed.end);
        let out = crossed.end + self.config.delay;
        cell.trail = core.trail.push(through, Activity::SwitchDelay, place, crossed.end, out);
        self.crossing.push_back((port, cell));
        core.at(out, To::Element, self.number, CROSSED);
    }

    /// An event of its own.
    pub(crate) fn handle(&mut self, core: &mut Core, local: u32) {
        if local == CROSSED { self.crossed(core) } else { self.port_free(core, local) }
    }

    fn crossed(&mut self, core: &mut Core) {
        let (port, cell) = self.crossing.pop_front().expect("one event for each cell that crosses");
        let routes = &self.routes[port as usize];
        let Ok(at) = routes.binary_search_by_key(&cell.vc, |route| route.0) else {
            // No such circuit: a switch drops what it has no entry for.
            self.passed.lost += 1;
            core.pdus.gone(cell.pdu);
            return;
        };
        for number in 0..routes[at].1.len() {
            let branch = self.routes[port as usize][at].1[number];
            if number > 0 {
                self.passed.taken += 1;
                core.pdus.copied(cell.pdu);
            }
            self.queue(core, branch, Cell { vc: branch.vc, ..cell });
        }
    }

    fn queue(&mut self, core: &mut Core, branch: Branch, cell: Cell) {
        let output = &mut self.outputs[branch.port as usize];
        let idle = !output.waiting && core.link(output.link).free_at() <= core.now();
        if idle && output.queues.iter().all(VecDeque::is_empty) {
            core.send(output.link, cell);
            self.passed.given += 1;
            return;
        }
        let queue = &mut output.queues[branch.class as usize];
        if queue.len() >= self.config.queue_cells as usize {
            output.lost += 1;
            self.passed.lost += 1;
            core.pdus.gone(cell.pdu);
            return;
        }
        queue.push_back(cell);
        self.deepest = self.deepest.max(queue.len());
        if !output.waiting {
            output.waiting = true;
            let free = core.link(output.link).free_at();
            core.at(free, To::Element, self.number, branch.port);
        }
    }

    fn port_free(&mut self, core: &mut Core, port: u32) {
        let output = &mut self.outputs[port as usize];
        output.waiting = false;
        let Some(cell) = output.queues.iter_mut().find_map(VecDeque::pop_front) else { return };
        let free: SimTime = core.send(output.link, cell);
        self.passed.given += 1;
        if output.queues.iter().any(|queue| !queue.is_empty()) {
            output.waiting = true;
            core.at(free, To::Element, self.number, port);
        }
    }
}

/// A cell inside the switch.
const CELL: Bits = Bits::new(424);
