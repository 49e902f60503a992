//! The Fore interface as libraries call it: PDUs on circuits, lost without a word.
//!
//! What a program does on `fore` itself is in `host`. A PDU is at most as long as the interface takes; where its
//! reader's queue is full it is dropped (`unread`), where a cell of it is lost it never comes.

use wiretwin_msg::library::{CallError, CircuitId, Content, Outcome};
use wiretwin_proto::{MessageId, Payload};
use wiretwin_units::Bytes;

use super::activity::Activity;
use super::cpu::{Step, ThreadId};
use super::host::Action;
use super::socket::Carried;
use super::{Arrived, Lan};

/// PDUs on their way, by number.
#[derive(Debug, Default)]
pub(super) struct Pdus {
    list: Vec<Content>,
    free: Vec<u32>,
}

impl Pdus {
    fn add(&mut self, content: Content) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.list[slot as usize] = content;
            return slot;
        }
        self.list.push(content);
        self.list.len() as u32 - 1
    }

    fn take(&mut self, number: u32) -> Content {
        self.free.push(number);
        core::mem::take(&mut self.list[number as usize])
    }
}

impl Lan {
    /// A process sends a PDU; what that costs is paid.
    pub(super) fn send_pdu(
        &mut self,
        host: u32,
        thread: ThreadId,
        process: u32,
        circuit: CircuitId,
        content: Content,
    ) {
        let (octets, most) = (content.length(), self.config.pdu_bytes);
        let Some(pair) = self.inhabitants[process as usize].circuits(circuit) else {
            return self.outcome(host, thread, process, Outcome::Failed(CallError::NoSuchCall));
        };
        if octets > most {
            let error = CallError::TooLong { bytes: octets, most };
            return self.outcome(host, thread, process, Outcome::Failed(error));
        }
        let number = self.pdus.add(content);
        let packet = self.add_packet(Carried::Pdu(number));
        let payload = Payload::whole(MessageId(packet.into()), octets);
        self.circuits[pair.out as usize].packets.push_back(packet);
        self.insert(host, thread, &[Step::Do(Action::SentPdu { process, circuit })]);
        self.hand(host, thread, pair.out, payload);
    }

    /// A PDU has left its process.
    pub(super) fn sent_pdu(&mut self, host: u32, thread: ThreadId, process: u32, circuit: CircuitId) {
        self.outcome(host, thread, process, Outcome::SentPdu { circuit });
    }

    /// A PDU will not come.
    pub(super) fn forget_pdu(&mut self, number: u32) {
        self.pdus.take(number);
    }

    /// A PDU stands before its reader.
    pub(super) fn pdu_came(&mut self, host: u32, thread: ThreadId, number: u32, packet: u32) {
        let trail = self.hosts[host as usize].cpu.trail(thread);
        let Carried::Pdu(pdu) = self.packets.carried(packet) else { return };
        let (length, room) = (self.pdus.list[pdu as usize].length(), self.config.stream_bytes);
        let circuit = &mut self.circuits[number as usize];
        if circuit.arrived_bytes + length > room {
            self.unread += 1;
            return self.lose_packet(packet);
        }
        circuit.arrived_bytes += length;
        let payload = Payload::whole(MessageId(packet.into()), length);
        circuit.arrived.push_back(Arrived { payload, trail });
        let process = circuit.to;
        self.rouse_library(process, trail);
    }

    /// Whether a PDU is there.
    pub(super) fn has_pdu(&self, process: u32, circuit: CircuitId) -> bool {
        let pair = self.inhabitants[process as usize].circuits(circuit);
        pair.is_none_or(|pair| !self.circuits[pair.into as usize].arrived.is_empty())
    }

    /// The circuits of a process that have a PDU.
    pub(super) fn circuits_with_pdus(&self, process: u32) -> impl Iterator<Item = CircuitId> {
        let inhabitant = &self.inhabitants[process as usize];
        (0..)
            .map_while(|at| inhabitant.circuits(CircuitId(at)).map(|pair| (CircuitId(at), pair)))
            .filter(|(_, pair)| !self.circuits[pair.into as usize].arrived.is_empty())
            .map(|(circuit, _)| circuit)
    }

    /// A process takes a PDU: what that costs comes first.
    pub(super) fn receive_pdu(
        &mut self,
        host: u32,
        thread: ThreadId,
        process: u32,
        circuit: CircuitId,
        wait: bool,
    ) {
        let Some(pair) = self.inhabitants[process as usize].circuits(circuit) else {
            return self.outcome(host, thread, process, Outcome::NoPdu { circuit });
        };
        let at = &mut self.circuits[pair.into as usize];
        let Some(Arrived { payload, trail }) = at.arrived.pop_front() else {
            if wait {
                let call = wiretwin_msg::library::Call::ReceivePdu { circuit, wait };
                return self.sleep(host, thread, process, call);
            }
            return self.outcome(host, thread, process, Outcome::NoPdu { circuit });
        };
        at.arrived_bytes -= payload.length;
        let (none, packet) = (Bytes::new(0), payload.message.0 as u32);
        let steps = [
            Step::After(trail),
            self.price(host, Activity::ForeReceive, none, none),
            self.price(host, Activity::CopyOut, payload.length, payload.length),
            Step::Do(Action::TakePdu { process, circuit, packet }),
        ];
        self.insert(host, thread, &steps);
    }

    /// The PDU is in the process's own memory.
    pub(super) fn take_received(
        &mut self,
        host: u32,
        thread: ThreadId,
        process: u32,
        circuit: CircuitId,
        packet: u32,
    ) {
        let Carried::Pdu(number) = self.packets.take(packet).carried else { return };
        let mut content = self.pdus.take(number);
        self.outcome(host, thread, process, Outcome::Pdu { circuit, content: &mut content });
    }
}

#[cfg(test)]
mod tests;
