//! Any network of cell switches under packets: a [`Fabric`] as a medium.
//!
//! Each two hosts have a circuit each way for what IP sends, and where processes have the adapter's memory
//! mapped another one for that, along a way with the fewest lines. An adapter takes whole PDUs of AAL 5 from
//! host memory and puts them there; a PDU that lacks a cell is lost, as its CRC would say.

use std::collections::VecDeque;

use wiretwin_plan::{Below, NetworkPlan, PlanError, Router};
use wiretwin_units::{Bytes, Cells, SimTime, Span};
use wiretwin_wire::aal5::TRAILER_OCTETS;
use wiretwin_wire::cell::PAYLOAD_OCTETS;

use super::config::HostConfig;
use super::medium::{Came, Packet};
use super::stack::{Lower, Message, Stack};
use crate::fabric::{Circuit, CircuitId, Pdus, Plan};
use crate::json::At;

/// Circuits of what IP sends.
pub(super) const PACKETS: u32 = 0;
/// Circuits of mapped memory.
pub(super) const MAPPED: u32 = 1;

/// What networks of switches have under a stack.
const fn kinds_of_circuits(stack: &Stack) -> u32 {
    if matches!(stack.message, Message::PvmMapped) { 2 } else { 1 }
}

/// Reads the switches, and lays the circuits.
pub(super) fn read(
    top: &At<'_>,
    at: &At<'_>,
    stack: &Stack,
    hosts: &[HostConfig],
) -> Result<Plan, PlanError> {
    match (stack.lower, stack.message) {
        (Lower::Aal5, Message::Fore) => {
            return Err(
                at.refuse("nothing here: the Fore interface is that of a Fore adapter and its switch")
            );
        }
        (Lower::Aal5, _) => {}
        _ => return Err(at.refuse("nothing here: only AAL 5 goes over switches")),
    }
    if let Some(other) = ["link", "switch"].into_iter().find_map(|key| top.optional(key)) {
        return Err(other.refuse("nothing beside switches, whose lines and nodes say all"));
    }
    let network = NetworkPlan::from_value(at.value);
    let read = network.and_then(|network| Ok((network.graph()?, network.below()?)));
    let (graph, below) = read.map_err(|error| error.under(&at.key))?;
    let Below::Cells(cells) = below else { return Err(at.refuse("a network with fidelity cell")) };
    if graph.hosts().len() != hosts.len() {
        let allowed = format!("{} nodes of kind host, as many as there are hosts", hosts.len());
        return Err(at.refuse_as(format!("{} nodes of kind host", graph.hosts().len()), allowed));
    }
    let mut plan = Plan::over(&graph, &cells);
    if !plan.resyncs().is_empty() {
        return Err(at.refuse_as("resync", "lines without it: their count is not taken here"));
    }
    if stack.message == Message::PvmMapped && !plan.keeps_all() {
        let allowed = "lines with credits and without faults: pvm-mapped repeats nothing that is lost";
        return Err(at.refuse_as("a network that may lose cells", allowed));
    }
    let mut router = Router::new(graph);
    let stations = router.graph().hosts().to_vec();
    for _ in 0..kinds_of_circuits(stack) {
        for from in &stations {
            for to in stations.iter().filter(|to| *to != from) {
                let mut path = Vec::new();
                router.path(*from, *to, &mut path);
                plan.circuit(Circuit::over(router.graph(), &path));
            }
        }
    }
    plan.build(1).map_err(|error| error.under(&at.key))?;
    Ok(plan)
}

pub(super) struct Switches {
    pdus: Pdus,
    hosts: u32,
    /// By circuit: the time of a cell on its slowest line, and what light and switches delay.
    ways: Vec<(Span, Span)>,
    /// What has come, by when it is in host memory.
    came: VecDeque<(SimTime, Came)>,
    /// Circuits of mapped memory whose PDUs wait in host memory: the end that sends, and how many.
    sending: Vec<(CircuitId, u32, usize)>,
}

