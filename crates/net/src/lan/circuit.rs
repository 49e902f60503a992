//! Circuits: what an adaptation layer's two ends have to do with one, and how permanent ones come to be.

use std::collections::VecDeque;

use wiretwin_proto::Payload;
use wiretwin_units::{BitRate, Bytes, SimTime, Span};

use super::Lan;
use super::adaptation::{Receiver, Sender};
use super::asx100::Branch;
use super::cell::{PduId, Vc};
use super::config::NetworkConfig;
use super::trail::SegmentId;

/// What an adaptation layer's two ends have to do with a circuit, and what has come for its reader.
pub(super) struct Circuit {
    pub(super) from: u32,
    pub(super) to: u32,
    /// Its name on the sender's link, and on the receiver's.
    pub(super) vc: Vc,
    pub(super) into: Vc,
    /// Packets that it was given, in order, until they or later ones have come.
    pub(super) packets: VecDeque<u32>,
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    /// PDUs that the sender has taken and not begun.
    pub(super) handed: VecDeque<Payload>,
    /// The PDU that is being cut.
    pub(super) pdu: PduId,
    /// PDUs that stand at the receiver's stream head.
    pub(super) arrived: VecDeque<Arrived>,
    pub(super) arrived_bytes: Bytes,
    /// When pacing lets its next cell go.
    pub(super) next_cell: SimTime,
    /// An event will come when its reassembly timer may have run out.
    pub(super) watched: bool,
    /// Of a switched one: the circuits that end where its cells go.
    pub(super) leaves: Vec<u32>,
    /// What it has reserved, and the time between two cells that this makes.
    pub(super) reserved: Option<BitRate>,
    pub(super) spacing: Span,
}

#[derive(Clone, Copy)]
pub(super) struct Arrived {
    pub(super) payload: Payload,
    pub(super) trail: SegmentId,
}

impl Lan {
    /// A permanent circuit from one rank to another: VCI 32 + receiver on the sender's link, 32 + sender
    /// on the receiver's. Between two adapters without a switch both are the sender's.
    pub(super) fn add_circuit(&mut self, from: u32, to: u32) {
        let (out, into) = match self.config.network {
            NetworkConfig::Switch(..) => (to, from),
            _ => (from, from),
        };
        let (vc, into) = (Vc::new(0, FIRST_VCI + out as u16), Vc::new(0, FIRST_VCI + into as u16));
        let number = self.circuits.len() as u32;
        // Without reserved bandwidth, until it gets some.
        let branch = Branch { port: to, vc: into, class: 1 };
        if let Some(switch) = self.switches.first_mut() {
            switch.connect(from, vc, branch).expect("each pair of hosts has a channel of its own");
        }
        self.adapters[to as usize].expect(into, number);
        self.new_circuit((from, vc), (to, into));
    }

    /// Both ends of a circuit, which nobody knows of yet.
    pub(super) fn new_circuit(&mut self, (from, vc): (u32, Vc), (to, into): (u32, Vc)) -> u32 {
        self.circuits.push(Circuit {
            from,
            to,
            vc,
            into,
            packets: VecDeque::new(),
            sender: Sender::new(self.config.stack.lower),
            receiver: Receiver::new(self.config.stack.lower, self.config.reassembly_timer),
            handed: VecDeque::new(),
            pdu: PduId::NONE,
            arrived: VecDeque::new(),
            arrived_bytes: Bytes::new(0),
            next_cell: SimTime::ZERO,
            watched: false,
            leaves: Vec::new(),
            reserved: None,
            spacing: Span::ZERO,
        });
        self.circuits.len() as u32 - 1
    }

    pub(super) fn circuit_between(&self, from: u32, to: u32) -> u32 {
        // Circuits were made in this order, without those from a rank to itself.
        from * (self.size() - 1) + to - u32::from(to > from)
    }
}

/// The first virtual channel that is given out: those below are reserved (I.361 §2.2.3).
pub(super) const FIRST_VCI: u16 = 32;
