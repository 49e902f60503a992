//! The Fore interface as libraries call it: PDUs on circuits, lost without a word.
//!
//! What a program does on `fore` itself is in `host`. A PDU is at most as long as the interface takes; where its
//! reader's queue is full it is dropped (`unread`), where a cell of it is lost it never comes.

use wiretwin_msg::library::{CallError, CircuitId, Content, Outcome};
use wiretwin_proto::{MessageId, Payload};
use wiretwin_units::Bytes;

use super::activity::Activity;
use super::cpu::Step;
use super::host::{Action, ThreadAt};
use super::layer::Circuits;
use super::socket::Carried;
use super::{Arrived, Lan};

/// A PDU on its way: what it carries, and to how many.
#[derive(Debug)]
pub(super) struct Pdu {
    content: Content,
    copies: usize,
}

impl Lan {
    /// A process sends a PDU; what that costs is paid.
    pub(super) fn send_pdu(&mut self, here: ThreadAt, process: u32, circuit: CircuitId, content: Content) {
        let (octets, most) = (content.length(), self.config.pdu_bytes);
        let Some(circuits) = self.runtimes[process as usize].circuits(circuit) else {
            return self.outcome(here, process, Outcome::Failed(CallError::NoSuchCall));
        };
        if octets > most {
            let error = CallError::TooLong { bytes: octets, most };
            return self.outcome(here, process, Outcome::Failed(error));
        }
        let number = self.pdus.insert(Pdu { content, copies: 1 });
        let packet = self.add_packet(Carried::Pdu(number));
        let payload = Payload::whole(MessageId(packet.into()), octets);
        let out = match circuits {
            Circuits::Pair { out, .. } => {
                self.circuits[out as usize].packets.push_back(packet);
                out
            }
            Circuits::Descriptor(descriptor) => {
                let Some(out) = self.switched_out(here.host, descriptor, payload) else {
                    // It is connected no more: the driver says so, and nothing went.
                    self.lose_packet(packet);
                    return self.outcome(here, process, Outcome::Failed(CallError::NoSuchCall));
                };
                self.send_to_leaves(out, packet, number);
                out
            }
        };
        self.insert(here, &[Step::Do(Action::SentPdu { process, circuit })]);
        self.hand(here, out, payload);
    }

    /// A PDU goes to wherever a switched circuit ends.
    fn send_to_leaves(&mut self, out: u32, packet: u32, number: u32) {
        let leaves = core::mem::take(&mut self.circuits[out as usize].leaves);
        self.pdus[number].copies = leaves.len();
        if leaves.is_empty() {
            self.lose_packet(packet);
        }
        for &leaf in &leaves {
            self.circuits[leaf as usize].packets.push_back(packet);
        }
        self.circuits[out as usize].leaves = leaves;
    }

    /// A PDU has left its process.
    pub(super) fn sent_pdu(&mut self, here: ThreadAt, process: u32, circuit: CircuitId) {
        self.outcome(here, process, Outcome::SentPdu { circuit });
    }

    /// One of several that a PDU goes to has it, or will not; its copy. `None` where it is the last.
    fn share_pdu(&mut self, number: u32) -> Option<Content> {
        let pdu = &mut self.pdus[number];
        (pdu.copies > 1).then(|| {
            pdu.copies -= 1;
            pdu.content.clone()
        })
    }

    /// A PDU will not come to one that it went to; whether it comes to others.
    pub(super) fn forget_pdu(&mut self, number: u32) -> bool {
        if self.share_pdu(number).is_some() {
            return true;
        }
        self.pdus.remove(number);
        false
    }

    /// A PDU stands before its reader.
    pub(super) fn pdu_came(&mut self, here: ThreadAt, number: u32, packet: u32) {
        let trail = self.trail_of(here);
        let pdu = match self.packets[packet].carried {
            Carried::Pdu(pdu) => pdu,
            Carried::Signal(_) => return self.signal_came(here, packet),
            _ => return,
        };
        let (length, room) = (self.pdus[pdu].content.length(), self.config.stream_bytes);
        let payload = Payload::whole(MessageId(packet.into()), length);
        if self.is_switched(number) {
            return self.switched_pdu_came(here.host, number, Arrived { payload, trail });
        }
        let circuit = &mut self.circuits[number as usize];
        if circuit.arrived_bytes + length > room {
            self.unread += 1;
            return self.lose_packet(packet);
        }
        circuit.arrived_bytes += length;
        circuit.arrived.push_back(Arrived { payload, trail });
        let process = circuit.to;
        self.rouse_library(process, trail);
    }

    /// Whether a PDU is there.
    pub(super) fn has_pdu(&self, process: u32, circuit: CircuitId) -> bool {
        let circuits = self.runtimes[process as usize].circuits(circuit);
        circuits.is_none_or(|circuits| self.has_come(process, circuits))
    }

    fn has_come(&self, process: u32, circuits: Circuits) -> bool {
        match circuits {
            Circuits::Pair { into, .. } => !self.circuits[into as usize].arrived.is_empty(),
            Circuits::Descriptor(descriptor) => {
                self.has_arrived(self.processes[process as usize].here.host, descriptor)
            }
        }
    }

    /// The circuits of a process that have a PDU.
    pub(super) fn circuits_with_pdus(&self, process: u32) -> impl Iterator<Item = CircuitId> {
        let runtime = &self.runtimes[process as usize];
        (0..)
            .map_while(|at| runtime.circuits(CircuitId(at)).map(|circuits| (CircuitId(at), circuits)))
            .filter(move |(_, circuits)| self.has_come(process, *circuits))
            .map(|(circuit, _)| circuit)
    }

    /// A process takes a PDU: what that costs comes first.
    pub(super) fn receive_pdu(&mut self, here: ThreadAt, process: u32, circuit: CircuitId, wait: bool) {
        let arrived = match self.runtimes[process as usize].circuits(circuit) {
            None => return self.outcome(here, process, Outcome::NoPdu { circuit }),
            Some(Circuits::Descriptor(descriptor)) => self.take_arrived(here.host, descriptor),
            Some(Circuits::Pair { into, .. }) => {
                let at = &mut self.circuits[into as usize];
                let first = at.arrived.pop_front();
                at.arrived_bytes -= first.map_or(Bytes::new(0), |first| first.payload.length);
                first
            }
        };
        let Some(Arrived { payload, trail }) = arrived else {
            if wait {
                let call = wiretwin_msg::library::Call::ReceivePdu { circuit, wait };
                return self.sleep(here, process, call);
            }
            return self.outcome(here, process, Outcome::NoPdu { circuit });
        };
        let packet = payload.message.0 as u32;
        let steps = [
            Step::After(trail),
            self.fee(here.host, Activity::ForeReceive),
            self.price(here.host, Activity::CopyOut, payload.length, payload.length),
            Step::Do(Action::TakePdu { process, circuit, packet }),
        ];
        self.insert(here, &steps);
    }

    /// The PDU is in the process's own memory.
    pub(super) fn take_received(&mut self, here: ThreadAt, process: u32, circuit: CircuitId, packet: u32) {
        let Carried::Pdu(number) = self.packets[packet].carried else { return };
        let mut content = match self.share_pdu(number) {
            Some(copy) => copy,
            None => {
                self.packets.remove(packet);
                self.pdus.remove(number).content
            }
        };
        self.outcome(here, process, Outcome::Pdu { circuit, content: &mut content });
    }
}

#[cfg(test)]
mod tests;