impl Switches {
    /// With so many buffers for PDUs of mapped memory at the end of each circuit.
    pub(super) fn new(plan: &Plan, hosts: u32, mapped_buffers: u32, seed: u64) -> Self {
        let mut fabric = plan.build(seed).expect("it was built when it was read");
        let circuits = plan.circuits();
        for circuit in 0..circuits as u32 {
            if circuit >= hosts * (hosts - 1) {
                fabric.buffers(CircuitId(circuit), mapped_buffers).expect("its lines have credits");
            }
        }
        Self {
            pdus: Pdus::new(fabric),
            hosts,
            ways: (0..circuits as u32).map(|circuit| plan.way(CircuitId(circuit))).collect(),
            came: VecDeque::new(),
            sending: Vec::new(),
        }
    }

    const fn circuit(&self, kind: u32, [from, to]: [u32; 2]) -> CircuitId {
        CircuitId((kind * self.hosts + from) * (self.hosts - 1) + to - (to > from) as u32)
    }

    /// Takes a PDU of so many octets, without its trailer, from one host to another.
    pub(super) fn offer(&mut self, now: SimTime, kind: u32, way: [u32; 2], packet: Packet, octets: Bytes) {
        let circuit = self.circuit(kind, way);
        let cells = (octets.get() + TRAILER_OCTETS as u64).div_ceil(PAYLOAD_OCTETS as u64);
        self.pdus.offer(now, circuit, Cells::new(cells), packet);
    }

    /// A PDU of mapped memory was offered by this end of a connection, which is told when it has left.
    pub(super) fn sends_mapped(&mut self, way: [u32; 2], end: u32) {
        let circuit = self.circuit(MAPPED, way);
        match self.sending.iter_mut().find(|one| one.0 == circuit) {
            Some((_, _, waiting)) => *waiting += 1,
            None => self.sending.push((circuit, end, 1)),
        }
    }

    /// A PDU of mapped memory was read.
    pub(super) fn free_mapped(&mut self, now: SimTime, way: [u32; 2]) {
        self.pdus.fabric.give(now, self.circuit(MAPPED, way)).expect("its buffers are counted");
    }

    /// Lets time pass.
    pub(super) fn advance(&mut self, now: SimTime) {
        let Self { pdus, sending, came, ways, hosts, .. } = self;
        let hosts = *hosts;
        pdus.fabric.run_until(now);
        sending.retain_mut(|(circuit, end, waiting)| {
            let left = pdus.fabric.pdus_waiting(*circuit);
            for _ in left..*waiting {
                let later = came.iter().rev().take_while(|(time, _)| *time > now).count();
                came.insert(came.len() - later, (now, Came::Left { end: *end }));
            }
            *waiting = left;
            left > 0
        });
        pdus.arrived(|delivery, packet, whole| {
            let circuit = delivery.circuit.0;
            let (from, to) = (circuit / (hosts - 1) % hosts, circuit % (hosts - 1));
            let host = to + u32::from(to >= from);
            let (cell, through) = ways[circuit as usize];
            let sent = cell * u64::from(delivery.cells);
            let frame = Came::Frame { host, packet, sent, through, stamps: None };
            let later = came.iter().rev().take_while(|(time, _)| *time > delivery.time).count();
            let what = if whole { frame } else { Came::Lost { packet } };
            came.insert(came.len() - later, (delivery.time, what));
        });
    }

    /// What has happened. A network without PDUs is looked at again when it is given one.
    pub(super) fn poll(&mut self, now: SimTime) -> Came {
        let there = self.came.front().map(|&(time, _)| time);
        if there.is_some_and(|time| time <= now)
            && let Some((_, came)) = self.came.pop_front()
        {
            return came;
        }
        let busy = self.pdus.count() > 0;
        let next = if busy { self.pdus.fabric.next_time() } else { None };
        Came::Until(there.into_iter().chain(next).min())
    }

    /// Cells that switches had no room for.
    pub(super) fn refused(&self) -> u64 {
        self.pdus.fabric.circuits().map(|circuit| self.pdus.fabric.circuit(circuit).refused).sum()
    }
}

#[cfg(test)]
mod tests;
